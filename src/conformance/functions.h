// PyTorch's functions that are not rows themselves, as the public API writes them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/arguments.h"

namespace ingot::conformance {

struct Function {
  std::function<std::vector<Tensor>(const Arguments&)> run;
  /// False: the row of the same name takes the case.
  std::function<bool(const Case&)> takes;
  bool may_break = false;  // PyTorch itself reads a tensor's value here
  bool may_use_host = false;
};

/// Null if the op is a row alone, or missing.
const Function* find_function(const std::string& op);

}  // namespace ingot::conformance
