// An op of a graph, called as a user's code would.
#pragma once
#include <vector>

#include "eager/call/call.h"
#include "ir/graph.h"

namespace ingot::test {

/// The graph's one node through the chain, for these tensors; in place, if asked, into its first operand.
inline std::vector<Tensor> dispatch_node(const ir::Graph& graph, const std::vector<Tensor>& inputs,
                                         bool inplace = false) {
  const ir::Node& node = graph.nodes.at(0);
  std::vector<eager::Operand> operands;
  for (const ir::Operand& o : node.operands) {
    if (o.is_value())
      operands.emplace_back(inputs.at(o.id));
    else if (o.kind != ir::Operand::Kind::constant)
      operands.emplace_back();
    else if (o.category == Category::floating)
      operands.emplace_back(Scalar(o.number));
    else
      operands.emplace_back(o.category == Category::boolean ? Scalar(o.integer != 0) : Scalar(o.integer));
  }
  std::vector<Tensor> outputs(node.outputs.size());
  eager::dispatch({node.op, inplace, operands, node.attrs, Location()}, outputs);
  if (inplace) outputs[0] = inputs.at(node.operands[0].id);
  return outputs;
}

}  // namespace ingot::test
