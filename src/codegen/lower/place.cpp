// Where each node is computed: inside of its readers, stored by one of them, or in a group of its own.
#include <algorithm>

#include "codegen/lower/fuse.h"

namespace ingot::codegen::lowering {

void Fuser::place(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  current_ = n;
  bool wanted = ir::info(node.op).has(ir::kEffect);
  for (ir::ValueId v : node.outputs) wanted = wanted || !requests_[v].empty() || plan_.stored[v].buffer != kNoBuffer;
  if (!wanted) return;
  if (layouts_.is_view(node.outputs[0])) return place_view(node);
  if (inlines(node)) return place_inlined(n);
  const ir::OpInfo& op = ir::info(node.op);
  if (op.kind == ir::OpKind::reduction) return place_reduction(n);
  switch (op.form) {
    case ir::Form::product:
      return place_matmul(n);
    case ir::Form::window:
      return place_conv(n);
    case ir::Form::attention:
      return place_attention(n);
    case ir::Form::join:
      return place_cat(n);
    case ir::Form::overwrite:
      return place_scatter(n);
    case ir::Form::lookup:
    case ir::Form::step:
      break;
  }
  INGOT_CHECK(op.kind != ir::OpKind::composite, "lowering takes primitives only, not " + std::string(op.name));
  place_host(n);
}

void Fuser::place_view(const ir::Node& node) {
  ir::ValueId v = node.outputs[0], base = node.operands[0].id, root = layouts_.of(v).root;
  bool copy = plan_.stored[v].buffer != kNoBuffer;  // an output that is a reshaped copy
  std::vector<Request> mine = requests_[v];
  for (Request& r : mine) {
    const IndexMap* map = layouts_.view_map(v);
    std::optional<IndexMap> through;
    if (!r.from_memory && map && (through = compose(dims_, *map, r.map)))
      request(base, r.group, std::move(*through));
    else if (root != v)
      request_memory(v, r.group);
    else
      copy = true;
  }
  if (!copy || root != v) return;
  // A reshape that its base's strides do not permit: stored in the order of the base.
  const Dims& shape = graph_.type(base).shape;
  uint32_t buffer = buffer_of(v);
  uint32_t g = copy_group(base, buffer, graph_.type(v).dtype, ir::contiguous_strides(dims_, shape), 0);
  plan_.homes[current_].push_back(g);
  plan_.groups[g].members.push_back(current_);
  add_edges(v, g);
  decide(v, g, false, "a reshape of strided memory is a copy", 0);
}

uint32_t Fuser::buffer_of(ir::ValueId v) {
  Stored& s = plan_.stored[v];
  if (s.buffer == kNoBuffer) s = {arena_buffer(graph_.type(v).dtype, layouts_.elements(v)), graph_.type(v).dtype};
  return s.buffer;
}

void Fuser::store_in(ir::ValueId v, uint32_t group, IndexMap map) {
  uint32_t buffer = buffer_of(v);
  plan_.groups[group].outputs.push_back({v, std::move(map), buffer, plan_.stored[v].dtype, layouts_.of(v).strides, 0});
  add_edges(v, group);
}

void Fuser::enter(ir::NodeId n, uint32_t group) {
  plan_.homes[n].push_back(group);
  Group& g = plan_.groups[group];
  g.members.push_back(n);
  g.items += maps_in(graph_.nodes[n].outputs[0], group).size();
  g.coordinates = g.coordinates || needs_coordinates(ir::info(graph_.nodes[n].op));
  request_operands(graph_.nodes[n], group);
}

/// True if the group can store v: it computes every element once, and no other reader must run before it.
bool Fuser::can_store_in(ir::ValueId v, uint32_t group) {
  const Group& g = plan_.groups[group];
  if ((g.kind != Group::Kind::loop && !g.has_epilogue()) || g.outputs.size() >= kMaxOutputs) return false;
  std::vector<IndexMap> maps = maps_in(v, group);
  if (maps.empty()) return false;
  SmallVector<bool, 8> wanted(g.space.size(), true);
  if (g.reduced >= 0 && !depends_on(maps[0], static_cast<uint32_t>(g.reduced))) wanted[g.reduced] = false;
  if (!covers(dims_, maps[0], graph_.type(v).shape, g.space, wanted)) return false;
  return !needed_before(v, group);
}

/// True if the group's space has more points than v has elements (a row value counts once a row).
bool Fuser::repeats(ir::ValueId v, const IndexMap& map, uint32_t group) {
  const Group& g = plan_.groups[group];
  SmallVector<bool, 8> used(g.space.size(), false);
  auto mark = [&](const IndexMap& m) {
    for (const Coordinate& c : m)
      for (const Term& t : c.terms) used[t.dim] = true;
  };
  mark(map);
  for (const Coordinate& c : map)
    if (c.index != kNoIndex) mark(layouts_.position(c.index).map);
  int missing = -1, count = 0;
  int64_t points = 1, elements = 1;
  for (size_t d = 0; d < g.space.size(); ++d) {
    points *= dims_.hint(g.space[d]);
    if (!used[d] && g.space[d] != Dim(1)) missing = static_cast<int>(d), ++count;
  }
  for (Dim d : graph_.type(v).shape) elements *= dims_.hint(d);
  bool row_value = count == 1 && (g.reduced >= 0 ? missing == g.reduced : leads_to_reduction(v, g.space[missing]));
  if (row_value) points /= std::max<int64_t>(1, dims_.hint(g.space[missing]));
  if (points <= elements) return false;
  // What is the same along the columns of the kernel is computed once a row: where rows are long and few, that is less
  // than a step of its own.
  if (g.reduced >= 0 || g.outputs.empty()) return true;
  const Output& o = g.outputs[0];
  SmallVector<int, 8> order =
      memory_order(dims_, g.space, layouts_.strided({o.value, o.strides, o.offset}, o.map, g.space.size()).strides);
  int64_t columns = 1;
  for (size_t i = order.size(); i-- > 0 && !used[order[i]];) columns *= dims_.hint(g.space[order[i]]);
  constexpr int64_t kStep = 2048;  // operations of a row, in the time that a step takes to start
  return columns < 4 * chain_cost_[v] || points / std::max<int64_t>(columns, 1) * chain_cost_[v] > kStep;
}

/// True if v is computed from a reduction over a dim of this size, by work on reduced values only.
bool Fuser::leads_to_reduction(ir::ValueId v, Dim size) {
  constexpr size_t kFar = 32;
  Dim elements = layouts_.elements(v);
  std::vector<ir::ValueId> open{v}, seen;
  while (!open.empty() && seen.size() < kFar) {
    ir::ValueId u = open.back();
    open.pop_back();
    if (std::find(seen.begin(), seen.end(), u) != seen.end() || !dims_.same(layouts_.elements(u), elements)) continue;
    seen.push_back(u);
    const ir::Node* node = layouts_.producer(u);
    if (!node) continue;
    ir::OpKind kind = ir::info(node->op).kind;
    if (kind == ir::OpKind::reduction) {
      const Dims& shape = graph_.type(node->operands[0].id).shape;
      if (dims_.same(shape[reduced_dim(*node)], size) && !prefers_columns(*node)) return true;
    } else if (kind == ir::OpKind::elementwise || kind == ir::OpKind::view) {
      for (const ir::Operand& o : node->operands)
        if (o.is_value()) open.push_back(o.id);
    }
  }
  return false;
}

/// True if the group reduces along a dim of v, and v has one element for each row that an earlier reduction works on.
bool Fuser::ends_row(ir::ValueId v, uint32_t group) {
  const Group& g = plan_.groups[group];
  if (g.reduced < 0) return false;
  for (const IndexMap& map : maps_in(v, group))
    if (!depends_on(map, static_cast<uint32_t>(g.reduced))) return false;
  constexpr size_t kFar = 64;
  Dim elements = layouts_.elements(v);
  std::vector<ir::ValueId> open{v}, seen;
  while (!open.empty() && seen.size() < kFar) {
    ir::ValueId u = open.back();
    open.pop_back();
    if (std::find(seen.begin(), seen.end(), u) != seen.end()) continue;
    seen.push_back(u);
    const ir::Node* node = layouts_.producer(u);
    if (!node) continue;
    if (ir::info(node->op).kind == ir::OpKind::reduction && dims_.same(layouts_.elements(u), elements) &&
        !prefers_columns(*node))
      return true;
    if (!inlines(*node) && !layouts_.is_view(u)) continue;
    for (const ir::Operand& o : node->operands)
      if (o.is_value()) open.push_back(o.id);
  }
  return false;
}

/// Work of each op alone, and of each value with all that a kernel would compute with it.
void Fuser::find_costs() {
  constexpr int kMost = 1 << 20;  // a value that is read many times counts each time
  cost_.resize(graph_.nodes.size());
  chain_cost_.resize(graph_.values.size());
  for (ir::NodeId n = 0; n < graph_.nodes.size(); ++n) {
    const ir::Node& node = graph_.nodes[n];
    bool inside = inlines(node);
    if (!inside && !layouts_.is_view(node.outputs[0])) continue;
    DType compute = graph_.type(node.outputs[0]).dtype;
    int below = 0;
    for (const ir::Operand& o : node.operands)
      if (o.is_value()) {
        below = std::min(kMost, below + chain_cost_[o.id]);
        if (is_floating(graph_.type(o.id).dtype)) compute = graph_.type(o.id).dtype;
      }
    if (inside)
      cost_[n] = ir::info(node.op).kind == ir::OpKind::elementwise ? op_cost(node.op, working_dtype(compute)) : 1;
    chain_cost_[node.outputs[0]] = below + cost_[n];
  }
}

void Fuser::place_inlined(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0];
  if (options_.fuse) merge_siblings(v);
  const std::vector<ReaderMaps> readers = reader_maps(v);
  FusionQuestion q;
  q.consumers = static_cast<int>(readers.size());
  q.must_store = must_store(v);
  q.no_operands = true;
  q.from_inputs = true;
  for (const ir::Operand& o : node.operands)
    if (o.is_value()) {
      q.no_operands = false;
      q.from_inputs = q.from_inputs && !layouts_.producer(layouts_.of(o.id).root);
    }
  q.cost = cost_[n];
  q.chain_cost = chain_cost_[v];
  q.bytes = layouts_.bytes_hint(v);
  uint32_t keeper = kNoIndex;
  for (const auto& [g, maps] : readers) {
    const Group& group = plan_.groups[g];
    q.reader_is_full = q.reader_is_full || group.items + maps.size() > kMostItems;
    int full = 0;
    for (const IndexMap& map : maps) {
      q.larger_space = q.larger_space || repeats(v, map, g);
      full += group.reduced < 0 || depends_on(map, static_cast<uint32_t>(group.reduced));
    }
    q.maps = std::max(q.maps, full);
    q.lacks_coordinates = q.lacks_coordinates || (group.has_epilogue() && needs_coordinates(ir::info(node.op)));
    if (product_tail_[v])
      q.ends_product = q.ends_product || group.kind != Group::Kind::loop || group.reduced >= 0 || maps.size() > 1 ||
                       !covers_all(v, maps[0], group);
    if (keeper == kNoIndex && !product_tail_[v] && can_store_in(v, g)) keeper = g;
  }
  q.can_store_there = keeper != kNoIndex;
  q.ends_row = readers.size() == 1 && ends_row(v, readers[0].group);
  if (product_tail_[v] && readers.size() == 1 && q.must_store && !q.ends_product && can_store_in(v, readers[0].group)) {
    // The reader becomes the rest of the epilogue.
    q.can_store_there = true;
    keeper = readers[0].group;
  }
  FusionAnswer answer = options_.fuse ? weigh(q) : FusionAnswer{Placing::alone, "fusion is off", 0};
  switch (answer.placing) {
    case Placing::inside:
      for (const ReaderMaps& reader : readers) enter(n, reader.group);
      decide(v, readers[0].group, true, answer.reason, answer.bytes_saved);
      return;
    case Placing::stored:
      store_in(v, keeper, maps_in(v, keeper)[0]);
      enter(n, keeper);
      decide(v, keeper, true, answer.reason, answer.bytes_saved);
      return;
    case Placing::alone:
      break;
  }
  const Dims& shape = graph_.type(v).shape;
  uint32_t g = new_group(Group::Kind::loop, shape);
  IndexMap map = identity_map(shape);
  store_in(v, g, map);
  request(v, g, map);
  enter(n, g);
  decide(v, g, false, answer.reason, 0);
}

void Fuser::place_host(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  uint32_t g = new_group(Group::Kind::host, {});
  plan_.groups[g].anchor = &node;
  for (const ir::Operand& o : node.operands) {
    StoredOperand operand;
    if (o.is_value()) operand = memory_operand(o.id, g, graph_.type(o.id).dtype, true);
    plan_.groups[g].operands.push_back(operand);
  }
  for (ir::ValueId v : node.outputs) store_in(v, g, {});
  plan_.homes[n].push_back(g);
  plan_.groups[g].members.push_back(n);
  decide(node.outputs[0], g, false, "a library step", 0);
}

StoredOperand Fuser::memory_operand(ir::ValueId v, uint32_t group, DType dtype, bool as_it_lies) {
  if (as_it_lies && graph_.type(v).dtype == dtype) {
    const Placement& p = layouts_.of(v);
    request_memory(v, group);
    return {v, p.root, kNoBuffer, dtype, p.strides, p.offset};
  }
  const Dims& shape = graph_.type(v).shape;
  Dims dense = ir::contiguous_strides(dims_, shape);
  uint32_t buffer = arena_buffer(dtype, layouts_.elements(v));
  uint32_t copy = copy_group(v, buffer, dtype, dense, 0);
  plan_.groups[copy].successors.push_back(group);
  decide(v, copy, false, "copied: the step that reads it needs another layout or type", 0);
  return {v, v, buffer, dtype, std::move(dense), 0};
}

void Fuser::place_cat(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0];
  size_t dim = static_cast<size_t>(node.attrs[0].integer);
  const Dims& shape = graph_.type(v).shape;
  if (split_at_cat(n)) return;
  uint32_t buffer = buffer_of(v);
  const Dims& strides = layouts_.of(v).strides;
  Dim start = 0;
  for (const ir::Operand& o : node.operands) {
    const Dims& part = graph_.type(o.id).shape;
    if (part.size() != shape.size()) continue;  // PyTorch allows an empty tensor of one dim
    uint32_t g = copy_group(o.id, buffer, graph_.type(v).dtype, strides, dims_.mul(start, strides[dim]));
    plan_.homes[n].push_back(g);
    plan_.groups[g].members.push_back(n);
    start = dims_.add(start, part[dim]);
  }
  for (uint32_t g : plan_.homes[n]) add_edges(v, find(g));
  decide(v, plan_.homes[n].empty() ? 0 : find(plan_.homes[n][0]), true, "each part is written into its place",
         layouts_.bytes_hint(v));
}

void Fuser::place_scatter(ir::NodeId n) {
  const ir::Node& node = graph_.nodes[n];
  ir::ValueId v = node.outputs[0], self = node.operands[0].id, source = node.operands[1].id;
  uint32_t buffer = buffer_of(v);
  DType dtype = graph_.type(v).dtype;
  uint32_t all = copy_group(self, buffer, dtype, ir::contiguous_strides(dims_, graph_.type(v).shape), 0);
  Dim offset = node.attrs[2].present() ? node.attrs[2].list[0] : Dim(0);
  uint32_t part = copy_group(source, buffer, dtype, node.attrs[1].list, offset);
  plan_.groups[all].successors.push_back(part);
  for (uint32_t g : {all, part}) {
    plan_.homes[n].push_back(g);
    plan_.groups[g].members.push_back(n);
    add_edges(v, g);
  }
  decide(v, part, false, "written over a copy of the whole", 0);
}

}  // namespace ingot::codegen::lowering
