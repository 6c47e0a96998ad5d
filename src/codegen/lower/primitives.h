// Facts about primitives that more than one part of lowering needs.
#pragma once
#include "codegen/kernel_ir.h"
#include "codegen/lower/index_map.h"
#include "ir/graph.h"

namespace ingot::codegen::lowering {

/// How a reduction combines, and in which type.
struct Combination {
  Combiner combiner;
  Type type;     // of the combined values
  DType result;  // of the combined value in memory before rounding to the op's dtype
};
Combination combination_of(OpId op, DType operand, DType result);

/// What the scores are that attention's mask hides, where that is said (attention written out by hand); or null.
const ir::Operand* fill_of(const ir::Node& attention);

}  // namespace ingot::codegen::lowering
