#include "codegen/lower/layout.h"

namespace ingot::codegen::lowering {

Layouts::Layouts(const ir::Graph& graph, DimTable& dims) : graph_(graph), dims_(dims) {
  placements_.resize(graph.values.size());
  view_maps_.resize(graph.values.size());
  for (const ir::InputInfo& input : graph.inputs) placements_[input.value] = {input.value, input.strides, 0};
  for (const ir::Node& node : graph.nodes)
    for (ir::ValueId v : node.outputs) {
      placements_[v] = {v, ir::contiguous_strides(dims_, graph.type(v).shape), 0};
      if (!is_view(v)) continue;
      if (node.op == OpId::view)
        place_reshape(node, v);
      else
        place_view(node, v);
    }
}

const ir::Node* Layouts::producer(ir::ValueId v) const {
  ir::NodeId n = graph_.values[v].producer;
  return n == ir::kNoValue ? nullptr : &graph_.nodes[n];
}

Layouts::Producer Layouts::producer_kind(ir::ValueId v) const {
  const ir::Node* node = producer(v);
  if (!node) return Producer::input;
  return ir::info(node->op).kind == ir::OpKind::view ? Producer::view : Producer::computed;
}

void Layouts::place_view(const ir::Node& node, ir::ValueId v) {
  ir::ValueId base = node.operands[0].id;
  const ir::TensorType& type = graph_.type(base);
  std::vector<ir::OperandType> operands;
  for (const ir::Operand& o : node.operands) {
    ir::OperandType t;
    if (o.is_value()) {
      t.kind = ir::OperandType::Kind::tensor;
      t.dtype = graph_.type(o.id).dtype;
      t.shape = &graph_.type(o.id).shape;
    }
    operands.push_back(t);
  }
  std::vector<ir::TensorType> outputs;
  ir::RuleContext context{node.op, operands, node.attrs, dims_, node.location, outputs};
  const Placement& from = placements_[base];
  ir::LayoutRule rule = ir::info(node.op).layout;
  ir::Layout placed = rule(context, {type.shape, from.strides, from.offset});
  placements_[v] = {from.root, placed.strides, placed.offset};
  // as_strided reads memory, not elements of its base: it has a place but no coordinates.
  if (node.op == OpId::as_strided) return;
  // A layout rule is linear in the strides of its base, so unit strides give the coefficients of each coordinate.
  IndexMap map(type.shape.size());
  for (size_t j = 0; j < type.shape.size(); ++j) {
    ir::Layout one{type.shape, Dims(type.shape.size(), Dim(0)), 0};
    one.strides[j] = 1;
    ir::Layout coefficients = rule(context, one);
    map[j].offset = coefficients.offset;
    for (size_t i = 0; i < coefficients.strides.size(); ++i)
      if (coefficients.strides[i] != Dim(0) && coefficients.sizes[i] != Dim(1))
        map[j].terms.push_back({static_cast<uint32_t>(i), coefficients.strides[i]});
  }
  view_maps_[v] = std::move(map);
}

void Layouts::place_reshape(const ir::Node& node, ir::ValueId v) {
  ir::ValueId base = node.operands[0].id;
  const Dims& from = graph_.type(base).shape;
  const Dims& to = graph_.type(v).shape;
  const Placement& placement = placements_[base];
  view_maps_[v] = reshape_map(dims_, from, to);
  if (placement.strides == ir::contiguous_strides(dims_, from))
    placements_[v] = {placement.root, ir::contiguous_strides(dims_, to), placement.offset};
  else if (auto strides = reshape_strides(dims_, from, placement.strides, to))
    placements_[v] = {placement.root, *strides, placement.offset};
  // Else v stays its own root: a copy of the base in its order.
}

IndexMap Layouts::broadcast_map(std::span<const Dim> operand, std::span<const Dim> result, const IndexMap& map) const {
  IndexMap out(operand.size());
  size_t skip = result.size() - operand.size();
  for (size_t i = 0; i < operand.size(); ++i)
    if (operand[i] != Dim(1)) out[i] = map[skip + i];
  return out;
}

OperandRead Layouts::resolve(OperandRead read) const {
  while (const IndexMap* map = view_map(read.value)) {
    auto through = compose(dims_, *map, read.map);
    if (!through) break;
    read = {producer(read.value)->operands[0].id, std::move(*through)};
  }
  return read;
}

Layouts::Strided Layouts::strided(const Placement& placement, const IndexMap& map, size_t space_rank) const {
  Strided result{Dims(space_rank, Dim(0)), placement.offset};
  for (size_t i = 0; i < map.size(); ++i) {
    result.offset = dims_.add(result.offset, dims_.mul(map[i].offset, placement.strides[i]));
    for (const Term& t : map[i].terms)
      result.strides[t.dim] = dims_.add(result.strides[t.dim], dims_.mul(t.coefficient, placement.strides[i]));
  }
  return result;
}

uint32_t Layouts::position(Position p) {
  for (uint32_t i = 0; i < positions_.size(); ++i)
    if (positions_[i] == p) return i;
  positions_.push_back(std::move(p));
  return static_cast<uint32_t>(positions_.size() - 1);
}

int64_t Layouts::bytes_hint(ir::ValueId v) const {
  int64_t bytes = size_of(graph_.type(v).dtype);
  for (Dim d : graph_.type(v).shape) bytes *= dims_.hint(d);
  return bytes;
}

}  // namespace ingot::codegen::lowering
