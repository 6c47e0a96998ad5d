#include "eager/ops/random.h"

#include "base/first_use.h"
#include "base/mutex.h"
#include "eager/call/call.h"
#include "eager/call/infer.h"
#include "eager/data.h"

namespace ingot {
namespace {

struct Generator {
  Mutex mutex;
  uint64_t seed = 0, position = 0;
};
Generator& generator() {
  static constinit FirstUse<Generator> g;
  return *g;
}

const detail::TensorImpl& like(const TensorArg& self, const char* op) {
  return detail::checked_impl(self.tensor ? self.tensor->impl() : nullptr, op, self.location);
}

}  // namespace

eager::Draws eager::take_draws(int64_t count) {
  Generator& g = generator();
  std::lock_guard lock(g.mutex);
  Draws draws{g.seed, g.position};
  g.position += static_cast<uint64_t>(count);
  return draws;
}

void eager::draw(const OpCall& call, std::span<Operand> seed_and_offset) {
  OutputMeta result;
  infer_outputs(call, {&result, 1});
  Draws draws = take_draws(count(result.sizes));
  seed_and_offset[0] = Operand(Scalar(draws.seed));
  seed_and_offset[1] = Operand(Scalar(draws.offset));
}

void manual_seed(uint64_t seed) {
  // Draws that are recorded were taken already; a call that seeds is no function of its arguments.
  eager::flush("manual_seed", Location::none());
  Generator& g = generator();
  std::lock_guard lock(g.mutex);
  g.seed = seed;
  g.position = 0;
}

Tensor randint(int64_t high, const IntList& size, TensorOptions options, Location location) {
  return randint(ScalarArg(0, location), high, size, options);
}
Tensor rand_like(const TensorArg& self, TensorOptions options) {
  const detail::TensorImpl& t = like(self, "rand_like");
  return rand(eager::sizes_of(*self.tensor, self.location), options.dtype_or(t.dtype), self.location);
}
Tensor randn_like(const TensorArg& self, TensorOptions options) {
  const detail::TensorImpl& t = like(self, "randn_like");
  return randn(eager::sizes_of(*self.tensor, self.location), options.dtype_or(t.dtype), self.location);
}
Tensor randint_like(const TensorArg& self, int64_t low, int64_t high, TensorOptions options) {
  const detail::TensorImpl& t = like(self, "randint_like");
  return randint(ScalarArg(low, self.location), high, eager::sizes_of(*self.tensor, self.location),
                 options.dtype_or(t.dtype));
}
Tensor randint_like(const TensorArg& self, int64_t high, TensorOptions options) {
  return randint_like(self, 0, high, options);
}

}  // namespace ingot
