// The drivers of loops, columns and matrix products, in the memory of the context; `costs` is the step as a whole.
#pragma once
#include "runtime/drivers/step_driver.h"

namespace ingot::runtime {

StepDriver* bind(const LoopStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const ColumnStep& step, const Step& costs, const BindContext& context);
StepDriver* bind(const MatmulStep& step, const Step& costs, const BindContext& context);
/// For few long rows, over which threads then work together; null where rows are better left whole.
StepDriver* bind_split_reduction(const LoopStep& step, const PlaneStepConstants& constants, const BindContext& context);

}  // namespace ingot::runtime
