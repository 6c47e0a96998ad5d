#include "ir/derivative.h"

#include <algorithm>

#include "ir/decompose.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
const Operand& DerivedCall::operand(std::string_view name) const {
  const int position = operand_position(op, name);
  INGOT_CHECK(position >= 0, std::string(name));
  return operands[static_cast<size_t>(position)];
}

const Attr& DerivedCall::attribute(std::string_view name) const {
  const int position = attribute_position(op, name);
  INGOT_CHECK(position >= 0, std::string(name));
  return attrs[static_cast<size_t>(position)];
}

Operand sum_to(GraphBuilder& b, const Operand& gradient, Dims shape) {
  const Dims from = b.shape(gradient);
  if (from == shape) return gradient;
  const size_t lead = from.size() - shape.size();
  Dims summed;
  for (size_t d = 0; d < from.size(); ++d)
    if (d < lead || !b.dims().equal(from[d], shape[d - lead])) summed.push_back(static_cast<int64_t>(d));
  return b.reshape(summed.empty() ? gradient : b.reduce_dims(OpId::sum, gradient, summed, false), shape);
}

namespace {

DerivativeReads reads_of(OpId op, const Derivative& derivative, std::span<const OperandType> operands,
                         std::span<const Attr> attrs, std::span<const Operand> known) {
  Graph graph;
  std::vector<Operand> given;
  std::vector<ValueId> inputs;
  for (const OperandType& type : operands) {
    inputs.push_back(kNoValue);
    if (type.is_tensor()) {
      inputs.back() = graph.add_input(type.dtype, *type.shape);
      given.push_back(Operand::value(inputs.back()));
    } else if (given.size() < known.size() && known[given.size()].present()) {
      given.push_back(known[given.size()]);
    } else {
      given.push_back(type.is_scalar() ? Operand::scalar(graph.add_scalar(type.category), type.category)
                                       : Operand::none());
    }
  }
  std::vector<Attr> all(attrs.begin(), attrs.end());
  all.resize(all.size() + derivative.wanted.size());
  const std::vector<Operand> results = GraphBuilder(graph).derived(op, derivative, std::move(given), std::move(all));
  const std::vector<bool> read = reached_from(graph, results);
  DerivativeReads reads;
  for (ValueId input : inputs) reads.operands.push_back(input != kNoValue && read[input]);
  for (const Operand& result : results) {
    auto found = std::find(inputs.begin(), inputs.end(), result.id);
    reads.copies.push_back(found == inputs.end() ? -1 : static_cast<int>(found - inputs.begin()));
  }
  return reads;
}

/// A size that no rule knows, in the place of 0.
constexpr int64_t kSome = 8191;

Dims with_some(const Dims& sizes) {
  Dims some = sizes;
  std::replace(some.begin(), some.end(), Dim(0), Dim(kSome));
  return some;
}

}  // namespace

// Where there are no elements, definitions stop early and read nothing; but what is kept is part of a trace, which has
// elements in other calls.
DerivativeReads derivative_reads(OpId op, const Derivative& derivative, std::span<const OperandType> operands,
                                 std::span<const Attr> attrs, std::span<const Operand> known) {
  std::vector<Dims> shapes;
  shapes.reserve(operands.size());
  std::vector<OperandType> some(operands.begin(), operands.end());
  bool any = false;
  for (OperandType& type : some)
    if (type.is_tensor()) {
      shapes.push_back(with_some(*type.shape));
      any = any || !(shapes.back() == *type.shape);
      type.shape = &shapes.back();
    }
  if (any) {
    std::vector<Attr> some_attrs(attrs.begin(), attrs.end());
    for (size_t i = 0; i < attrs.size(); ++i)
      if (holds_sizes(info(op), i)) some_attrs[i].list = with_some(attrs[i].list);
    try {
      return reads_of(op, derivative, some, some_attrs, known);
    } catch (const std::exception&) {  // sizes that are sums of others, and no longer are
    }
  }
  return reads_of(op, derivative, operands, attrs, known);
}

}  // namespace ingot::ir
