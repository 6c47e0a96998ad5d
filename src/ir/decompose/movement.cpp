// Joining, padding, embedding and the like.
#include "ir/decompose.h"

namespace ingot::ir::decompositions {

Outputs eye(GraphBuilder& b, const CompositeCall& call) {
  Dim n = call.attribute("n").list[0];
  Dim m = call.attribute("m").present() ? call.attribute("m").list[0] : n;
  auto range = [&](Dim size) {
    return b.arange(GraphBuilder::integer(0), GraphBuilder::integer(1), Dims{size}, DType::i64);
  };
  return {b.cast(b.eq(b.unsqueeze(range(n), GraphBuilder::attr(1)), range(m)), call.result)};
}

Outputs stack(GraphBuilder& b, const CompositeCall& call) {
  std::vector<Operand> tensors;
  for (const Operand& x : call.operands) tensors.push_back(b.unsqueeze(x, call.attribute("dim")));
  return b.call(OpId::cat, std::move(tensors), {call.attribute("dim")});
}

Outputs embedding(GraphBuilder& b, const CompositeCall& call) {
  const Operand &weight = call.operands[0], &indices = call.operands[1];
  Dims shape = b.shape(indices);
  shape.push_back(b.shape(weight)[1]);
  Operand flat = b.reshape(indices, {b.dims().product(b.shape(indices))});
  return {b.reshape(b.index_select(weight, flat, GraphBuilder::attr(0)), shape)};
}

Outputs constant_pad_nd(GraphBuilder& b, const CompositeCall& call) {
  Operand x = call.operands[0];
  const Dims& pad = call.attribute("pad").list;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    size_t dim = b.rank(x) - 1 - i;
    auto border = [&](Dim width) {
      Dims shape = b.shape(x);
      shape[dim] = width;
      return b.full(shape, call.operand("value"), b.dtype(x));
    };
    std::vector<Operand> pieces;
    if (!(pad[2 * i] == Dim(0))) pieces.push_back(border(pad[2 * i]));
    pieces.push_back(x);
    if (!(pad[2 * i + 1] == Dim(0))) pieces.push_back(border(pad[2 * i + 1]));
    if (pieces.size() > 1) x = b.call(OpId::cat, std::move(pieces), {GraphBuilder::attr(static_cast<int64_t>(dim))})[0];
  }
  return {x};
}

}  // namespace ingot::ir::decompositions
