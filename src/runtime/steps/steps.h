// The drivers of convolutions and attention, in the memory of the context; `costs` is the step as a whole.
#pragma once
#include "runtime/drivers/step_driver.h"

namespace ingot::runtime {

StepDriver* bind(const Conv2dStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const Conv2dWeightStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const AttentionStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const AttentionBackwardStep& step, const Step& costs, const BindContext& context);

}  // namespace ingot::runtime
