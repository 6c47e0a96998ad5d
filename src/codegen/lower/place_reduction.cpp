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
    bool moves = false;  // along another dim: what does not is as small as a row, and read fast either way
    for (uint32_t d = 0; d < shape.size(); ++d) {
      if (d == dim || shape[d] == Dim(1)) continue;
      moves = moves || !(strided.strides[d] == Dim(0));
      columns = columns || strided.strides[d] == Dim(1);
    }
    if (moves && strided.strides[dim] == Dim(1)) return false;
  }
  return columns;
}

bool Fuser::reduce_into(ir::NodeId n, uint32_t group) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0];
  Group& g = plan_.groups[group];
  if (g.kind != Group::Kind::loop || g.items >= kMostItems) return false;
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
    if (!covers(dims_, map, graph_.type(v).shape, g.space, wanted)) return false;
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
  DType raw = combination_of(node.op, graph_.type(node.operands[0].id).dtype, graph_.type(v).dtype).result;
  // Who reads memory reads it in the value's own type, which columns do not store where they compute in another.
  bool columns = prefers_columns(node) && (raw == graph_.type(v).dtype || !read_from_memory(v));
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
    store_raw(v, raw);
  }
  store_in(v, g, map);
  request(v, g, map);
  enter(n, g);
  decide(v, g, false, refused, 0);
}

/// v is stored in another type than its own: its readers convert, and so does a copy where it is an output.
void Fuser::store_raw(ir::ValueId v, DType raw) {
  DType dtype = graph_.type(v).dtype;
  if (raw == dtype) return;
  uint32_t bound = plan_.stored[v].buffer;
  INGOT_CHECK(!read_from_memory(v), "a raw result is read in its own type");
  plan_.stored[v] = {arena_buffer(raw, layouts_.elements(v)), raw};
  if (bound != kNoBuffer) copy_group(v, bound, dtype, ir::contiguous_strides(dims_, graph_.type(v).shape), 0);
}

}  // namespace ingot::codegen::lowering
