// Loops that make the left operand of a product.
#pragma once
#include "codegen/lower.h"

namespace ingot::codegen::lowering {

/// A loop whose only reader is a product, which reads its rows as rows of A, becomes the product's prologue.
void join_prologues(LowerResult& result, const LowerOptions& options);

}  // namespace ingot::codegen::lowering
