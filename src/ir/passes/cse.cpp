// Value numbering over the nodes in order: a node's key is its op, operands and attributes, with equal operands already
// replaced by the first of them.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ir/passes/passes.h"

namespace ingot::ir {
namespace {

class Key {
 public:
  explicit Key(const Node& node) {
    const OpInfo& op = info(node.op);
    put(static_cast<int64_t>(node.op));
    std::vector<Operand> operands = node.operands;
    // Two operands in either order give the same bits, unless a factor belongs to one of them. A NaN's payload may
    // differ: all NaNs are equal.
    bool plain = operands.size() == 2 || (operands.size() == 3 && operands[2] == Operand::constant(int64_t{1}));
    if (op.has(kCommutative) && plain && operands[0].is_value() && operands[1].is_value() &&
        operands[1].id < operands[0].id)
      std::swap(operands[0], operands[1]);
    put(static_cast<int64_t>(operands.size()));
    for (const Operand& operand : operands) put(operand);
    for (const Attr& attr : node.attrs) put(attr);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void put(int64_t x) { bytes_.append(reinterpret_cast<const char*>(&x), sizeof x); }
  void put(const Operand& operand) {
    put(static_cast<int64_t>(operand.kind) * 16 + static_cast<int64_t>(operand.category));
    put(static_cast<int64_t>(operand.id));
    put(operand.integer);
    put(operand.dim.code);
    put(std::bit_cast<int64_t>(operand.number));
  }
  void put(const Attr& attr) {
    put(static_cast<int64_t>(attr.kind));
    put(attr.integer);
    put(static_cast<int64_t>(attr.list.size()));
    for (Dim dim : attr.list) put(dim.code);
  }
  std::string bytes_;
};

}  // namespace

void eliminate_common_subexpressions(Graph& graph) {
  std::vector<ValueId> first(graph.values.size());
  for (size_t i = 0; i < first.size(); ++i) first[i] = static_cast<ValueId>(i);
  std::unordered_map<std::string, NodeId> seen;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    for (Operand& operand : node.operands)
      if (operand.is_value()) operand.id = first[operand.id];
    auto [found, fresh] = seen.try_emplace(Key(node).take(), static_cast<NodeId>(n));
    if (fresh) continue;
    const std::vector<ValueId>& outputs = graph.nodes[found->second].outputs;
    for (size_t i = 0; i < outputs.size(); ++i) first[node.outputs[i]] = outputs[i];
  }
  for (ValueId& output : graph.outputs) output = first[output];
}

}  // namespace ingot::ir
