#include "ir/builder.h"

#include <algorithm>

#include "ir/decompose.h"
#include "ir/normalize.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

/// What an op that computes reads for a dtype; host ops have code for f32, f64 and i64.
DType widened(const OpInfo& op, DType dtype) {
  if (is_half(dtype)) return DType::f32;
  return op.kind == OpKind::host && !is_floating(dtype) ? DType::i64 : dtype;
}

}  // namespace

std::vector<Operand> GraphBuilder::primitive(OpId op, std::vector<Operand> operands, std::vector<Attr> attrs) {
  graph_.add(op, std::move(operands), std::move(attrs), location_);
  Node& node = graph_.nodes.back();
  node.module = module_;
  node.backward = backward_;
  std::vector<Operand> outputs;
  for (ValueId output : node.outputs) outputs.push_back(Operand::value(output));
  return outputs;
}

std::vector<Operand> GraphBuilder::call(OpId op, std::vector<Operand> operands, std::vector<Attr> attrs) {
  const OpInfo& row = checked_info(op);
  complete(row, &operands, &attrs);
  check_call(graph_, Node{op, false, nullptr, operands, attrs, {}, location_, {}});
  // Positions count through the row-major order of the value, wherever it lies: a flat view says so, or copies.
  if (row.has(kOfMemory) && operands[0].is_value())
    operands[0] = reshape(operands[0], {dims().product(shape(operands[0]))});
  if (row.kind == OpKind::elementwise || (row.kind == OpKind::view && row.decompose == &normal::unchanged))
    return primitive(op, std::move(operands), std::move(attrs));

  // What the call gives, whatever the steps below compute in.
  std::vector<TensorType> declared;
  infer(graph_, Node{op, false, nullptr, operands, attrs, {}, location_, {}}, dims(), &declared);

  // Nothing is computed where there is nothing to compute.
  auto empty = [](const TensorType& t) { return std::count(t.shape.begin(), t.shape.end(), Dim(0)) > 0; };
  if (std::all_of(declared.begin(), declared.end(), empty)) {
    std::vector<Operand> outputs;
    for (const TensorType& t : declared)
      outputs.push_back(primitive(OpId::full, {integer(0)}, {Attr::of(t.shape), Attr::of(t.dtype)})[0]);
    return outputs;
  }

  int dtype_position = attribute_position(row, "dtype");
  // What negates casts by itself, once it has.
  if (dtype_position >= 0 && attrs[dtype_position].present() && !operands.empty() && operands[0].is_value() &&
      row.types != &types::negated_mean) {
    operands[0] = to(operands[0], static_cast<DType>(attrs[dtype_position].integer));
    attrs[dtype_position] = {};
  }
  if (!row.has(kExact))
    for (Operand& operand : operands) {
      if (!operand.is_value()) continue;
      // What promotes to floats computes with its integers as these floats, what joins its operands with all of them.
      bool whole =
          row.types == &types::joined_float || (row.types == &types::float_only && !is_floating(dtype(operand)));
      const Operand given = operand;
      operand = to(operand, widened(row, whole ? declared[0].dtype : dtype(operand)));
      if (dtype(given) == DType::bf16) narrow_.emplace(operand.id, given.id);
    }

  const bool note = deriving_ && row.derivative && (row.kind == OpKind::composite || row.kind == OpKind::reduction);
  const size_t first_node = graph_.nodes.size();
  std::vector<Operand> asked;
  std::vector<Attr> asked_attrs;
  if (note) asked = operands, asked_attrs = attrs;
  std::vector<Operand> outputs =
      row.decompose(*this, {row, std::move(operands), std::move(attrs), declared[0].dtype, declared[0].shape});
  INGOT_CHECK(outputs.size() == declared.size(), std::string(row.name));
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = to(outputs[i], declared[i].dtype);
  if (note) built_.push_back({op, std::move(asked), std::move(asked_attrs), outputs, first_node, graph_.nodes.size()});
  return outputs;
}

Operand GraphBuilder::first(OpId op, std::initializer_list<Argument> arguments) {
  std::vector<Operand> operands;
  std::vector<Attr> attrs;
  for (const Argument& argument : arguments) {
    if (argument.is_attribute)
      attrs.push_back(argument.attr);
    else
      operands.push_back(argument.operand);
  }
  return call(op, std::move(operands), std::move(attrs))[0];
}

Operand GraphBuilder::size_operand(Dim size) {
  return size.is_constant() ? Operand::constant(size.code) : Operand::size(size);
}

Operand GraphBuilder::divisor(Dim size) {
  return size.is_constant() ? Operand::constant(static_cast<double>(size.code)) : Operand::size(size);
}

std::optional<Operand> GraphBuilder::narrow(const Operand& x) {
  if (auto found = narrow_.find(x.id); found != narrow_.end()) return Operand::value(found->second);
  const NodeId producer = graph_.values[x.id].producer;
  if (producer == kNoValue) return std::nullopt;
  const Node moved = graph_.nodes[producer];  // a copy: the graph's own moves as it grows
  if (info(moved.op).kind != OpKind::view && info(moved.op).form != Form::lookup) return std::nullopt;
  const std::optional<Operand> base = narrow(moved.operands[0]);
  if (!base) return std::nullopt;
  std::vector<Operand> operands = moved.operands;
  operands[0] = *base;
  const Operand result = primitive(moved.op, std::move(operands), moved.attrs)[0];
  narrow_.emplace(x.id, result.id);
  return result;
}

Operand GraphBuilder::primitive_of_narrow(OpId op, std::vector<Operand> narrow, std::vector<Attr> attrs,
                                          std::vector<Operand> wide) {
  const Operand result = primitive(op, std::move(narrow), std::move(attrs))[0];
  wide_.emplace(graph_.values[result.id].producer, std::move(wide));
  return result;
}

const std::vector<Operand>& GraphBuilder::wide_operands(NodeId node) const {
  auto found = wide_.find(node);
  return found == wide_.end() ? graph_.nodes[node].operands : found->second;
}

Operand GraphBuilder::to(const Operand& x, DType target) { return dtype(x) == target ? x : cast(x, target); }

Operand GraphBuilder::reshape(const Operand& x, Dims sizes) {
  return shape(x) == sizes ? x : view(x, std::move(sizes));
}

Operand GraphBuilder::reduce_dims(OpId op, const Operand& x, Dims reduced, bool keepdim) {
  return call(op, {x}, {Attr::of(std::move(reduced)), Attr::of(keepdim)})[0];
}

Operand GraphBuilder::scalar(const Operand& value, DType target) { return full(Dims{}, value, target); }

Operand GraphBuilder::per_channel(const Operand& x, size_t channel, size_t rank) {
  Dims sizes(rank - channel, 1);
  sizes[0] = shape(x)[0];
  return reshape(x, std::move(sizes));
}

Operand GraphBuilder::scaled(const Operand& x, const Operand& factor) {
  bool one = factor.kind == Operand::Kind::constant &&
             (factor.category == Category::floating ? factor.number == 1.0 : factor.integer == 1);
  return one ? x : mul(x, factor);
}

}  // namespace ingot::ir
