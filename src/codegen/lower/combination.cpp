#include "codegen/lower/primitives.h"

namespace ingot::codegen::lowering {
Combination combination_of(OpId op, DType operand, DType result) {
  auto in = [](Combiner c, Type t) { return Combination{c, t, memory_type(t)}; };
  switch (op) {
    case OpId::sum:
      return in(Combiner::sum, register_type(result));
    case OpId::prod:
      return in(Combiner::prod, register_type(result));
    case OpId::any:
      return in(Combiner::any, Type::mask);
    case OpId::all:
      return in(Combiner::all, Type::mask);
    case OpId::amax:
      return operand == DType::bool_ ? in(Combiner::any, Type::mask) : in(Combiner::max, register_type(operand));
    case OpId::amin:
      return operand == DType::bool_ ? in(Combiner::all, Type::mask) : in(Combiner::min, register_type(operand));
    case OpId::argmax:
    case OpId::argmin: {
      // Positions of bools are those of 0 and 1.
      Type type = operand == DType::bool_ ? Type::i32 : register_type(operand);
      return {op == OpId::argmax ? Combiner::argmax : Combiner::argmin, type, DType::i64};
    }
    default:
      break;
  }
  INGOT_CHECK(false, std::string(ir::info(op).name) + " is no reduction of one combiner");
  return {};
}

}  // namespace ingot::codegen::lowering
