#include "codegen/elementwise.h"

#include <limits>
#include <vector>

#include "codegen/elementwise/definitions.h"

namespace ingot::codegen {
namespace {

Expr define_by_name(OpId op, const ElementwiseContext& c) {
  switch (op) {
#define OP_elementwise(name, ...) \
  case OpId::name:                \
    return define::name(c);
#include "ir/ops.def"
    default:
      break;
  }
  INGOT_CHECK(!"an elementwise op", std::string(ir::info(op).name));
}

bool is_narrow(DType d) { return is_integral(d) && ingot::size_of(d) < 4; }

template <class T>
Expr saturate(Expr x) {
  return min(max(x, std::numeric_limits<T>::min()), std::numeric_limits<T>::max());
}

Expr saturate(Expr x, DType d) {
  switch (d) {
    case DType::i16:
      return saturate<int16_t>(x);
    case DType::i8:
      return saturate<int8_t>(x);
    default:
      return saturate<uint8_t>(x);
  }
}

}  // namespace

Expr convert_element(Expr x, DType to, bool keep_wide) {
  bool from_float = x.type() == Type::f32 || x.type() == Type::f64;
  Expr y = convert(x, register_type(to));
  if (is_half(to)) return keep_wide ? y : round_to(y, to);
  if (!is_narrow(to)) return y;
  return from_float ? saturate(y, to) : wrap(y, to);
}

Expr define_elementwise(OpId op, const ElementwiseContext& c) {
  const ir::OpInfo& row = ir::info(op);
  std::vector<Expr> operands(c.operands.begin(), c.operands.end());
  for (size_t i = 0; i < operands.size(); ++i) {
    const ir::ArgInfo& argument = row.operand(static_cast<int>(i));
    if (!operands[i].present() && argument.has_default)
      operands[i] = c.builder.constant(register_type(c.compute), argument.default_number);
  }
  return convert_element(define_by_name(op, {c.builder, operands, c.attributes, c.compute, c.result, false, c.given}),
                         c.result, c.keep_wide);
}

Expr define_coordinate(OpId op, const CoordinateContext& c) {
  switch (op) {
#define OP_coordinate(name, ...) \
  case OpId::name:               \
    return define::name(c);
#include "ir/ops.def"
    default:
      break;
  }
  INGOT_CHECK(!"an op over coordinates", std::string(ir::info(op).name));
}

}  // namespace ingot::codegen
