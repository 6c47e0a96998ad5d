// One-op graphs through the reference interpreter.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/reference.h"

namespace ingot::ir {

inline ReferenceTensor real(Ints shape, std::vector<double> values, DType dtype = DType::f32) {
  return ReferenceTensor::from_values(dtype, std::move(shape), std::move(values));
}
inline ReferenceTensor whole(Ints shape, std::vector<int64_t> values, DType dtype = DType::i64) {
  ReferenceTensor t(dtype, std::move(shape));
  t.integer = std::move(values);
  return t;
}
inline Dims dims_of(const Ints& shape) { return Dims(shape.begin(), shape.end()); }

/// The first output of one op; operands beyond the tensors and the attributes are given as they stand in the row.
inline ReferenceTensor apply(OpId op, std::vector<ReferenceTensor> tensors, std::vector<Operand> more = {},
                             std::vector<Attr> attrs = {}) {
  Graph graph;
  std::vector<Operand> operands;
  for (const ReferenceTensor& t : tensors)
    operands.push_back(Operand::value(graph.add_input(t.dtype, dims_of(t.shape))));
  operands.insert(operands.end(), more.begin(), more.end());
  graph.outputs.push_back(graph.add(op, operands, std::move(attrs)));
  return interpret(graph, tensors)[0];
}

}  // namespace ingot::ir
