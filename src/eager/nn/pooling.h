// Pooling with the positions of what was pooled, and adaptive pooling to sizes that may stay as they are.
#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include "eager/ops/functions.h"

namespace ingot::nn::functional {

/// max_pool and, for each output, the position of its element in the input's plane.
INGOT_API std::tuple<Tensor, Tensor> max_pool1d_with_indices(const TensorArg& input, const IntList& kernel_size,
                                                             const IntList& stride = {}, const IntList& padding = 0,
                                                             const IntList& dilation = 1, bool ceil_mode = false);
INGOT_API std::tuple<Tensor, Tensor> max_pool2d_with_indices(const TensorArg& input, const IntList& kernel_size,
                                                             const IntList& stride = {}, const IntList& padding = 0,
                                                             const IntList& dilation = 1, bool ceil_mode = false);
INGOT_API std::tuple<Tensor, Tensor> max_pool3d_with_indices(const TensorArg& input, const IntList& kernel_size,
                                                             const IntList& stride = {}, const IntList& padding = 0,
                                                             const IntList& dilation = 1, bool ceil_mode = false);
/// adaptive_max_pool and the positions of its elements.
INGOT_API std::tuple<Tensor, Tensor> adaptive_max_pool1d_with_indices(const TensorArg& input,
                                                                      const IntList& output_size);
INGOT_API std::tuple<Tensor, Tensor> adaptive_max_pool2d_with_indices(const TensorArg& input,
                                                                      const IntList& output_size);
INGOT_API std::tuple<Tensor, Tensor> adaptive_max_pool3d_with_indices(const TensorArg& input,
                                                                      const IntList& output_size);

/// The output_size of adaptive pooling over the last dims of an input, where a size that is absent stays as it is:
/// F::adaptive_avg_pool2d(x, F::adaptive_size(x, {std::nullopt, 2})).
INGOT_API Ints adaptive_size(const TensorArg& input, const std::vector<std::optional<int64_t>>& output_size);

}  // namespace ingot::nn::functional
