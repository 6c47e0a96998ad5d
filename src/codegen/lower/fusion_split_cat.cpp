// A kernel that reads joined tensors becomes one kernel a part, so that the joined tensor never exists.
#include <algorithm>
#include <set>

#include "codegen/lower/fusion.h"

namespace ingot::codegen::lowering {
namespace {

/// The same coordinates where a dim of the space counts from `start`.
IndexMap shifted(Fusion& f, const IndexMap& map, uint32_t dim, Dim start) {
  IndexMap result = map;
  for (Coordinate& c : result) {
    for (const Term& t : c.terms)
      if (t.dim == dim) c.offset = f.dims.add(c.offset, f.dims.mul(t.coefficient, start));
    if (c.index == kNoIndex) continue;
    Position p = f.layouts.position(c.index);
    p.map = shifted(f, p.map, dim, start);
    c.index = f.layouts.position(std::move(p));
  }
  return result;
}

/// The group, cut along a dim of its space: all it computes and reads is divided.
std::vector<uint32_t> split_group(Fusion& f, uint32_t group, uint32_t dim, std::span<const Dim> sizes) {
  std::vector<Dim> starts{0};
  for (size_t p = 1; p < sizes.size(); ++p) starts.push_back(f.dims.add(starts.back(), sizes[p - 1]));
  const std::vector<uint32_t> parts = f.groups.divide(group, dim, sizes);
  const std::set<ir::NodeId> members(f.groups[group].members.begin(), f.groups[group].members.end());
  for (ir::NodeId m : members) f.homes[m].insert(f.homes[m].end(), parts.begin() + 1, parts.end());
  f.requests.divide(parts, [&](const IndexMap& map, size_t p) { return shifted(f, map, dim, starts[p]); });
  for (size_t p = 0; p < parts.size(); ++p)
    for (Output& o : f.groups[parts[p]].outputs) o.map = shifted(f, o.map, dim, starts[p]);
  return parts;
}

}  // namespace

bool split_at_cat(Fusion& f, ir::NodeId n) {
  constexpr size_t kMostParts = 4, kMostPieces = 9;
  const ir::Node& node = f.graph.nodes[n];
  ir::ValueId v = node.outputs[0];
  std::vector<uint32_t> groups = f.requests.inlining_readers(v);
  if (!f.options.fuse || !f.options.split_cat || f.must_store(v) || groups.size() != 1) return false;
  uint32_t group = groups[0];
  const Group& g = f.groups[group];
  std::vector<IndexMap> maps = f.requests.maps_in(v, group);
  size_t along = static_cast<size_t>(node.attrs[0].integer);
  if (g.kind != Group::Kind::loop || g.reduced >= 0 || maps.size() != 1 || !f.covers_all(v, maps[0], g)) return false;
  if (!(maps[0][along].terms.size() == 1)) return false;
  uint32_t dim = maps[0][along].terms[0].dim;
  std::vector<Dim> sizes;
  std::vector<ir::ValueId> operands;
  for (const ir::Operand& o : node.operands) {
    const Dims& part = f.graph.type(o.id).shape;
    if (part.size() != f.graph.type(v).shape.size() || part[along] == Dim(0)) continue;
    if (f.graph.type(o.id).dtype != f.graph.type(v).dtype) return false;
    sizes.push_back(part[along]);
    operands.push_back(o.id);
  }
  if (sizes.size() < 2 || sizes.size() > kMostParts) return false;
  for (ir::NodeId m : g.members) {
    const ir::Node& other = f.graph.nodes[m];
    if (ir::info(other.op).form != ir::Form::join) continue;
    // A reader may write a part of a joined tensor itself: its pieces count with those of the others.
    if (f.homes[m].size() + sizes.size() - 1 > kMostPieces) return false;
    // Or it is a part of another reader that was divided: not again along the same dim, where a piece begins inside.
    if (f.buffers.is_stored(other.outputs[0])) continue;
    for (const IndexMap& map : f.requests.maps_in(other.outputs[0], group))
      for (const Term& t : map[static_cast<size_t>(other.attrs[0].integer)].terms)
        if (t.dim == dim) return false;
  }
  std::vector<uint32_t> parts = split_group(f, group, dim, sizes);
  for (size_t p = 0; p < parts.size(); ++p) {
    IndexMap map = maps[0];
    if (sizes[p] == Dim(1)) map[along] = {};
    f.requests.add(operands[p], parts[p], std::move(map));
    f.join(n, parts[p]);
  }
  f.decide(v, group, true, "its reader is one kernel for each part", 2 * f.layouts.bytes_hint(v));
  return true;
}

}  // namespace ingot::codegen::lowering
