// Views, joins, writes over a whole, host ops: they decide where values lie, and compute nothing themselves.
#include "codegen/lower/fusion.h"

namespace ingot::codegen::lowering {

void fuse_view(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  ir::ValueId v = node.outputs[0], base = node.operands[0].id, root = f.layouts.of(v).root;
  bool copy = f.buffers.is_stored(v);               // an output that is a reshaped copy
  if (!f.layouts.view_map(v)) f.merge_siblings(v);  // who reads it from memory
  for (const Request& r : f.requests.of(v)) {
    const IndexMap* map = f.layouts.view_map(v);
    std::optional<IndexMap> through;
    if (!r.from_memory && map && (through = compose(f.dims, *map, r.map)))
      f.requests.add(base, r.group, std::move(*through));
    else if (root != v)
      f.request_memory(v, r.group);
    else
      copy = true;
  }
  if (!copy || root != v) return;
  // A reshape that its base's strides do not permit: stored in the order of the base.
  const Dims& shape = f.graph.type(base).shape;
  uint32_t buffer = f.buffers.of(v);
  uint32_t g = f.copy_group(base, buffer, f.graph.type(v).dtype, ir::contiguous_strides(f.dims, shape), 0);
  f.join(n, g);
  f.add_edges(v, g);
  f.decide(v, g, false, "a reshape of strided memory is a copy", 0);
}

void fuse_cat(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  ir::ValueId v = node.outputs[0];
  size_t dim = static_cast<size_t>(node.attrs[0].integer);
  const Dims& shape = f.graph.type(v).shape;
  if (split_at_cat(f, n)) return;
  uint32_t buffer = f.buffers.of(v);
  const Dims& strides = f.layouts.of(v).strides;
  Dim start = 0;
  for (const ir::Operand& o : node.operands) {
    const Dims& part = f.graph.type(o.id).shape;
    if (part.size() != shape.size()) continue;  // PyTorch allows an empty tensor of one dim
    uint32_t g = f.copy_group(o.id, buffer, f.graph.type(v).dtype, strides, f.dims.mul(start, strides[dim]));
    f.join(n, g);
    start = f.dims.add(start, part[dim]);
  }
  for (uint32_t g : f.homes[n]) f.add_edges(v, f.groups.find(g));
  f.decide(v, f.homes[n].empty() ? 0 : f.groups.find(f.homes[n][0]), true, "each part is written into its place",
           f.layouts.bytes_hint(v));
}

void fuse_scatter(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  ir::ValueId v = node.outputs[0], self = node.operands[0].id, source = node.operands[1].id;
  uint32_t buffer = f.buffers.of(v);
  DType dtype = f.graph.type(v).dtype;
  uint32_t all = f.copy_group(self, buffer, dtype, ir::contiguous_strides(f.dims, f.graph.type(v).shape), 0);
  Dim offset = node.attrs[2].present() ? node.attrs[2].list[0] : Dim(0);
  uint32_t part = f.copy_group(source, buffer, dtype, node.attrs[1].list, offset);
  f.groups.add_edge(all, part);
  for (uint32_t g : {all, part}) {
    f.join(n, g);
    f.add_edges(v, g);
  }
  f.decide(v, part, false, "written over a copy of the whole", 0);
}

void fuse_host(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  uint32_t g = f.new_group(Group::Kind::host, {});
  f.groups[g].anchor = &node;
  for (const ir::Operand& o : node.operands) {
    StoredOperand operand;
    if (o.is_value()) operand = f.memory_operand(o.id, g, f.graph.type(o.id).dtype, true);
    f.groups[g].operands.push_back(operand);
  }
  for (ir::ValueId v : node.outputs) f.store_in(v, g, {});
  f.join(n, g);
  f.decide(node.outputs[0], g, false, "a host step", 0);
}

}  // namespace ingot::codegen::lowering
