// What rules of several families are written with.
#pragma once
#include <functional>
#include <initializer_list>

#include "ir/derivative.h"

namespace ingot::ir::derivatives {

/// The gradients of the first operands, of which only those wanted are made.
using Make = std::function<Operand()>;
Gradients each(const DerivedCall& call, std::initializer_list<Make> operands);
/// The gradient of the only tensor.
Gradients of_self(const DerivedCall& call, const Operand& gradient);
/// The same, the cotangent times a slope.
Gradients times(GraphBuilder& b, const DerivedCall& call, const Operand& slope);

/// An operand in the dtype of the result, in which an elementwise op computes; a scalar as it is.
Operand computed(GraphBuilder& b, const DerivedCall& call, size_t i);

/// x where a condition holds, zero elsewhere: never a product with a mask, as 0 * NaN is NaN.
Operand kept_where(GraphBuilder& b, const Operand& condition, const Operand& x);
Operand kept_where_not(GraphBuilder& b, const Operand& condition, const Operand& x);

Operand zeros(GraphBuilder& b, const Dims& shape, DType dtype);
/// What changes no sum, not even one that is -0.
Operand minus_zeros(GraphBuilder& b, const Dims& shape, DType dtype);
/// Padding of one dim with it.
Operand padded(GraphBuilder& b, const Operand& x, size_t dim, Dim before, Dim after);

/// 0, 1, 2, ..., as i64.
Operand count_up(GraphBuilder& b, Dim size);
/// The same along dim `dim` of a tensor with `rank` dims, of sizes 1 otherwise.
Operand coordinate(GraphBuilder& b, Dim size, size_t dim, size_t rank);

/// x with its last two dims exchanged.
Operand transposed(GraphBuilder& b, const Operand& x);

/// A reduced tensor with the shape that keepdim would have given it, for x of these sizes.
Operand with_dims_kept(GraphBuilder& b, const Operand& reduced, const Dims& shape, const Attr& dim);

}  // namespace ingot::ir::derivatives
