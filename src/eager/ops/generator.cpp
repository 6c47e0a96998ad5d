#include "eager/ops/generator.h"

#include "base/first_use.h"
#include "base/mutex.h"
#include "eager/autograd/rerun.h"
#include "eager/call/call.h"
#include "eager/ops/factories.h"

namespace ingot {

struct Generator::Source {
  Mutex mutex;
  eager::Draws next{0, 0};
};

namespace {

Generator::Source& default_source() {
  static constinit FirstUse<Generator::Source> source;
  return *source;
}

eager::Draws take_from(Generator::Source& source, int64_t count) {
  autograd::RegionRun* const run = autograd::RegionRun::current();
  if (run)
    if (const std::optional<eager::Draws> known = run->known_draws()) return *known;
  std::unique_lock lock(source.mutex);
  const eager::Draws draws = source.next;
  source.next.offset += static_cast<uint64_t>(count);
  lock.unlock();
  if (run) run->note(draws);
  return draws;
}

/// Draws that are recorded were taken already; a call that does this is no function of its arguments.
void set(Generator::Source& source, const char* op, eager::Draws next) {
  if (const autograd::RegionRun* run = autograd::RegionRun::current(); run && run->is_second()) return;
  eager::flush(op, Location::none());
  std::lock_guard lock(source.mutex);
  source.next = next;
}

}  // namespace

Generator::Generator(uint64_t seed) : source_(std::make_shared<Source>()) { source_->next.seed = seed; }
Generator default_generator() {
  return Generator(std::shared_ptr<Generator::Source>(&default_source(), [](auto*) {}));
}

void Generator::manual_seed(uint64_t seed) const { set(*source_, "manual_seed", {seed, 0}); }
uint64_t Generator::current_seed() const { return take_from(*source_, 0).seed; }
eager::Draws Generator::take(int64_t count) const { return take_from(*source_, count); }

Tensor Generator::get_state() const {
  eager::flush("get_state", Location::none());
  const auto [seed, offset] = take(0);
  return tensor(std::vector<int64_t>{static_cast<int64_t>(seed), static_cast<int64_t>(offset)});
}
void Generator::set_state(const Tensor& state, Location location) const {
  detail::checked_impl(state.impl(), "set_state", location);
  if (state.dtype() != kInt64 || state.dim() != 1 || state.size(0) != 2)
    eager::fail("set_state", "state", state.str(location), "what get_state() gave: i64 [2]", location);
  set(*source_, "set_state",
      {static_cast<uint64_t>(state[0].item<int64_t>()), static_cast<uint64_t>(state[1].item<int64_t>())});
}
Generator Generator::clone() const {
  const Generator other;
  other.source_->next = take(0);
  return other;
}

eager::Draws eager::take_draws(int64_t count) { return take_from(default_source(), count); }

}  // namespace ingot
