// Functions of whole matrices.
#pragma once
#include "eager/tensor.h"

namespace ingot {

/// The sum of the singular values of the matrices in two dims (PyTorch's norm with p = "nuc"). Has a gradient, but no
/// second one. Reads the values at once: a graph break in compiled code.
INGOT_API Tensor nuclear_norm(const TensorArg& self, const IntList& dim = {-2, -1}, bool keepdim = false);

}  // namespace ingot
