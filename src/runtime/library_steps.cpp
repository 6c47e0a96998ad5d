#include "runtime/library_steps.h"

#include "base/error.h"

namespace ingot::runtime {

std::shared_ptr<StepDriver> bind_library(const LibraryStep& step, const Step& costs, const BindContext& context) {
  std::string names;
  for (const LibraryRow& row : kLibrarySteps) {
    if (step.name == row.name) return row.bind(step, costs, context);
    names.append(" ").append(row.name);
  }
  INGOT_CHECK(false, "no library step '" + step.name + "'; there are:" + names);
  return nullptr;
}

}  // namespace ingot::runtime
