// Activations. At kinks as in PyTorch.
#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

/// Flat outside of two bounds and at them; by the result, which a bound has exactly there.
Gradients between(GraphBuilder& b, const DerivedCall& call, const Operand& low, const Operand& high) {
  const Operand& r = call.result();
  return of_self(call, kept_where_not(b, b.logical_or(b.le(r, low), b.ge(r, high)), call.cotangent()));
}

}  // namespace

Gradients sigmoid(GraphBuilder& b, const DerivedCall& call) {
  const Operand& r = call.result();
  return times(b, call, b.mul(r, b.rsub(r, 1.0)));
}
Gradients relu(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, kept_where_not(b, b.le(call.result(), 0.0), call.cotangent()));
}
Gradients relu6(GraphBuilder& b, const DerivedCall& call) {
  return between(b, call, Operand::constant(0.0), Operand::constant(6.0));
}
Gradients hardtanh(GraphBuilder& b, const DerivedCall& call) {
  return between(b, call, call.operand("min_val"), call.operand("max_val"));
}

// Of x * cdf(x), and of x * sigmoid(u) with u = sqrt(8 / pi) (x + 0.044715 x^3).
Gradients gelu(GraphBuilder& b, const DerivedCall& call) {
  const Operand& x = call.operands[0];
  const Operand square = b.mul(x, x);
  if (call.integer("approximate") == 0) {
    constexpr double kRootHalf = 0x1.6a09e667f3bcdp-1, kBell = 0x1.9884533d43651p-2;
    const Operand cdf = b.mul(b.erfc(b.mul(x, -kRootHalf)), 0.5);
    return times(b, call, b.add(cdf, b.mul(b.mul(x, b.exp(b.mul(square, -0.5))), kBell)));
  }
  constexpr double kOuter = 2 * 0x1.9884533d43651p-1, kInner = 0.044715;
  const Operand s = b.sigmoid(b.mul(b.mul(x, b.add(b.mul(square, kInner), 1.0)), kOuter));
  const Operand u = b.add(b.mul(square, 3 * kInner * kOuter), kOuter);
  return times(b, call, b.mul(s, b.add(b.mul(b.mul(x, b.rsub(s, 1.0)), u), 1.0)));
}

Gradients silu(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], s = b.sigmoid(x);
  return times(b, call, b.mul(s, b.add(b.mul(x, b.rsub(s, 1.0)), 1.0)));
}
Gradients mish(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], t = b.tanh(b.softplus(x));
  const Operand inner = b.mul(b.mul(x, b.sigmoid(x)), b.mul(b.rsub(t, 1.0), b.add(t, 1.0)));
  return times(b, call, b.add(t, inner));
}

Gradients hardsigmoid(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], inside = b.logical_and(b.gt(x, -3.0), b.lt(x, 3.0));
  return of_self(call, kept_where(b, inside, b.div(call.cotangent(), 6.0)));
}
Gradients hardswish(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], &g = call.cotangent();
  const Operand middle = b.mul(g, b.add(b.div(x, 3.0), 0.5));
  return of_self(call, kept_where_not(b, b.le(x, -3.0), b.where(b.lt(x, 3.0), middle, g)));
}

namespace {
/// outer * x above zero, outer * alpha * (e^(inner * x) - 1) below. The exponent is cut off above, where it does not
/// count but could overflow.
Gradients exponential_unit(GraphBuilder& b, const DerivedCall& call, const Operand& factor, const Operand& inner,
                           double outer) {
  const Operand &x = call.operands[0], &g = call.cotangent(), below = b.clamp_max(x, 0.0);
  const Operand bent = b.mul(b.exp(inner.present() ? b.mul(below, inner) : below), factor);
  const Operand slope = b.where(b.le(x, 0.0), bent, 1.0);
  return of_self(call, b.mul(outer == 1 ? g : b.mul(g, outer), slope));
}
}  // namespace

Gradients elu(GraphBuilder& b, const DerivedCall& call) {
  return exponential_unit(b, call, call.operand("alpha"), Operand::none(), 1);
}
Gradients celu(GraphBuilder& b, const DerivedCall& call) {
  const Operand inner = b.reciprocal(b.scalar(call.operand("alpha"), b.dtype(call.cotangent())));
  return exponential_unit(b, call, Operand::constant(1.0), inner, 1);
}
Gradients selu(GraphBuilder& b, const DerivedCall& call) {
  return exponential_unit(b, call, Operand::constant(1.6732632423543772), Operand::none(), 1.0507009873554805);
}
Gradients leaky_relu(GraphBuilder& b, const DerivedCall& call) {
  const Operand& g = call.cotangent();
  return of_self(call, b.where(b.gt(call.operands[0], 0.0), g, b.mul(g, call.operand("negative_slope"))));
}
Gradients softplus(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), scaled = b.mul(call.operands[0], call.operand("beta"));
  return of_self(call, b.where(b.gt(scaled, call.operand("threshold")), g, b.mul(g, b.sigmoid(scaled))));
}
Gradients softsign(GraphBuilder& b, const DerivedCall& call) {
  const Operand r = b.reciprocal(b.add(b.abs(call.operands[0]), 1.0));
  return times(b, call, b.mul(r, r));
}
Gradients logsigmoid(GraphBuilder& b, const DerivedCall& call) {
  return times(b, call, b.sigmoid(b.neg(call.operands[0])));
}
Gradients threshold(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, kept_where_not(b, b.le(call.operands[0], call.operand("threshold")), call.cotangent()));
}
// hardshrink and softshrink: flat near zero.
Gradients shrink(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, kept_where_not(b, b.le(b.abs(call.operands[0]), call.operand("lambd")), call.cotangent()));
}
Gradients tanhshrink(GraphBuilder& b, const DerivedCall& call) {
  const Operand t = b.tanh(call.operands[0]);
  return times(b, call, b.mul(t, t));
}

// Below zero the weight counts, at zero too.
Gradients prelu(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), &x = call.operands[0];
  Operand weight = call.operands[1];
  const Dims shape = b.shape(weight);
  const bool by_channel = shape.size() == 1 && b.rank(x) >= 2;
  if (by_channel) weight = b.per_channel(weight, 1, b.rank(x));
  if (shape.size() == 1 && b.rank(x) == 0) weight = b.reshape(weight, {});
  const Operand above = b.gt(x, 0.0);
  return each(call, {[&] { return b.where(above, g, b.mul(g, weight)); },
                     [&] {
                       const Operand whole = kept_where_not(b, above, b.mul(g, x));
                       return b.reshape(sum_to(b, whole, b.shape(weight)), shape);
                     }});
}

}  // namespace ingot::ir::derivatives
