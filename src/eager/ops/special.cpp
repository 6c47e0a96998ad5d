#include "eager/ops/special.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "eager/ops/checks.h"

namespace ingot {
namespace {

using eager::present;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRootOfHalf = std::numbers::sqrt2 / 2;

/// As elementwise math takes it: integers and bools become f32.
Tensor as_floating(const char* op, const TensorArg& self) {
  const Tensor& x = present(op, "self", self);
  return is_floating(x.dtype()) ? x : x.to(kFloat32);
}

Tensor log_of_multivariate_gamma(const char* op, const TensorArg& self, int64_t p) {
  const CallerLine line(self.location);
  const Tensor x = as_floating(op, self);
  if (p < 1) eager::fail(op, "p", std::to_string(p), "at least 1", self.location);
  const Tensor shifts = arange(p, x.dtype()) * -0.5;
  return lgamma(x.unsqueeze(-1) + shifts).sum(-1) +
         0.25 * static_cast<double>(p * (p - 1)) * std::log(std::numbers::pi);
}

}  // namespace

Tensor mvlgamma(const TensorArg& self, int64_t p) { return log_of_multivariate_gamma("mvlgamma", self, p); }

namespace special {

Tensor multigammaln(const TensorArg& self, int64_t p) { return log_of_multivariate_gamma("multigammaln", self, p); }

// Each branch sees numbers of its own only: elsewhere its derivative could be NaN. At 0 it rises without bound, as a
// root does.
Tensor entr(const TensorArg& self) {
  const CallerLine line(self.location);
  const Tensor x = as_floating("entr", self), zero = x == 0, positive = where(x <= 0, 1, x);
  const Tensor inside = where(zero, sqrt(where(zero, x, 1)), -positive * log(positive));
  return where(x < 0, -kInfinity, inside);
}

Tensor xlog1py(const OperandArg& self, const OperandArg& other) {
  const CallerLine line(self.location.line ? self.location : other.location);
  if (!other.tensor) {
    const double y = other.value.to_double(), logarithm = std::log1p(y);
    return std::isfinite(logarithm) || std::isnan(y) ? mul(self, logarithm)
                                                     : where(eq(self, 0), 0, mul(self, logarithm));
  }
  // Where 0 meets a logarithm that is not finite, that of 1 takes its place.
  const Tensor& y = *other.tensor;
  const Tensor beyond = logical_and(eq(self, 0), logical_or(y <= -1, y == kInfinity));
  return mul(self, log1p(where(beyond, 0, y)));
}

Tensor ndtr(const TensorArg& self) {
  const CallerLine line(self.location);
  return 0.5 * erfc(as_floating("ndtr", self) * -kRootOfHalf);
}

// Far to the left the area is below what a float holds: its logarithm is that of a scaled one.
Tensor log_ndtr(const TensorArg& self) {
  const CallerLine line(self.location);
  const Tensor x = as_floating("log_ndtr", self), left = x < -1, t = x * kRootOfHalf;
  // Branches, again, with numbers of their own.
  const Tensor below = where(left, t, -1), above = where(left, 0, t);
  return where(left, log(erfcx(-below) / 2) - below * below, log1p(-erfc(above) / 2));
}

}  // namespace special
}  // namespace ingot
