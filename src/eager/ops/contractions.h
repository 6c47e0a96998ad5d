// Sums of products over dims that the caller names: inner, tensordot, einsum.
#pragma once
#include <string_view>

#include "eager/ops/functions.h"

namespace ingot {

/// Over the last dim of both; a product of elements where one has no dims.
INGOT_API Tensor inner(const TensorArg& self, const TensorArg& other);
/// Over dims of self, each with the dim of other at the same place of its list. The dims that are left follow: self's,
/// then other's.
INGOT_API Tensor tensordot(const TensorArg& self, const TensorArg& other, const IntList& dims_self,
                           const IntList& dims_other);
/// Over the last `dims` dims of self and the first of other.
INGOT_API Tensor tensordot(const TensorArg& self, const TensorArg& other, int64_t dims = 2);

/// einsum("bij,bjk->bik", {a, b}): a letter names a dim; a letter that the result lacks is summed. A letter twice in
/// one operand is its diagonal, "..." stands for dims that broadcast. Without "->" the result has the letters that
/// occur once, in alphabetical order, after the broadcast dims. Operands are contracted from left to right, each pair
/// as a (batched) matrix product.
INGOT_API Tensor einsum(Word equation, const TensorList& operands);

}  // namespace ingot
