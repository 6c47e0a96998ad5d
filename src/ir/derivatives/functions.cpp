// Roots, exponentials, logarithms, trigonometric functions, the error function and the gamma function.
#include <cmath>

#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

constexpr double kLog2 = 0x1.62e42fefa39efp-1, kLog10 = 0x1.26bb1bbb55516p1, kPi = 0x1.921fb54442d18p1,
                 kTwoOverRootPi = 0x1.20dd750429b6dp0;

/// The cotangent divided by something.
Gradients over(GraphBuilder& b, const DerivedCall& call, const Operand& divisor) {
  return of_self(call, b.div(call.cotangent(), divisor));
}

/// 1 - x^2 and x^2 - 1 without cancellation.
Operand one_minus_square(GraphBuilder& b, const Operand& x) { return b.mul(b.rsub(x, 1.0), b.add(x, 1.0)); }
Operand square_minus_one(GraphBuilder& b, const Operand& x) { return b.mul(b.sub(x, 1.0), b.add(x, 1.0)); }

}  // namespace

Gradients sqrt(GraphBuilder& b, const DerivedCall& call) { return over(b, call, b.mul(call.result(), 2.0)); }
Gradients rsqrt(GraphBuilder& b, const DerivedCall& call) {
  const Operand& r = call.result();
  return times(b, call, b.mul(b.mul(b.mul(r, r), r), -0.5));
}
Gradients exp(GraphBuilder& b, const DerivedCall& call) { return times(b, call, call.result()); }
Gradients exp2(GraphBuilder& b, const DerivedCall& call) { return times(b, call, b.mul(call.result(), kLog2)); }
Gradients expm1(GraphBuilder& b, const DerivedCall& call) { return times(b, call, b.add(call.result(), 1.0)); }
Gradients log(GraphBuilder& b, const DerivedCall& call) { return over(b, call, call.operands[0]); }
Gradients log2(GraphBuilder& b, const DerivedCall& call) { return over(b, call, b.mul(call.operands[0], kLog2)); }
Gradients log10(GraphBuilder& b, const DerivedCall& call) { return over(b, call, b.mul(call.operands[0], kLog10)); }
Gradients log1p(GraphBuilder& b, const DerivedCall& call) { return over(b, call, b.add(call.operands[0], 1.0)); }

// Where the result is 0 whatever y is, so is its slope.
Gradients xlogy(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), x = computed(b, call, 0), y = computed(b, call, 1);
  return each(call, {[&] {
                       const Operand base = y.is_value() ? y : b.scalar(y, b.dtype(g));
                       const Operand flat = b.logical_and(b.eq(x, 0.0), b.le(base, 0.0));
                       return kept_where_not(b, flat, b.mul(g, b.log(base)));
                     },
                     [&] { return b.div(b.mul(g, x), y); }});
}

namespace {
/// The share of each operand in log(e^x + e^y): sigmoid of their difference times `scale`.
Gradients shares(GraphBuilder& b, const DerivedCall& call, double scale) {
  const Operand &g = call.cotangent(), x = computed(b, call, 0), y = computed(b, call, 1);
  auto share = [&](const Operand& apart) { return b.mul(g, b.sigmoid(scale == 1 ? apart : b.mul(apart, scale))); };
  return each(call, {[&] { return share(b.sub(x, y)); }, [&] { return share(b.sub(y, x)); }});
}
}  // namespace

Gradients logaddexp(GraphBuilder& b, const DerivedCall& call) { return shares(b, call, 1); }
Gradients logaddexp2(GraphBuilder& b, const DerivedCall& call) { return shares(b, call, kLog2); }

// Outside of [0, 1] it is NaN; with eps it is constant outside of [eps, 1 - eps].
Gradients logit(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], &given = call.operands[1];
  const Operand slope = b.div(call.cotangent(), b.mul(x, b.rsub(x, 1.0)));
  const Operand nowhere = b.where(b.logical_and(b.ge(x, 0.0), b.le(x, 1.0)), slope, std::nan(""));
  if (!given.present()) return of_self(call, nowhere);
  const Operand eps = b.scalar(given, b.dtype(x));
  const Operand outside = b.logical_or(b.lt(x, eps), b.gt(x, b.rsub(eps, 1.0)));
  return of_self(call, b.where(b.lt(eps, 0.0), nowhere, kept_where_not(b, outside, slope)));
}
Gradients hypot(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), x = computed(b, call, 0), y = computed(b, call, 1);
  auto share = [&](const Operand& side) { return b.div(b.mul(g, side), call.result()); };
  return each(call, {[&] { return share(x); }, [&] { return share(y); }});
}

Gradients sin(GraphBuilder& b, const DerivedCall& call) { return times(b, call, b.cos(call.operands[0])); }
Gradients cos(GraphBuilder& b, const DerivedCall& call) { return times(b, call, b.neg(b.sin(call.operands[0]))); }
Gradients tan(GraphBuilder& b, const DerivedCall& call) {
  const Operand& r = call.result();
  return times(b, call, b.add(b.mul(r, r), 1.0));
}
Gradients asin(GraphBuilder& b, const DerivedCall& call) {
  return times(b, call, b.rsqrt(one_minus_square(b, call.operands[0])));
}
Gradients acos(GraphBuilder& b, const DerivedCall& call) {
  return times(b, call, b.neg(b.rsqrt(one_minus_square(b, call.operands[0]))));
}
Gradients atan(GraphBuilder& b, const DerivedCall& call) {
  const Operand& x = call.operands[0];
  return over(b, call, b.add(b.mul(x, x), 1.0));
}
// By the distance from zero, whose square may overflow; at zero the gradient is zero.
Gradients atan2(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), y = computed(b, call, 0), x = computed(b, call, 1);
  const Operand apart = y.is_value() ? b.hypot(y, x) : b.hypot(x, y);
  const Operand distance = b.where(b.eq(apart, 0.0), 1.0, apart);
  auto near = [&](const Operand& side) { return b.div(b.mul(g, b.div(side, distance)), distance); };
  return each(call, {[&] { return near(x); }, [&] { return b.neg(near(y)); }});
}
Gradients sinh(GraphBuilder& b, const DerivedCall& call) { return times(b, call, b.cosh(call.operands[0])); }
Gradients cosh(GraphBuilder& b, const DerivedCall& call) { return times(b, call, b.sinh(call.operands[0])); }
Gradients tanh(GraphBuilder& b, const DerivedCall& call) { return times(b, call, one_minus_square(b, call.result())); }
Gradients asinh(GraphBuilder& b, const DerivedCall& call) { return over(b, call, b.hypot(call.operands[0], 1.0)); }
Gradients acosh(GraphBuilder& b, const DerivedCall& call) {
  return times(b, call, b.rsqrt(square_minus_one(b, call.operands[0])));
}
Gradients atanh(GraphBuilder& b, const DerivedCall& call) {
  return over(b, call, one_minus_square(b, call.operands[0]));
}
// (cos(pi x) - sinc(x)) / x, which cancels near zero: there the first terms of its series.
Gradients sinc(GraphBuilder& b, const DerivedCall& call) {
  const Operand& x = call.operands[0];
  const Operand angle = b.mul(x, kPi), z = b.mul(angle, angle);
  Operand series = b.add(b.mul(z, -1.0 / 3991680), 1.0 / 45360);
  for (double next : {-1.0 / 840, 1.0 / 30, -1.0 / 3}) series = b.add(b.mul(series, z), next);
  series = b.mul(b.mul(series, angle), kPi);
  const Operand near = b.lt(z, 0.05), safe = b.where(near, 1.0, x);
  const Operand far = b.div(b.sub(b.cos(angle), call.result()), safe);
  return times(b, call, b.where(near, series, far));
}
Gradients deg2rad(GraphBuilder& b, const DerivedCall& call) { return of_self(call, b.deg2rad(call.cotangent())); }
Gradients rad2deg(GraphBuilder& b, const DerivedCall& call) { return of_self(call, b.rad2deg(call.cotangent())); }

namespace {
Operand bell(GraphBuilder& b, const Operand& x, double height) { return b.mul(b.exp(b.neg(b.mul(x, x))), height); }
}  // namespace

Gradients erf(GraphBuilder& b, const DerivedCall& call) {
  return times(b, call, bell(b, call.operands[0], kTwoOverRootPi));
}
Gradients erfc(GraphBuilder& b, const DerivedCall& call) {
  return times(b, call, bell(b, call.operands[0], -kTwoOverRootPi));
}
Gradients erfcx(GraphBuilder& b, const DerivedCall& call) {
  const Operand slope = b.sub(b.mul(b.mul(call.operands[0], 2.0), call.result()), kTwoOverRootPi);
  return times(b, call, slope);
}
// Of the operand: a result that was rounded to 16 bits would lose more of e^(r^2) than the operand has.
Gradients erfinv(GraphBuilder& b, const DerivedCall& call) {
  const Operand r = b.erfinv(call.operands[0]);
  return times(b, call, b.mul(b.exp(b.mul(r, r)), 1 / kTwoOverRootPi));
}
Gradients lgamma(GraphBuilder& b, const DerivedCall& call) { return times(b, call, b.digamma(call.operands[0])); }
Gradients digamma(GraphBuilder& b, const DerivedCall& call) {
  return times(b, call, b.polygamma(call.operands[0], GraphBuilder::attr(1)));
}
Gradients polygamma(GraphBuilder& b, const DerivedCall& call) {
  return times(b, call, b.polygamma(call.operands[0], GraphBuilder::attr(call.integer("n") + 1)));
}

}  // namespace ingot::ir::derivatives
