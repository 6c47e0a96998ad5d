// Activations; PyTorch's formulas. NaN stays NaN.
#include "codegen/elementwise/definitions.h"

namespace ingot::codegen::define {
namespace {

// x above zero, alpha * (e^(x * inner) - 1) below; both times `outer`.
Expr elu_of(Expr x, Expr alpha, Expr inner, Expr outer) {
  return select(x <= 0.0, math::expm1(x * inner) * (alpha * outer), x * outer);
}

// log(1 + e^x) without overflow.
Expr softplus_of(Expr x) { return max(x, 0.0) + math::log1p(math::exp(-codegen::abs(x))); }

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
// Bools lie between the default bounds.
Expr hardtanh(const ElementwiseContext& c) {
  return boolean(c) ? c.operands[0] : min(max(c.operands[0], c.operands[1]), c.operands[2]);
}

// {none|tanh}: x times the normal distribution function, or its approximation (1 + tanh u) / 2, which is sigmoid(2u):
// that has no cancellation. u = sqrt(2 / pi) (x + 0.044715 x^3).
Expr gelu(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  if (c.attributes[0].integer == 0) return x * math::normal_cdf(x);
  return x * math::sigmoid(fma(x * x, x * 0.044715, x) * (2 * 0x1.9884533d43651p-1));
}

Expr silu(const ElementwiseContext& c) { return c.operands[0] * math::sigmoid(c.operands[0]); }

Expr hardsigmoid(const ElementwiseContext& c) { return math::limit(c.operands[0] + 3.0, 0, 6) * (1.0 / 6); }
Expr hardswish(const ElementwiseContext& c) {
  return c.operands[0] * (math::limit(c.operands[0] + 3.0, 0, 6) * (1.0 / 6));
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
  Expr x = c.operands[0];
  return elu_of(x, lift(x, 1.6732632423543772), lift(x, 1.0), lift(x, 1.0507009873554805));
}
Expr leaky_relu(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  return select(x > 0.0, x, x * c.operands[1]);
}

// x itself where beta * x is above the threshold.
Expr softplus(const ElementwiseContext& c) {
  Expr x = c.operands[0], beta = c.operands[1], scaled = x * beta;
  return select(scaled > c.operands[2], x, softplus_of(scaled) / beta);
}

// tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2) with e = e^x; 1 from 20 on.
Expr mish(const ElementwiseContext& c) {
  Expr x = c.operands[0], e = math::exp(math::lesser(lift(x, 20.0), x));
  Expr product = e * (e + 2.0);
  return x * (product / (product + 2.0));
}

Expr logsigmoid(const ElementwiseContext& c) { return -softplus_of(-c.operands[0]); }

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
