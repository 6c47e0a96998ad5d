// Activations; PyTorch's formulas. NaN stays NaN.
#include "codegen/elementwise/definitions.h"
#include "codegen/math/pair.h"

namespace ingot::codegen::define {
namespace {

// x above zero, alpha * (e^(x * inner) - 1) below; both times `outer`.
Expr elu_of(Expr x, Expr alpha, Expr inner, Expr outer) {
  return select(x <= 0.0, math::expm1(x * inner) * (alpha * outer), x * outer);
}

// x + 3 limited to [0, 6], and what its rounding lost.
math::Pair shifted(Expr x) {
  Expr limited = math::limit(x, -3, 3), sum = limited + 3.0;
  return {sum, limited - (sum - 3.0)};
}

// A pair divided by 6.
Expr sixth(math::Pair x) {
  constexpr double kSixth = 1.0 / 6;
  const double high = x.high.type() == Type::f32 ? static_cast<float>(kSixth) : kSixth;
  return fma(x.high, high, fma(x.high, kSixth - high, x.low * high));
}

}  // namespace

Expr sigmoid(const ElementwiseContext& c) { return math::sigmoid(c.operands[0]); }

// +0 for -0.
Expr relu(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  return floating(c) ? select(x <= 0.0, 0.0, x) : max(x, 0);
}
Expr relu6(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  return floating(c) ? math::lesser(lift(x, 6.0), select(x <= 0.0, 0.0, x)) : min(max(x, 0), 6);
}
Expr hardtanh(const ElementwiseContext& c) { return min(max(c.operands[0], c.operands[1]), c.operands[2]); }

// {none|tanh}: x times the normal distribution function, or its approximation (1 + tanh u) / 2, which is sigmoid(2u):
// that has no cancellation. u = sqrt(2 / pi) (x + 0.044715 x^3).
Expr gelu(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  if (c.attributes[0].integer == 0) return x * math::normal_cdf(x);
  return math::logistic_product(x, fma(x * x, x * 0.044715, x) * (2 * 0x1.9884533d43651p-1));
}

Expr silu(const ElementwiseContext& c) { return math::logistic_product(c.operands[0], c.operands[0]); }

// x / (1 + |x|). As in PyTorch the denominator of an integer is an integer of its dtype, which wraps.
Expr softsign(const ElementwiseContext& c) {
  Expr x = c.operands[0], size = codegen::abs(x);
  if (floating(c)) return codegen::copysign(math::quotient({x, {}}, math::sum(lift(x, 1.0), size)), x);
  const Type result = register_type(c.result);
  return convert(x, result) / convert(convert_element(size + 1, c.compute), result);
}

Expr hardsigmoid(const ElementwiseContext& c) { return sixth(shifted(c.operands[0])); }
Expr hardswish(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  math::Pair t = shifted(x), y = math::product(x, t.high);
  y.low = fma(x, t.low, y.low);
  return select(x >= 3.0, x, codegen::copysign(sixth(y), x));
}

Expr elu(const ElementwiseContext& c) {
  Expr x = c.operands[0], one = lift(x, 1.0);
  return elu_of(x, c.operands[1], one, one);
}
Expr celu(const ElementwiseContext& c) {
  Expr x = c.operands[0], one = lift(x, 1.0);
  return elu_of(x, c.operands[1], 1.0 / c.operands[1], one);
}
Expr selu(const ElementwiseContext& c) {
  constexpr double kAlpha = 1.6732632423543772, kScale = 1.0507009873554805;
  Expr x = c.operands[0];
  return select(x <= 0.0, math::expm1_times(x, kAlpha * kScale), math::times(x, kScale));
}
Expr leaky_relu(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  return select(x > 0.0, x, x * c.operands[1]);
}

// x itself where beta * x is above the threshold.
Expr softplus(const ElementwiseContext& c) {
  Expr x = c.operands[0], beta = c.operands[1], scaled = x * beta;
  return select(scaled > c.operands[2], x, math::softplus(scaled) / beta);
}

// With e = e^x = 2^n m: tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2), 1 from 20 on. The power of two comes last, for
// small results to be rounded once.
Expr mish(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  const bool narrow = x.type() == Type::f32;
  Expr limited = math::limit(x, narrow ? -200.0 : -2000.0, 20.0);
  auto [n, m] = math::exp_pair(limited);
  m = math::fast_sum(m.high, m.low);
  Expr power = codegen::scale(lift(x, 1.0), n);
  math::Pair next = math::sum(m.high * power, lift(x, 2.0));
  next.low = fma(m.low, power, next.low);
  math::Pair product = m * next, below = math::sum(product.high * power, lift(x, 2.0));
  below.low = fma(product.low, power, below.low);
  math::Pair above = math::product(limited, product.high);
  above.low = fma(limited, product.low, above.low);
  Expr y = scale(math::quotient(above, below) + (x - x), n);  // NaN for minus infinity
  return select(x > 20.0, x, codegen::copysign(y, x));
}

Expr logsigmoid(const ElementwiseContext& c) { return -math::softplus(-c.operands[0]); }

Expr threshold(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  if (boolean(c)) return select(~x | c.operands[1], c.operands[2], x);
  return select(x <= c.operands[1], c.operands[2], x);
}
Expr hardshrink(const ElementwiseContext& c) {
  Expr x = c.operands[0], lambda = c.operands[1];
  return select((x >= -lambda) & (x <= lambda), 0.0, x);
}
Expr softshrink(const ElementwiseContext& c) {
  Expr x = c.operands[0], lambda = c.operands[1];
  return select(x > lambda, x - lambda, select(x < -lambda, x + lambda, x * 0.0));
}
// 0 where x and tanh(x) are the same f64, as the difference is that PyTorch takes.
Expr tanhshrink(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  return select(codegen::abs(x) < 0x1p-26, 0.0, math::tanhshrink(x));
}

}  // namespace ingot::codegen::define
