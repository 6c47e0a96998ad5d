#include "codegen/lower/reads.h"

namespace ingot::codegen::lowering {

int reduced_dim(const ir::Node& node) {
  const ir::Attr& dims = node.attrs[0];
  if (dims.kind == ir::Attr::Kind::integer) return static_cast<int>(dims.integer);
  INGOT_CHECK(dims.kind == ir::Attr::Kind::list && dims.list.size() == 1, "a primitive reduces one dim");
  return static_cast<int>(dims.list[0].code);
}

IndexMap reduction_result_map(std::span<const Dim> operand, int dim, bool keepdim, const IndexMap& over_operand) {
  IndexMap map;
  for (size_t i = 0; i < operand.size(); ++i) {
    if (static_cast<int>(i) != dim)
      map.push_back(over_operand[i]);
    else if (keepdim)
      map.push_back({});
  }
  return map;
}

std::optional<Coordinate> counted(const ir::Graph& graph, const Layouts& layouts, OperandRead element) {
  element = layouts.resolve(std::move(element));
  const ir::Node* list = layouts.producer(element.value);
  if (!list || !ir::info(list->op).has(ir::kCounts)) return std::nullopt;
  const ir::Operand &start = list->operands[0], &step = list->operands[1];
  auto is_number = [](const ir::Operand& o) {
    return o.kind == ir::Operand::Kind::constant && o.category == Category::integer;
  };
  if (graph.type(element.value).dtype != DType::i64 || !is_number(step) || step.integer == 0) return std::nullopt;
  const bool from_number = is_number(start) && start.integer >= 0;
  if (!from_number && start.kind != ir::Operand::Kind::size) return std::nullopt;
  DimTable& dims = layouts.dims();
  const Dim along = step.integer > 0 ? Dim(step.integer) : dims.opposite(-step.integer);
  Coordinate c = element.map[0];
  for (Term& t : c.terms) t.coefficient = dims.mul(along, t.coefficient);
  if (c.index != kNoIndex) c.index_coefficient = dims.mul(along, c.index_coefficient);
  c.offset = dims.add(from_number ? Dim(start.integer) : start.dim, dims.mul(along, c.offset));
  return c;
}

std::vector<OperandRead> operand_reads(const ir::Graph& graph, Layouts& layouts, const ir::Node& node,
                                       const IndexMap& map, int reduced) {
  std::vector<OperandRead> reads;
  const Dims& result = graph.type(node.outputs[0]).shape;
  const ir::OpInfo& op = ir::info(node.op);
  if (op.kind == ir::OpKind::reduction) {
    ir::ValueId operand = node.operands[0].id;
    const Dims& shape = graph.type(operand).shape;
    size_t dim = static_cast<size_t>(reduced_dim(node));
    bool keepdim = result.size() == shape.size();
    IndexMap read(shape.size());
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != dim) read[i] = map[keepdim || i < dim ? i : i - 1];
    if (shape[dim] != Dim(1)) read[dim] = unit(static_cast<uint32_t>(reduced));
    reads.push_back({operand, std::move(read)});
  } else if (op.form == ir::Form::product) {
    // A sum of products along the reduced dim.
    const Dims &a = graph.type(node.operands[0].id).shape, &b = graph.type(node.operands[1].id).shape;
    Dim k = a.back();
    Coordinate along = k == Dim(1) ? Coordinate{} : unit(static_cast<uint32_t>(reduced));
    size_t columns = b.size() > 1, rows = a.size() > 1, batch = map.size() - rows - columns;
    const std::span<const Dim> batch_of_result(result.data(), batch);
    IndexMap left = layouts.broadcast_map({a.data(), a.size() - 1 - rows}, batch_of_result, map),
             right = layouts.broadcast_map({b.data(), b.size() - 1 - columns}, batch_of_result, map);
    if (rows) left.push_back(map[batch]);
    left.push_back(along);
    right.push_back(along);
    if (columns) right.push_back(map.back());
    reads.push_back({node.operands[0].id, std::move(left)});
    reads.push_back({node.operands[1].id, std::move(right)});
  } else if (op.form == ir::Form::lookup) {
    ir::ValueId source = node.operands[0].id, index = node.operands[1].id;
    size_t dim = static_cast<size_t>(node.attrs[0].integer);
    // Positions for each element of the result, or one list of them for all lines along the dim.
    const size_t rank = graph.type(index).shape.size();
    IndexMap at = rank == result.size() ? map : rank == 0 ? IndexMap{} : IndexMap{map[dim]};
    IndexMap read = map;
    const std::optional<Coordinate> place = counted(graph, layouts, {index, at});
    if (place) {
      read[dim] = *place;
    } else {
      read[dim] = {};
      read[dim].index = layouts.position({index, at});
      read[dim].index_coefficient = 1;
    }
    const Dims& shape = graph.type(source).shape;
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != dim && shape[i] == Dim(1)) read[i] = {};
    reads.push_back({source, std::move(read)});
    if (!place) reads.push_back({index, std::move(at)});
  } else {
    for (const ir::Operand& o : node.operands)
      if (o.is_value()) reads.push_back({o.id, layouts.broadcast_map(graph.type(o.id).shape, result, map)});
  }
  return reads;
}

}  // namespace ingot::codegen::lowering
