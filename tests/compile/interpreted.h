// A call of one op by the interpreter.
#pragma once
#include <vector>

#include "eager/call/dispatch.h"
#include "eager/data.h"
#include "ingot.h"
#include "ir/reference.h"

namespace ingot::test {

inline ir::ReferenceTensor reference(const Tensor& t) {
  const detail::TensorImpl& impl = *t.impl();
  std::vector<char> bytes;
  int64_t size = size_of(impl.dtype);
  eager::for_each_offset(impl, [&](int64_t offset) {
    const char* at = eager::data_of(impl) + offset * size;
    bytes.insert(bytes.end(), at, at + size);
  });
  return ir::ReferenceTensor::from_bytes(impl.dtype, impl.sizes, bytes.data());
}

struct Interpreted {
  ir::Graph graph;  // of the one node
  std::vector<ir::ReferenceTensor> inputs, outputs;

  /// The attributes of the call are normalised; its tensors have their values.
  explicit Interpreted(const eager::OpCall& call) {
    std::vector<ir::Operand> operands;
    for (const eager::Operand& o : call.operands) {
      if (o.kind == eager::Operand::Kind::tensor) {
        const Tensor& t = *o.tensor;
        inputs.push_back(reference(t));
        operands.push_back(ir::Operand::value(graph.add_input(t.dtype(), Dims(t.sizes().begin(), t.sizes().end()))));
      } else if (o.kind == eager::Operand::Kind::none) {
        operands.push_back(ir::Operand::none());
      } else if (o.category == Category::floating) {
        operands.push_back(ir::Operand::constant(o.number));
      } else {
        operands.push_back(o.category == Category::boolean ? ir::Operand::constant(o.integer != 0)
                                                           : ir::Operand::constant(o.integer));
      }
    }
    graph.add(call.op, std::move(operands), {call.attrs.begin(), call.attrs.end()}, call.location);
    graph.outputs = graph.nodes.back().outputs;
    outputs = ir::interpret(graph, inputs);
  }
};

}  // namespace ingot::test
