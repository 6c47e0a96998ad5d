// Derivatives: the vector-Jacobian product of a call (ir::Derivative) as a graph of primitives.
//
// A call is written as primitives, and these are walked from the last to the first. Each adds to the gradients of its
// operands, in this order, so the order of sums follows from the decomposition alone. A composite may have a rule of
// its own (its row says so); then it is one step of the walk. Inside, nothing is a 16-bit float: operands and
// cotangents are widened once, results are rounded once. A derivative of higher order is the same walk again.
#pragma once
#include "ir/builder.h"

namespace ingot::ir {

/// A call whose operands' gradients a rule is asked for.
struct DerivedCall {
  const OpInfo& op;
  std::vector<Operand> operands;
  std::vector<Attr> attrs;
  std::vector<Operand> cotangents;  // one for each output, with its dtype and shape; absent: zero
  std::vector<bool> wanted;         // of the operands; others may be left absent

  const Operand& operand(std::string_view name) const;
  const Attr& attribute(std::string_view name) const;
  int64_t integer(std::string_view name) const { return attribute(name).integer; }
  bool flag(std::string_view name) const { return attribute(name).integer != 0; }
  /// An output of the call. A rule that reads the outputs rather than the operands makes the tape keep those.
  Operand result(GraphBuilder& b, size_t i = 0) const;
  /// The only cotangent, of an op with one output.
  const Operand& cotangent() const { return cotangents[0]; }

  mutable std::vector<Operand> results;  // outputs that are there already
};

/// One function a row whose derivative is a rule, under the name that its row gives. A gradient may have the shape that
/// the operands broadcast to and another float dtype: it is summed and cast afterwards.
namespace derivatives {
using Rule = std::vector<Operand>(GraphBuilder& b, const DerivedCall& call);
Rule add, mul;
}  // namespace derivatives

/// `gradient` summed over the dims that broadcasting gave it, in one sum.
Operand sum_to(GraphBuilder& b, const Operand& gradient, const Dims& shape);

/// What a derived call reads of its operands, told by its graph: what is not read need not be kept.
struct DerivativeReads {
  std::vector<bool> operands;  // of the derived call
  std::vector<int> copies;     // of each result: the operand that it is just a copy of, or -1
};
/// `attrs` are those of the call that is derived; all its operands, outputs and cotangents that may be there are given.
DerivativeReads derivative_reads(OpId op, const Derivative& derivative, std::span<const OperandType> operands,
                                 std::span<const Attr> attrs);

}  // namespace ingot::ir
