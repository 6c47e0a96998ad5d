// Functions of single elements that are written with other ops, and sequences of numbers.
#include <cmath>
#include <iterator>

#include "ir/decompose.h"

namespace ingot::ir {
namespace {

/// A number or a zero-dim tensor as the dtype of a result holds it, in double.
Operand end_of_range(GraphBuilder& b, const Operand& x, DType result) {
  if (is_floating(result)) return x.is_value() ? b.to(x, DType::f64) : b.scalar(x, DType::f64);
  const Operand whole = x.is_value()                       ? b.to(x, result)
                        : x.category == Category::floating ? b.to(b.scalar(x, DType::f64), result)
                                                           : b.scalar(x, result);
  return b.to(whole, DType::f64);
}

/// The n-th derivative of digamma, n > 0, but for its sign, of x >= 1/2: shifted up by its recurrence to where the
/// asymptotic series has all digits (M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 1964, 6.4).
Operand polygamma_size(GraphBuilder& b, const Operand& x, int64_t n) {
  constexpr int kShift = 10;
  Operand sum;
  for (int i = 0; i < kShift; ++i) {
    const Operand term = b.pow(b.add(x, static_cast<double>(i)), static_cast<double>(-n - 1));
    sum = sum.present() ? b.add(sum, term) : term;
  }
  // The series over (n - 1)! / z^n: of z^-2k the factor is B_2k (2k + n - 1)! / ((2k)! (n - 1)!).
  constexpr double kBernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                   5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
  const Operand inverse = b.reciprocal(b.add(x, static_cast<double>(kShift))), square = b.mul(inverse, inverse);
  std::vector<double> factors;
  double choices = 1;
  for (int64_t k = 1; k <= static_cast<int64_t>(std::size(kBernoulli)); ++k) {
    choices *= static_cast<double>((2 * k + n - 1) * (2 * k + n - 2)) / static_cast<double>(2 * k * (2 * k - 1));
    factors.push_back(kBernoulli[k - 1] * choices);
  }
  Operand series = b.mul(square, factors.back());
  for (size_t k = factors.size() - 1; k-- > 0;) series = b.mul(b.add(series, factors[k]), square);
  series = b.add(b.add(series, b.mul(inverse, 0.5 * static_cast<double>(n))), 1.0);
  const Operand tail =
      b.mul(b.mul(b.pow(inverse, static_cast<double>(n)), series), std::tgamma(static_cast<double>(n)));
  return b.add(b.mul(sum, std::tgamma(static_cast<double>(n + 1))), tail);
}

/// The n-th derivative of pi cot(pi x): a polynomial in c = cot(pi x), whose own derivative is -pi (1 + c^2).
Operand cotangent_derivative(GraphBuilder& b, const Operand& x, int64_t n) {
  constexpr double kPi = 0x1.921fb54442d18p1;
  std::vector<double> polynomial{0, kPi};
  for (int64_t k = 0; k < n; ++k) {
    std::vector<double> next(polynomial.size() + 1);
    for (size_t i = 1; i < polynomial.size(); ++i) {
      const double factor = -kPi * static_cast<double>(i) * polynomial[i];
      next[i - 1] += factor;
      next[i + 1] += factor;
    }
    polynomial = std::move(next);
  }
  // Halfway between two poles it is exactly 0: what a rounding of pi leaves there is multiplied by the largest factors.
  const Operand from_pole = b.sub(x, b.round(x)), distance = b.abs(from_pole);
  const Operand near = b.reciprocal(b.tan(b.mul(from_pole, kPi))),
                far = b.copysign(b.tan(b.mul(b.rsub(distance, 0.5), kPi)), from_pole);
  const Operand c = b.where(b.lt(distance, 0.25), near, far);
  // Every other coefficient is 0: in powers of the square.
  const Operand square = b.mul(c, c);
  Operand sum = b.mul(square, polynomial.back());
  size_t i = polynomial.size() - 3;
  for (; i >= 2; i -= 2) sum = b.mul(b.add(sum, polynomial[i]), square);
  sum = b.add(sum, polynomial[i]);
  return i ? b.mul(sum, c) : sum;
}

}  // namespace

namespace decompositions {

// In double. Below one half reflected: (-1)^n psi_n(1 - x) less the derivative of the cotangent.
Outputs polygamma(GraphBuilder& b, const CompositeCall& call) {
  const int64_t n = call.integer("n");
  if (n == 0) return {b.to(b.digamma(call.operands[0]), call.result)};
  const Operand x = b.to(call.operands[0], DType::f64), left = b.lt(x, 0.5);
  const Operand size = polygamma_size(b, b.where(left, b.rsub(x, 1.0), x), n);
  const Operand reflected = b.sub(b.neg(size), cotangent_derivative(b, x, n));
  if (n % 2) return {b.where(left, reflected, size)};
  return {b.where(left, reflected, b.neg(size))};
}

Outputs prelu(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  Operand weight = call.operands[1];
  if (b.rank(weight) == 1 && b.rank(x) >= 2) weight = b.per_channel(weight, 1, b.rank(x));
  if (b.rank(weight) == 1 && b.rank(x) == 0) weight = b.reshape(weight, {});
  return {b.where(b.gt(x, 0.0), x, b.mul(weight, x))};
}

Outputs glu(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  const Attr& dim = call.attribute("dim");
  Dim size = b.shape(x)[dim.integer], half = b.dims().floor_div(size, 2);
  Operand value = b.slice(x, dim, Dims{0}, Dims{half}, GraphBuilder::attr(1));
  Operand gate = b.slice(x, dim, Dims{half}, Dims{size}, GraphBuilder::attr(1));
  return {b.mul(value, b.sigmoid(gate))};
}

// Integers are compared in double.
Outputs linalg_failed(GraphBuilder& b, const CompositeCall& call) {
  return {b.ne(call.operand("info"), GraphBuilder::integer(0))};
}

Outputs isclose(GraphBuilder& b, const CompositeCall& call) {
  Operand x = call.operands[0], y = call.operands[1];
  Operand close = b.eq(x, y);
  if (is_floating(b.dtype(x))) {
    if (call.flag("equal_nan")) close = b.logical_or(close, b.logical_and(b.isnan(x), b.isnan(y)));
  } else {
    x = b.to(x, DType::f64);
    y = b.to(y, DType::f64);
  }
  Operand allowed = b.add(b.abs(b.mul(y, call.operand("rtol"))), call.operand("atol"));
  Operand apart = b.abs(b.sub(x, y));
  return {b.logical_or(close, b.logical_and(b.isfinite(apart), b.le(apart, allowed)))};
}

// From the nearer end, in double, so that both ends are met exactly.
Outputs linspace(GraphBuilder& b, const CompositeCall& call) {
  DimTable& dims = b.dims();
  Dim steps = call.attribute("steps").list[0];
  Operand start = end_of_range(b, call.operands[0], call.result), end = end_of_range(b, call.operands[1], call.result);
  Operand gaps = GraphBuilder::divisor(dims.sub(dims.max(steps, 1), 1));
  Operand step = b.div(b.sub(end, start), gaps);
  Operand i = b.arange(GraphBuilder::integer(0), GraphBuilder::integer(1), Dims{steps}, DType::f64);
  Operand up = b.add(start, b.mul(step, i)), down = b.sub(end, b.mul(step, b.rsub(i, gaps)));
  Operand value = b.where(b.lt(i, GraphBuilder::size_operand(dims.floor_div(steps, 2))), up, down);
  // A single step has no gap to divide by.
  return {b.cast(b.where(b.eq(i, 0.0), start, value), call.result)};
}

}  // namespace decompositions
}  // namespace ingot::ir
