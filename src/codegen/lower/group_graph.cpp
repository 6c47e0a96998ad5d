#include "codegen/lower/group_graph.h"

#include <algorithm>
#include <numeric>

#include "base/work_count.h"
#include "codegen/lower/cost.h"

namespace ingot::codegen::lowering {
namespace {

void sort_unique(std::vector<uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

// Groups are founded from the last to the first: a new one lies before all others.
uint32_t GroupGraph::add(Group group) {
  const uint32_t number = static_cast<uint32_t>(groups_.size());
  groups_.push_back(std::move(group));
  nodes_.push_back({number, -static_cast<int64_t>(number)});
  return number;
}

uint32_t GroupGraph::find(uint32_t group) {
  while (nodes_[group].parent != group) group = nodes_[group].parent = nodes_[nodes_[group].parent].parent;
  return group;
}

std::vector<uint32_t> GroupGraph::all_of(uint32_t group) const {
  std::vector<uint32_t> all = nodes_[group].taken_in;
  all.push_back(group);
  return all;
}

bool GroupGraph::can_unite(const Group& a, const Group& b) {
  auto pointwise = [](const Group& g) { return g.kind == Group::Kind::loop && g.reduced < 0 && !g.coordinates; };
  bool loops = a.kind == Group::Kind::loop && b.kind == Group::Kind::loop &&
               (a.reduced < 0 || b.reduced < 0 || a.reduced == b.reduced);
  bool columns = a.kind == Group::Kind::column && b.kind == Group::Kind::column && a.reduced == b.reduced;
  bool epilogue = (a.has_epilogue() && pointwise(b)) || (b.has_epilogue() && pointwise(a));
  const bool early = (a.recomputes && b.forward) || (b.recomputes && a.forward);
  return a.space == b.space && (loops || columns || epilogue) && !early &&
         a.outputs.size() + b.outputs.size() <= kMostOutputs && a.items + b.items <= kMostItems;
}

void GroupGraph::unite(uint32_t into, uint32_t from) {
  // Where they are neighbours as far as edges say, either place does for both.
  if (nodes_[into].place < nodes_[from].place)
    put_before(from, into);
  else
    put_before(into, from);
  Group& a = groups_[into];
  Group& b = groups_[from];
  auto append = [](auto& to, auto& items) { to.insert(to.end(), items.begin(), items.end()); };
  append(a.members, b.members);
  append(a.outputs, b.outputs);
  append(a.operands, b.operands);
  append(a.successors, b.successors);
  a.items += b.items;
  a.work += b.work;
  if (b.reduced >= 0) a.reduced = b.reduced;
  if (b.has_epilogue()) a.kind = b.kind, a.anchor = b.anchor, a.anchor_map = b.anchor_map;
  a.order = std::max(a.order, b.order);
  a.coordinates = a.coordinates || b.coordinates;
  a.forward = a.forward || b.forward;
  a.recomputes = a.recomputes || b.recomputes;
  b.alive = false;
  append(nodes_[into].predecessors, nodes_[from].predecessors);
  append(nodes_[into].taken_in, nodes_[from].taken_in);
  nodes_[into].taken_in.push_back(from);
  nodes_[from].parent = into;
}

void GroupGraph::add_edge(uint32_t from, uint32_t to) {
  from = find(from), to = find(to);
  if (from == to) return;
  groups_[from].successors.push_back(to);
  nodes_[to].predecessors.push_back(from);
  if (nodes_[to].place < nodes_[from].place) put_before(from, to);
}

void GroupGraph::begin_walk() {
  ++walks_;
  met_.clear();
}

bool GroupGraph::walk(uint32_t start, int64_t limit, Way way, uint32_t until) {
  uint64_t edges = 0;
  bool arrived = false;
  const size_t first = met_.size();
  met_.push_back(start);
  nodes_[start].met = walks_;
  for (size_t i = first; i < met_.size() && !arrived; ++i)
    for (uint32_t& end : way == Way::forward ? groups_[met_[i]].successors : nodes_[met_[i]].predecessors) {
      ++edges;
      end = find(end);
      arrived = end == until;
      if (arrived) break;
      Node& node = nodes_[end];
      if (node.met == walks_ || (way == Way::forward ? node.place > limit : node.place < limit)) continue;
      node.met = walks_;
      met_.push_back(end);
    }
  detail::count_work(edges + 1);
  return arrived;
}

void GroupGraph::put_before(uint32_t from, uint32_t to) {
  begin_walk();
  INGOT_CHECK(!walk(to, nodes_[from].place, Way::forward, from), "groups wait for each other");
  std::vector<uint32_t> follow = met_;
  begin_walk();
  walk(from, nodes_[to].place, Way::backward);
  auto by_place = [&](uint32_t a, uint32_t b) { return nodes_[a].place < nodes_[b].place; };
  std::sort(met_.begin(), met_.end(), by_place);
  std::sort(follow.begin(), follow.end(), by_place);
  met_.insert(met_.end(), follow.begin(), follow.end());
  std::vector<int64_t> places;
  for (uint32_t g : met_) places.push_back(nodes_[g].place);
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < met_.size(); ++i) nodes_[met_[i]].place = places[i];
}

bool GroupGraph::has_path(uint32_t from, uint32_t to) {
  if (nodes_[from].place >= nodes_[to].place) return false;
  begin_walk();
  return walk(from, nodes_[to].place, Way::forward, to);
}

// One walk for all: in their order, whom it has met when his turn comes must follow one whose turn was before.
std::vector<bool> GroupGraph::follow_others(std::span<const uint32_t> groups) {
  std::vector<bool> follow(groups.size());
  if (groups.size() < 2) return follow;
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return nodes_[groups[a]].place < nodes_[groups[b]].place; });
  const int64_t last = nodes_[groups[order.back()]].place;
  begin_walk();
  for (size_t i : order) {
    follow[i] = nodes_[groups[i]].met == walks_;
    if (!follow[i]) walk(groups[i], last, Way::forward);
  }
  return follow;
}

std::vector<uint32_t> GroupGraph::divide(uint32_t group, uint32_t dim, std::span<const Dim> sizes) {
  std::vector<uint32_t> before = nodes_[group].predecessors;
  for (uint32_t& p : before) p = find(p);
  sort_unique(before);
  std::erase(before, group);
  std::vector<uint32_t> parts{group};
  while (parts.size() < sizes.size()) {
    const uint32_t part = add(Group(groups_[group]));
    for (uint32_t s : groups_[part].successors) nodes_[find(s)].predecessors.push_back(part);
    for (uint32_t p : before) add_edge(p, part);
    parts.push_back(part);
  }
  for (size_t p = 0; p < parts.size(); ++p) groups_[parts[p]].space[dim] = sizes[p];
  return parts;
}

std::vector<uint32_t> GroupGraph::schedule() {
  std::vector<uint32_t> waiting(groups_.size());
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    if (!group.alive) continue;
    for (uint32_t& s : group.successors) s = find(s);
    sort_unique(group.successors);
    std::erase(group.successors, g);
    for (uint32_t s : group.successors) ++waiting[s];
    sort_unique(group.members);
  }
  auto later = [&](uint32_t a, uint32_t b) { return std::pair(groups_[a].order, a) > std::pair(groups_[b].order, b); };
  std::vector<uint32_t> ready, order;
  auto push = [&](uint32_t g) {
    ready.push_back(g);
    std::push_heap(ready.begin(), ready.end(), later);
  };
  size_t alive = 0;
  for (uint32_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].alive && ++alive && !waiting[g]) push(g);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    uint32_t g = ready.back();
    ready.pop_back();
    order.push_back(g);
    for (uint32_t s : groups_[g].successors)
      if (!--waiting[s]) push(s);
  }
  INGOT_CHECK(order.size() == alive, "groups wait for each other");
  return order;
}

}  // namespace ingot::codegen::lowering
