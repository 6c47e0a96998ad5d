#include "eager/ops/polynomials.h"

#include <cmath>

#include "base/function_scope.h"
#include "eager/autograd/function.h"
#include "eager/ops/checks.h"
#include "eager/ops/lists.h"

namespace ingot::special {
namespace {

/// p(1) of x, and p(k + 1) of x, k, p(k) and p(k - 1); p(0) is 1.
struct Recurrence {
  double (*first)(double x);
  double (*next)(double x, double k, double last, double before);
};

double twice(double x, double, double last, double before) { return 2 * x * last - before; }
constexpr Recurrence kT{[](double x) { return x; }, twice}, kU{[](double x) { return 2 * x; }, twice},
    kV{[](double x) { return 2 * x - 1; }, twice}, kW{[](double x) { return 2 * x + 1; }, twice},
    kH{[](double x) { return 2 * x; },
       [](double x, double k, double last, double before) { return 2 * (x * last - k * before); }},
    kHe{[](double x) { return x; },
        [](double x, double k, double last, double before) { return x * last - k * before; }},
    kL{[](double x) { return 1 - x; },
       [](double x, double k, double last, double before) { return ((2 * k + 1 - x) * last - k * before) / (k + 1); }},
    kP{[](double x) { return x; },
       [](double x, double k, double last, double before) { return ((2 * k + 1) * x * last - k * before) / (k + 1); }};

double value_of(const Recurrence& p, double x, double degree) {
  const double n = std::trunc(degree);
  if (std::isnan(n) || std::isnan(x)) return n + x;
  if (n < 0) return 0;
  double before = 1, last = p.first(x);
  if (n == 0) return before;
  // What has grown to infinity or NaN stays so.
  for (double k = 1; k < n && std::isfinite(last); ++k) {
    const double next = p.next(x, k, last, before);
    before = last;
    last = next;
  }
  return last;
}

struct Polynomial : autograd::Function<Polynomial> {
  /// Of f64, both row-major and of one shape.
  static Tensor forward(autograd::AutogradContext* context, const char* op, const Tensor& x, const Tensor& n,
                        const Recurrence* recurrence) {
    const Tensor result = empty_like(x);
    const double *at = x.data_ptr<double>(), *degree = n.data_ptr<double>();
    double* value = result.mutable_data_ptr<double>();
    for (int64_t i = 0, count = x.numel(); i < count; ++i) value[i] = value_of(*recurrence, at[i], degree[i]);
    context->saved_data["op"] = op;
    return result;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* context, const std::vector<Tensor>&) {
    eager::fail(std::any_cast<const char*>(context->saved_data["op"]), "x", "a tensor that requires grad",
                "one that does not: there is no gradient", Location::none());
  }
};

Tensor polynomial(const char* op, const Recurrence& recurrence, const OperandArg& x, const OperandArg& n,
                  bool shifted = false) {
  const FunctionScope scope(op, x.location.line ? x.location : n.location);
  const auto wide = [](const OperandArg& a) {
    return a.tensor ? a.tensor->to(kFloat64) : scalar_tensor(a.value, kFloat64);
  };
  DType dtype;
  {
    const NoGradGuard off;
    dtype = (mul(x, n) * 1.0).dtype();
  }
  std::vector<Tensor> both = broadcast_tensors({shifted ? wide(x) * 2 - 1 : wide(x), wide(n)});
  for (Tensor& t : both) t = t.contiguous();
  return Polynomial::apply(op, both[0], both[1], &recurrence).to(dtype);
}

}  // namespace

#define INGOT_POLYNOMIAL(name, recurrence, ...)                                        \
  Tensor name(const OperandArg& x, const OperandArg& n) {                              \
    return polynomial("special::" #name, recurrence, x, n __VA_OPT__(, ) __VA_ARGS__); \
  }
INGOT_POLYNOMIAL(chebyshev_polynomial_t, kT)
INGOT_POLYNOMIAL(chebyshev_polynomial_u, kU)
INGOT_POLYNOMIAL(chebyshev_polynomial_v, kV)
INGOT_POLYNOMIAL(chebyshev_polynomial_w, kW)
INGOT_POLYNOMIAL(shifted_chebyshev_polynomial_t, kT, true)
INGOT_POLYNOMIAL(shifted_chebyshev_polynomial_u, kU, true)
INGOT_POLYNOMIAL(shifted_chebyshev_polynomial_v, kV, true)
INGOT_POLYNOMIAL(shifted_chebyshev_polynomial_w, kW, true)
INGOT_POLYNOMIAL(hermite_polynomial_h, kH)
INGOT_POLYNOMIAL(hermite_polynomial_he, kHe)
INGOT_POLYNOMIAL(laguerre_polynomial_l, kL)
INGOT_POLYNOMIAL(legendre_polynomial_p, kP)
#undef INGOT_POLYNOMIAL

}  // namespace ingot::special
