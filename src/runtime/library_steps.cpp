#include "runtime/library_steps.h"

#include "base/error.h"

namespace ingot::runtime {
namespace {

using Bind = std::unique_ptr<StepDriver> (*)(const LibraryStep&, const Step&, const BindContext&);
struct Row {
  const char* name;
  Bind bind;
};
constexpr Row kSteps[] = {{"attention", bind_attention}, {"conv2d", bind_conv2d}};

}  // namespace

std::unique_ptr<StepDriver> bind_library(const LibraryStep& step, const Step& costs, const BindContext& context) {
  std::string names;
  for (const Row& row : kSteps) {
    if (step.name == row.name) return row.bind(step, costs, context);
    names += std::string(" ") + row.name;
  }
  INGOT_CHECK(false, "no library step '" + step.name + "'; there are:" + names);
  return nullptr;
}

}  // namespace ingot::runtime
