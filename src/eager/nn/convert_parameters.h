// All parameters of a model as one vector, and back.
#pragma once
#include <vector>

#include "eager/tensor.h"

namespace ingot::nn::utils {

/// The elements of all these tensors, one after the other, in one dim; on the tape, where they are. At least one
/// tensor.
INGOT_API Tensor parameters_to_vector(const std::vector<Tensor>& parameters, Location location = Location());
/// Writes the parts of such a vector to the tensors, off the tape. Throws Error, before anything is changed, unless it
/// has one dim and as many elements as they have together.
INGOT_API void vector_to_parameters(const TensorArg& vec, const std::vector<Tensor>& parameters,
                                    Location location = Location());

}  // namespace ingot::nn::utils
