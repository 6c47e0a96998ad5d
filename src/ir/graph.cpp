#include "ir/graph.h"

#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

OperandType type_of(const Graph& graph, const Operand& operand) {
  OperandType type;
  if (operand.is_value()) {
    INGOT_CHECK(operand.id < graph.values.size());
    const TensorType& tensor = graph.type(operand.id);
    type.kind = OperandType::Kind::tensor;
    type.dtype = tensor.dtype;
    type.shape = &tensor.shape;
  } else if (operand.present()) {
    type.kind = OperandType::Kind::scalar;
    type.category = operand.category;
  }
  return type;
}

}  // namespace

Operand default_operand(const ArgInfo& argument) {
  if (!argument.has_default) return Operand::none();
  if (argument.default_integer) return Operand::constant(static_cast<int64_t>(argument.default_number));
  return Operand::constant(argument.default_number);
}

Attr default_attribute(const ArgInfo& argument) {
  if (!argument.has_default) return {};
  int64_t integer = static_cast<int64_t>(argument.default_number);
  switch (argument.kind) {
    case ArgKind::boolean:
      return Attr::of(integer != 0);
    case ArgKind::number:
      return Attr::number(argument.default_number);
    case ArgKind::mode:
      return Attr::mode(argument.default_mode);
    case ArgKind::dims:
    case ArgKind::integers:
    case ArgKind::size:
    case ArgKind::sizes:
      return Attr::of(Dims{integer});
    default:
      return Attr::of(integer);
  }
}

void complete(const OpInfo& op, std::vector<Operand>* operands, std::vector<Attr>* attrs) {
  size_t attribute_count = op.arguments.size() - op.operand_count, operand_count = op.operand_count;
  INGOT_CHECK(attrs->size() <= attribute_count && (op.list_first || operands->size() <= operand_count),
              std::string(op.name));
  if (!op.list_first) operands->resize(operand_count);
  attrs->resize(attribute_count);
  for (size_t i = 0; i < operands->size(); ++i)
    if (!(*operands)[i].present()) (*operands)[i] = default_operand(op.operand(static_cast<int>(i)));
  for (size_t i = 0; i < attribute_count; ++i)
    if (!(*attrs)[i].present()) (*attrs)[i] = default_attribute(op.attribute(static_cast<int>(i)));
}

void infer(const Graph& graph, const Node& node, DimTable& dims, std::vector<TensorType>* outputs, DType* compute) {
  std::vector<OperandType> operands;
  operands.reserve(node.operands.size());
  for (const Operand& operand : node.operands) operands.push_back(type_of(graph, operand));
  RuleContext context{node.op, operands, node.attrs, dims, node.location, *outputs};
  context.inplace = node.inplace;
  infer(context);
  // In a graph a view is of a value, not of whatever storage an eager tensor may have beyond itself.
  if (node.op == OpId::as_strided)
    check_extent(context, attribute(context, "size").list, attribute(context, "stride").list,
                 attribute(context, "storage_offset").list[0], dims.product(*operands[0].shape));
  if (compute) *compute = context.compute;
}

ValueId Graph::add_input(DType dtype, Dims shape) {
  Dims strides = contiguous_strides(dims, shape);
  return add_input(dtype, std::move(shape), std::move(strides));
}

ValueId Graph::add_input(DType dtype, Dims shape, Dims strides) {
  INGOT_CHECK(shape.size() == strides.size());
  ValueId id = static_cast<ValueId>(values.size());
  values.push_back({{dtype, std::move(shape)}, kNoValue});
  inputs.push_back({id, std::move(strides)});
  return id;
}

uint32_t Graph::add_scalar(Category c) {
  scalars.push_back(c);
  return static_cast<uint32_t>(scalars.size() - 1);
}

ValueId Graph::add(OpId op, std::vector<Operand> operands, std::vector<Attr> attrs, Location location, bool inplace) {
  complete(info(op), &operands, &attrs);
  Node node{op, inplace, std::move(operands), std::move(attrs), {}, location, {}};
  std::vector<TensorType> types;
  infer(*this, node, dims, &types);
  for (TensorType& type : types) {
    node.outputs.push_back(static_cast<ValueId>(values.size()));
    values.push_back({std::move(type), static_cast<NodeId>(nodes.size())});
  }
  nodes.push_back(std::move(node));
  return nodes.back().outputs[0];
}

Dims contiguous_strides(DimTable& dims, std::span<const Dim> shape) {
  Dims strides(shape.size());
  Dim step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    // An empty dim counts as one, so that strides never fall to zero.
    Dim size = shape[i];
    if (!(size == Dim(0))) step = dims.mul(step, size);
  }
  return strides;
}

}  // namespace ingot::ir
