// What poolings share, also with their derivatives.
#pragma once
#include <vector>

#include "base/function_ref.h"
#include "ir/decompose/windows.h"

namespace ingot::ir {

/// The windows of a pooling.
std::vector<Slide> pool_slides(GraphBuilder& b, const CompositeCall& call);
/// Element `tap` of every window of a padded x, counted row by row, as a strided slice over the last dims.
Operand window_element(GraphBuilder& b, Operand x, const std::vector<Slide>& slides, int64_t tap);
int64_t taps(const std::vector<Slide>& slides);
/// One tensor, of some of the windows: those of a part of x, that all lie inside it, and of each dim how many places
/// before it a window would begin with, were they not left out.
using OfWindows =
    FunctionRef<Operand(const Operand& part, const std::vector<Slide>& windows, const std::vector<int64_t>& missing)>;
/// What that gives, joined over all windows of x: few hang over its ends, and they are computed apart rather than x
/// copied into a border. Absent where these are too many, or not known.
Operand without_border(GraphBuilder& b, const Operand& x, const std::vector<Slide>& slides, OfWindows of_windows);
/// Sums over windows as averages.
Operand averaged(GraphBuilder& b, const CompositeCall& call, const std::vector<Slide>& slides, const Operand& sums);
/// Smaller than, or equal to, everything that a dtype holds.
Operand least_of(DType dtype);

}  // namespace ingot::ir
