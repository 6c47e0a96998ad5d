// Steps of convolutions and of the gradients of their weights.
#pragma once
#include "codegen/lower/steps.h"

namespace ingot::codegen::lowering {

void write_conv(StepWriter& w, uint32_t group);
void write_conv_weight(StepWriter& w, uint32_t group);

}  // namespace ingot::codegen::lowering
