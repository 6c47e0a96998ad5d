#include "eager/ops/random.h"

#include "base/first_use.h"
#include "base/mutex.h"
#include "eager/call/call.h"
#include "eager/call/infer.h"
#include "eager/data.h"
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

eager::Draws take(Generator::Source& source, int64_t count) {
  std::lock_guard lock(source.mutex);
  const eager::Draws draws = source.next;
  source.next.offset += static_cast<uint64_t>(count);
  return draws;
}

/// Draws that are recorded were taken already; a call that does this is no function of its arguments.
void set(Generator::Source& source, const char* op, eager::Draws next) {
  eager::flush(op, Location::none());
  std::lock_guard lock(source.mutex);
  source.next = next;
}

const detail::TensorImpl& like(const TensorArg& self, const char* op) {
  return detail::checked_impl(self.tensor ? self.tensor->impl() : nullptr, op, self.location);
}

}  // namespace

Generator::Generator(uint64_t seed) : source_(std::make_shared<Source>()) { source_->next.seed = seed; }
Generator default_generator() {
  return Generator(std::shared_ptr<Generator::Source>(&default_source(), [](auto*) {}));
}

void Generator::manual_seed(uint64_t seed) const { set(*source_, "manual_seed", {seed, 0}); }
uint64_t Generator::current_seed() const { return ingot::take(*source_, 0).seed; }
eager::Draws Generator::take(int64_t count) const { return ingot::take(*source_, count); }

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

eager::Draws eager::take_draws(int64_t count) { return take(default_source(), count); }

int64_t eager::draws_of(const OpCall& call, IntArrayRef result) {
  const Tensor* first = !call.operands.empty() ? call.operands[0].tensor : nullptr;
  return std::max(count(result), first ? count(first->impl()->sizes) : 0);
}

void eager::draw(const OpCall& call, std::span<Operand> seed_and_offset, const std::optional<Generator>& generator) {
  OutputMeta result;
  infer_outputs(call, {&result, 1});
  // A frozen call takes its draws from the default one.
  if (generator && interceptor(Stage::observe)) flush("draws from a generator of its own", call.location);
  const int64_t n = draws_of(call, result.sizes);
  const Draws draws = generator ? generator->take(n) : take_draws(n);
  seed_and_offset[0] = Operand(Scalar(draws.seed));
  seed_and_offset[1] = Operand(Scalar(draws.offset));
}

void manual_seed(uint64_t seed) { set(default_source(), "manual_seed", {seed, 0}); }

Tensor randint(int64_t high, const IntList& size, TensorOptions options, const std::optional<Generator>& generator,
               Location location) {
  return randint(ScalarArg(0, location), high, size, options, generator);
}
Tensor rand_like(const TensorArg& self, TensorOptions options, const std::optional<Generator>& generator) {
  const detail::TensorImpl& t = like(self, "rand_like");
  return rand(eager::sizes_of(*self.tensor, self.location), options.or_dtype(t.dtype), generator, self.location);
}
Tensor randn_like(const TensorArg& self, TensorOptions options, const std::optional<Generator>& generator) {
  const detail::TensorImpl& t = like(self, "randn_like");
  return randn(eager::sizes_of(*self.tensor, self.location), options.or_dtype(t.dtype), generator, self.location);
}
Tensor randint_like(const TensorArg& self, int64_t low, int64_t high, TensorOptions options,
                    const std::optional<Generator>& generator) {
  const detail::TensorImpl& t = like(self, "randint_like");
  return randint(ScalarArg(low, self.location), high, eager::sizes_of(*self.tensor, self.location),
                 options.or_dtype(t.dtype), generator);
}
Tensor randint_like(const TensorArg& self, int64_t high, TensorOptions options,
                    const std::optional<Generator>& generator) {
  return randint_like(self, 0, high, options, generator);
}

}  // namespace ingot
