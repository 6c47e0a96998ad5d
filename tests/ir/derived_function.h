// A call, or a derivative of one, as a function that the reference interpreter computes.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "ir/decompose.h"
#include "ir/derivative.h"
#include "ir/reference.h"

namespace ingot::ir {

using Tensors = std::vector<ReferenceTensor>;

inline Ints sizes_of(const TensorType& type) {
  Ints sizes;
  for (Dim d : type.shape) sizes.push_back(d.code);
  return sizes;
}

/// A call, or a derivative of one, as a function of its tensors.
struct Function {
  OpId op;
  const Derivative* derivative = nullptr;
  std::vector<Operand> operands;  // values count the tensors
  std::vector<Attr> attrs;
  std::vector<TensorType> inputs, outputs;

  Graph graph() const {
    Graph graph;
    for (const TensorType& type : inputs) graph.add_input(type.dtype, type.shape);
    const ValueId first = graph.add(op, operands, attrs, Location::none(), false, derivative);
    for (size_t i = 0; i < outputs.size(); ++i) graph.outputs.push_back(first + static_cast<ValueId>(i));
    return graph;
  }
  /// A call by the reference of its row, a derivative by its primitives.
  Tensors operator()(const Tensors& at) const {
    Graph whole = graph();
    if (derivative) decompose(whole);
    return interpret(whole, at);
  }
  std::vector<int> differentiable() const {
    std::vector<int> found;
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i].is_value() && is_floating(inputs[operands[i].id].dtype)) found.push_back(static_cast<int>(i));
    return found;
  }
  bool has_float_output() const {
    return std::any_of(outputs.begin(), outputs.end(), [](const TensorType& t) { return is_floating(t.dtype); });
  }
  /// Of all floats; its tensors are those of this, its results, and a cotangent for each that is a float.
  Function derived() const {
    Function made = *this;
    std::vector<bool> wanted(operands.size());
    made.outputs.clear();
    for (int i : differentiable()) {
      wanted[static_cast<size_t>(i)] = true;
      made.outputs.push_back(inputs[operands[static_cast<size_t>(i)].id]);
    }
    for (int cotangents : {0, 1})
      for (const TensorType& type : outputs) {
        if (cotangents && !is_floating(type.dtype)) {
          made.operands.push_back(Operand::none());
          continue;
        }
        made.operands.push_back(Operand::value(static_cast<ValueId>(made.inputs.size())));
        made.inputs.push_back(type);
      }
    made.derivative = derivative_of(derivative, wanted);
    made.attrs.resize(attrs.size() + operands.size());
    return made;
  }
};

inline Function function_of(const std::string& text) {
  const Graph graph = parse(text);
  const Node& node = graph.nodes.at(0);
  Function f{node.op, nullptr, node.operands, node.attrs, {}, {}};
  for (const InputInfo& input : graph.inputs) f.inputs.push_back(graph.type(input.value));
  for (ValueId v : node.outputs) f.outputs.push_back(graph.type(v));
  return f;
}

}  // namespace ingot::ir
