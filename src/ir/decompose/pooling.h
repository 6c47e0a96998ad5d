// What poolings share, also with their derivatives.
#pragma once
#include <vector>

#include "ir/decompose/windows.h"

namespace ingot::ir {

/// The windows of a pooling.
std::vector<Slide> pool_slides(GraphBuilder& b, const CompositeCall& call);
/// Element `tap` of every window of a padded x, counted row by row, as a strided slice over the last dims.
Operand window_element(GraphBuilder& b, Operand x, const std::vector<Slide>& slides, int64_t tap);
int64_t taps(const std::vector<Slide>& slides);
/// Sums over windows as averages.
Operand averaged(GraphBuilder& b, const CompositeCall& call, const std::vector<Slide>& slides, const Operand& sums);
/// Smaller than, or equal to, everything that a dtype holds.
Operand least_of(DType dtype);

}  // namespace ingot::ir
