// Functions of single elements that are written with other ops, and sequences of numbers.
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

}  // namespace

namespace decompositions {

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
