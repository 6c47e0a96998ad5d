// The incomplete gamma functions, number by number.
#include <cmath>
#include <limits>

#include "eager/autograd/function.h"
#include "eager/ops/checks.h"
#include "eager/ops/densities.h"
#include "eager/ops/lists.h"
#include "eager/ops/special.h"

namespace ingot {
namespace {

using autograd::AutogradContext;
using eager::fail;
using eager::present;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon() / 4;

/// log(gamma(1 + a)) of a small a, with all its digits: -gamma a + zeta(2) a^2 / 2 - zeta(3) a^3 / 3 + ...
double log_gamma_of_one_and(double a) {
  if (a > 0.1) return std::lgamma(1 + a);
  constexpr double kFactors[] = {0.8224670334241132,  -0.40068563438653143, 0.27058080842778454, -0.20738555102867398,
                                 0.1695571769974082,  -0.1440498967688461,  0.12550966952474304, -0.11133426586956469,
                                 0.1000994575127818,  -0.09095401714582904, 0.083353840546109,   -0.0769325164113522,
                                 0.07143294629536133, -0.06666870588242046, 0.06250095514121304, -0.058823978658684585};
  double sum = 0;
  for (size_t i = std::size(kFactors); i-- > 0;) sum = (sum + kFactors[i]) * a;
  return (sum - std::numbers::egamma) * a;
}

// NIST Digital Library of Mathematical Functions: 8.11.4, 8.7.1 and 8.9.2, the last by Lentz's method.
double lower_series(double a, double x) {
  double term = 1, sum = 1;
  for (double n = a + 1; term > sum * kEpsilon; ++n) sum += term *= x / n;
  return sum * eager::poisson_density(a, x);
}
double upper_series(double a, double x) {
  double term = 1, sum = 0;
  for (double n = 1; n < 60; ++n) {
    term *= -x / n;
    sum += term / (a + n);
  }
  const double logarithm = a * std::log(x) - log_gamma_of_one_and(a);
  return -std::expm1(logarithm) - a * sum * std::exp(logarithm);
}
double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, value = d;
  for (double n = 1;; ++n) {
    const double factor = -n * (n - a);
    b += 2;
    d = factor * d + b;
    c = b + factor / c;
    if (d == 0) d = kTiny;
    if (c == 0) c = kTiny;
    d = 1 / d;
    const double step = d * c;
    value *= step;
    if (std::fabs(step - 1) <= 4 * kEpsilon) break;
  }
  return value * a * eager::poisson_density(a, x);
}

double incomplete(double a, double x, bool upper) {
  const auto part = [&](double share) { return upper ? 1 - share : share; };  // of the lower one
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x)))
    return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || std::isinf(a)) return part(0);
  if (a == 0 || std::isinf(x)) return part(1);
  if (x <= a) return part(lower_series(a, x));
  const double above = x < 1.1 ? upper_series(a, x) : upper_fraction(a, x);
  return upper ? above : 1 - above;
}

struct IncompleteGamma : autograd::Function<IncompleteGamma> {
  /// Of f64, both row-major and of one shape.
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& x, bool upper) {
    const Tensor result = empty_like(a);
    const double *order = a.data_ptr<double>(), *end = x.data_ptr<double>();
    double* value = result.mutable_data_ptr<double>();
    for (int64_t i = 0, n = a.numel(); i < n; ++i) value[i] = incomplete(order[i], end[i], upper);
    context->save_for_backward({a, x});
    context->saved_data["upper"] = upper;
    return result;
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const bool upper = std::any_cast<bool>(context->saved_data["upper"]);
    if (context->needs_input_grad(0))
      fail(upper ? "special::gammaincc" : "special::gammainc", "self", "a tensor that requires grad",
           "one that does not: there is no gradient to it", Location::none());
    const std::vector<Tensor> saved = context->get_saved_variables();
    const Tensor &a = saved[0], &x = saved[1];
    const Tensor density = exp(xlogy(a - 1, x) - x - lgamma(a)) * gradients[0];
    return {Tensor(), upper ? -density : density, Tensor()};
  }
};

Tensor incomplete_gamma(const char* op, const TensorArg& self, const TensorArg& other, bool upper) {
  const CallerLine line(self.location);
  const Tensor &a = eager::present_floating(op, "self", self), &x = present(op, "other", other);
  if (x.dtype() != a.dtype())
    fail(op, "other", eager::dtype_text(x), std::string(name_of(a.dtype())) + ", the dtype of self", self.location);
  std::vector<Tensor> both = broadcast_tensors({a, x});
  for (Tensor& t : both) t = t.to(kFloat64).contiguous();
  return IncompleteGamma::apply(both[0], both[1], upper).to(a.dtype());
}

}  // namespace

Tensor igamma(const TensorArg& self, const TensorArg& other) { return incomplete_gamma("igamma", self, other, false); }
Tensor igammac(const TensorArg& self, const TensorArg& other) { return incomplete_gamma("igammac", self, other, true); }
Tensor Tensor::igamma(const TensorArg& other, Location location) const {
  return ingot::igamma({*this, location}, other);
}
Tensor Tensor::igammac(const TensorArg& other, Location location) const {
  return ingot::igammac({*this, location}, other);
}

namespace special {

Tensor gammainc(const TensorArg& self, const TensorArg& other) {
  return incomplete_gamma("special::gammainc", self, other, false);
}
Tensor gammaincc(const TensorArg& self, const TensorArg& other) {
  return incomplete_gamma("special::gammaincc", self, other, true);
}

}  // namespace special
}  // namespace ingot
