// Sums, products, quotients, powers, and what selects one of several operands. At kinks and edges as in PyTorch.
#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {

Gradients add(GraphBuilder& b, const DerivedCall& call) {
  const Operand& g = call.cotangent();
  return each(call, {[&] { return g; }, [&] { return b.scaled(g, call.operand("alpha")); }});
}
Gradients sub(GraphBuilder& b, const DerivedCall& call) {
  const Operand& g = call.cotangent();
  return each(call, {[&] { return g; }, [&] { return b.neg(b.scaled(g, call.operand("alpha"))); }});
}
Gradients rsub(GraphBuilder& b, const DerivedCall& call) {
  const Operand& g = call.cotangent();
  return each(call, {[&] { return b.neg(b.scaled(g, call.operand("alpha"))); }, [&] { return g; }});
}

Gradients mul(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), x = computed(b, call, 0), y = computed(b, call, 1);
  return each(call, {[&] { return b.mul(g, y); }, [&] { return b.mul(g, x); }});
}

// With a rounding mode it is constant. Of the divisor by the dividend: the result may be written to, as in PyTorch.
Gradients div(GraphBuilder& b, const DerivedCall& call) {
  if (call.integer("rounding_mode") != 0) return Gradients(call.operands.size());
  const Operand &g = call.cotangent(), x = computed(b, call, 0), y = computed(b, call, 1);
  return each(call, {[&] { return b.div(g, y); }, [&] { return b.neg(b.mul(g, b.div(b.div(x, y), y))); }});
}

Gradients remainder(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), x = computed(b, call, 0), y = computed(b, call, 1);
  return each(call, {[&] { return g; }, [&] { return b.neg(b.mul(g, b.floor_divide(x, y))); }});
}
Gradients fmod(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), x = computed(b, call, 0), y = computed(b, call, 1);
  return each(call, {[&] { return g; }, [&] { return b.neg(b.mul(g, b.trunc(b.div(x, y)))); }});
}

namespace {

/// exponent * x^(exponent - 1), and zero for exponent 0, even where the power is infinite.
Operand power_by_base(GraphBuilder& b, const Operand& x, const Operand& exponent, DType dtype) {
  if (exponent.kind == Operand::Kind::constant) {
    const double e = exponent.category == Category::floating ? exponent.number : static_cast<double>(exponent.integer);
    if (e == 0) return Operand::none();
    return e == 2 ? b.mul(x, 2.0) : b.mul(b.pow(x, e - 1), e);
  }
  const Operand e = exponent.is_value() ? exponent : b.scalar(exponent, dtype);
  return kept_where_not(b, b.eq(e, 0.0), b.mul(b.pow(x, b.sub(e, 1.0)), e));
}

/// 0^y is constant where y is not negative.
Operand power_by_exponent(GraphBuilder& b, const Operand& x, const Operand& y, const Operand& power, DType dtype) {
  const Operand base = x.is_value() ? x : b.scalar(x, dtype);
  const Operand flat = b.logical_and(b.eq(base, 0.0), b.ge(y, 0.0));
  return kept_where_not(b, flat, b.mul(power, b.log(base)));
}

}  // namespace

Gradients pow(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), x = computed(b, call, 0), y = computed(b, call, 1);
  const DType dtype = b.dtype(g);
  return each(call, {[&] {
                       const Operand slope = power_by_base(b, x, y, dtype);
                       return slope.present() ? b.mul(g, slope) : slope;
                     },
                     [&] { return b.mul(g, power_by_exponent(b, x, y, call.result(), dtype)); }});
}

namespace {

/// Ties share the gradient; a NaN gives it to both. `loses`: how the first compares where the second is the result.
Gradients larger_or_smaller(GraphBuilder& b, const DerivedCall& call, size_t second, OpId loses) {
  const Operand &g = call.cotangent(), x = computed(b, call, 0), y = computed(b, call, second);
  const Operand share = b.where(b.eq(x, y), b.mul(g, 0.5), g);
  Gradients gradients(call.operands.size());
  if (call.wanted[0]) gradients[0] = kept_where_not(b, b.call(loses, {x, y}, {})[0], share);
  if (call.wanted[second]) gradients[second] = kept_where_not(b, b.call(loses, {y, x}, {})[0], share);
  return gradients;
}

/// One bound: a tensor as in maximum and minimum; a number is flat, NaN as well.
Gradients bounded(GraphBuilder& b, const DerivedCall& call, size_t bound, OpId outside, OpId inside) {
  if (call.operands[bound].is_value()) return larger_or_smaller(b, call, bound, outside);
  const Operand free = b.call(inside, {computed(b, call, 0), call.operands[bound]}, {})[0];
  return of_self(call, kept_where(b, free, call.cotangent()));
}

}  // namespace

Gradients maximum(GraphBuilder& b, const DerivedCall& call) { return larger_or_smaller(b, call, 1, OpId::lt); }
Gradients minimum(GraphBuilder& b, const DerivedCall& call) { return larger_or_smaller(b, call, 1, OpId::gt); }
Gradients clamp_min(GraphBuilder& b, const DerivedCall& call) { return bounded(b, call, 1, OpId::lt, OpId::gt); }
Gradients clamp_max(GraphBuilder& b, const DerivedCall& call) { return bounded(b, call, 1, OpId::gt, OpId::lt); }

namespace {
/// Ties share here too. Of two NaNs the first has the gradient.
Gradients number_wins(GraphBuilder& b, const DerivedCall& call, OpId first_wins) {
  const Operand &g = call.cotangent(), x = computed(b, call, 0), y = computed(b, call, 1);
  const Operand alone = b.isnan(y.is_value() ? y : b.scalar(y, b.dtype(g)));
  const Operand first = b.logical_or(b.call(first_wins, {x, y}, {})[0], alone), tie = b.eq(x, y);
  const Operand share = b.where(tie, b.mul(g, 0.5), g);
  return each(call, {[&] { return kept_where(b, b.logical_or(first, tie), share); },
                     [&] { return kept_where_not(b, first, share); }});
}
}  // namespace

Gradients fmax(GraphBuilder& b, const DerivedCall& call) { return number_wins(b, call, OpId::gt); }
Gradients fmin(GraphBuilder& b, const DerivedCall& call) { return number_wins(b, call, OpId::lt); }

// As a bound a number is flat; a tensor shares ties with self, but where the bounds meet all is self's. Where min is
// above max, max is the result.
Gradients clamp(GraphBuilder& b, const DerivedCall& call) {
  if (!call.operands[2].present()) return bounded(b, call, 1, OpId::lt, OpId::gt);
  if (!call.operands[1].present()) return bounded(b, call, 2, OpId::gt, OpId::lt);
  const Operand &g = call.cotangent(), x = computed(b, call, 0);
  const Operand low = computed(b, call, 1), high = computed(b, call, 2);
  if (!low.is_value() && !high.is_value())
    return of_self(call, kept_where(b, b.logical_and(b.gt(x, low), b.lt(x, high)), g));
  auto tie = [&](const Operand& bound) { return b.logical_and(b.eq(x, bound), b.lt(low, high)); };
  const Operand half = b.mul(g, 0.5);
  return each(call, {[&] {
                       Operand share = g;
                       for (const Operand& bound : {low, high})
                         if (bound.is_value()) share = b.where(tie(bound), half, share);
                       const Operand below = low.is_value() ? b.lt(x, low) : b.le(x, low);
                       const Operand above = high.is_value() ? b.gt(x, high) : b.ge(x, high);
                       return kept_where_not(b, b.logical_or(below, above), share);
                     },
                     [&] {
                       const Operand whole = b.logical_and(b.lt(x, low), b.le(low, high));
                       return b.where(tie(low), half, kept_where(b, whole, g));
                     },
                     [&] {
                       const Operand above = b.logical_and(b.gt(x, high), b.le(low, high));
                       return b.where(tie(high), half, kept_where(b, b.logical_or(above, b.gt(low, high)), g));
                     }});
}

Gradients lerp(GraphBuilder& b, const DerivedCall& call) {
  const Operand& g = call.cotangent();
  const Operand start = computed(b, call, 0), end = computed(b, call, 1), weight = computed(b, call, 2);
  return each(call, {[&] {
                       const Operand rest = weight.is_value() ? weight : b.scalar(weight, b.dtype(g));
                       return b.mul(g, b.rsub(rest, 1.0));
                     },
                     [&] { return b.mul(g, weight); }, [&] { return b.mul(g, b.sub(end, start)); }});
}
Gradients addcmul(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), x = computed(b, call, 1), y = computed(b, call, 2);
  auto scaled = [&](const Operand& factor) { return b.mul(b.scaled(g, call.operand("value")), factor); };
  return each(call, {[&] { return g; }, [&] { return scaled(y); }, [&] { return scaled(x); }});
}
Gradients addcdiv(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), x = computed(b, call, 1), y = computed(b, call, 2);
  auto divided = [&] { return b.div(b.scaled(g, call.operand("value")), y); };
  return each(call, {[&] { return g; }, divided, [&] { return b.neg(b.mul(divided(), b.div(x, y))); }});
}

Gradients neg(GraphBuilder& b, const DerivedCall& call) { return of_self(call, b.neg(call.cotangent())); }
Gradients abs(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, b.mul(call.cotangent(), b.sign(call.operands[0])));
}
Gradients square(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, b.mul(call.cotangent(), b.mul(call.operands[0], 2.0)));
}
Gradients reciprocal(GraphBuilder& b, const DerivedCall& call) {
  const Operand& r = call.result();
  return of_self(call, b.neg(b.mul(call.cotangent(), b.mul(r, r))));
}
// positive, frac, clone, cast.
Gradients same(GraphBuilder&, const DerivedCall& call) { return of_self(call, call.cotangent()); }

// Of equals the result is the other one.
Gradients nextafter(GraphBuilder& b, const DerivedCall& call) {
  const Operand x = computed(b, call, 0), y = computed(b, call, 1);
  return each(call, {[&] { return kept_where_not(b, b.eq(x, y), call.cotangent()); }});
}

// The size of x with the sign of y: constant in y, and zero at zero.
Gradients copysign(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), x = computed(b, call, 0);
  return each(call, {[&] { return b.mul(g, b.mul(b.sign(x), b.sign(call.result()))); }});
}
Gradients ldexp(GraphBuilder& b, const DerivedCall& call) {
  constexpr double kLog2 = 0x1.62e42fefa39efp-1;
  const Operand& g = call.cotangent();
  return each(call,
              {[&] { return b.ldexp(g, call.operands[1]); }, [&] { return b.mul(b.mul(g, call.result()), kLog2); }});
}
Gradients nan_to_num(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, kept_where(b, b.isfinite(call.operands[0]), call.cotangent()));
}

Gradients where(GraphBuilder& b, const DerivedCall& call) {
  const Operand &condition = call.operands[0], &g = call.cotangent();
  return each(call, {[] { return Operand::none(); }, [&] { return kept_where(b, condition, g); },
                     [&] { return kept_where_not(b, condition, g); }});
}
Gradients masked_fill(GraphBuilder& b, const DerivedCall& call) {
  const Operand &mask = call.operands[1], &g = call.cotangent();
  return each(call, {[&] { return kept_where_not(b, mask, g); }, [] { return Operand::none(); },
                     [&] { return kept_where(b, mask, g); }});
}
// copy and fill: nothing of self is left.
Gradients replaced(GraphBuilder&, const DerivedCall& call) {
  return each(call, {[] { return Operand::none(); }, [&] { return call.cotangent(); }});
}

}  // namespace ingot::ir::derivatives
