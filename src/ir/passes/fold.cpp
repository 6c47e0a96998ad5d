#include "ir/passes/passes.h"

namespace ingot::ir {
namespace {

bool is_constant(const Operand& operand) { return operand.kind == Operand::Kind::constant; }

/// The node as a graph of its own, over zero-dim constants; none if an operand is not one.
std::optional<Graph> alone(const Graph& graph, const Node& node) {
  Graph single;
  std::vector<Operand> operands;
  for (const Operand& operand : node.operands) {
    if (!operand.is_value()) {
      if (operand.present() && !is_constant(operand)) return std::nullopt;
      operands.push_back(operand);
      continue;
    }
    NodeId producer = graph.values[operand.id].producer;
    if (producer == kNoValue) return std::nullopt;
    const Node& filled = graph.nodes[producer];
    if (filled.op != OpId::full || !is_constant(filled.operands[0])) return std::nullopt;
    DType dtype = graph.type(operand.id).dtype;
    operands.push_back(
        Operand::value(single.add(OpId::full, filled.operands, {Attr::of(Dims{}), Attr::of(dtype)}, node.location)));
  }
  // The node's own types came from operands with dims; where zero-dim ones promote otherwise, it is left alone.
  single.outputs = {single.add(node.op, std::move(operands), node.attrs, node.location)};
  if (single.type(single.outputs[0]).dtype != graph.type(node.outputs[0]).dtype) return std::nullopt;
  return single;
}

}  // namespace

void fold(Graph& graph, const Evaluate& evaluate) {
  if (!evaluate) return;
  for (Node& node : graph.nodes) {
    if (info(node.op).kind != OpKind::elementwise || node.inplace) continue;
    std::optional<Graph> single = alone(graph, node);
    if (!single) continue;
    std::optional<Operand> value = evaluate(*single);
    if (!value) continue;
    const TensorType& result = graph.type(node.outputs[0]);
    node.op = OpId::full;
    node.operands = {*value};
    node.attrs = {Attr::of(result.shape), Attr::of(result.dtype)};
  }
}

}  // namespace ingot::ir
