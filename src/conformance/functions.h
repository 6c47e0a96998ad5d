// PyTorch's functions that are not rows themselves, as the public API writes them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/arguments.h"

namespace ingot::conformance {

/// What compiled code may do for a function, beside generated code and views.
enum class May : uint8_t {
  nothing = 0,
  use_host = 1,    // steps in C++
  break_graph = 2  // PyTorch itself reads a tensor's value here
};
constexpr bool includes(May may, May one) { return static_cast<int>(may) & static_cast<int>(one); }
constexpr May operator|(May a, May b) { return static_cast<May>(static_cast<int>(a) | static_cast<int>(b)); }

struct Function {
  std::function<std::vector<Tensor>(const Arguments&)> run;
  /// False: the next function, or the row of the same name, takes the case.
  std::function<bool(const Case&)> takes;
  May may = May::nothing;
};

/// Null if the case's op is a row, or missing, or if there is none for these arguments.
const Function* find_function(const Case& c);
/// The same that writes to its first argument.
const Function* find_inplace_function(const Case& c);
/// True if there is one of this name.
bool has_function(const std::string& op);

}  // namespace ingot::conformance
