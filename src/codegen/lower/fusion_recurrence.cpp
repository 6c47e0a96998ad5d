// Ops that go through a sequence: which memory they read.
#include <map>

#include "codegen/lower/fusion.h"
#include "ir/recurrence.h"
#include "ir/rules/rules.h"

namespace ingot::codegen::lowering {
namespace {

/// The 16-bit float from which an operand was cast, where it lies in memory: products read it as it is.
std::optional<ir::ValueId> cast_from(const Fusion& f, ir::ValueId v) {
  const ir::Node* cast = f.layouts.producer(v);
  if (!cast || ir::info(cast->op).types != &ir::types::cast) return {};
  const ir::ValueId from = cast->operands[0].id;
  if (!is_half(f.graph.type(from).dtype) || f.layouts.producer(f.layouts.of(from).root)) return {};
  return from;
}

}  // namespace

// Along the sequence an operand is read at its own distance. One that lies in memory that is read otherwise, too, by
// other steps or as a whole, is copied: a buffer moves in one way.
void fuse_recurrence(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  const uint32_t g = f.new_group(Group::Kind::recurrence, {});
  f.groups[g].anchor = &node;
  std::map<ir::ValueId, Dim> distances;  // by root, elements; 0: it is read as a whole
  std::vector<StoredOperand> operands;
  for (const ir::Operand& o : node.operands) {
    if (!o.is_value()) {
      operands.emplace_back();
      continue;
    }
    const bool moves = ir::over_time(f.graph.type(o.id));
    const ir::ValueId v = moves ? o.id : cast_from(f, o.id).value_or(o.id);
    const RootView& view = f.layouts.of(v);
    const Dim distance = moves ? view.strides[0] : Dim(0);
    const auto [known, added] = distances.emplace(view.root, distance);
    operands.push_back(f.memory_operand(v, g, f.graph.type(v).dtype, added || known->second == distance));
  }
  f.groups[g].operands = std::move(operands);
  for (ir::ValueId v : node.outputs) f.store_in(v, g, {});
  f.join(n, g);
  for (ir::ValueId v : node.outputs) f.decide(v, g, false, "the steps of a sequence are a part of the program", 0);
}

}  // namespace ingot::codegen::lowering
