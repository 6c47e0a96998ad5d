// What functions.h finds, a table a family.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "conformance/functions.h"

namespace ingot::conformance {

/// By PyTorch's name; of several with one name the first that takes a case. "put_" is the in-place form of "put".
using FunctionTable = std::vector<std::pair<std::string, Function>>;

/// Shapes, pieces, copies, new tensors, choosing and replacing elements.
FunctionTable data_functions();
/// Products, statistics, matrices, special functions, windows of signals.
FunctionTable math_functions();
/// torch.nn.functional.
FunctionTable nn_functions();
/// What PyTorch calls in ways of its own, whose arguments are put together by hand.
FunctionTable special_forms();

}  // namespace ingot::conformance
