// A space with fewer dims: those that every argument walks as one.
#pragma once
#include <span>
#include <vector>

#include "codegen/lower/plan.h"

namespace ingot::codegen::lowering {

/// A space whose neighbouring dims are merged where all arguments allow it.
struct CollapsedSpace {
  Dims sizes;
  std::vector<Dims> strides;     // one an argument, elements
  SmallVector<int, 8> position;  // of each dim of the old space; -1 where it was merged or has one element
};
/// Merges dims of `space` (in the given order) over which every argument moves as one. A dim that is `fixed` stays
/// alone.
CollapsedSpace collapse(DimTable& dims, const Dims& space, std::span<const Dims> strides,
                        const SmallVector<bool, 8>& fixed);

}  // namespace ingot::codegen::lowering
