#include "runtime/steps/host_steps.h"

#include "base/error.h"

namespace ingot::runtime {

StepDriver* bind(const HostStep& step, const Step&, const BindContext& context) {
  std::string names;
  for (const HostRow& row : kHostSteps) {
    if (step.op == row.name) return row.bind(step, context);
    names.append(" ").append(row.name);
  }
  INGOT_CHECK(false, "no host step '" + step.op + "'; there are:" + names);
  return nullptr;
}

}  // namespace ingot::runtime
