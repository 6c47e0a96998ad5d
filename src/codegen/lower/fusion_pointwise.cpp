// Elementwise ops, coordinates, lookups: what fusion asks of a value, and what follows from the answer.
#include <algorithm>
#include <cmath>

#include "codegen/lower/cost.h"
#include "codegen/lower/fusion.h"

namespace ingot::codegen::lowering {
namespace {

/// True if the group's space has more points than v has elements (a row value counts once a row).
bool repeats(Fusion& f, ir::ValueId v, const IndexMap& map, uint32_t group) {
  const Group& g = f.groups[group];
  SmallVector<bool, 8> used(g.space.size(), false);
  auto mark = [&](const IndexMap& m) {
    for (const Coordinate& c : m)
      for (const Term& t : c.terms) used[t.dim] = true;
  };
  mark(map);
  for (const Coordinate& c : map)
    if (c.index != kNoIndex) mark(f.layouts.position(c.index).map);
  int missing = -1, count = 0;
  int64_t points = 1, elements = 1;
  for (size_t d = 0; d < g.space.size(); ++d) {
    points *= f.dims.hint(g.space[d]);
    if (!used[d] && g.space[d] != Dim(1)) missing = static_cast<int>(d), ++count;
  }
  for (Dim d : f.graph.type(v).shape) elements *= f.dims.hint(d);
  bool row_value =
      count == 1 && (g.reduced >= 0 ? missing == g.reduced : f.facts.follows_reduction_of(v, g.space[missing]));
  if (row_value) points /= std::max<int64_t>(1, f.dims.hint(g.space[missing]));
  if (points <= elements) return false;
  // What is the same along the columns of the kernel is computed once a row: where rows are long and few, that is less
  // than a step of its own.
  if (g.reduced >= 0 || g.outputs.empty()) return true;
  const Output& o = g.outputs[0];
  SmallVector<int, 8> order =
      memory_order(f.dims, g.space, f.layouts.strided({o.value, o.strides, o.offset}, o.map, g.space.size()).strides);
  int64_t columns = 1;
  for (size_t i = order.size(); i-- > 0 && !used[order[i]];) columns *= f.dims.hint(g.space[order[i]]);
  constexpr int64_t kStep = 2048;  // operations of a row, in the time that a step takes to start
  return columns < 4 * f.facts.chain_cost(v) || points / std::max<int64_t>(columns, 1) * f.facts.chain_cost(v) > kStep;
}

/// How often the group computes each element of v, on average, if it does at so many maps: those of windows that do not
/// overlap compute each of them once.
int times(Fusion& f, ir::ValueId v, int maps, const Group& g) {
  double points = maps, elements = 1;
  for (Dim d : g.space) points *= static_cast<double>(f.dims.hint(d));
  for (Dim d : f.graph.type(v).shape) elements *= static_cast<double>(f.dims.hint(d));
  return points < maps * elements ? static_cast<int>(std::ceil(points / elements)) : maps;
}

/// True if the operands are inputs, or one is in memory anyway and the others are small beside it.
bool reads_memory(Fusion& f, const ir::Node& node) {
  constexpr int64_t kSmall = 16;
  const ir::ValueId v = node.outputs[0];
  bool inputs = true, others = !f.facts.is_product_tail(v);
  int large = 0;
  for (const ir::Operand& o : node.operands) {
    if (!o.is_value()) continue;
    const ir::Node* producer = f.layouts.producer(f.layouts.of(o.id).root);
    inputs = inputs && !producer;
    if (kSmall * f.layouts.bytes_hint(o.id) <= f.layouts.bytes_hint(v)) continue;
    ++large;
    if (!producer) continue;
    const ir::OpKind kind = ir::info(producer->op).kind;
    others = others && (kind == ir::OpKind::structured || kind == ir::OpKind::host);
  }
  return inputs || (others && large <= 1);
}

/// True if the group reduces along a dim of v, and v has one element for each row that an earlier reduction works on.
bool ends_row(Fusion& f, ir::ValueId v, const ReaderMaps& reader) {
  const Group& g = f.groups[reader.group];
  if (g.reduced < 0) return false;
  for (const IndexMap& map : reader.maps)
    if (!depends_on(map, static_cast<uint32_t>(g.reduced))) return false;
  return f.facts.is_row_value(v);
}

}  // namespace

void fuse_pointwise(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  ir::ValueId v = node.outputs[0];
  const bool reads =
      std::any_of(node.operands.begin(), node.operands.end(), [](const auto& o) { return o.is_value(); });
  if (reads) f.merge_siblings(v);  // else they would share nothing but a constant
  const std::vector<ReaderMaps> readers = f.readers_of(v);
  FusionQuestion q;
  q.consumers = static_cast<int>(readers.size());
  q.must_store = f.must_store(v);
  q.no_operands = !reads;
  q.reads_memory = reads_memory(f, node);
  q.cost = f.facts.cost(n);
  q.chain_cost = f.facts.chain_cost(v);
  q.bytes = f.layouts.bytes_hint(v);
  const ReaderMaps* keeper = nullptr;
  for (const ReaderMaps& reader : readers) {
    const auto& [g, maps, waits] = reader;
    const Group& group = f.groups[g];
    q.reader_is_full = q.reader_is_full || group.items + maps.size() > kMostItems;
    if (group.kind == Group::Kind::loop)
      q.reader_is_full =
          q.reader_is_full ||
          !f.may_compute(group.work + f.facts.cost(n) * static_cast<int64_t>(maps.size()), group.space, group.reduced);
    int full = 0;
    for (const IndexMap& map : maps) {
      q.larger_space = q.larger_space || repeats(f, v, map, g);
      full += group.reduced < 0 || depends_on(map, static_cast<uint32_t>(group.reduced));
    }
    q.maps = std::max(q.maps, full);
    q.times = std::max(q.times, times(f, v, full, group));
    q.lacks_coordinates = q.lacks_coordinates || (group.has_epilogue() && needs_coordinates(ir::info(node.op)));
    if (f.facts.is_product_tail(v))
      q.ends_product = q.ends_product || group.kind != Group::Kind::loop || group.reduced >= 0 || maps.size() > 1 ||
                       !f.covers_all(v, maps[0], group);
    if (!keeper && !f.facts.is_product_tail(v) && f.can_store_in(v, reader)) keeper = &reader;
  }
  q.can_store_there = keeper;
  q.ends_row = readers.size() == 1 && ends_row(f, v, readers[0]);
  if (f.facts.is_product_tail(v) && readers.size() == 1 && q.must_store && !q.ends_product &&
      f.can_store_in(v, readers[0])) {
    // The reader becomes the rest of the epilogue.
    q.can_store_there = true;
    keeper = &readers[0];
  }
  FusionAnswer answer = f.options.fuse ? weigh(q) : FusionAnswer{FusionChoice::alone, "fusion is off", 0};
  switch (answer.choice) {
    case FusionChoice::inside:
      for (const ReaderMaps& reader : readers) f.enter(n, reader.group, reader.maps);
      f.decide(v, readers[0].group, true, answer.reason, answer.bytes_saved);
      return;
    case FusionChoice::stored:
      f.store_in(v, keeper->group, keeper->maps[0]);
      f.enter(n, keeper->group, keeper->maps);
      f.decide(v, keeper->group, true, answer.reason, answer.bytes_saved);
      return;
    case FusionChoice::alone:
      break;
  }
  const Dims& shape = f.graph.type(v).shape;
  uint32_t g = f.new_group(Group::Kind::loop, shape);
  IndexMap map = identity_map(shape);
  f.store_in(v, g, map);
  f.requests.add(v, g, map);
  f.enter(n, g, {&map, 1});
  f.decide(v, g, false, answer.reason, 0);
}

}  // namespace ingot::codegen::lowering
