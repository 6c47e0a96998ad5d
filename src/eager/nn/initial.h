// First values of parameters; not part of the API.
#pragma once
#include "eager/ops/arguments.h"
#include "eager/tensor.h"

namespace ingot::nn::detail {

/// Uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)), f32; one NaN for all elements under SkipInit.
Tensor uniform(const IntList& sizes, int64_t fan_in);
/// One value for all elements.
Tensor filled(const IntList& sizes, double value, DType dtype = kFloat32);
/// One NaN that stands for all elements, f32.
Tensor blank(const IntList& sizes);

}  // namespace ingot::nn::detail
