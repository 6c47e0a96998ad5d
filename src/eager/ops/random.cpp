#include "eager/ops/random.h"

#include <cmath>
#include <numbers>

#include "eager/call/check_values.h"
#include "eager/ops/checks.h"
#include "eager/ops/lists.h"

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

Tensor normal(const OperandArg& mean, const OperandArg& std, const std::optional<Generator>& generator) {
  const Location location = mean.location.line ? mean.location : std.location;
  const CallerLine line(location);
  if (!mean.tensor && !std.tensor)
    eager::fail("normal", "size", "none", "sizes, for a mean and a standard deviation that are numbers", location);
  std::vector<Tensor> given;
  for (const OperandArg* a : {&mean, &std})
    if (a->tensor)
      given.push_back(eager::present_floating("normal", a == &mean ? "mean" : "std", {*a->tensor, location}).detach());
  const DType dtype = given[0].dtype();
  if (given.size() > 1) given = broadcast_tensors(given);
  if (!std.tensor && !(std.value.to_double() >= 0))
    eager::fail("normal", "std", std::to_string(std.value.to_double()), "no number below 0", location);
  if (std.tensor)
    eager::require({"normal", "std", "a number that is negative or NaN", "no such number"}, given.back() >= 0);
  const Tensor z = randn_like(given[0], {}, generator);
  const Tensor spread = std.tensor ? z * given.back() : mul(z, std.value);
  return (mean.tensor ? spread + given[0] : add(spread, mean.value)).to(dtype);
}
Tensor normal(double mean, double std, const IntList& size, const std::optional<Generator>& generator,
              TensorOptions options, Location location) {
  return eager::as_asked(zeros(size, options.dtype_or(kFloat32), location).normal_(mean, std, generator, location),
                         options, location);
}

const Tensor& Tensor::log_normal_(double mean, double std, const std::optional<Generator>& generator,
                                  Location location) const {
  return copy_(detach(location).normal(mean, std, generator, location).exp(location), location);
}
// By the inverse of its distribution function.
const Tensor& Tensor::cauchy_(double median, double sigma, const std::optional<Generator>& generator,
                              Location location) const {
  const CallerLine line(location);
  eager::present_floating("cauchy_", "self", {*this, location});
  if (!(sigma > 0)) eager::fail("cauchy_", "sigma", std::to_string(sigma), "a positive number", location);
  const Tensor u = rand_like(detach(), working_dtype(dtype()), generator);
  return copy_(ingot::tan((u - 0.5) * std::numbers::pi) * sigma + median);
}
// Of an exponential number, the whole part.
const Tensor& Tensor::geometric_(double p, const std::optional<Generator>& generator, Location location) const {
  const CallerLine line(location);
  if (!(p > 0 && p < 1)) eager::fail("geometric_", "p", std::to_string(p), "a number between 0 and 1", location);
  const Tensor like = zeros_like(*this, dtype() == kFloat64 ? kFloat64 : kFloat32);
  return copy_(ingot::floor(ingot::exponential(like, -std::log1p(-p), generator)) + 1);
}
const Tensor& Tensor::random_(int64_t from, int64_t to, const std::optional<Generator>& generator,
                              Location location) const {
  return copy_(randint_like({*this, location}, from, to, {}, generator), location);
}
const Tensor& Tensor::random_(int64_t to, const std::optional<Generator>& generator, Location location) const {
  return random_(0, to, generator, location);
}
const Tensor& Tensor::random_(const std::optional<Generator>& generator, Location location) const {
  const DType type = dtype(location);
  // Of i64 the largest one itself is left out: a range ends in an i64.
  const int64_t end = type == kBool       ? 2
                      : type == kInt64    ? INT64_MAX
                      : is_integral(type) ? integer_range(type).second + 1
                      : type == kFloat64  ? (int64_t{1} << 53) + 1
                      : type == kFloat32  ? (int64_t{1} << 24) + 1
                      : type == kFloat16  ? (int64_t{1} << 11) + 1
                                          : (int64_t{1} << 8) + 1;
  return random_(0, end, generator, location);
}

}  // namespace ingot
