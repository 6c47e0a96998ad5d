// Checks that need the data: positions within a dim, integers divided by zero, probabilities.
#pragma once
#include <optional>

#include "base/function_scope.h"
#include "eager/call/dispatch.h"

namespace ingot::eager {

/// What is checked of the data of one operand of a call before it computes: what its row says (ir::DataCheck), at these
/// operands.
struct ValueCheck {
  using Kind = ir::DataCheck::Kind;
  Kind kind = Kind::none;
  size_t operand = 0;
  int64_t dim = 0;  // positions: of operand 0; -1: of all elements
  bool wraps = false;
  double low = 0, high = 0;
  bool strict = false;
  std::optional<int64_t> ignored;
  DType dtype = DType::f32;  // held: by this one; strict: of what ends there
  ir::DataCheck::Bound bound = ir::DataCheck::Bound::none;
};
using ValueChecks = SmallVector<ValueCheck, 2>;
ValueChecks value_checks(OpId op, std::span<const ir::OperandType> operands, std::span<const ir::Attr> attrs);
ValueChecks value_checks(const OpCall& call);
/// Of one operand that is checked.
ValueCheck value_check(const OpCall& call, size_t operand);
/// Throws Error where the data of the operand that `check` names is wrong.
void check_operand(const OpCall& call, const ValueCheck& check);
/// False where `check` asks for positions in nothing, which no value of the operand can be; looks at sizes only.
bool positions_have_room(const OpCall& call, const ValueCheck& check);
/// Throws Error where the data is wrong: an index out of range, a division of integers by zero.
void check_values(const OpCall& call);
/// For functions written over ops, whose errors would name those: throws Error in the function's name where a number is
/// not in [low, high). Of what is recorded no value is known yet; the op that takes it checks it.
void check_numbers(std::string_view function, std::string_view argument, const Tensor& numbers, int64_t low,
                   int64_t high, Location location);
/// For functions written over ops: throws Error in the function's words where `holds`, of bool, is false somewhere. Of
/// what is recorded, where it is computed.
void require(const CalledFunction& wrong, const Tensor& holds);
/// check_numbers where no op takes them: what is recorded checks them as `require` does.
void require_numbers(const CalledFunction& wrong, const Tensor& numbers, int64_t low, const Size& high,
                     Location location);

}  // namespace ingot::eager
