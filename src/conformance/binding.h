// From PyTorch's argument lists to calls: by the op's row wherever there is one.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/case.h"
#include "eager/tensor.h"

namespace ingot::conformance {

/// Makes the tensor that stands for a stored one in this run (dense, or a strided view of the same values). Equal
/// addresses are the same argument.
using Materialize = std::function<Tensor(const CaseTensor&)>;
/// A case ready to be run, as often as wanted.
using BoundCase = std::function<std::vector<Tensor>(const Materialize&)>;

/// True if there is a row, or a function of the API, for PyTorch's op of this name.
bool knows_op(const std::string& op);
/// Arguments that are scalars or lists are baked in. Throws Error where the arguments fit neither row nor function.
BoundCase bind(const Case& c);
/// The op's in-place form, written to the first argument; empty where it has none or the result is of another type.
BoundCase bind_inplace(const Case& c);

}  // namespace ingot::conformance
