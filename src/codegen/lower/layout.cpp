#include "codegen/lower/layout.h"

#include <algorithm>
#include <numeric>

namespace ingot::codegen::lowering {

SmallVector<int, 8> memory_order(const DimTable& dims, std::span<const Dim> shape, std::span<const Dim> strides) {
  SmallVector<int, 8> order;
  for (size_t d = 0; d < shape.size(); ++d) order.push_back(static_cast<int>(d));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    bool one_a = shape[a] == Dim(1), one_b = shape[b] == Dim(1);
    if (one_a || one_b) return !one_a && one_b;
    return dims.hint(strides[a]) > dims.hint(strides[b]);
  });
  return order;
}

Dims channels_last_strides(DimTable& dims, std::span<const Dim> shape) {
  Dims moved(shape.begin(), shape.end());
  const auto channels = moved.end() - 3;
  std::rotate(channels, channels + 1, moved.end());
  Dims strides = ir::contiguous_strides(dims, moved);
  const auto innermost = strides.end() - 3;
  std::rotate(innermost, innermost + 2, strides.end());
  return strides;
}

namespace {

/// The order of a result from that of an operand, some of whose dims it repeats: these lie inside of the dims before
/// them (what is repeated within a window, say, within the window).
SmallVector<int, 8> order_of_result(std::span<const Dim> shape, std::span<const Dim> from,
                                    const SmallVector<int, 8>& order) {
  SmallVector<int, 8> result;
  for (int d : order)
    if (from[static_cast<size_t>(d)] != Dim(1)) result.push_back(d);
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (from[static_cast<size_t>(d)] != Dim(1) || shape[static_cast<size_t>(d)] == Dim(1)) continue;
    size_t at = 0;
    for (size_t i = 0; i < result.size(); ++i)
      if (result[i] == d - 1) at = i + 1;
    result.push_back(d);
    std::rotate(result.begin() + at, result.end() - 1, result.end());
  }
  for (int d = 0; d < static_cast<int>(shape.size()); ++d)
    if (shape[static_cast<size_t>(d)] == Dim(1)) result.push_back(d);
  return result;
}

}  // namespace

Layouts::Layouts(const ir::Graph& graph, DimTable& dims, bool channels_last, std::span<const uint32_t> free_outputs)
    : graph_(graph),
      dims_(dims),
      channels_last_(channels_last),
      free_(graph.outputs.size()),
      row_major_(graph.values.size()) {
  for (uint32_t k : free_outputs) free_[k] = true;
  for (uint32_t k = 0; k < graph.outputs.size(); ++k)
    if (!free_[k]) row_major_[graph.outputs[k]] = true;
  views_.resize(graph.values.size());
  view_maps_.resize(graph.values.size());
  for (const ir::InputInfo& input : graph.inputs) views_[input.value] = {input.value, input.strides, 0};
  for (const ir::Node& node : graph.nodes)
    for (ir::ValueId v : node.outputs) {
      views_[v] = {v, computed_strides(node, v), 0};
      if (!is_view(v)) continue;
      if (ir::info(node.op).has(ir::kReshapes))
        find_reshape(node, v);
      else
        find_view(node, v);
    }
}

/// Strides of a value that a step stores.
Dims Layouts::computed_strides(const ir::Node& node, ir::ValueId v) {
  const Dims& shape = graph_.type(v).shape;
  Dims dense = ir::contiguous_strides(dims_, shape);
  const ir::Form form = ir::info(node.op).form;
  if (row_major_[v]) return dense;
  if ((form == ir::Form::attention || form == ir::Form::attention_backward) && shape.size() == 4) {
    // The heads of one position lie side by side, as the projection that follows reads them, or as those before lie.
    dense[1] = shape[3];
    dense[2] = dims_.mul(shape[1], shape[3]);
    return dense;
  }
  if (channels_last_ && form == ir::Form::window) return channels_last_strides(dims_, shape);
  // What is joined or gathered is row-major whatever it is made from: its parts are copied in any case, and what
  // follows (a norm along the last dim) would read the order of one of them. Images keep their channels innermost.
  const bool elementwise = ir::info(node.op).kind == ir::OpKind::elementwise;
  // What is written over in part is not: the places are numbers of its row-major elements.
  const bool moves = form == ir::Form::join || form == ir::Form::lookup;
  const bool images = moves && channels_last_ && shape.size() == 4;
  // Places of windows that are put side by side lie as the windows do.
  const bool side_by_side = form == ir::Form::join && channels_last_ && shape.size() > 4 &&
                            std::all_of(node.operands.begin(), node.operands.end(), [&](const ir::Operand& o) {
                              const Dims& part = graph_.type(o.id).shape;
                              const auto dim = static_cast<size_t>(node.attrs[0].integer);
                              return part.size() == shape.size() && part[dim] == Dim(1);
                            });
  const bool in_order = elementwise || side_by_side;
  if (shape.size() < 2 || !(in_order || images)) return dense;
  const SmallVector<int, 8> plain = memory_order(dims_, shape, dense);
  // An operand that is repeated may be small, and then says little.
  constexpr int64_t kRepeats = 16, kFewest = 5;  // of a row
  for (bool repeated : {false, true})
    for (const ir::Operand& o : node.operands) {
      if (!o.is_value()) continue;
      const Dims& from = graph_.type(o.id).shape;
      if (from.size() != shape.size() || (in_order && (from == shape) == repeated)) continue;
      if (repeated && (!in_order || kRepeats * bytes_hint(o.id) < bytes_hint(v))) continue;
      const Dims& strides = views_[o.id].strides;
      // A broadcast operand has no order of its own.
      bool broadcast = false;
      for (size_t d = 0; d < from.size(); ++d) broadcast = broadcast || (strides[d] == Dim(0) && from[d] != Dim(1));
      const SmallVector<int, 8> order = memory_order(dims_, from, strides);
      if (broadcast || order == memory_order(dims_, from, ir::contiguous_strides(dims_, from))) continue;
      // Rows of three colours would be followed by whoever reads it: an image from a file is turned as it is read
      // first.
      Dim innermost = 1;
      for (size_t i = order.size(); i-- > 0 && innermost == Dim(1);) innermost = from[static_cast<size_t>(order[i])];
      if (innermost.is_constant() && innermost.code < kFewest && !producer(views_[o.id].root)) continue;
      if (!in_order) {
        const Dims channels_last = channels_last_strides(dims_, from);
        if (order == memory_order(dims_, from, channels_last)) return channels_last_strides(dims_, shape);
        continue;
      }
      const SmallVector<int, 8> ours = order_of_result(shape, from, order);
      if (ours == plain) continue;
      Dim step = 1;
      for (size_t i = ours.size(); i-- > 0;) {
        size_t d = static_cast<size_t>(ours[i]);
        dense[d] = step;
        if (!(shape[d] == Dim(0))) step = dims_.mul(step, shape[d]);
      }
      return dense;
    }
  return dense;
}

SmallVector<int64_t, 6> Layouts::output_order(uint32_t number) const {
  const ir::ValueId v = graph_.outputs[number];
  const Dims& shape = graph_.type(v).shape;
  SmallVector<int64_t, 6> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  if (!free_[number]) return order;
  const SmallVector<int, 8> chosen = memory_order(dims_, shape, views_[v].strides);
  // Where sizes are symbols the order at the sizes of the trace may be another one's, too.
  Dim stride = 1;
  for (size_t i = chosen.size(); i-- > 0;) {
    const auto d = static_cast<size_t>(chosen[i]);
    if (shape[d] == Dim(1)) continue;
    if (!(views_[v].strides[d] == stride)) return order;
    stride = dims_.mul(stride, shape[d]);
  }
  std::copy(chosen.begin(), chosen.end(), order.begin());
  return order;
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

void Layouts::find_view(const ir::Node& node, ir::ValueId v) {
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
  const RootView& from = views_[base];
  const ir::OpInfo& op = ir::info(node.op);
  ir::LayoutRule rule = op.layout;
  ir::Layout placed = rule(context, {type.shape, from.strides, from.offset});
  if (op.has(ir::kOfMemory)) {
    // It counts through a flat base (ir/builder.cpp), and has a place but no coordinates.
    INGOT_CHECK(from.strides.size() == 1, std::string(op.name) + " of a value with several dims");
    for (Dim& stride : placed.strides) stride = dims_.mul(stride, from.strides[0]);
    placed.offset = dims_.add(from.offset, dims_.mul(placed.offset, from.strides[0]));
  }
  views_[v] = {from.root, placed.strides, placed.offset};
  if (op.has(ir::kOfMemory)) return;
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

void Layouts::find_reshape(const ir::Node& node, ir::ValueId v) {
  ir::ValueId base = node.operands[0].id;
  const Dims& from = graph_.type(base).shape;
  const Dims& to = graph_.type(v).shape;
  const RootView& view = views_[base];
  view_maps_[v] = reshape_map(dims_, from, to);
  if (view.strides == ir::contiguous_strides(dims_, from))
    views_[v] = {view.root, ir::contiguous_strides(dims_, to), view.offset};
  else if (auto strides = reshape_strides(dims_, from, view.strides, to))
    views_[v] = {view.root, *strides, view.offset};
  // Else v stays its own root: a copy of the base in its order.
}

IndexMap Layouts::broadcast_map(std::span<const Dim> operand, std::span<const Dim> result, const IndexMap& map) const {
  IndexMap out(operand.size());
  size_t skip = result.size() - operand.size();
  for (size_t i = 0; i < operand.size(); ++i)
    // A size that is an expression may be 1 by a guard: then it is not the result's, whose hint is another.
    if (operand[i] == result[skip + i] || dims_.hint(operand[i]) == dims_.hint(result[skip + i]))
      out[i] = operand[i] == Dim(1) ? Coordinate{} : map[skip + i];
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

Layouts::Strided Layouts::strided(const RootView& view, const IndexMap& map, size_t space_rank) const {
  Strided result{Dims(space_rank, Dim(0)), view.offset};
  for (size_t i = 0; i < map.size(); ++i) {
    result.offset = dims_.add(result.offset, dims_.mul(map[i].offset, view.strides[i]));
    for (const Term& t : map[i].terms)
      result.strides[t.dim] = dims_.add(result.strides[t.dim], dims_.mul(t.coefficient, view.strides[i]));
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

bool Layouts::is_constant(ir::ValueId v) const {
  return std::ranges::any_of(graph_.inputs,
                             [&](const ir::InputInfo& input) { return input.constant && input.value == v; });
}

}  // namespace ingot::codegen::lowering
