// Facts about primitives that more than one part of lowering needs.
#pragma once
#include "codegen/kernel_ir.h"
#include "codegen/lower/index_map.h"
#include "ir/graph.h"

namespace ingot::codegen::lowering {

/// The dim that a reduction runs over.
int reduced_dim(const ir::Node& node);
/// Coordinates of a reduction's result where those of its operand are `over_operand`.
IndexMap reduction_result_map(std::span<const Dim> operand, int dim, bool keepdim, const IndexMap& over_operand);

/// How a reduction combines, and in which type.
struct Combination {
  Combiner combiner;
  Type type;     // of the combined values
  DType result;  // of the combined value in memory before rounding to the op's dtype
};
Combination combination_of(OpId op, DType operand, DType result);

}  // namespace ingot::codegen::lowering
