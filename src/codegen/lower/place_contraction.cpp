// Matrix products, convolutions, attention: what follows a product becomes its epilogue; operands are read from memory.
#include <algorithm>

#include "codegen/lower/fuse.h"

namespace ingot::codegen::lowering {

/// Marks values that only elementwise work separates from a matrix product: they belong to its epilogue.
void Fuser::find_product_tails() {
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
    if (op.form == ir::Form::product || op.form == ir::Form::window)
      product_tail_[v] = is_floating(graph_.type(v).dtype);
    if (!op.has(ir::kRenames) && op.kind != ir::OpKind::elementwise) continue;
    for (const ir::Operand& o : node.operands)
      if (o.is_value() && product_tail_[o.id] && uses[o.id] == 1 &&
          dims_.same(layouts_.elements(o.id), layouts_.elements(v)))
        product_tail_[v] = true;
  }
}

/// Why a group cannot be the epilogue of the op that computes v; null if it can.
const char* Fuser::refuses_product(ir::ValueId v, uint32_t g, Group::Kind kind) {
  const Group& group = plan_.groups[g];
  const Dims& shape = graph_.type(v).shape;
  if (!options_.fuse) return "fusion is off";
  if (group.has_epilogue()) return "the reader is the epilogue of another product";
  if (group.kind != Group::Kind::loop || group.reduced >= 0) return "the reader reduces rows";
  std::vector<IndexMap> maps = maps_in(v, g);
  if (maps.size() != 1 || !covers_all(v, maps[0], group)) return "the reader works over another space";
  if (kind == Group::Kind::matmul) {
    if (shape.size() < 2 || shape.back() == Dim(1) || maps[0].back().terms.size() != 1)
      return "the columns of the product are not a dim of the reader";
  } else if (!(maps[0] == identity_map(shape)) || !(group.space == shape)) {
    return "the reader works over another space";
  }
  for (const Output& o : group.outputs)
    if (!covers_all(o.value, o.map, group)) return "the reader stores another space";
  if (group.coordinates) return "the reader needs coordinates, which an epilogue does not have";
  return needed_before(v, g) ? "the reader, or one that runs before it, reads it from memory" : nullptr;
}

/// The group in which a contraction runs: that of a reader that becomes its epilogue, or its own.
uint32_t Fuser::contract_into(ir::NodeId n, Group::Kind kind) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0];
  if (options_.fuse) merge_siblings(v);
  std::vector<uint32_t> groups = readers(v, true);
  bool must = must_store(v);
  const Dims& shape = graph_.type(v).shape;
  uint32_t home = kNoIndex;
  const char* refused = "its result is read from memory";
  for (uint32_t g : groups) {
    const char* why = refuses_product(v, g, kind);
    if (!why) {
      home = g;
      break;
    }
    refused = why;
  }
  bool fused = home != kNoIndex;
  IndexMap map = identity_map(shape);
  if (fused)
    map = maps_in(v, home)[0];
  else
    home = new_group(kind, shape);
  Group& g = plan_.groups[home];
  g.kind = kind;
  g.anchor = &node;
  g.anchor_map = map;
  g.order = n;
  if (!fused || must || groups.size() > 1) store_in(v, home, map);
  plan_.homes[n].push_back(home);
  plan_.groups[home].members.push_back(n);
  decide(v, home, fused, fused ? "what follows is its epilogue" : refused, fused ? 2 * layouts_.bytes_hint(v) : 0);
  return home;
}

/// True if a product can read this as its right operand: one of the last two dims must be dense.
bool Fuser::product_reads(const StoredOperand& right) {
  const Dims& shape = graph_.type(right.value).shape;
  if (shape.size() < 2) return true;
  for (size_t i = shape.size() - 2; i < shape.size(); ++i)
    if (right.strides[i] == Dim(1) || shape[i] == Dim(1)) return true;
  return false;
}

void Fuser::place_matmul(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0], a = node.operands[0].id, b = node.operands[1].id;
  if (!is_floating(graph_.type(v).dtype)) return integer_matmul(n);
  uint32_t home = contract_into(n, Group::Kind::matmul);
  // A is read with any strides; of bf16 the result is f32.
  DType dtype = graph_.type(a).dtype == DType::f16 ? DType::f32 : graph_.type(a).dtype;
  StoredOperand left = memory_operand(a, home, dtype, true);
  StoredOperand right =
      memory_operand(b, home, dtype, product_reads({b, b, kNoBuffer, dtype, layouts_.of(b).strides, 0}));
  plan_.groups[home].operands = {std::move(left), std::move(right)};
}

void Fuser::place_conv(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  uint32_t home = contract_into(n, Group::Kind::conv);
  std::vector<StoredOperand> operands;
  for (const ir::Operand& o : node.operands)
    operands.push_back(o.is_value() ? memory_operand(o.id, home, graph_.type(node.outputs[0]).dtype, true)
                                    : StoredOperand{});
  plan_.groups[home].operands = std::move(operands);
}

void Fuser::place_attention(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0];
  DType dtype = graph_.type(v).dtype == DType::f64 ? DType::f64 : DType::f32;
  store_raw(v, dtype);
  uint32_t g = new_group(Group::Kind::attention, {});
  plan_.groups[g].anchor = &node;
  std::vector<StoredOperand> operands;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const ir::Operand& o = node.operands[i];
    if (!o.is_value()) {
      operands.emplace_back();
      continue;
    }
    const Dims &shape = graph_.type(o.id).shape, &strides = layouts_.of(o.id).strides;
    bool mask = i == 3;
    // Four dims; the last one contiguous but for the mask.
    bool fits = shape.size() <= 4 && (mask || strides.back() == Dim(1) || shape.back() == Dim(1));
    DType wanted = mask && graph_.type(o.id).dtype == DType::bool_ ? DType::bool_ : dtype;
    operands.push_back(memory_operand(o.id, g, wanted, fits));
  }
  plan_.groups[g].operands = std::move(operands);
  store_in(v, g, {});
  plan_.homes[n].push_back(g);
  plan_.groups[g].members.push_back(n);
  decide(v, g, false, "attention is a step of its own", 0);
}

/// Integers have no tiles: sums of products along rows.
void Fuser::integer_matmul(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0];
  const Dims& shape = graph_.type(v).shape;
  Dims space = shape;
  space.push_back(graph_.type(node.operands[0].id).shape.back());
  uint32_t g = new_group(Group::Kind::loop, space);
  plan_.groups[g].reduced = static_cast<int>(shape.size());
  IndexMap map = identity_map(shape);
  store_in(v, g, map);
  request(v, g, map);
  enter(n, g);
  decide(v, g, false, "a product of integers is a sum along rows", 0);
}

}  // namespace ingot::codegen::lowering
