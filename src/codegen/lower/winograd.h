// The kernels of a convolution through Winograd's transforms.
#pragma once
#include "codegen/lower/steps.h"

namespace ingot::codegen::lowering {

Conv2dStep::Winograd winograd(StepWriter& w);

}  // namespace ingot::codegen::lowering
