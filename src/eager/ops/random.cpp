#include "eager/ops/random.h"

#include "eager/call/call.h"
#include "eager/ops/factories.h"

namespace ingot {

namespace {

const detail::TensorImpl& like(const TensorArg& self, const char* op) {
  return detail::checked_impl(self.tensor ? self.tensor->impl() : nullptr, op, self.location);
}

}  // namespace

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

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
