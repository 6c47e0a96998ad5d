// A batch computed a slice at a time, so that what one step leaves is still in the caches when the next one reads it.
#pragma once
#include "codegen/lower.h"

namespace ingot::codegen::lowering {

/// Where every step treats the elements of the batch apart (inputs whose first size is that of the first input that is
/// no weight), and memory gains more by smaller intermediate results than it loses by reading weights again: the
/// program's sizes become those of a slice. No bit depends on it.
void slice_batch(LowerResult& result, const ir::Graph& graph, const LowerOptions& options);

}  // namespace ingot::codegen::lowering
