#include "trace/graph_checks.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "ir/rules/rules.h"

namespace ingot::trace {

using ir::Operand;

eager::ValueChecks GraphChecks::of(OpId op, std::span<const Operand> operands, std::span<const ir::Attr> attrs) const {
  std::vector<ir::OperandType> types;
  for (const Operand& operand : operands) {
    ir::OperandType& type = types.emplace_back();
    if (operand.is_value()) {
      type.kind = ir::OperandType::Kind::tensor;
      type.dtype = graph_.type(operand.id).dtype;
      type.shape = &graph_.type(operand.id).shape;
    } else if (operand.is_scalar()) {
      type.kind = ir::OperandType::Kind::scalar;
      type.category = operand.category;
    }
  }
  return eager::value_checks(op, types, attrs);
}

void GraphChecks::add(const eager::ValueCheck& check, std::span<Operand> operands, Location location) {
  DimTable& dims = graph_.dims;
  Operand checked = operands[check.operand];
  auto node = [&](OpId op, std::vector<Operand> list) {
    return Operand::value(graph_.add(op, std::move(list), {}, location));
  };
  Operand wrong;
  if (check.kind == eager::ValueCheck::Kind::divisor) {
    wrong = node(OpId::eq, {checked, Operand::constant(int64_t{0})});
  } else if (check.kind == eager::ValueCheck::Kind::finished) {
    wrong = node(OpId::ne, {checked, Operand::constant(int64_t{0})});
  } else if (check.kind == eager::ValueCheck::Kind::interval) {
    wrong = node(OpId::ne,
                 {checked, node(OpId::clamp, {checked, Operand::constant(check.low), Operand::constant(check.high)})});
  } else if (check.kind == eager::ValueCheck::Kind::weights) {
    const auto last = static_cast<int64_t>(graph_.type(checked.id).shape.size()) - 1;
    auto of_row = [&](OpId extreme) {
      return Operand::value(graph_.add(extreme, {checked}, {ir::Attr::of(Dims{last}), ir::Attr::of(false)}, location));
    };
    const Operand smallest = of_row(OpId::amin), largest = of_row(OpId::amax);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const Operand right =
        node(OpId::logical_and, {node(OpId::ge, {smallest, Operand::constant(0.0)}),
                                 node(OpId::logical_and, {node(OpId::gt, {largest, Operand::constant(0.0)}),
                                                          node(OpId::lt, {largest, Operand::constant(kInfinity)})})});
    wrong = node(OpId::logical_not, {right});
  } else {
    // Positions that a view repeats are checked once, behind it; who reads them has the view still. Of none there is
    // nothing to check.
    const ir::NodeId producer = graph_.values[checked.id].producer;
    const Dims& positions = graph_.type(checked.id).shape;
    std::optional<std::vector<ir::Attr>> repeated;
    if (producer != ir::kNoValue && ir::info(graph_.nodes[producer].op).layout == &ir::layouts::expand &&
        std::find(positions.begin(), positions.end(), Dim(0)) == positions.end()) {
      repeated = graph_.nodes[producer].attrs;
      checked = graph_.nodes[producer].operands[0];
    }
    const Dims& shape = graph_.type(operands[0].id).shape;
    Dim size = check.dim < 0 ? dims.product(shape) : shape.empty() ? Dim(1) : shape[check.dim];
    Operand last = Operand::size(dims.sub(dims.max(size, 1), 1)), first = Operand::constant(int64_t{0});
    if (check.wraps)
      first = Operand::value(
          graph_.add(OpId::full, {Operand::size(size)}, {ir::Attr::of(Dims{}), ir::Attr::of(DType::i64)}, location));
    if (check.wraps) first = node(OpId::neg, {first});
    const Operand clamped = node(OpId::clamp, {checked, first, last});
    Operand inside = clamped;
    if (check.ignored) {
      Operand ignored = node(OpId::eq, {checked, Operand::constant(*check.ignored)});
      inside = node(OpId::where, {ignored, checked, inside});
    }
    wrong = node(OpId::ne, {checked, inside});
    // Of nothing, no position is right.
    if (!size.is_constant() || size == Dim(0))
      wrong = node(OpId::logical_or, {wrong, node(OpId::ge, {clamped, Operand::size(size)})});
    operands[check.operand] =
        repeated ? Operand::value(graph_.add(OpId::expand, {inside}, *repeated, location)) : inside;
  }
  failed_.push_back(node(OpId::any, {wrong}).id);
}

}  // namespace ingot::trace
