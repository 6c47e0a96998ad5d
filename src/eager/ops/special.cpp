#include "eager/ops/special.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/function_scope.h"
#include "eager/ops/checks.h"
#include "eager/ops/selection.h"
#include "eager/ops/smooth_function.h"

namespace ingot {
namespace {

using eager::kInfinity;
using eager::present;

constexpr double kRootOfHalf = std::numbers::sqrt2 / 2;

/// As elementwise math takes it: integers and bools become f32.
Tensor as_floating(const char* op, const TensorArg& self) {
  const Tensor& x = present(op, "self", self);
  return is_floating(x.dtype()) ? x : x.to(kFloat32);
}

Tensor log_of_multivariate_gamma(const char* op, const TensorArg& self, int64_t p) {
  const FunctionScope scope(op, self.location);
  const Tensor x = as_floating(op, self);
  if (p < 1) eager::fail(op, "p", std::to_string(p), "at least 1", self.location);
  const Tensor shifts = arange(p, x.dtype()) * -0.5;
  return lgamma(x.unsqueeze(-1) + shifts).sum(-1) +
         0.25 * static_cast<double>(p * (p - 1)) * std::log(std::numbers::pi);
}

// In the left tail Newton's method for log_ndtr(z) = log(p), from the formula 26.2.23 of M. Abramowitz and I. Stegun,
// Handbook of Mathematical Functions, 1964, which is within 4.5e-4. 2 p - 1 is exact elsewhere.
Tensor normal_quantile_of_tail(const Tensor& p) {
  const Tensor logarithm = log(where(p > 0, p, 0.05)), t = sqrt(logarithm * -2);
  Tensor z = ((t * 0.010328 + 0.802853) * t + 2.515517) / (((t * 0.001308 + 0.189269) * t + 1.432788) * t + 1) - t;
  for (int step = 0; step < 3; ++step) {
    const Tensor scaled = ingot::erfcx(z * -kRootOfHalf);
    // Of log_ndtr(z), whose derivative is sqrt(2 / pi) / scaled.
    z = z - (log(scaled / 2) - z * z / 2 - logarithm) * scaled / (2 * std::numbers::inv_sqrtpi * kRootOfHalf);
  }
  return where(p > 0, z, where(p == 0, -kInfinity, std::numeric_limits<double>::quiet_NaN()));
}
Tensor normal_quantile(const Tensor& p) {
  const Tensor tail = p < 0.1, centre = erfinv(where(tail, 0.5, p) * 2 - 1) * std::numbers::sqrt2;
  if (eager::intercepted()) return where(tail, normal_quantile_of_tail(where(tail, p, 0.05)), centre);
  // The tail takes ten times as long for an element, and is short.
  const Tensor at = nonzero(tail.reshape({-1})).select(1, 0);
  const Tensor of_tail = normal_quantile_of_tail(p.reshape({-1}).index_select(0, at));
  return centre.reshape({-1}).index_copy(0, at, of_tail).view(p.sizes());
}

/// Of q > 0 and x > 1, by the sum of Euler and Maclaurin (NIST Digital Library of Mathematical Functions, 25.11.5).
Tensor hurwitz_zeta(const Tensor& x, const Tensor& q) {
  constexpr int kTerms = 10;
  // B_2j / (2j)!
  constexpr double kFactors[] = {0.08333333333333333,    -0.001388888888888889,   3.306878306878307e-05,
                                 -8.267195767195768e-07, 2.08767569878681e-08,    -5.284190138687493e-10,
                                 1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15,
                                 -2.174868698558062e-16};
  Tensor sum = pow(q, -x);
  for (int k = 1; k < kTerms; ++k) sum = sum + pow(q + k, -x);
  const Tensor a = q + kTerms, square = a * a;
  Tensor rising = x / a, series = rising * kFactors[0];
  for (size_t j = 1; j < std::size(kFactors); ++j) {
    const double last = 2 * static_cast<double>(j);
    rising = rising * (x + (last - 1)) * (x + last) / square;
    series = series + rising * kFactors[j];
  }
  const Tensor power = pow(a, -x);
  return sum + where(power == 0, 0, power * (a / (x - 1) + 0.5 + series));
}

}  // namespace

Tensor mvlgamma(const TensorArg& self, int64_t p) { return log_of_multivariate_gamma("mvlgamma", self, p); }

namespace special {

Tensor multigammaln(const TensorArg& self, int64_t p) { return log_of_multivariate_gamma("multigammaln", self, p); }

// Each branch sees numbers of its own only: elsewhere its derivative could be NaN. At 0 it rises without bound, as a
// root does.
Tensor entr(const TensorArg& self) {
  const FunctionScope scope("entr", self.location);
  const Tensor x = as_floating("entr", self), zero = x == 0, positive = where(x <= 0, 1, x);
  const Tensor inside = where(zero, sqrt(where(zero, x, 1)), -positive * log(positive));
  return where(x < 0, -kInfinity, inside);
}

Tensor xlog1py(const OperandArg& self, const OperandArg& other) {
  const FunctionScope scope("xlog1py", self.location.line ? self.location : other.location);
  if (!other.tensor) {
    const double y = other.value.to_double(), logarithm = std::log1p(y);
    return std::isfinite(logarithm) || std::isnan(y) ? mul(self, logarithm)
                                                     : where(eq(self, 0), 0, mul(self, logarithm));
  }
  // Where 0 meets a logarithm that is not finite, that of 1 takes its place.
  const Tensor& y = *other.tensor;
  const Tensor beyond = logical_and(eq(self, 0), logical_or(y <= -1, y == kInfinity));
  return mul(self, ingot::log1p(where(beyond, 0, y)));
}

Tensor ndtr(const TensorArg& self) {
  const FunctionScope scope("ndtr", self.location);
  return 0.5 * ingot::erfc(as_floating("ndtr", self) * -kRootOfHalf);
}

// Far to the left the area is below what a float holds: its logarithm is that of a scaled one.
Tensor log_ndtr(const TensorArg& self) {
  const FunctionScope scope("log_ndtr", self.location);
  const Tensor x = as_floating("log_ndtr", self), left = x < -1, t = x * kRootOfHalf;
  // Branches, again, with numbers of their own.
  const Tensor below = where(left, t, -1), above = where(left, 0, t);
  return where(left, log(ingot::erfcx(-below) / 2) - below * below, ingot::log1p(-ingot::erfc(above) / 2));
}

Tensor ndtri(const TensorArg& self) {
  return eager::smooth("special::ndtri", self, normal_quantile, [](const Tensor& p) {
    return exp(square(special::ndtri(p)) / 2) * std::sqrt(2 * std::numbers::pi);
  });
}

Tensor zeta(const OperandArg& self, const OperandArg& other) {
  const CallerLine line(self.location.line ? self.location : other.location);
  const auto wide = [](const OperandArg& a) {
    return a.tensor ? a.tensor->to(kFloat64) : scalar_tensor(a.value, kFloat64);
  };
  DType dtype = kFloat32;
  for (const OperandArg* a : {&self, &other})
    if (a->tensor) {
      const DType own = present("special::zeta", a == &self ? "self" : "other", {*a->tensor, a->location}).dtype();
      if (is_floating(own))
        dtype = a == &other && self.tensor && is_floating(self.tensor->dtype()) ? promote(dtype, own) : own;
    }
  const Tensor x = wide(self), q = wide(other);
  const Tensor inside = logical_and(x > 1, q > 0);
  const Tensor value = hurwitz_zeta(where(inside, x, 2), where(inside, q, 1));
  const Tensor pole = logical_and(x >= 1, logical_or(x == 1, logical_and(q <= 0, q == floor(q))));
  const Tensor outside =
      where(logical_and(pole, logical_not(isnan(q))), kInfinity, std::numeric_limits<double>::quiet_NaN());
  return where(inside, value, outside).to(dtype);
}

}  // namespace special

namespace {

/// Writes what `f` gives of a copy, which its gradient reads, over `self`.
template <class F>
const Tensor& in_place(const char* op, const Tensor& self, Location location, F f) {
  const FunctionScope scope(op, location);
  return eager::present_floating(op, "self", {self, location}).copy_(f(self.clone()));
}

}  // namespace

const Tensor& Tensor::i0_(Location location) const {
  return in_place("i0_", *this, location, [](const Tensor& x) { return x.i0(); });
}
const Tensor& Tensor::igamma_(const TensorArg& other, Location location) const {
  return in_place("igamma_", *this, location, [&](const Tensor& x) { return x.igamma(other); });
}
const Tensor& Tensor::igammac_(const TensorArg& other, Location location) const {
  return in_place("igammac_", *this, location, [&](const Tensor& x) { return x.igammac(other); });
}
const Tensor& Tensor::mvlgamma_(int64_t p, Location location) const {
  return in_place("mvlgamma_", *this, location, [p](const Tensor& x) { return x.mvlgamma(p); });
}
const Tensor& Tensor::polygamma_(int64_t n, Location location) const {
  return in_place("polygamma_", *this, location, [n](const Tensor& x) { return x.polygamma(n); });
}
Tensor Tensor::mvlgamma(int64_t p, Location location) const { return ingot::mvlgamma({*this, location}, p); }
Tensor Tensor::polygamma(int64_t n, Location location) const {
  return ingot::polygamma(n, {*this, location}, location);
}

}  // namespace ingot
