// From the last node to the first: when a node is decided on, all who read it have their groups, and
// each has requested it at its maps.
#include <algorithm>

#include "codegen/lower/fusion.h"

namespace ingot::codegen::lowering {
namespace {

/// A value that lies as its output does is stored there; others are copied.
void bind_outputs(Fusion& f) {
  const ir::Graph& graph = f.graph;
  const LowerOptions& options = f.options;
  for (uint32_t k = 0; k < graph.outputs.size(); ++k) {
    ir::ValueId v = graph.outputs[k];
    const DType dtype = graph.type(v).dtype;
    const RootView& p = f.layouts.of(v);
    const uint32_t buffer = f.buffers.output(k);
    bool outside = f.buffers.is_stored(p.root);  // an input, or given as an earlier output
    if (outside && options.outputs_may_alias) continue;
    const bool given = !options.output_strides.empty();
    const SmallVector<int64_t, 6> order = f.layouts.output_order(k);
    const bool chosen = !std::is_sorted(order.begin(), order.end());
    if (chosen) {
      std::string& note =
          f.explanation.notes.emplace_back("output " + std::to_string(k) + " lies with its dims in order");
      for (int64_t d : order) note += " " + std::to_string(d);
      note += ", as it is computed: nobody sees its strides";
    }
    const Dims strides = given    ? options.output_strides[k]
                         : chosen ? p.strides
                                  : ir::contiguous_strides(f.dims, graph.type(v).shape);
    if (!outside && p.strides == strides && p.offset == Dim(0) &&
        f.dims.same(f.layouts.elements(p.root), f.layouts.elements(v))) {
      f.buffers.store(p.root, buffer, dtype);
      continue;
    }
    if (!given && !chosen)
      f.explanation.notes.push_back("output " + std::to_string(k) +
                                    " is a copy: its value is a view that is not row-major, or given elsewhere");
    f.copy_group(v, buffer, dtype, strides, 0);
  }
}

void fuse_node(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  const ir::OpInfo& op = ir::info(node.op);
  f.current = n;
  bool wanted = false;
  for (ir::ValueId v : node.outputs) wanted = wanted || !f.requests.of(v).empty() || f.buffers.is_stored(v);
  if (!wanted) return;
  if (f.layouts.is_view(node.outputs[0])) return fuse_view(f, n);
  if (inlines(node)) return fuse_pointwise(f, n);
  if (op.kind == ir::OpKind::reduction) return fuse_reduction(f, n);
  switch (op.form) {
    case ir::Form::product:
      return fuse_matmul(f, n);
    case ir::Form::window:
      return fuse_conv(f, n);
    case ir::Form::window_weight:
      return fuse_conv_weight(f, n);
    case ir::Form::attention:
    case ir::Form::attention_backward:
      return fuse_attention(f, n);
    case ir::Form::recurrence:
      return fuse_recurrence(f, n);
    case ir::Form::join:
      return fuse_cat(f, n);
    case ir::Form::overwrite:
      return fuse_scatter(f, n);
    case ir::Form::lookup:
    case ir::Form::step:
      break;
  }
  INGOT_CHECK(op.kind != ir::OpKind::composite, "lowering takes primitives only, not " + std::string(op.name));
  fuse_host(f, n);
}

}  // namespace

void fuse(Fusion& f) {
  bind_outputs(f);
  for (ir::NodeId n = static_cast<ir::NodeId>(f.graph.nodes.size()); n-- > 0;) fuse_node(f, n);
  for (const ir::InputInfo& input : f.graph.inputs) f.merge_siblings(input.value);
}

Plan schedule(Fusion& f) {
  Plan plan;
  plan.keep_wide = f.options.keep_wide;
  plan.order = f.groups.schedule();
  for (std::vector<uint32_t>& homes : f.homes) {
    for (uint32_t& g : homes) g = f.groups.find(g);
    std::sort(homes.begin(), homes.end());
    homes.erase(std::unique(homes.begin(), homes.end()), homes.end());
  }
  plan.homes = std::move(f.homes);
  plan.groups = f.groups.take();
  plan.stored = f.buffers.take_stored();
  plan.buffers = f.buffers.take();
  return plan;
}

}  // namespace ingot::codegen::lowering
