#include "codegen/lower/group_graph.h"

#include <algorithm>

#include "codegen/lower/cost.h"

namespace ingot::codegen::lowering {
namespace {

void sort_unique(std::vector<uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

uint32_t GroupGraph::add(Group group) {
  const uint32_t number = static_cast<uint32_t>(groups_.size());
  groups_.push_back(std::move(group));
  parents_.push_back(number);
  return number;
}

uint32_t GroupGraph::find(uint32_t group) {
  while (parents_[group] != group) group = parents_[group] = parents_[parents_[group]];
  return group;
}

bool GroupGraph::can_unite(const Group& a, const Group& b) {
  auto pointwise = [](const Group& g) { return g.kind == Group::Kind::loop && g.reduced < 0 && !g.coordinates; };
  bool loops = a.kind == Group::Kind::loop && b.kind == Group::Kind::loop &&
               (a.reduced < 0 || b.reduced < 0 || a.reduced == b.reduced);
  bool epilogue = (a.has_epilogue() && pointwise(b)) || (b.has_epilogue() && pointwise(a));
  const bool early = (a.recomputes && b.forward) || (b.recomputes && a.forward);
  return a.space == b.space && (loops || epilogue) && !early && a.outputs.size() + b.outputs.size() <= kMostOutputs &&
         a.items + b.items <= kMostItems;
}

void GroupGraph::unite(uint32_t into, uint32_t from) {
  Group& a = groups_[into];
  Group& b = groups_[from];
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
  a.forward = a.forward || b.forward;
  a.recomputes = a.recomputes || b.recomputes;
  b.alive = false;
  parents_[from] = into;
}

bool GroupGraph::has_path(uint32_t from, uint32_t to) {
  std::vector<uint32_t> open{from};
  std::vector<bool> seen(groups_.size());
  while (!open.empty()) {
    uint32_t g = find(open.back());
    open.pop_back();
    if (seen[g]) continue;
    seen[g] = true;
    for (uint32_t s : groups_[g].successors) {
      if (find(s) == to && g != to) return true;
      open.push_back(s);
    }
  }
  return false;
}

std::vector<uint32_t> GroupGraph::divide(uint32_t group, uint32_t dim, std::span<const Dim> sizes) {
  std::vector<uint32_t> parts{group};
  while (parts.size() < sizes.size()) parts.push_back(add(Group(groups_[group])));
  for (Group& g : groups_)
    if (std::any_of(g.successors.begin(), g.successors.end(), [&](uint32_t s) { return find(s) == group; }))
      g.successors.insert(g.successors.end(), parts.begin() + 1, parts.end());
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
