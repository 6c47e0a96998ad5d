// Primitives in the one form that decompose.h promises.
#pragma once
#include "ir/decompose.h"

namespace ingot::ir {

/// What an op's row names where calls of it come in more forms than lowering takes.
namespace normal {
using NormalForm = Outputs(GraphBuilder& b, const CompositeCall& call);
/// Any call is in the form.
NormalForm unchanged;
/// The operand itself.
NormalForm identity;
/// Every op of kind reduction.
NormalForm reduction;
NormalForm cat, lookup, matmul, conv2d, conv2d_weight_backward, scaled_dot_product_attention,
    scaled_dot_product_attention_backward, scatter, scatter_reduce, searchsorted, nonzero_static;
}  // namespace normal

}  // namespace ingot::ir
