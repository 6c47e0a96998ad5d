#include "ir/passes/passes.h"

namespace ingot::ir {

void eliminate_dead_code(Graph& graph) {
  std::vector<bool> needed(graph.values.size());
  for (ValueId output : graph.outputs) needed[output] = true;
  std::vector<bool> live(graph.nodes.size());
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    for (ValueId output : node.outputs) live[n] = live[n] || needed[output];
    if (!live[n]) continue;
    for (const Operand& operand : node.operands)
      if (operand.is_value()) needed[operand.id] = true;
  }

  std::vector<ValueId> renamed(graph.values.size(), kNoValue);
  std::vector<ValueInfo> values;
  auto keep = [&](ValueId value, NodeId producer) {
    renamed[value] = static_cast<ValueId>(values.size());
    values.push_back({std::move(graph.values[value].type), producer});
    return renamed[value];
  };
  for (InputInfo& input : graph.inputs) input.value = keep(input.value, kNoValue);
  std::vector<Node> nodes;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!live[n]) continue;
    Node& node = graph.nodes[n];
    for (Operand& operand : node.operands)
      if (operand.is_value()) operand.id = renamed[operand.id];
    for (ValueId& output : node.outputs) output = keep(output, static_cast<NodeId>(nodes.size()));
    nodes.push_back(std::move(node));
  }
  for (ValueId& output : graph.outputs) output = renamed[output];
  graph.nodes = std::move(nodes);
  graph.values = std::move(values);
}

}  // namespace ingot::ir
