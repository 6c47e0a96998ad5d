// What is done to gradients between backward() and a step of an optimizer.
#pragma once
#include <vector>

#include "eager/tensor.h"

namespace ingot::nn {
namespace detail {
/// Removes the gradient of a tensor, or makes it zeros.
void clear_gradient(const Tensor& tensor, bool set_to_none, Location location);
}  // namespace detail

namespace utils {

/// Scales the gradients of these tensors, in place, so that the norm of all of them as one vector is at most
/// `max_norm`; gives the norm that they had. Nothing is waited for, unless `error_if_nonfinite` asks whether the norm
/// is a number. Throws Error for a negative bound, before anything is changed; so does the other one.
INGOT_API Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                                 bool error_if_nonfinite = false, Location location = Location());
/// The two halves of that: the norm of these tensors as one vector, 0 of none; and the scaling of gradients whose norm
/// is known, of all parts of a model together, say.
INGOT_API Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2,
                                bool error_if_nonfinite = false, Location location = Location());
INGOT_API void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm,
                                     const TensorArg& total_norm);
/// Cuts every element to [-clip_value, clip_value].
INGOT_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value,
                                Location location = Location());

}  // namespace utils
}  // namespace ingot::nn
