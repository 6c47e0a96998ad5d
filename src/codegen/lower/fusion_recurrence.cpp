// Ops that go through a sequence: which memory they read.
#include <map>

#include "codegen/lower/fusion.h"
#include "ir/recurrence.h"
#include "ir/rules/rules.h"

namespace ingot::codegen::lowering {
namespace {

/// What an operand was cast from, if it was.
std::optional<ir::ValueId> cast_from(const Fusion& f, ir::ValueId v) {
  const ir::Node* cast = f.layouts.producer(v);
  if (!cast || ir::info(cast->op).types != &ir::types::cast) return {};
  return cast->operands[0].id;
}

/// An operand that is the same at each step, as products read it: the 16-bit float from which it was cast; of a weight,
/// what was rounded to that, as it lies in memory.
struct SameAtEachStep {
  ir::ValueId value;
  bool rounded = false;
};
SameAtEachStep as_products_read(const Fusion& f, ir::ValueId v) {
  const std::optional<ir::ValueId> half = cast_from(f, v);
  if (!half || !is_half(f.graph.type(*half).dtype)) return {v};
  const std::optional<ir::ValueId> wide = cast_from(f, *half);
  const bool weight =
      wide && f.graph.type(*wide).dtype == DType::f32 && f.layouts.is_constant(f.layouts.of(*wide).root);
  return weight && f.graph.type(*half).dtype == DType::bf16 ? SameAtEachStep{*wide, true} : SameAtEachStep{*half};
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
    const SameAtEachStep same = moves ? SameAtEachStep{o.id} : as_products_read(f, o.id);
    const ir::ValueId v = same.value;
    const RootView& view = f.layouts.of(v);
    const Dim distance = moves ? view.strides[0] : Dim(0);
    const auto [known, added] = distances.emplace(view.root, distance);
    operands.push_back(f.memory_operand(v, g, f.graph.type(v).dtype, added || known->second == distance));
    operands.back().rounded = same.rounded;
  }
  f.groups[g].operands = std::move(operands);
  for (ir::ValueId v : node.outputs) f.store_in(v, g, {});
  f.join(n, g);
  for (ir::ValueId v : node.outputs) f.decide(v, g, false, "the steps of a sequence are a part of the program", 0);
}

}  // namespace ingot::codegen::lowering
