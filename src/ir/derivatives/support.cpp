#include "ir/derivatives/support.h"

#include "ir/decompose.h"

namespace ingot::ir::derivatives {

Gradients each(const DerivedCall& call, std::initializer_list<Make> operands) {
  Gradients gradients(call.operands.size());
  size_t i = 0;
  for (const Make& make : operands) {
    if (call.wanted[i]) gradients[i] = make();
    ++i;
  }
  return gradients;
}

Gradients of_self(const DerivedCall& call, const Operand& gradient) {
  Gradients gradients(call.operands.size());
  gradients[0] = gradient;
  return gradients;
}
Gradients times(GraphBuilder& b, const DerivedCall& call, const Operand& slope) {
  return of_self(call, b.mul(call.cotangent(), slope));
}

Operand computed(GraphBuilder& b, const DerivedCall& call, size_t i) {
  const Operand& operand = call.operands[i];
  return operand.is_value() ? b.to(operand, b.dtype(call.cotangent())) : operand;
}

Operand kept_where(GraphBuilder& b, const Operand& condition, const Operand& x) { return b.where(condition, x, 0.0); }
Operand kept_where_not(GraphBuilder& b, const Operand& condition, const Operand& x) {
  return b.where(condition, 0.0, x);
}

Operand zeros(GraphBuilder& b, const Dims& shape, DType dtype) {
  return b.full(Attr::of(shape), is_floating(dtype) ? Operand::constant(0.0) : GraphBuilder::integer(0),
                Attr::of(dtype));
}
Operand minus_zeros(GraphBuilder& b, const Dims& shape, DType dtype) {
  return b.full(Attr::of(shape), Operand::constant(-0.0), Attr::of(dtype));
}

Operand padded(GraphBuilder& b, const Operand& x, size_t dim, Dim before, Dim after) {
  Dims pad(2 * (b.rank(x) - dim), 0);
  pad[pad.size() - 2] = before;
  pad[pad.size() - 1] = after;
  return b.constant_pad_nd(x, Operand::constant(-0.0), Attr::of(pad));
}

Operand count_up(GraphBuilder& b, Dim size) {
  return b.arange(GraphBuilder::integer(0), GraphBuilder::integer(1), Attr::of(Dims{size}), Attr::of(DType::i64));
}

Operand coordinate(GraphBuilder& b, Dim size, size_t dim, size_t rank) {
  Dims sizes(rank - dim, 1);
  sizes[0] = size;
  return b.reshape(count_up(b, size), sizes);
}

Operand transposed(GraphBuilder& b, const Operand& x) {
  Dims order;
  for (size_t i = 0; i < b.rank(x); ++i) order.push_back(static_cast<int64_t>(i));
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  return b.permute(x, order);
}

Operand with_dims_kept(GraphBuilder& b, const Operand& reduced, const Dims& shape, const Attr& dim) {
  if (shape.empty()) return b.reshape(reduced, {});
  Dims kept = shape;
  for (Dim d : reduced_dims(shape.size(), dim)) kept[static_cast<size_t>(d.code)] = 1;
  return b.reshape(reduced, kept);
}

}  // namespace ingot::ir::derivatives
