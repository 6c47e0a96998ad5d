// Reductions and matrix products: which group they can be part of, and in which form.
#include <algorithm>

#include "codegen/lower/fuse.h"

namespace ingot::codegen::lowering {

/// True if what is reduced lies dense along another dim than the reduced one: then columns are reduced side by side.
/// The canonical order is the same in both forms.
bool Fuser::prefers_columns(const ir::Node& node) {
  ir::ValueId operand = node.operands[0].id;
  const Dims& shape = graph_.type(operand).shape;
  uint32_t dim = static_cast<uint32_t>(reduced_dim(node));
  if (shape[dim] == Dim(1)) return false;
  constexpr size_t kFar = 64;
  std::vector<OperandRead> open{{operand, identity_map(shape)}};
  bool columns = false;
  for (size_t seen = 0; !open.empty() && seen < kFar; ++seen) {
    OperandRead read = layouts_.resolve(std::move(open.back()));
    open.pop_back();
    if (!depends_on(read.map, dim)) continue;
    const ir::Node* producer = layouts_.producer(read.value);
    if (producer && ir::info(producer->op).kind == ir::OpKind::elementwise) {
      for (OperandRead& r : operand_reads(graph_, layouts_, *producer, read.map, -1)) open.push_back(std::move(r));
      continue;
    }
    auto strided = layouts_.strided(layouts_.of(read.value), read.map, shape.size());
    if (strided.strides[dim] == Dim(1)) return false;
    for (uint32_t d = 0; d < shape.size(); ++d)
      columns = columns || (d != dim && strided.strides[d] == Dim(1) && shape[d] != Dim(1));
  }
  return columns;
}

bool Fuser::reduce_into(ir::NodeId n, uint32_t group) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0];
  Group& g = plan_.groups[group];
  if (g.kind != Group::Kind::loop) return false;
  Dim size = graph_.type(node.operands[0].id).shape[reduced_dim(node)];
  int reduced = g.reduced;
  std::vector<IndexMap> maps = maps_in(v, group);
  bool extend = false;
  if (reduced < 0) {
    int count = 0;
    for (uint32_t d = 0; d < g.space.size(); ++d)
      if (g.space[d] != Dim(1) && !depends_on(maps[0], d)) reduced = static_cast<int>(d), ++count;
    if (count > 1) return false;
    extend = count == 0;
  }
  if (!extend && !dims_.same(g.space[reduced], size)) return false;
  SmallVector<bool, 8> wanted(g.space.size(), true);
  if (!extend) wanted[reduced] = false;
  for (const IndexMap& map : maps)
    if (!covers(dims_, map, g.space, wanted)) return false;
  if (extend) {
    reduced = static_cast<int>(g.space.size());
    g.space.push_back(size);
  }
  g.reduced = reduced;
  return true;
}

void Fuser::place_reduction(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0];
  bool columns = prefers_columns(node);
  if (options_.fuse) merge_siblings(v);
  std::vector<uint32_t> groups = readers(v, true);
  bool must = must_store(v);
  const char* refused = groups.empty() ? "read from memory" : "its readers work over other rows";
  if (columns) {
    refused = "reduced over columns: what follows is a kernel of its own";
  } else if (options_.fuse && groups.size() == 1 && !must) {
    if (reduce_into(n, groups[0])) {
      enter(n, groups[0]);
      return decide(v, groups[0], true, "reduced in the kernel that uses it, one row at a time",
                    2 * layouts_.bytes_hint(v) + layouts_.bytes_hint(node.operands[0].id));
    }
  } else if (options_.fuse) {
    for (uint32_t g : groups)
      if (can_store_in(v, g) && reduce_into(n, g)) {
        store_in(v, g, maps_in(v, g)[0]);
        enter(n, g);
        return decide(v, g, true, "reduced and stored by a kernel that uses it", layouts_.bytes_hint(v));
      }
  }
  const Dims& shape = graph_.type(node.operands[0].id).shape;
  int dim = reduced_dim(node);
  uint32_t g = new_group(columns ? Group::Kind::column : Group::Kind::loop, shape);
  plan_.groups[g].reduced = dim;
  bool keepdim = graph_.type(v).shape.size() == shape.size();
  IndexMap map = reduction_result_map(shape, dim, keepdim, identity_map(shape));
  if (columns) {
    // The raw result is stored; rounding to a narrower type is the reader's.
    plan_.groups[g].anchor = &node;
    DType raw = combination_of(node.op, graph_.type(node.operands[0].id).dtype, graph_.type(v).dtype).result;
    uint32_t bound = plan_.stored[v].buffer;
    if (raw != graph_.type(v).dtype) {
      plan_.stored[v] = {arena_buffer(raw, layouts_.elements(v)), raw};
      if (bound != kNoBuffer)
        copy_group(v, bound, graph_.type(v).dtype, ir::contiguous_strides(dims_, graph_.type(v).shape), 0);
    }
  }
  store_in(v, g, map);
  request(v, g, map);
  enter(n, g);
  decide(v, g, false, refused, 0);
}

/// Marks values that only elementwise work separates from a matrix product: they belong to its epilogue.
void Fuser::find_product_tails() {
  product_tail_.resize(graph_.values.size());
  std::vector<int> uses(graph_.values.size());
  for (const ir::Node& node : graph_.nodes)
    for (const ir::Operand& o : node.operands)
      if (o.is_value()) ++uses[o.id];
  for (ir::ValueId v : graph_.outputs) ++uses[v];
  for (const ir::Node& node : graph_.nodes) {
    ir::ValueId v = node.outputs[0];
    if (node.op == OpId::matmul) product_tail_[v] = is_floating(graph_.type(v).dtype);
    bool same_order = node.op == OpId::view || node.op == OpId::squeeze || node.op == OpId::unsqueeze;
    if (!same_order && ir::info(node.op).kind != ir::OpKind::elementwise) continue;
    for (const ir::Operand& o : node.operands)
      if (o.is_value() && product_tail_[o.id] && uses[o.id] == 1 &&
          dims_.same(layouts_.elements(o.id), layouts_.elements(v)))
        product_tail_[v] = true;
  }
}

void Fuser::place_matmul(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0], a = node.operands[0].id, b = node.operands[1].id;
  if (!is_floating(graph_.type(v).dtype)) return integer_matmul(n);
  if (options_.fuse) merge_siblings(v);
  std::vector<uint32_t> groups = readers(v, true);
  bool must = must_store(v);
  const Dims& shape = graph_.type(v).shape;
  uint32_t home = kNoIndex;
  const char* refused = groups.empty() ? "its result is read from memory" : "";
  for (uint32_t g : groups) {
    const Group& group = plan_.groups[g];
    std::vector<IndexMap> maps = maps_in(v, g);
    auto takes = [&]() -> const char* {
      if (!options_.fuse) return "fusion is off";
      if (group.kind == Group::Kind::matmul) return "the reader is the epilogue of another product";
      if (group.kind != Group::Kind::loop || group.reduced >= 0) return "the reader reduces rows";
      if (maps.size() != 1 || !covers_in_order(maps[0], group)) return "the reader works over another space";
      if (shape.size() < 2 || shape.back() == Dim(1) || maps[0].back().terms.size() != 1)
        return "the columns of the product are not a dim of the reader";
      for (const Output& o : group.outputs)
        if (!covers_in_order(o.map, group)) return "the reader stores another space";
      for (ir::NodeId m : group.members)
        if (ir::info(graph_.nodes[m].op).kind == ir::OpKind::structured && !passes_through(graph_.nodes[m].op) &&
            graph_.nodes[m].op != OpId::full && graph_.nodes[m].op != OpId::cat)
          return "the reader needs coordinates, which an epilogue does not have";
      for (uint32_t other : readers(v, false))
        if (other != g && path(other, g)) return "another reader runs before";
      return nullptr;
    };
    if (const char* why = takes()) {
      refused = why;
      continue;
    }
    home = g;
    break;
  }
  bool fused = home != kNoIndex;
  IndexMap map = identity_map(shape);
  if (fused)
    map = maps_in(v, home)[0];
  else
    home = new_group(Group::Kind::matmul, shape);
  {
    Group& g = plan_.groups[home];
    g.kind = Group::Kind::matmul;
    g.anchor = &node;
    g.anchor_map = map;
    g.order = n;
  }
  if (!fused || must || groups.size() > 1) store_in(v, home, map);
  DType dtype = graph_.type(v).dtype == DType::f16 ? DType::f32 : graph_.type(v).dtype;
  auto dense = [&](ir::ValueId operand, bool either) {
    // A product reads rows of A with any strides; of B one of the last two dims must be dense.
    const Dims& s = graph_.type(operand).shape;
    const Dims& strides = layouts_.of(operand).strides;
    if (!either || s.size() < 2) return true;
    for (size_t i = s.size() - 2; i < s.size(); ++i)
      if (strides[i] == Dim(1) || s[i] == Dim(1)) return true;
    return false;
  };
  StoredOperand left = memory_operand(a, home, dtype, dense(a, false));
  StoredOperand right = memory_operand(b, home, dtype, dense(b, true));
  plan_.groups[home].operands = {std::move(left), std::move(right)};
  plan_.homes[n].push_back(home);
  plan_.groups[home].members.push_back(n);
  decide(v, home, fused, fused ? "what follows is its epilogue" : refused, fused ? 2 * layouts_.bytes_hint(v) : 0);
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
