// The scalar meaning of every elementwise op, written once over the kernel-IR builder.
#pragma once
#include <functional>
#include <span>

#include "codegen/builder.h"
#include "ir/graph.h"

namespace ingot::codegen {

/// One call of an elementwise op on one element.
struct ElementwiseContext {
  Builder& builder;
  /// In the order of the row. Tensors, scalars and values come in register_type(compute), masks as masks; an absent
  /// operand is not present().
  std::span<const Expr> operands;
  std::span<const ir::Attr> attributes;
  DType compute;           // what the row's type rule says (ir::RuleContext::compute)
  DType result;            // of the output
  bool keep_wide = false;  // a 16-bit result stays f32
  /// The operands of the node, or nothing. The row's special values are told by them: rounded to `compute`, another
  /// number may look like one.
  std::span<const ir::Operand> given = {};
  /// Operand `number` is a literal of just this value.
  bool is_literal(size_t number, double value) const {
    if (number >= given.size() || given[number].kind != ir::Operand::Kind::constant) return false;
    const ir::Operand& o = given[number];
    return value == (o.category == Category::floating ? o.number : static_cast<double>(o.integer));
  }
};

/// One call of an op of kind coordinate on one element.
struct CoordinateContext {
  Builder& builder;
  DType result;                              // of the output
  size_t rank;                               // of the output
  std::function<Expr(size_t)> coordinate;    // of the element, by dim, in i64
  std::function<Expr(size_t, Type)> scalar;  // operand by number, a scalar; its default where it is absent
  std::span<const Expr> elements;            // of the operands that are tensors, at these coordinates
};

/// The result, in register_type(result): rounded to a 16-bit float unless kept wide, wrapped to a narrow integer.
Expr define_elementwise(OpId op, const ElementwiseContext& context);
/// The same of an op of kind coordinate.
Expr define_coordinate(OpId op, const CoordinateContext& context);

/// PyTorch's conversion of an element, in register_type(to): to bool is x != 0; float to integer saturates to the range
/// of `to` (NaN gives 0), integer to a narrower one wraps; to a 16-bit float rounds to nearest even, or stays f32.
Expr convert_element(Expr x, DType to, bool keep_wide = false);

}  // namespace ingot::codegen
