// Matrix products, convolutions, attention: what follows a product becomes its epilogue; operands are read from memory.
#include <algorithm>

#include "codegen/lower/fusion.h"
#include "codegen/lower/primitives.h"
#include "codegen/lower/reads.h"
#include "ir/rules/rules.h"

namespace ingot::codegen::lowering {
namespace {

constexpr const char* kRounds = "the weight is rounded as it is packed, once";

/// True if v is made from inputs alone by work that kernels do inside (the scale of a batch norm): it waits for nobody.
bool made_from_inputs(Fusion& f, ir::ValueId v) {
  constexpr size_t kFar = 32;
  std::vector<ir::ValueId> open{v};
  for (size_t seen = 0; !open.empty(); ++seen) {
    if (seen == kFar) return false;
    const ir::Node* node = f.layouts.producer(open.back());
    open.pop_back();
    if (!node) continue;
    if (!inlines(*node) && !f.layouts.is_view(node->outputs[0])) return false;
    for (const ir::Operand& o : node->operands)
      if (o.is_value()) open.push_back(o.id);
  }
  return true;
}

/// True if the group reads what is computed after node n by others, and who waits for it would have to keep operands of
/// n that are much larger than its result. (The gradient of a weight that is used twice: the other part comes last.)
bool would_keep_operands(Fusion& f, ir::NodeId n, const Group& group) {
  auto producer = [&](ir::ValueId v) { return f.graph.values[f.layouts.of(v).root].producer; };
  int64_t kept = 0;
  for (const ir::Operand& o : f.graph.nodes[n].operands)
    if (o.is_value() && producer(o.id) != ir::kNoValue) kept += f.layouts.bytes_hint(o.id);
  if (kept < 4 * f.layouts.bytes_hint(f.graph.nodes[n].outputs[0])) return false;
  auto is_later = [&](const ir::Operand& o) {
    if (!o.is_value()) return false;
    const ir::NodeId from = producer(o.id);
    return from != ir::kNoValue && from > n &&
           std::find(group.members.begin(), group.members.end(), from) == group.members.end() &&
           !made_from_inputs(f, o.id);
  };
  return std::any_of(group.members.begin(), group.members.end(), [&](ir::NodeId member) {
    const std::vector<ir::Operand>& operands = f.graph.nodes[member].operands;
    return std::any_of(operands.begin(), operands.end(), is_later);
  });
}

/// Why a group cannot be the epilogue of the op that computes v; null if it can.
const char* refuses_product(Fusion& f, ir::ValueId v, const ReaderMaps& reader, Group::Kind kind) {
  const Group& group = f.groups[reader.group];
  const std::vector<IndexMap>& maps = reader.maps;
  const Dims& shape = f.graph.type(v).shape;
  if (!f.options.fuse) return "fusion is off";
  if (group.has_epilogue()) return "the reader is the epilogue of another product";
  if (group.recomputes && !f.graph.nodes[f.graph.values[v].producer].backward)
    return "the reader computes again what is not kept";
  if (group.kind != Group::Kind::loop || group.reduced >= 0) return "the reader reduces rows";
  if (maps.size() != 1 || !f.covers_all(v, maps[0], group)) return "the reader works over another space";
  if (kind == Group::Kind::matmul) {
    if (shape.size() < 2 || shape.back() == Dim(1) || maps[0].back().terms.size() != 1)
      return "the columns of the product are not a dim of the reader";
  } else if (!(maps[0] == identity_map(shape)) || !(group.space == shape)) {
    return "the reader works over another space";
  }
  for (const Output& o : group.outputs)
    if (!f.covers_all(o.value, o.map, group)) return "the reader stores another space";
  if (group.coordinates) return "the reader needs coordinates, which an epilogue does not have";
  if (would_keep_operands(f, f.graph.values[v].producer, group))
    return "the reader waits for later ones, and operands that are larger than the product would be kept for it";
  return reader.waits ? "the reader, or one that runs before it, reads it from memory" : nullptr;
}

/// The group in which a contraction runs: that of a reader that becomes its epilogue, or its own.
uint32_t contract_into(Fusion& f, ir::NodeId n, Group::Kind kind) {
  const ir::Node& node = f.graph.nodes[n];
  ir::ValueId v = node.outputs[0];
  f.merge_siblings(v);
  const std::vector<ReaderMaps> readers = f.readers_of(v);
  bool must = f.must_store(v);
  const Dims& shape = f.graph.type(v).shape;
  uint32_t home = kNoIndex;
  const char* refused = "its result is read from memory";
  IndexMap map = identity_map(shape);
  for (const ReaderMaps& reader : readers) {
    const char* why = refuses_product(f, v, reader, kind);
    if (!why) {
      home = reader.group, map = reader.maps[0];
      break;
    }
    refused = why;
  }
  bool fused = home != kNoIndex;
  if (!fused) home = f.new_group(kind, shape);
  Group& g = f.groups[home];
  g.kind = kind;
  g.anchor = &node;
  g.anchor_map = map;
  g.order = n;
  if (!fused || must || readers.size() > 1) f.store_in(v, home, map);
  f.join(n, home);
  f.decide(v, home, fused, fused ? "what follows is its epilogue" : refused, fused ? 2 * f.layouts.bytes_hint(v) : 0);
  return home;
}

/// True if a product can read this as its right operand: one of the last two dims must be dense.
bool product_reads(Fusion& f, const StoredOperand& right) {
  const Dims& shape = f.graph.type(right.value).shape;
  if (shape.size() < 2) return true;
  for (size_t i = shape.size() - 2; i < shape.size(); ++i)
    if (right.strides[i] == Dim(1) || shape[i] == Dim(1)) return true;
  return false;
}

/// What a read is cast from, if it is.
std::optional<OperandRead> through_cast(Fusion& f, const OperandRead& read) {
  const ir::Node* node = f.layouts.producer(read.value);
  if (!node || ir::info(node->op).types != &ir::types::cast) return {};
  return f.layouts.resolve({node->operands[0].id, read.map});
}

/// The right operand as it was before it was cast, where products take it so: what was widened to f32, from outside,
/// where it lies in memory in any case; or a weight that was rounded to bf16, and maybe widened after that, which is
/// packed once.
std::optional<StoredOperand> before_cast(Fusion& f, ir::ValueId b) {
  const ir::TensorType& type = f.graph.type(b);
  const bool dot = type.dtype == DType::bf16 && f.target.bf16_dot;
  if (!f.options.fuse || f.target.cuda_arch || (type.dtype != DType::f32 && !dot)) return {};
  std::optional<OperandRead> read = through_cast(f, f.layouts.resolve({b, identity_map(type.shape)}));
  if (!read) return {};
  bool rounded = dot;
  if (!dot && f.graph.type(read->value).dtype == DType::bf16)
    if (std::optional<OperandRead> wide = through_cast(f, *read)) read = std::move(wide), rounded = true;
  const RootView& view = f.layouts.of(read->value);
  const DType dtype = f.graph.type(read->value).dtype;
  if (f.layouts.producer(view.root)) return {};
  if (rounded ? dtype != DType::f32 || !f.layouts.is_constant(view.root) : !is_half(dtype) && dtype != DType::i8)
    return {};
  Layouts::Strided at = f.layouts.strided(view, read->map, type.shape.size());
  return StoredOperand{b, view.root, kNoBuffer, dtype, std::move(at.strides), at.offset, rounded};
}

/// Whether a node gives its operand with a dim in the opposite order: by a list that counts down from the dim's end.
bool turns(Fusion& f, const ir::Node& node) {
  if (ir::info(node.op).form != ir::Form::lookup) return false;
  const ir::ValueId list = node.operands[1].id;
  const Dim size = f.graph.type(node.operands[0].id).shape[static_cast<size_t>(node.attrs[0].integer)];
  if (!size.is_constant() || !(f.graph.type(list).shape == Dims{size})) return false;
  Coordinate last_first;
  last_first.terms.push_back({0, f.dims.opposite(1)});
  last_first.offset = std::max<int64_t>(size.code, 1) - 1;
  return counted(f.graph, f.layouts, {list, {unit(0)}}) == last_first;
}

/// A convolution's weight whose taps are in the opposite order, as in the gradient of its image: read as it lies.
std::optional<StoredOperand> turned_weight(Fusion& f, const ir::Node& node) {
  const ir::ValueId v = node.operands[1].id;
  const ir::TensorType& type = f.graph.type(v);
  if (!f.options.fuse || f.target.cuda_arch || type.dtype != f.graph.type(node.operands[0].id).dtype) return {};
  bool turned[4] = {}, any = false;
  OperandRead read = f.layouts.resolve({v, identity_map(type.shape)});
  for (const ir::Node* from; (from = f.layouts.producer(read.value)) && turns(f, *from); any = true) {
    const auto along = static_cast<size_t>(from->attrs[0].integer);
    if (const Dim size = f.graph.type(read.value).shape[along]; size != Dim(1)) {
      // A dim of the weight, which nothing else moves with, is read from its one end or the other.
      const uint32_t dim = read.map[along].terms.size() == 1 ? read.map[along].terms[0].dim : 0;
      if (dim < 2 || !(read.map[along] == unit(dim)) || type.shape[dim] != size) return {};
      for (size_t d = 0; d < read.map.size(); ++d)
        if (d != along && depends_on({read.map[d]}, dim)) return {};
      turned[dim] = !turned[dim];
    }
    read = f.layouts.resolve({from->operands[0].id, std::move(read.map)});
  }
  if (!any) return {};
  const RootView& view = f.layouts.of(read.value);
  const Layouts::Strided at = f.layouts.strided(view, read.map, type.shape.size());
  return StoredOperand{v, view.root, kNoBuffer, type.dtype, at.strides, at.offset, false, turned[2], turned[3]};
}

}  // namespace

void fuse_matmul(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  ir::ValueId v = node.outputs[0], a = node.operands[0].id, b = node.operands[1].id;
  uint32_t home = contract_into(f, n, Group::Kind::matmul);
  INGOT_CHECK(is_floating(f.graph.type(v).dtype), "a product of integers is a sum (ir/normalize)");
  // A is read with any strides; of bf16 the result is f32.
  DType dtype = f.graph.type(a).dtype == DType::f16 ? DType::f32 : f.graph.type(a).dtype;
  StoredOperand left = f.memory_operand(a, home, dtype, true);
  std::optional<StoredOperand> right = before_cast(f, b);
  if (right && product_reads(f, *right)) {
    f.request_memory(right->root, home);
    f.decide(b, home, true, right->rounded ? kRounds : "the product widens what was cast, as it reads it",
             f.layouts.bytes_hint(b));
  } else {
    right = f.memory_operand(b, home, dtype, product_reads(f, {b, b, kNoBuffer, dtype, f.layouts.of(b).strides, 0}));
  }
  f.groups[home].operands = {std::move(left), std::move(*right)};
}

void fuse_conv(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  uint32_t home = contract_into(f, n, Group::Kind::conv);
  auto operand = [&](const ir::Operand& o) {
    return o.is_value() ? f.memory_operand(o.id, home, f.graph.type(o.id).dtype, true) : StoredOperand{};
  };
  StoredOperand image = operand(node.operands[0]);
  std::optional<StoredOperand> weight = turned_weight(f, node);
  const bool turned = weight.has_value();
  if (!turned && image.dtype == DType::bf16) weight = before_cast(f, node.operands[1].id);
  if (weight) {
    f.request_memory(weight->root, home);
    f.decide(weight->value, home, true, turned ? "the convolution reads its taps from the last to the first" : kRounds,
             f.layouts.bytes_hint(weight->value));
  } else {
    weight = operand(node.operands[1]);
  }
  f.groups[home].operands = {std::move(image), std::move(*weight), operand(node.operands[2])};
}

void fuse_conv_weight(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  const ir::ValueId v = node.outputs[0];
  const uint32_t g = f.new_group(Group::Kind::conv_weight, {});
  f.groups[g].anchor = &node;
  std::vector<StoredOperand> operands;
  for (const ir::Operand& o : node.operands)
    operands.push_back(f.memory_operand(o.id, g, f.graph.type(o.id).dtype, true));
  f.groups[g].operands = std::move(operands);
  f.store_in(v, g, {});
  f.join(n, g);
  f.decide(v, g, false, "the gradient of a convolution's weight is a step of its own", 0);
}

/// Attention or its gradients; of these, only those that somebody reads are made.
void fuse_attention(Fusion& f, ir::NodeId n) {
  const ir::Node& node = f.graph.nodes[n];
  const bool backward = ir::info(node.op).form == ir::Form::attention_backward;
  DType dtype = f.graph.type(node.outputs[0]).dtype == DType::f64 ? DType::f64 : DType::f32;
  std::vector<ir::ValueId> wanted;
  for (ir::ValueId v : node.outputs)
    if (!f.requests.of(v).empty() || f.buffers.is_stored(v)) wanted.push_back(v);
  for (ir::ValueId v : wanted) f.store_raw(v, dtype);
  uint32_t g = f.new_group(backward ? Group::Kind::attention_backward : Group::Kind::attention, {});
  f.groups[g].anchor = &node;
  std::vector<StoredOperand> operands;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const ir::Operand& o = node.operands[i];
    if (!o.is_value()) {
      operands.emplace_back();
      continue;
    }
    const Dims &shape = f.graph.type(o.id).shape, &strides = f.layouts.of(o.id).strides;
    bool mask = i == 3;
    // Four dims; the last one contiguous but for the mask.
    bool fits = shape.size() <= 4 && (mask || strides.back() == Dim(1) || shape.back() == Dim(1));
    DType wanted = mask && f.graph.type(o.id).dtype == DType::bool_ ? DType::bool_ : dtype;
    operands.push_back(f.memory_operand(o.id, g, wanted, fits));
  }
  f.groups[g].operands = std::move(operands);
  for (ir::ValueId v : wanted) f.store_in(v, g, {});
  f.join(n, g);
  for (ir::ValueId v : wanted)
    f.decide(v, g, false,
             backward        ? "gradients of attention are a step of their own"
             : fill_of(node) ? "attention written out is a step of its own, with the same bits"
                             : "attention is a step of its own",
             0);
}

}  // namespace ingot::codegen::lowering
