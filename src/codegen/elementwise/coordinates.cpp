// Ops of kind coordinate: what is made from where an element stands.
#include "codegen/elementwise/definitions.h"

namespace ingot::codegen::define {
namespace {

/// The diagonal on which the element lies; those below the main one are negative.
Expr diagonal(const CoordinateContext& c) { return c.coordinate(c.rank - 1) - c.coordinate(c.rank - 2); }

Expr zero_of(const CoordinateContext& c) { return c.builder.constant(register_type(c.result), 0); }

}  // namespace

Expr full(const CoordinateContext& c) { return convert_element(c.scalar(0, register_type(c.result)), c.result); }

Expr arange(const CoordinateContext& c) {
  const Type wide = is_floating(c.result) ? Type::f64 : register_type(c.result);
  const Expr at = convert(c.coordinate(0), wide);
  return convert_element(c.scalar(0, wide) + at * c.scalar(1, wide), c.result);
}

Expr tril(const CoordinateContext& c) {
  return select(diagonal(c) <= c.scalar(1, Type::i64), c.elements[0], zero_of(c));
}
Expr triu(const CoordinateContext& c) {
  return select(diagonal(c) >= c.scalar(1, Type::i64), c.elements[0], zero_of(c));
}

}  // namespace ingot::codegen::define
