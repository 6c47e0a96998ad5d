// Convolutions in other forms, also for normal forms and derivatives.
#pragma once
#include "ir/decompose.h"

namespace ingot::ir {

/// A conv2d over integers, for which there is no tile emitter, as a matrix product over the unfolded input.
Operand convolution_as_product(GraphBuilder& b, const CompositeCall& call);
/// A transposed convolution of which the result has these sizes.
Operand convolution_transposed(GraphBuilder& b, const CompositeCall& call, const Dims& sizes);

}  // namespace ingot::ir
