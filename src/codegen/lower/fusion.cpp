#include "codegen/lower/fusion.h"

#include <algorithm>

#include "base/work_count.h"
#include "codegen/lower/few_columns.h"
#include "codegen/lower/reads.h"

namespace ingot::codegen::lowering {

Fusion::Fusion(const ir::Graph& graph, const Target& target, Layouts& layouts, const LowerOptions& options,
               Explanation& explanation)
    : graph(graph),
      target(target),
      layouts(layouts),
      dims(layouts.dims()),
      options(options),
      explanation(explanation),
      facts(graph, layouts, options.side_by_side && !target.cuda_arch),
      requests(groups, graph.values.size()),
      buffers(graph, layouts),
      homes(graph.nodes.size()) {}

uint32_t Fusion::new_group(Group::Kind kind, Dims space) {
  Group g;
  g.kind = kind;
  g.space = std::move(space);
  g.order = current;
  return groups.add(std::move(g));
}

uint32_t Fusion::copy_group(ir::ValueId v, uint32_t buffer, DType dtype, Dims strides, Dim offset) {
  const Dims& shape = graph.type(v).shape;
  uint32_t g = new_group(Group::Kind::loop, shape);
  IndexMap map = identity_map(shape);
  groups[g].outputs.push_back({v, map, buffer, dtype, std::move(strides), offset});
  requests.add(v, g, std::move(map));
  return g;
}

void Fusion::join(ir::NodeId n, uint32_t group) {
  homes[n].push_back(group);
  groups[group].members.push_back(n);
  groups[group].forward = groups[group].forward || !graph.nodes[n].backward;
  groups[group].recomputes = groups[group].recomputes || graph.nodes[n].recomputed;
}

void Fusion::enter(ir::NodeId n, uint32_t group, std::span<const IndexMap> maps) {
  const ir::Node& node = graph.nodes[n];
  join(n, group);
  Group& g = groups[group];
  g.items += maps.size();
  g.work += facts.cost(n) * static_cast<int64_t>(maps.size());
  g.coordinates = g.coordinates || needs_coordinates(ir::info(node.op));
  for (const IndexMap& map : maps)
    for (OperandRead& read : operand_reads(graph, layouts, node, map, g.reduced))
      requests.add(read.value, group, std::move(read.map));
}

void Fusion::decide(ir::ValueId v, uint32_t group, bool fused, const char* reason, int64_t bytes_saved) {
  explanation.decisions.push_back({v, group, fused, reason, bytes_saved});
}

bool Fusion::may_compute(int64_t work, const Dims& space, int reduced) const {
  return reduced < 0 || !options.side_by_side || target.cuda_arch ||
         fits_side_by_side(space[static_cast<size_t>(reduced)], work);
}

bool Fusion::share_lanes(const Group& a, const Group& b) const {
  if (a.kind != Group::Kind::column) return true;
  bool places = false, ordered = false;
  for (const Group* g : {&a, &b})
    for (ir::NodeId n : g->members) {
      const std::optional<Combiner>& combiner = ir::info(graph.nodes[n].op).combiner;
      places = places || combiner == Combiner::argmax || combiner == Combiner::argmin;
      ordered = ordered || combiner == Combiner::sum || combiner == Combiner::prod;
    }
  return !(places && ordered);
}

void Fusion::merge_siblings(ir::ValueId v) {
  // Of those behind it a reader tries so many: all pairs would take time with the square of the readers.
  constexpr size_t kMostTried = 64;
  if (!options.fuse || !options.siblings || requests.of(v).size() < 2) return;
  struct Reader {
    uint32_t group;
    IndexMap map;
  };
  std::vector<Reader> all;  // those that read the whole of v, once
  for (ReaderMaps& reader : requests.reader_maps(v))
    if (reader.maps.size() == 1 && covers_all(v, reader.maps[0], groups[reader.group]))
      all.push_back({reader.group, std::move(reader.maps[0])});
  uint64_t pairs = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    size_t tried = 0;
    for (size_t j = i + 1; j < all.size() && tried < kMostTried; ++j) {
      uint32_t a = groups.find(all[i].group), b = groups.find(all[j].group);
      ++pairs;
      if (a == b) continue;
      ++tried;
      if (groups[a].outputs.size() >= GroupGraph::kMostOutputs) break;
      if (!GroupGraph::can_unite(groups[a], groups[b]) || all[i].map != all[j].map) continue;
      if (!may_compute(groups[a].work + groups[b].work, groups[a].space,
                       std::max(groups[a].reduced, groups[b].reduced)) ||
          !share_lanes(groups[a], groups[b]))
        continue;
      if (groups.has_path(a, b) || groups.has_path(b, a)) {
        decide(v, a, false, "one reader waits for another, so they cannot be one kernel", 0);
        continue;
      }
      groups.unite(a, b);
      decide(v, a, true, "readers over one space are one kernel", layouts.bytes_hint(v));
    }
  }
  detail::count_work(pairs);
}

StoredOperand Fusion::memory_operand(ir::ValueId v, uint32_t group, DType dtype, bool as_it_lies) {
  if (as_it_lies && graph.type(v).dtype == dtype) {
    const RootView& p = layouts.of(v);
    request_memory(v, group);
    return {v, p.root, kNoBuffer, dtype, p.strides, p.offset};
  }
  Dims dense = ir::contiguous_strides(dims, graph.type(v).shape);
  uint32_t buffer = buffers.add(dtype, layouts.elements(v));
  uint32_t copy = copy_group(v, buffer, dtype, dense, 0);
  groups.add_edge(copy, group);
  decide(v, copy, false, "copied: the step that reads it needs another layout or type", 0);
  return {v, v, buffer, dtype, std::move(dense), 0};
}

bool Fusion::covers_all(ir::ValueId v, const IndexMap& map, const Group& group) const {
  return covers(dims, map, graph.type(v).shape, group.space, SmallVector<bool, 8>(group.space.size(), true));
}

std::vector<ReaderMaps> Fusion::readers_of(ir::ValueId v) const {
  std::vector<ReaderMaps> readers = requests.reader_maps(v);
  requests.find_waiting(v, readers);
  return readers;
}

bool Fusion::can_store_in(ir::ValueId v, const ReaderMaps& reader) const {
  const Group& g = groups[reader.group];
  // What computes again does so late; nothing of the forward pass waits for it.
  if (g.recomputes && !graph.nodes[graph.values[v].producer].backward) return false;
  if ((g.kind != Group::Kind::loop && !g.has_epilogue()) || g.outputs.size() >= GroupGraph::kMostOutputs) return false;
  if (reader.waits) return false;
  SmallVector<bool, 8> wanted(g.space.size(), true);
  const IndexMap& map = reader.maps[0];
  if (g.reduced >= 0 && !depends_on(map, static_cast<uint32_t>(g.reduced))) wanted[g.reduced] = false;
  return covers(dims, map, graph.type(v).shape, g.space, wanted);
}

void Fusion::store_in(ir::ValueId v, uint32_t group, IndexMap map) {
  uint32_t buffer = buffers.of(v);
  groups[group].outputs.push_back({v, std::move(map), buffer, buffers.stored(v).dtype, layouts.of(v).strides, 0});
  add_edges(v, group);
}

void Fusion::store_raw(ir::ValueId v, DType raw) {
  DType dtype = graph.type(v).dtype;
  if (raw == dtype) return;
  uint32_t bound = buffers.stored(v).buffer;
  INGOT_CHECK(!requests.from_memory(v), "a raw result is read in its own type");
  buffers.store(v, buffers.add(raw, layouts.elements(v)), raw);
  if (bound != kNoBuffer) copy_group(v, bound, dtype, ir::contiguous_strides(dims, graph.type(v).shape), 0);
}

void Fusion::add_edges(ir::ValueId v, uint32_t home) {
  for (uint32_t reader : requests.all_readers(v))
    if (reader != home) groups.add_edge(home, reader);
}

}  // namespace ingot::codegen::lowering
