// Library steps: C++ functions over generated kernels, known by the name in LibraryStep.
#pragma once
#include <memory>
#include <string>

#include "runtime/step_driver.h"

namespace ingot::runtime {

/// Throws InternalError, with the names that exist, if no step has this name.
std::unique_ptr<StepDriver> bind_library(const LibraryStep& step, const Step& costs, const BindContext& context);

}  // namespace ingot::runtime
