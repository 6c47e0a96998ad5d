#include "codegen/lower/value_facts.h"

#include <algorithm>

#include "codegen/lower/cost.h"
#include "codegen/lower/few_columns.h"
#include "codegen/lower/plan.h"
#include "codegen/lower/primitives.h"
#include "codegen/lower/reads.h"

namespace ingot::codegen::lowering {

ValueFacts::ValueFacts(const ir::Graph& graph, Layouts& layouts, bool side_by_side)
    : graph_(graph), layouts_(layouts), dims_(layouts.dims()), side_by_side_(side_by_side) {
  find_product_tails();
  find_costs();
}

void ValueFacts::find_product_tails() {
  product_tail_.resize(graph_.values.size());
  std::vector<int> uses(graph_.values.size());
  for (const ir::Node& node : graph_.nodes)
    for (const ir::Operand& o : node.operands)
      if (o.is_value()) ++uses[o.id];
  for (ir::ValueId v : graph_.outputs) ++uses[v];
  std::vector<bool> coordinates(graph_.values.size());  // made in a kernel that has coordinates
  for (const ir::Node& node : graph_.nodes) {
    ir::ValueId v = node.outputs[0];
    const ir::OpInfo& op = ir::info(node.op);
    bool made = needs_coordinates(op);
    if (inlines(node) || layouts_.is_view(v))
      for (const ir::Operand& o : node.operands) made = made || (o.is_value() && coordinates[o.id]);
    coordinates[v] = made;
    if (made) continue;
    if (op.form == ir::Form::product || op.form == ir::Form::window) product_tail_[v] = true;
    if (node.recomputed || (!op.has(ir::kRenames) && op.kind != ir::OpKind::elementwise)) continue;
    for (const ir::Operand& o : node.operands)
      if (o.is_value() && product_tail_[o.id] && uses[o.id] == 1 &&
          dims_.same(layouts_.elements(o.id), layouts_.elements(v)))
        product_tail_[v] = true;
  }
}

/// Work of each op alone, and of each value with all that a kernel would compute with it.
void ValueFacts::find_costs() {
  constexpr int kMost = 1 << 20;  // a value that is read many times counts each time
  cost_.resize(graph_.nodes.size());
  chain_cost_.resize(graph_.values.size());
  for (ir::NodeId n = 0; n < graph_.nodes.size(); ++n) {
    const ir::Node& node = graph_.nodes[n];
    bool inside = inlines(node);
    if (!inside && !layouts_.is_view(node.outputs[0])) continue;
    DType compute = graph_.type(node.outputs[0]).dtype;
    int below = 0;
    for (const ir::Operand& o : node.operands)
      if (o.is_value()) {
        below = std::min(kMost, below + chain_cost_[o.id]);
        if (is_floating(graph_.type(o.id).dtype)) compute = graph_.type(o.id).dtype;
      }
    if (inside)
      cost_[n] = ir::info(node.op).kind == ir::OpKind::elementwise ? op_cost(node, working_dtype(compute)) : 1;
    chain_cost_[node.outputs[0]] = below + cost_[n];
  }
}

bool ValueFacts::prefers_columns(const ir::Node& node) const {
  ir::ValueId operand = node.operands[0].id;
  const Dims& shape = graph_.type(operand).shape;
  uint32_t dim = static_cast<uint32_t>(reduced_dim(node));
  if (shape[dim] == Dim(1) || (side_by_side_ && shape[dim].is_constant() && shape[dim].code <= kFewAcross &&
                               shape[dim].code * chain_cost_[operand] <= kMostWorkAcross))
    return false;
  constexpr size_t kFar = 64;
  std::vector<OperandRead> open{{operand, identity_map(shape)}};
  // The dims in which something moves one element at a time, and those along which what lies along `dim` moves.
  std::vector<bool> close(shape.size()), moved(shape.size());
  // Nearest first, each value once: behind a residual stream lie the layers before, one after another.
  size_t seen = 0;
  auto add = [&](OperandRead&& read) {
    for (const OperandRead& other : open)
      if (other.value == read.value) return;
    open.push_back(std::move(read));
  };
  for (; seen < open.size() && seen < kFar; ++seen) {
    OperandRead read = layouts_.resolve(OperandRead(open[seen]));
    if (!depends_on(read.map, dim)) continue;
    const ir::Node* producer = layouts_.producer(read.value);
    if (producer && ir::info(producer->op).kind == ir::OpKind::elementwise) {
      for (OperandRead& r : operand_reads(graph_, layouts_, *producer, read.map, -1)) add(std::move(r));
      continue;
    }
    auto strided = layouts_.strided(layouts_.of(read.value), read.map, shape.size());
    const auto dense = [&](uint32_t d) {
      return strided.strides[d] == Dim(1) || strided.strides[d] == dims_.opposite(1);
    };
    for (uint32_t d = 0; d < shape.size(); ++d) {
      if (d == dim || shape[d] == Dim(1)) continue;
      if (dense(dim)) moved[d] = moved[d] || !(strided.strides[d] == Dim(0));
      close[d] = close[d] || dense(d);
    }
  }
  // What was not looked at counts as row-major.
  bool columns = seen < open.size() && dim + 1 < shape.size() && shape.back() != Dim(1);
  // What lies along `dim` and does not move with the columns is as small as a row, and read fast either way.
  for (uint32_t d = 0; d < shape.size(); ++d) {
    if (close[d] && moved[d]) return false;
    columns = columns || close[d];
  }
  return columns;
}

/// True if `found(value, its node, further)` is, for the value or one that it is made from; who is asked says in
/// `further` whether to go on to the node's operands. Gives up after `far` values.
template <class Found>
bool ValueFacts::any_before(ir::ValueId v, size_t far, Found found) const {
  std::vector<ir::ValueId> open{v}, seen;
  while (!open.empty() && seen.size() < far) {
    const ir::ValueId u = open.back();
    open.pop_back();
    if (std::find(seen.begin(), seen.end(), u) != seen.end()) continue;
    seen.push_back(u);
    const ir::Node* node = layouts_.producer(u);
    if (!node) continue;
    bool further = false;
    if (found(u, *node, further)) return true;
    if (!further) continue;
    for (const ir::Operand& o : node->operands)
      if (o.is_value()) open.push_back(o.id);
  }
  return false;
}

bool ValueFacts::follows_reduction_of(ir::ValueId v, Dim size) const {
  const Dim elements = layouts_.elements(v);
  return any_before(v, 32, [&](ir::ValueId u, const ir::Node& node, bool& further) {
    const ir::OpKind kind = ir::info(node.op).kind;
    const bool as_many = dims_.same(layouts_.elements(u), elements);
    further = as_many && (kind == ir::OpKind::elementwise || kind == ir::OpKind::view);
    return as_many && kind == ir::OpKind::reduction && !prefers_columns(node) &&
           dims_.same(graph_.type(node.operands[0].id).shape[reduced_dim(node)], size);
  });
}

bool ValueFacts::is_row_value(ir::ValueId v) const {
  const Dim elements = layouts_.elements(v);
  return any_before(v, 64, [&](ir::ValueId u, const ir::Node& node, bool& further) {
    further = inlines(node) || layouts_.is_view(u);
    return ir::info(node.op).kind == ir::OpKind::reduction && dims_.same(layouts_.elements(u), elements) &&
           !prefers_columns(node);
  });
}

}  // namespace ingot::codegen::lowering
