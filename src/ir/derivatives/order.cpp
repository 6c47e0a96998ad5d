// Sorting and scans along a dim.
#include <cmath>
#include <limits>

#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

/// From the end of the dim to its start.
Operand backwards(GraphBuilder& b, const DerivedCall& call, const Operand& x) {
  return b.rank(x) == 0 ? x : b.flip(x, Attr::of(Dims{call.integer("dim")}));
}
/// The sum of each element and all that follow.
Operand sums_from_end(GraphBuilder& b, const DerivedCall& call, const Operand& x) {
  return backwards(b, call, b.cumsum(backwards(b, call, x), call.attribute("dim")));
}

}  // namespace

// sort and topk: no position comes twice.
Gradients chosen(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], &g = call.cotangents[0];
  if (b.rank(x) == 0) return of_self(call, g);
  return of_self(call, b.scatter(zeros(b, b.shape(x), b.dtype(g)), call.results[1], g, call.attribute("dim")));
}

// max, min, mode and kthvalue along a dim: at the position that was found.
Gradients found(GraphBuilder& b, const DerivedCall& call) {
  const Operand& x = call.operands[0];
  const Dims shape = b.shape(x);
  const Operand g = with_dims_kept(b, call.cotangents[0], shape, call.attribute("dim"));
  if (shape.empty()) return of_self(call, g);
  const size_t dim = static_cast<size_t>(call.integer("dim"));
  const Operand position = with_dims_kept(b, call.results[1], shape, call.attribute("dim"));
  return of_self(call, kept_where(b, b.eq(coordinate(b, shape[dim], dim, shape.size()), position), g));
}

// cummax and cummin: a position may come many times.
Gradients running_extreme(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], &g = call.cotangents[0];
  if (b.rank(x) == 0) return of_self(call, g);
  return of_self(call, b.scatter_add(zeros(b, b.shape(x), b.dtype(g)), call.results[1], g, call.attribute("dim")));
}

Gradients cumsum(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, sums_from_end(b, call, call.cotangent()));
}

// Before the first zero: the sum of g * result from there on, over x. At it: the same with 1 in its place. After it
// all results are zero, whatever stands there: the gradient is a product with that zero, by which it has one of its
// own. (So the second derivative by two zeros is 0.)
Gradients cumprod(GraphBuilder& b, const DerivedCall& call) {
  const Operand &x = call.operands[0], &g = call.cotangent();
  const Attr& dim = call.attribute("dim");
  const Operand zero = b.eq(x, 0.0), zeros_so_far = b.cumsum(b.to(zero, DType::i64), dim);
  const Operand none = b.eq(zeros_so_far, GraphBuilder::integer(0));
  const Operand first = b.logical_and(zero, b.eq(zeros_so_far, GraphBuilder::integer(1)));
  const Operand before = b.div(sums_from_end(b, call, b.mul(g, call.result())), b.where(zero, 1.0, x));
  const Operand others = b.cumprod(b.where(first, 1.0, x), dim);
  const Operand at = sums_from_end(b, call, b.mul(g, others));
  const Operand slope = b.div(at, b.where(zero, 1.0, x));
  const Operand behind = b.logical_and(b.eq(zeros_so_far, GraphBuilder::integer(1)),
                                       b.logical_and(b.logical_not(zero), b.isfinite(slope)));
  const Operand its_zero = b.reduce_dims(OpId::sum, kept_where(b, first, x), Dims{dim.integer}, true);
  const Operand after = b.mul(its_zero, kept_where(b, behind, slope));
  return of_self(call, b.where(none, before, b.where(first, at, after)));
}

// Sum over j >= i of g_j e^(x_i - result_j), apart for positive and negative g, as a logarithm of sums. All of it
// relative to the largest x, of whose size a kept result would have lost digits.
Gradients logcumsumexp(GraphBuilder& b, const DerivedCall& call) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Operand &g = call.cotangent(), size = b.log(b.abs(g));
  const Attr& dim = call.attribute("dim");
  Operand x = call.operands[0];
  const Operand top = b.amax(x, Attr::of(Dims{dim.integer}), GraphBuilder::flag(true));
  x = b.sub(x, b.where(b.isinf(top), 0.0, top));
  const Operand apart = b.sub(size, b.logcumsumexp(x, dim));
  auto half = [&](const Operand& mask) {
    const Operand terms = backwards(b, call, b.where(mask, apart, -kInfinity));
    return b.exp(b.add(backwards(b, call, b.logcumsumexp(terms, dim)), x));
  };
  return of_self(call, b.sub(half(b.gt(g, 0.0)), half(b.lt(g, 0.0))));
}

}  // namespace ingot::ir::derivatives
