// Max pooling over windows that lie at random.
#pragma once
#include <tuple>
#include <vector>

#include "eager/ops/functions.h"

namespace ingot::nn::functional {

/// The largest of each of `output_size` windows along each spatial dim, of [N, C, ...] or [C, ...] in a floating dtype
/// (Graham, "Fractional Max-Pooling", 2014). Of a dim of n elements they begin at floor(a (i + u)) - floor(a u) with
/// a = (n - kernel_size) / (output_size - 1), the last at the end. In place of a size there may be `output_ratio`, the
/// share of the input's. `random_samples` are the u of each plane, [N, C, dims] from 0 to below 1, of the two dims of
/// an image first that of its width; absent ones are drawn.
INGOT_API Tensor fractional_max_pool2d(const TensorArg& input, const IntList& kernel_size,
                                       const IntList& output_size = {}, const std::vector<double>& output_ratio = {},
                                       const TensorArg& random_samples = {});
INGOT_API Tensor fractional_max_pool3d(const TensorArg& input, const IntList& kernel_size,
                                       const IntList& output_size = {}, const std::vector<double>& output_ratio = {},
                                       const TensorArg& random_samples = {});
/// And for each output the position of its element in the input's plane.
INGOT_API std::tuple<Tensor, Tensor> fractional_max_pool2d_with_indices(const TensorArg& input,
                                                                        const IntList& kernel_size,
                                                                        const IntList& output_size = {},
                                                                        const std::vector<double>& output_ratio = {},
                                                                        const TensorArg& random_samples = {});
INGOT_API std::tuple<Tensor, Tensor> fractional_max_pool3d_with_indices(const TensorArg& input,
                                                                        const IntList& kernel_size,
                                                                        const IntList& output_size = {},
                                                                        const std::vector<double>& output_ratio = {},
                                                                        const TensorArg& random_samples = {});

}  // namespace ingot::nn::functional
