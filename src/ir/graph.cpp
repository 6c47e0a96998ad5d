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

void check_operand(const Graph& graph, const Operand& operand, auto&& fail) {
  switch (operand.kind) {
    case Operand::Kind::value:
      if (operand.id >= graph.values.size()) fail("value " + std::to_string(operand.id), "a value of the graph");
      break;
    case Operand::Kind::scalar:
      if (operand.id >= graph.scalars.size() || graph.scalars[operand.id] != operand.category)
        fail("scalar " + std::to_string(operand.id), "a scalar of the graph, with its category");
      break;
    case Operand::Kind::size:
      if (!graph.dims.knows(operand.dim)) fail("a size of another graph", "one of this");
      break;
    case Operand::Kind::none:
    case Operand::Kind::constant:
      break;
  }
}

void check_attribute(const Graph& graph, const ArgInfo& argument, const Attr& attr, auto&& fail) {
  if (!attr.present()) return;  // the rules know whether it may be
  constexpr const char* kinds[] = {"nothing", "a boolean", "an integer", "a dtype", "a number", "a mode", "a list"};
  Attr::Kind kind = Attr::Kind::list;
  bool sizes = false;
  switch (argument.kind) {
    case ArgKind::boolean:
      kind = Attr::Kind::boolean;
      break;
    case ArgKind::dim:
    case ArgKind::new_dim:
    case ArgKind::integer:
      kind = Attr::Kind::integer;
      break;
    case ArgKind::number:
      kind = Attr::Kind::number;
      break;
    case ArgKind::dtype:
      kind = Attr::Kind::dtype;
      break;
    case ArgKind::mode:
      kind = Attr::Kind::mode;
      break;
    case ArgKind::size:
    case ArgKind::sizes:
    case ArgKind::integers:  // decompositions pad by sizes
      sizes = true;
      break;
    default:
      break;
  }
  auto word = [&](Attr::Kind k) { return std::string(kinds[static_cast<int>(k)]); };
  if (attr.kind != kind) fail(word(attr.kind), word(kind));
  const bool is_dim = argument.kind == ArgKind::dim || argument.kind == ArgKind::new_dim;
  if (is_dim && attr.integer < 0) fail(std::to_string(attr.integer), "a dim, counted from 0");
  if (kind == Attr::Kind::dtype && (attr.integer < 0 || attr.integer > static_cast<int64_t>(DType::c128)))
    fail("number " + std::to_string(attr.integer), "a dtype");
  if (kind == Attr::Kind::mode && (attr.integer < 0 || attr.integer >= static_cast<int64_t>(argument.modes.size())))
    fail("mode " + std::to_string(attr.integer), "one of " + std::to_string(argument.modes.size()));
  if (argument.kind == ArgKind::size && attr.list.size() != 1) fail(std::to_string(attr.list.size()) + " sizes", "one");
  for (Dim d : attr.list)
    if (sizes ? !graph.dims.knows(d) : !d.is_constant())
      fail(sizes ? "a size of another graph" : "a symbol", sizes ? "one of this" : "a number");
}

// What a derivative is given follows from the call that it derives; `wanted` says how many operands that one had.
void check_derived_call(const Graph& graph, const Node& node) {
  const OpInfo& op = checked_info(node.op);
  size_t attributes = op.arguments.size() - static_cast<size_t>(op.operand_count);
  for (const Derivative* d = node.derivative; d; d = d->of) attributes += d->wanted.size();
  const auto fail = [&](const std::string& got, const std::string& expected) {
    fail_call(node.op, "derivative", got, expected, node.location);
  };
  if (node.attrs.size() != attributes)
    fail(std::to_string(node.attrs.size()) + " attributes", std::to_string(attributes));
  const size_t operands = node.derivative->wanted.size();
  const size_t outputs = static_cast<size_t>(output_count(node.op, node.derivative->of));
  if (node.operands.size() != operands + 2 * outputs)
    fail(std::to_string(node.operands.size()) + " operands", std::to_string(operands + 2 * outputs));
  for (const Operand& operand : node.operands) check_operand(graph, operand, fail);
  for (const Attr& attr : node.attrs)
    for (Dim d : attr.list)
      if (!graph.dims.knows(d)) fail("a size of another graph", "one of this");
  for (size_t i = 0; i < operands; ++i)
    if (node.derivative->wanted[i] && !node.operands[i].is_value() && !node.attrs[attributes - operands + i].present())
      fail("operand " + std::to_string(i) + " without a shape", "one whose gradient is wanted to have one");
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
  auto check = [&](const char* what, size_t got, size_t most) {
    if (got > most) fail_call(op.id, what, std::to_string(got), std::to_string(most) + " at most", Location::none());
  };
  check("attributes", attrs->size(), attribute_count);
  if (!op.list_first) check("operands", operands->size(), operand_count);
  if (!op.list_first) operands->resize(operand_count);
  attrs->resize(attribute_count);
  for (size_t i = 0; i < operands->size(); ++i)
    if (!(*operands)[i].present()) (*operands)[i] = default_operand(op.operand(static_cast<int>(i)));
  for (size_t i = 0; i < attribute_count; ++i)
    if (!(*attrs)[i].present()) (*attrs)[i] = default_attribute(op.attribute(static_cast<int>(i)));
}

void check_call(const Graph& graph, const Node& node) {
  const OpInfo& op = checked_info(node.op);
  if (node.derivative) return check_derived_call(graph, node);
  auto require = [&](bool condition, const char* what, size_t got, size_t expected) {
    if (!condition) fail_call(node.op, what, std::to_string(got), std::to_string(expected), node.location);
  };
  const size_t operands = static_cast<size_t>(op.operand_count), attributes = op.arguments.size() - operands;
  require(op.list_first ? node.operands.size() + 1 >= operands : node.operands.size() == operands, "operands",
          node.operands.size(), operands);
  require(node.attrs.size() == attributes, "attributes", node.attrs.size(), attributes);
  auto fail_for = [&](const ArgInfo& argument) {
    return [&node, &argument](const std::string& got, const std::string& expected) {
      fail_call(node.op, argument.name, got, expected, node.location);
    };
  };
  for (size_t i = 0; i < node.operands.size(); ++i)
    check_operand(graph, node.operands[i], fail_for(op.operand(static_cast<int>(i))));
  for (size_t i = 0; i < node.attrs.size(); ++i) {
    const ArgInfo& argument = op.attribute(static_cast<int>(i));
    check_attribute(graph, argument, node.attrs[i], fail_for(argument));
  }
}

void infer(const Graph& graph, const Node& node, DimTable& dims, std::vector<TensorType>* outputs, DType* compute) {
  std::vector<OperandType> operands;
  operands.reserve(node.operands.size());
  for (const Operand& operand : node.operands) operands.push_back(type_of(graph, operand));
  RuleContext context{node.op, operands, node.attrs, dims, node.location, *outputs};
  context.inplace = node.inplace;
  context.derivative = node.derivative;
  infer(context);
  if (node.derivative) return;
  // In a graph a view is of a value, not of whatever storage an eager tensor may have beyond itself.
  if (info(node.op).has(kOfMemory))
    check_extent(context, attribute(context, "size").list, attribute(context, "stride").list,
                 attribute(context, "storage_offset").list[0], dims.product(*operands[0].shape));
  if (compute) *compute = context.compute;
}

ValueId Graph::add_input(DType dtype, Dims shape) {
  Dims strides = contiguous_strides(dims, shape);
  return add_input(dtype, std::move(shape), std::move(strides));
}

ValueId Graph::add_input(DType dtype, Dims shape, Dims strides) {
  auto require = [](bool condition, const std::string& got, const std::string& expected) {
    if (!condition) throw Error("input: got " + got + ", expected " + expected);
  };
  require(shape.size() == strides.size(), std::to_string(strides.size()) + " strides",
          "one for each of " + std::to_string(shape.size()) + " sizes");
  for (const Dims* list : {&shape, &strides})
    for (Dim d : *list) require(dims.knows(d), "a size of another graph", "one of this");
  require(category_of(dtype) != Category::complex, std::string(name_of(dtype)), "a dtype that kernels compute with");
  ValueId id = static_cast<ValueId>(values.size());
  values.push_back({{dtype, std::move(shape)}, kNoValue});
  inputs.push_back({id, std::move(strides)});
  return id;
}

uint32_t Graph::add_scalar(Category c) {
  scalars.push_back(c);
  return static_cast<uint32_t>(scalars.size() - 1);
}

ValueId Graph::add(OpId op, std::vector<Operand> operands, std::vector<Attr> attrs, Location location, bool inplace,
                   const Derivative* derivative) {
  if (!derivative) complete(checked_info(op), &operands, &attrs);
  Node node{op, inplace, derivative, std::move(operands), std::move(attrs), {}, location, {}};
  check_call(*this, node);
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

std::vector<bool> reached_from(const Graph& graph, std::span<const Operand> roots) {
  std::vector<bool> reached(graph.values.size());
  std::vector<ValueId> open;
  auto reach = [&](const Operand& o) {
    if (!o.is_value() || reached[o.id]) return;
    reached[o.id] = true;
    open.push_back(o.id);
  };
  for (const Operand& o : roots) reach(o);
  while (!open.empty()) {
    const NodeId producer = graph.values[open.back()].producer;
    open.pop_back();
    if (producer != kNoValue)
      for (const Operand& o : graph.nodes[producer].operands) reach(o);
  }
  return reached;
}

}  // namespace ingot::ir
