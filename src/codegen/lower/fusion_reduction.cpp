// Reductions: the kernel that they can be part of, and in which form.
#include "base/canonical_order.h"
#include "base/pieces.h"
#include "codegen/lower/cost.h"
#include "codegen/lower/few_columns.h"
#include "codegen/lower/fusion.h"
#include "codegen/lower/primitives.h"
#include "codegen/lower/reads.h"

namespace ingot::codegen::lowering {
namespace {

/// True if what the group does with the reduced value, once a row and so in one lane of a vector, takes longer than the
/// row: computed for many rows side by side, it is worth the way through memory.
bool outweighs_row(Fusion& f, const Group& g, const ir::Node& reduction, Dim size) {
  // In units of a multiplication: joining the lanes of a row, and what a step takes to start.
  constexpr int64_t kJoin = 8, kStep = 8192;
  if (f.target.cuda_arch || (size.is_constant() && size.code <= kFewColumns)) return false;
  int64_t rows = 1;
  for (Dim d : g.space) rows *= f.dims.hint(d);
  const int64_t element = 1 + f.facts.chain_cost(reduction.operands[0].id);
  const int64_t row = ceil_div(f.dims.hint(size), canonical::kLanes) * element + kJoin;
  return g.work > row && rows * g.work > kStep;
}

/// True if the group works over the rows that node n reduces: it reduces them from now on.
/// Where it could and should not, `refused` says why.
bool reduce_into(Fusion& f, ir::NodeId n, const ReaderMaps& reader, const char*& refused) {
  const ir::Node& node = f.graph.nodes[n];
  ir::ValueId v = node.outputs[0];
  Group& g = f.groups[reader.group];
  const std::vector<IndexMap>& maps = reader.maps;
  if (g.kind != Group::Kind::loop || g.items >= kMostItems) return false;
  Dim size = f.graph.type(node.operands[0].id).shape[reduced_dim(node)];
  int reduced = g.reduced;
  bool extend = false;
  if (reduced < 0) {
    int count = 0;
    for (uint32_t d = 0; d < g.space.size(); ++d)
      if (g.space[d] != Dim(1) && !depends_on(maps[0], d)) reduced = static_cast<int>(d), ++count;
    if (count > 1) return false;
    extend = count == 0;
  }
  if (!extend && (!f.dims.same(g.space[reduced], size) || !f.may_compute(g.work, g.space, reduced))) return false;
  if (extend && outweighs_row(f, g, node, size)) {
    refused = "what follows a row takes longer than the row: computed for many rows side by side";
    return false;
  }
  SmallVector<bool, 8> wanted(g.space.size(), true);
  if (!extend) wanted[reduced] = false;
  for (const IndexMap& map : maps)
    if (!covers(f.dims, map, f.graph.type(v).shape, g.space, wanted)) return false;
  if (extend) {
    reduced = static_cast<int>(g.space.size());
    g.space.push_back(size);
  }
  g.reduced = reduced;
  return true;
}

}  // namespace

void fuse_reduction(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  ir::ValueId v = node.outputs[0];
  DType raw = combination_of(node.op, f.graph.type(node.operands[0].id).dtype, f.graph.type(v).dtype).result;
  // Who reads memory reads it in the value's own type, which columns do not store where they compute in another.
  bool columns = f.facts.prefers_columns(node) && (raw == f.graph.type(v).dtype || !f.requests.from_memory(v));
  f.merge_siblings(v);
  const std::vector<ReaderMaps> readers = f.readers_of(v);
  bool must = f.must_store(v);
  const char* refused = readers.empty() ? "read from memory" : "its readers work over other rows";
  if (columns) {
    refused = "reduced over columns: what follows is a kernel of its own";
  } else if (f.options.fuse && readers.size() == 1 && !must) {
    if (reduce_into(f, n, readers[0], refused)) {
      f.enter(n, readers[0].group, readers[0].maps);
      return f.decide(v, readers[0].group, true, "reduced in the kernel that uses it, one row at a time",
                      2 * f.layouts.bytes_hint(v) + f.layouts.bytes_hint(node.operands[0].id));
    }
  } else if (f.options.fuse) {
    for (const ReaderMaps& reader : readers)
      if (f.can_store_in(v, reader) && reduce_into(f, n, reader, refused)) {
        f.store_in(v, reader.group, reader.maps[0]);
        f.enter(n, reader.group, reader.maps);
        return f.decide(v, reader.group, true, "reduced and stored by a kernel that uses it", f.layouts.bytes_hint(v));
      }
  }
  const Dims& shape = f.graph.type(node.operands[0].id).shape;
  int dim = reduced_dim(node);
  uint32_t g = f.new_group(columns ? Group::Kind::column : Group::Kind::loop, shape);
  f.groups[g].reduced = dim;
  bool keepdim = f.graph.type(v).shape.size() == shape.size();
  IndexMap map = reduction_result_map(shape, dim, keepdim, identity_map(shape));
  if (columns) {
    // The raw result is stored; rounding to a narrower type is the reader's.
    f.groups[g].anchor = &node;
    f.store_raw(v, raw);
  }
  f.store_in(v, g, map);
  f.requests.add(v, g, map);
  f.enter(n, g, {&map, 1});
  f.decide(v, g, false, refused, 0);
}

}  // namespace ingot::codegen::lowering
