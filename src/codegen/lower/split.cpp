// A kernel that reads joined tensors becomes one kernel a part, so that the joined tensor never exists.
#include <algorithm>

#include "codegen/lower/fuse.h"

namespace ingot::codegen::lowering {

/// The same coordinates where a dim of the space counts from `start`.
IndexMap Fuser::shifted(const IndexMap& map, uint32_t dim, Dim start) {
  IndexMap result = map;
  for (Coordinate& c : result) {
    for (const Term& t : c.terms)
      if (t.dim == dim) c.offset = dims_.add(c.offset, dims_.mul(t.coefficient, start));
    if (c.index == kNoIndex) continue;
    Position p = layouts_.position(c.index);
    p.map = shifted(p.map, dim, start);
    c.index = layouts_.position(std::move(p));
  }
  return result;
}

/// The group, cut along a dim of its space: all it computes and reads is divided.
std::vector<uint32_t> Fuser::split(uint32_t group, uint32_t dim, std::span<const Dim> sizes) {
  std::vector<uint32_t> parts{group};
  std::vector<Dim> starts{0};
  for (size_t p = 1; p < sizes.size(); ++p) {
    starts.push_back(dims_.add(starts.back(), sizes[p - 1]));
    parts.push_back(static_cast<uint32_t>(plan_.groups.size()));
    plan_.groups.push_back(Group(plan_.groups[group]));
    parents_.push_back(parts.back());
  }
  for (std::vector<uint32_t>& homes : plan_.homes)
    if (std::any_of(homes.begin(), homes.end(), [&](uint32_t h) { return find(h) == group; }))
      homes.insert(homes.end(), parts.begin() + 1, parts.end());
  for (std::vector<Request>& requests : requests_)
    for (size_t r = 0, count = requests.size(); r < count; ++r) {
      if (find(requests[r].group) != group) continue;
      for (size_t p = 1; p < parts.size(); ++p)
        requests.push_back({parts[p], requests[r].from_memory, shifted(requests[r].map, dim, starts[p])});
    }
  for (Group& g : plan_.groups)
    if (std::any_of(g.successors.begin(), g.successors.end(), [&](uint32_t s) { return find(s) == group; }))
      g.successors.insert(g.successors.end(), parts.begin() + 1, parts.end());
  for (size_t p = 0; p < parts.size(); ++p) {
    Group& g = plan_.groups[parts[p]];
    g.space[dim] = sizes[p];
    for (Output& o : g.outputs) o.map = shifted(o.map, dim, starts[p]);
  }
  return parts;
}

/// Splits the only reader of a cat, if it is pointwise and reads the cat as it is.
bool Fuser::split_at_cat(ir::NodeId n) {
  constexpr size_t kMostParts = 4;
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0];
  std::vector<uint32_t> groups = readers(v, true);
  if (!options_.fuse || must_store(v) || groups.size() != 1) return false;
  uint32_t group = groups[0];
  const Group& g = plan_.groups[group];
  std::vector<IndexMap> maps = maps_in(v, group);
  size_t along = static_cast<size_t>(node.attrs[0].integer);
  if (g.kind != Group::Kind::loop || g.reduced >= 0 || maps.size() != 1 || !covers_all(v, maps[0], g)) return false;
  if (!(maps[0][along].terms.size() == 1)) return false;
  // A reader that writes into parts of a tensor itself stays whole: its pieces would be many.
  bool writes_parts = std::any_of(g.members.begin(), g.members.end(),
                                  [&](ir::NodeId m) { return ir::info(graph_.nodes[m].op).form == ir::Form::join; });
  if (writes_parts) return false;
  uint32_t dim = maps[0][along].terms[0].dim;
  std::vector<Dim> sizes;
  std::vector<ir::ValueId> operands;
  for (const ir::Operand& o : node.operands) {
    const Dims& part = graph_.type(o.id).shape;
    if (part.size() != graph_.type(v).shape.size() || part[along] == Dim(0)) continue;
    if (graph_.type(o.id).dtype != graph_.type(v).dtype) return false;
    sizes.push_back(part[along]);
    operands.push_back(o.id);
  }
  if (sizes.size() < 2 || sizes.size() > kMostParts) return false;
  std::vector<uint32_t> parts = split(group, dim, sizes);
  for (size_t p = 0; p < parts.size(); ++p) {
    IndexMap map = maps[0];
    if (sizes[p] == Dim(1)) map[along] = {};
    request(operands[p], parts[p], std::move(map));
    plan_.homes[n].push_back(parts[p]);
    plan_.groups[parts[p]].members.push_back(n);
  }
  decide(v, group, true, "its reader is one kernel for each part", 2 * layouts_.bytes_hint(v));
  return true;
}

}  // namespace ingot::codegen::lowering
