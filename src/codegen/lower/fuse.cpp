#include "codegen/lower/fuse.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ingot::codegen::lowering {

Plan fuse(const ir::Graph& graph, Layouts& layouts, const LowerOptions& options, Explanation& explanation) {
  return Fuser(graph, layouts, options, explanation).run();
}

Fuser::Fuser(const ir::Graph& graph, Layouts& layouts, const LowerOptions& options, Explanation& explanation)
    : graph_(graph), layouts_(layouts), dims_(layouts.dims()), options_(options), explanation_(explanation) {}

Plan Fuser::run() {
  plan_.keep_wide = options_.keep_wide;
  plan_.stored.resize(graph_.values.size());
  plan_.homes.resize(graph_.nodes.size());
  requests_.resize(graph_.values.size());
  bind_buffers();
  find_product_tails();
  find_costs();
  // From the last node to the first: when a node is placed, all who read it are.
  for (ir::NodeId n = static_cast<ir::NodeId>(graph_.nodes.size()); n-- > 0;) place(n);
  if (options_.fuse)
    for (const ir::InputInfo& input : graph_.inputs) merge_siblings(input.value);
  finish();
  return std::move(plan_);
}

uint32_t Fuser::arena_buffer(DType dtype, Dim elements) {
  plan_.buffers.push_back({Place::arena, 0, dims_.mul(elements, size_of(dtype)), 0, 0});
  return static_cast<uint32_t>(plan_.buffers.size() - 1);
}

void Fuser::bind_buffers() {
  for (uint32_t i = 0; i < graph_.inputs.size(); ++i) {
    plan_.buffers.push_back({Place::input, i, 0, 0, 0});
    ir::ValueId v = graph_.inputs[i].value;
    plan_.stored[v] = {i, graph_.type(v).dtype};
  }
  uint32_t first = static_cast<uint32_t>(plan_.buffers.size());
  for (uint32_t k = 0; k < graph_.outputs.size(); ++k) plan_.buffers.push_back({Place::output, k, 0, 0, 0});
  for (uint32_t k = 0; k < graph_.outputs.size(); ++k) {
    ir::ValueId v = graph_.outputs[k];
    const Placement& p = layouts_.of(v);
    bool outside = plan_.stored[p.root].buffer != kNoBuffer;  // an input, or given as an earlier output
    if (outside && options_.outputs_may_alias) continue;
    const bool given = !options_.output_strides.empty();
    const Dims strides = given ? options_.output_strides[k] : ir::contiguous_strides(dims_, graph_.type(v).shape);
    if (!outside && p.strides == strides && p.offset == Dim(0) &&
        dims_.same(layouts_.elements(p.root), layouts_.elements(v))) {
      plan_.stored[p.root] = {first + k, graph_.type(v).dtype};
      continue;
    }
    if (!given)
      explanation_.notes.push_back("output " + std::to_string(k) +
                                   " is a copy: its value is a view that is not row-major, or given elsewhere");
    copy_group(v, first + k, graph_.type(v).dtype, strides, 0);
  }
}

uint32_t Fuser::new_group(Group::Kind kind, Dims space) {
  Group g;
  g.kind = kind;
  g.space = std::move(space);
  g.order = current_;
  plan_.groups.push_back(std::move(g));
  parents_.push_back(static_cast<uint32_t>(parents_.size()));
  return static_cast<uint32_t>(plan_.groups.size() - 1);
}

uint32_t Fuser::find(uint32_t group) {
  while (parents_[group] != group) group = parents_[group] = parents_[parents_[group]];
  return group;
}

uint32_t Fuser::copy_group(ir::ValueId v, uint32_t buffer, DType dtype, Dims strides, Dim offset) {
  const Dims& shape = graph_.type(v).shape;
  uint32_t g = new_group(Group::Kind::loop, shape);
  IndexMap map = identity_map(shape);
  plan_.groups[g].outputs.push_back({v, map, buffer, dtype, std::move(strides), offset});
  request(v, g, std::move(map));
  return g;
}

void Fuser::request(ir::ValueId v, uint32_t group, IndexMap map) {
  for (const Request& r : requests_[v])
    if (!r.from_memory && find(r.group) == find(group) && r.map == map) return;
  requests_[v].push_back({group, false, std::move(map)});
}

void Fuser::request_memory(ir::ValueId v, uint32_t group) {
  requests_[layouts_.of(v).root].push_back({group, true, {}});
}

void Fuser::request_operands(const ir::Node& node, uint32_t group) {
  // The maps are taken before requests grow: an op may read one value twice.
  std::vector<IndexMap> maps = maps_in(node.outputs[0], group);
  for (const IndexMap& map : maps)
    for (OperandRead& read : operand_reads(graph_, layouts_, node, map, plan_.groups[group].reduced))
      request(read.value, group, std::move(read.map));
}

/// Who computes with v without reading it from memory, and where each does.
std::vector<Fuser::ReaderMaps> Fuser::reader_maps(ir::ValueId v) {
  std::vector<ReaderMaps> readers;
  std::unordered_map<uint32_t, size_t> place;
  for (const Request& r : requests_[v]) {
    if (r.from_memory) continue;
    auto [at, added] = place.try_emplace(find(r.group), readers.size());
    if (added) readers.push_back({at->first, {}});
    std::vector<IndexMap>& maps = readers[at->second].maps;
    if (std::find(maps.begin(), maps.end(), r.map) == maps.end()) maps.push_back(r.map);
  }
  return readers;
}

std::vector<IndexMap> Fuser::maps_in(ir::ValueId v, uint32_t group) {
  std::vector<IndexMap> maps;
  for (const Request& r : requests_[v])
    if (!r.from_memory && find(r.group) == group && std::find(maps.begin(), maps.end(), r.map) == maps.end())
      maps.push_back(r.map);
  return maps;
}

std::vector<uint32_t> Fuser::readers(ir::ValueId v, bool inlined_only) {
  std::vector<uint32_t> groups;
  std::unordered_set<uint32_t> seen;
  for (const Request& r : requests_[v]) {
    if (inlined_only && r.from_memory) continue;
    uint32_t g = find(r.group);
    if (seen.insert(g).second) groups.push_back(g);
  }
  return groups;
}

bool Fuser::must_store(ir::ValueId v) { return plan_.stored[v].buffer != kNoBuffer || read_from_memory(v); }

bool Fuser::read_from_memory(ir::ValueId v) {
  return std::any_of(requests_[v].begin(), requests_[v].end(), [](const Request& r) { return r.from_memory; });
}

/// True if v must be ready before the group runs: the group reads it from memory, or a reader of it comes before.
bool Fuser::needed_before(ir::ValueId v, uint32_t group) {
  return std::any_of(requests_[v].begin(), requests_[v].end(), [&](const Request& r) {
    uint32_t reader = find(r.group);
    return reader == group ? r.from_memory : path(reader, group);
  });
}

/// The value is stored by `home`: all other readers follow it.
void Fuser::add_edges(ir::ValueId v, uint32_t home) {
  for (uint32_t reader : readers(v, false))
    if (reader != home) plan_.groups[home].successors.push_back(reader);
}

/// True if `to` must run after `from`.
bool Fuser::path(uint32_t from, uint32_t to) {
  std::vector<uint32_t> open{from};
  std::vector<bool> seen(plan_.groups.size());
  while (!open.empty()) {
    uint32_t g = find(open.back());
    open.pop_back();
    if (seen[g]) continue;
    seen[g] = true;
    for (uint32_t s : plan_.groups[g].successors) {
      if (find(s) == to && g != to) return true;
      open.push_back(s);
    }
  }
  return false;
}

void Fuser::unite(uint32_t into, uint32_t from) {
  Group& a = plan_.groups[into];
  Group& b = plan_.groups[from];
  auto append = [](auto& to, auto& items) { to.insert(to.end(), items.begin(), items.end()); };
  append(a.members, b.members);
  append(a.outputs, b.outputs);
  append(a.operands, b.operands);
  append(a.successors, b.successors);
  a.items += b.items;
  if (b.reduced >= 0) a.reduced = b.reduced;
  if (b.has_epilogue()) a.kind = b.kind, a.anchor = b.anchor, a.anchor_map = b.anchor_map;
  a.order = std::max(a.order, b.order);
  a.coordinates = a.coordinates || b.coordinates;
  b.alive = false;
  parents_[from] = into;
}

bool Fuser::covers_all(ir::ValueId v, const IndexMap& map, const Group& group) {
  return covers(dims_, map, graph_.type(v).shape, group.space, SmallVector<bool, 8>(group.space.size(), true));
}

/// True if one kernel could run both: loops over the same rows, or an epilogue and what is pointwise.
bool Fuser::can_unite(const Group& a, const Group& b) {
  auto pointwise = [](const Group& g) { return g.kind == Group::Kind::loop && g.reduced < 0 && !g.coordinates; };
  bool loops = a.kind == Group::Kind::loop && b.kind == Group::Kind::loop &&
               (a.reduced < 0 || b.reduced < 0 || a.reduced == b.reduced);
  bool epilogue = (a.has_epilogue() && pointwise(b)) || (b.has_epilogue() && pointwise(a));
  return a.space == b.space && (loops || epilogue) && a.outputs.size() + b.outputs.size() <= kMaxOutputs &&
         a.items + b.items <= kMostItems;
}

/// Groups over one space that read the same elements of v become one, where neither waits for the other.
void Fuser::merge_siblings(ir::ValueId v) {
  struct Reader {
    uint32_t group;
    IndexMap map;
  };
  std::vector<Reader> all;  // those that read the whole of v, once
  for (ReaderMaps& reader : reader_maps(v))
    if (reader.maps.size() == 1 && covers_all(v, reader.maps[0], plan_.groups[reader.group]))
      all.push_back({reader.group, std::move(reader.maps[0])});
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = i + 1; j < all.size(); ++j) {
      uint32_t a = find(all[i].group), b = find(all[j].group);
      if (a == b) continue;
      const Group &x = plan_.groups[a], &y = plan_.groups[b];
      if (x.outputs.size() >= kMaxOutputs) break;
      if (!can_unite(x, y) || all[i].map != all[j].map) continue;
      if (path(a, b) || path(b, a)) {
        explanation_.decisions.push_back(
            {v, a, false, "one reader waits for another, so they cannot be one kernel", 0});
        continue;
      }
      unite(a, b);
      explanation_.decisions.push_back({v, a, true, "readers over one space are one kernel", layouts_.bytes_hint(v)});
    }
}

void Fuser::decide(ir::ValueId v, uint32_t group, bool fused, const char* reason, int64_t bytes) {
  explanation_.decisions.push_back({v, group, fused, reason, bytes});
}

/// Groups in order of execution: a group follows all whose results it reads; else in order of the graph.
void Fuser::finish() {
  size_t n = plan_.groups.size();
  std::vector<uint32_t> waiting(n);
  for (uint32_t g = 0; g < n; ++g) {
    Group& group = plan_.groups[g];
    if (!group.alive) continue;
    for (uint32_t& s : group.successors) s = find(s);
    std::sort(group.successors.begin(), group.successors.end());
    group.successors.erase(std::unique(group.successors.begin(), group.successors.end()), group.successors.end());
    std::erase(group.successors, g);
    for (uint32_t s : group.successors) ++waiting[s];
    std::sort(group.members.begin(), group.members.end());
    group.members.erase(std::unique(group.members.begin(), group.members.end()), group.members.end());
  }
  auto later = [&](uint32_t a, uint32_t b) {
    return std::pair(plan_.groups[a].order, a) > std::pair(plan_.groups[b].order, b);
  };
  std::vector<uint32_t> ready;
  auto push = [&](uint32_t g) {
    ready.push_back(g);
    std::push_heap(ready.begin(), ready.end(), later);
  };
  size_t alive = 0;
  for (uint32_t g = 0; g < n; ++g)
    if (plan_.groups[g].alive && ++alive && !waiting[g]) push(g);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    uint32_t g = ready.back();
    ready.pop_back();
    plan_.order.push_back(g);
    for (uint32_t s : plan_.groups[g].successors)
      if (!--waiting[s]) push(s);
  }
  INGOT_CHECK(plan_.order.size() == alive, "groups wait for each other");
  for (auto& homes : plan_.homes) {
    for (uint32_t& g : homes) g = find(g);
    std::sort(homes.begin(), homes.end());
    homes.erase(std::unique(homes.begin(), homes.end()), homes.end());
  }
}

}  // namespace ingot::codegen::lowering
