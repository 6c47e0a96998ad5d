// Convolutions through Winograd's transforms.
#pragma once
#include "runtime/steps/conv2d_geometry.h"

namespace ingot::runtime {

/// Whether its tiles are many enough to be transformed.
bool winograd_pays(const Geometry& geometry);
StepDriver* bind_winograd(const Conv2dStep& step, const ConvolutionCalls::Winograd& calls, const Geometry& geometry,
                          const BindContext& context);

}  // namespace ingot::runtime
