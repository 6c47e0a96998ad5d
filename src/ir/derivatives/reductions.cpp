// Reductions, and norms and deviations over dims.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/decompose.h"
#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

/// The dims that a call reduces, and its result and cotangent with them kept.
struct Reduced {
  Dims shape, dims;
  Operand g, result;
  Reduced(GraphBuilder& b, const DerivedCall& call)
      : shape(b.shape(call.operands[0])), dims(reduced_dims(shape.size(), call.attribute("dim"))) {
    g = with_dims_kept(b, call.cotangent(), shape, call.attribute("dim"));
    result = with_dims_kept(b, call.result(), shape, call.attribute("dim"));
  }
  Operand sum(GraphBuilder& b, const Operand& x) const { return b.reduce_dims(OpId::sum, x, dims, true); }
  Operand expanded(GraphBuilder& b, const Operand& x) const {
    return b.shape(x) == shape ? x : b.expand(x, Attr::of(shape));
  }
};

}  // namespace

Gradients sum(GraphBuilder& b, const DerivedCall& call) {
  const Reduced r(b, call);
  return of_self(call, r.expanded(b, r.g));
}

// result / x, but for zeros: the only one gets the product of the others, one of two that times the other one, which is
// zero but has a derivative. (So the third derivative by three zeros is 0.)
// Beside a zero the result is NaN for an infinity's or a NaN's sake: by the only one of these it is 0.
Gradients prod(GraphBuilder& b, const DerivedCall& call) {
  const Operand& x = call.operands[0];
  const Reduced r(b, call);
  const Operand zero = b.eq(x, 0.0), factors = b.where(zero, 1.0, x);
  auto count = [&](const Operand& mask) { return r.sum(b, b.to(mask, b.dtype(x))); };
  const Operand zeros = count(zero), only = b.eq(zeros, 1.0), finite = b.isfinite(x);
  const Operand others = b.mul(r.g, b.reduce_dims(OpId::prod, factors, r.dims, true));
  const Operand hidden = b.logical_and(b.gt(zeros, 0.0), b.eq(count(b.logical_not(finite)), 1.0));
  const Operand slope =
      kept_where_not(b, b.logical_and(hidden, b.logical_not(finite)), b.div(b.mul(r.g, r.result), factors));
  const Operand both = kept_where(b, b.logical_and(b.eq(zeros, 2.0), b.isfinite(others)), others);
  const Operand other_zero = b.sub(r.sum(b, kept_where(b, zero, x)), x);
  return of_self(call, b.where(zero, b.where(only, others, b.mul(both, other_zero)), slope));
}

// amax and amin: ties share evenly, however many dims are reduced. Of what has a NaN nothing is the largest: all NaN.
Gradients extreme(GraphBuilder& b, const DerivedCall& call) {
  const Reduced r(b, call);
  const Operand best = b.eq(call.operands[0], r.result);
  const Operand share = b.div(r.g, r.sum(b, b.to(best, b.dtype(r.g))));
  return of_self(call, b.where(best, share, b.where(b.isnan(r.result), std::nan(""), 0.0)));
}

// 2 / (n - correction) * (x - mean). Without a degree of freedom infinite, but NaN at the mean, as PyTorch has it.
Gradients var(GraphBuilder& b, const DerivedCall& call) {
  const Operand& x = call.operands[0];
  const Reduced r(b, call);
  const Operand centered = b.sub(x, b.mean(x, Attr::of(r.dims), GraphBuilder::flag(true)));
  const double correction = call.attribute("correction").as_number();
  const Dim count = element_count(b.dims(), r.shape, r.dims);
  if (correction >= 0 && !b.dims().less(static_cast<int64_t>(std::min(correction, 0x1p53)), count)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return of_self(call, b.mul(r.g, b.where(b.eq(centered, 0.0), std::nan(""), kInfinity)));
  }
  const Operand freedom = b.sub(b.scalar(GraphBuilder::divisor(count), b.dtype(r.g)), correction);
  return of_self(call, b.mul(b.div(b.mul(r.g, 2.0), freedom), centered));
}

// var's, by the result; zero where that is zero.
Gradients std(GraphBuilder& b, const DerivedCall& call) {
  const Operand& result = call.result();
  DerivedCall of_variance = call;
  of_variance.cotangents = {kept_where_not(b, b.eq(result, 0.0), b.div(call.cotangent(), b.mul(result, 2.0)))};
  return var(b, of_variance);
}

Gradients logsumexp(GraphBuilder& b, const DerivedCall& call) {
  const Reduced r(b, call);
  return of_self(call, b.mul(r.g, b.exp(b.sub(call.operands[0], r.result))));
}

// Zero where the norm is zero; of the largest or smallest size ties share.
Gradients norm(GraphBuilder& b, const DerivedCall& call) {
  const Operand& x = call.operands[0];
  const Reduced r(b, call);
  const double p = call.attrs[0].as_number();
  auto unless_zero = [&](const Operand& value) { return kept_where_not(b, b.eq(r.result, 0.0), value); };
  if (p == 0) return Gradients(1);
  if (p == 1) return of_self(call, b.mul(r.g, b.sign(x)));
  if (p == 2) return of_self(call, b.mul(x, unless_zero(b.div(r.g, r.result))));
  const Operand size = b.abs(x);
  if (std::isinf(p)) {
    const Operand best = b.logical_or(b.eq(size, r.result), b.isnan(size));
    const Operand share = b.div(r.g, r.sum(b, b.to(best, b.dtype(x))));
    return of_self(call, kept_where(b, best, b.mul(share, b.sign(x))));
  }
  // sign(x) (|x| / norm)^(p - 1): a ratio that stays in range. Of a negative order one zero makes the norm zero.
  const Operand ratio = b.pow(b.div(size, b.where(b.eq(r.result, 0.0), 1.0, r.result)), p - 1);
  return of_self(call, b.mul(r.g, kept_where_not(b, b.eq(p < 0 ? r.result : x, 0.0), b.mul(b.sign(x), ratio))));
}

// Each side has differences of its own, (x - y) or (y - x): they go into its sum one by one, where those of both would
// be stored, P * R * M of them. A difference that is NaN has NaN even where a norm of order 1 or infinity has no slope.
Gradients cdist(GraphBuilder& b, const DerivedCall& call) {
  const Attr& p = call.attribute("p");
  if (p.as_number() == 0) return {};
  auto beside = [&](size_t i, size_t from_end) {
    const Operand& side = call.operands[i];
    return b.unsqueeze(side, GraphBuilder::attr(static_cast<int64_t>(b.rank(side) - from_end)));
  };
  const Operand sides[] = {beside(0, 1), beside(1, 2)};
  auto of = [&](size_t i) {
    const Operand apart = b.sub(sides[i], sides[1 - i]);
    DerivedCall of_norm{info(OpId::norm), {apart}, {}, call.results, call.cotangents, {true}};
    of_norm.attrs = {p, Attr::of(Dims{static_cast<int64_t>(b.rank(apart)) - 1}), GraphBuilder::flag(false), Attr()};
    Operand slope = norm(b, of_norm)[0];
    if (p.as_number() == 1 || std::isinf(p.as_number())) slope = b.where(b.isnan(apart), std::nan(""), slope);
    return b.reshape(sum_to(b, slope, b.shape(sides[i])), b.shape(call.operands[i]));
  };
  return each(call, {[&] { return of(0); }, [&] { return of(1); }});
}

// From the result alone: each line is scaled by what the line has in common with its cotangent.
Gradients softmax(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), &result = call.result();
  const Operand common = b.reduce_dims(OpId::sum, b.mul(g, result), {call.integer("dim")}, true);
  return of_self(call, b.mul(result, b.sub(g, common)));
}
Gradients log_softmax(GraphBuilder& b, const DerivedCall& call) {
  const Operand& g = call.cotangent();
  const Operand total = b.reduce_dims(OpId::sum, g, {call.integer("dim")}, true);
  return of_self(call, b.sub(g, b.mul(b.exp(call.result()), total)));
}

}  // namespace ingot::ir::derivatives
