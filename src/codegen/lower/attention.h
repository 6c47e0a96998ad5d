// Steps of attention and of its gradients.
#pragma once
#include "codegen/lower/steps.h"

namespace ingot::codegen::lowering {

void write_attention(StepWriter& w, uint32_t group);
void write_attention_backward(StepWriter& w, uint32_t group);

}  // namespace ingot::codegen::lowering
