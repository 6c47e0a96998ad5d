#include "codegen/lower/primitives.h"

#include "ir/rules/rules.h"

namespace ingot::codegen::lowering {
Combination combination_of(OpId op, DType operand, DType result) {
  const std::optional<Combiner>& combiner = ir::info(op).combiner;
  INGOT_CHECK(combiner, std::string(ir::info(op).name) + " has no combiner");
  const bool booleans = operand == DType::bool_;
  auto in = [](Combiner c, Type t) { return Combination{c, t, memory_type(t)}; };
  switch (*combiner) {
    case Combiner::sum:
    case Combiner::prod:
      return in(*combiner, register_type(result));
    case Combiner::any:
    case Combiner::all:
      return in(*combiner, Type::mask);
    case Combiner::max:
      return booleans ? in(Combiner::any, Type::mask) : in(Combiner::max, register_type(operand));
    case Combiner::min:
      return booleans ? in(Combiner::all, Type::mask) : in(Combiner::min, register_type(operand));
    case Combiner::argmax:
    case Combiner::argmin:
      break;
  }
  // Positions of bools are those of 0 and 1.
  return {*combiner, booleans ? Type::i32 : register_type(operand), DType::i64};
}

const ir::Operand* fill_of(const ir::Node& attention) {
  const int at = ir::operand_position(ir::info(attention.op), "fill");
  return at < 0 ? nullptr : &attention.operands[static_cast<size_t>(at)];
}

}  // namespace ingot::codegen::lowering
