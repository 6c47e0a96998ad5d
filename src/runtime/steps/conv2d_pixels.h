// Convolutions whose channels are innermost in memory.
#pragma once
#include "runtime/steps/conv2d_geometry.h"

namespace ingot::runtime {

/// Forms pixels and depthwise.
StepDriver* bind_pixels(const Conv2dStep& step, const ProductCalls& calls, const Geometry& geometry,
                        const BindContext& context);

}  // namespace ingot::runtime
