#include "ir/decompose.h"

#include <algorithm>

#include "ir/passes/passes.h"
#include "ir/rules/rules.h"

namespace ingot::ir {

const Operand& CompositeCall::operand(std::string_view name) const {
  int position = operand_position(op, name);
  INGOT_CHECK(position >= 0, std::string(name));
  return operands[position];
}

const Attr& CompositeCall::attribute(std::string_view name) const {
  int position = attribute_position(op, name);
  INGOT_CHECK(position >= 0, std::string(name));
  return attrs[position];
}

void decompose(Graph& graph, bool convolves_bf16, bool one_op) {
  Graph fresh;
  fresh.dims = graph.dims;
  fresh.scalars = graph.scalars;
  std::vector<Operand> renamed(graph.values.size());
  for (const InputInfo& input : graph.inputs) {
    const TensorType& type = graph.type(input.value);
    ValueId id = fresh.add_input(type.dtype, type.shape, input.strides);
    fresh.inputs.back().constant = input.constant;
    renamed[input.value] = Operand::value(id);
  }
  GraphBuilder builder(fresh, convolves_bf16);
  builder.set_one_op(one_op);
  std::vector<bool> backward(graph.values.size());
  for (const Node& node : graph.nodes) {
    INGOT_CHECK(!node.inplace, "decompose takes a functional graph");
    builder.at(node.location, node.module);
    std::vector<Operand> operands = node.operands;
    for (Operand& operand : operands)
      if (operand.is_value()) operand = renamed[operand.id];
    std::vector<Operand> outputs;
    try {
      const bool after =
          node.derivative || std::any_of(node.operands.begin(), node.operands.end(),
                                         [&](const Operand& o) { return o.is_value() && backward[o.id]; });
      for (ValueId output : node.outputs) backward[output] = after;
      builder.set_backward(after);
      outputs = node.derivative ? builder.derived(node.op, *node.derivative, std::move(operands), node.attrs)
                                : builder.call(node.op, std::move(operands), node.attrs);
    } catch (const Error& error) {
      // What one of its steps refuses (an intermediate result of too many elements) is said under the op's own name.
      const std::string name(info(node.op).name), text = error.what();
      if (text.starts_with(name + ": ")) throw;
      throw Error(name + ": a step of it, " + text);
    }
    for (size_t i = 0; i < outputs.size(); ++i) renamed[node.outputs[i]] = outputs[i];
  }
  for (ValueId output : graph.outputs) fresh.outputs.push_back(renamed[output].id);
  // A derivative writes the call that it derives, too, and needs little of it.
  const bool derived = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.derivative; });
  graph = std::move(fresh);
  if (derived) eliminate_dead_code(graph);
}

}  // namespace ingot::ir
