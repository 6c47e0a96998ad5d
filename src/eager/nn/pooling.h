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

/// The opposite of max_pool: each element of `input` at its position (i64 `indices`, of the same sizes) in a plane of
/// zeros; of several at a position the last one, whose gradient all of them have, as PyTorch has it. The plane has
/// `output_size`, or the smallest that windows of `kernel_size` fill: (n - 1) * stride - 2 * padding + kernel_size. An
/// output_size is less than a stride away from that; it may begin with the dims before the plane.
INGOT_API Tensor max_unpool1d(const TensorArg& input, const TensorArg& indices, const IntList& kernel_size,
                              const IntList& stride = {}, const IntList& padding = 0, const IntList& output_size = {});
INGOT_API Tensor max_unpool2d(const TensorArg& input, const TensorArg& indices, const IntList& kernel_size,
                              const IntList& stride = {}, const IntList& padding = 0, const IntList& output_size = {});
INGOT_API Tensor max_unpool3d(const TensorArg& input, const TensorArg& indices, const IntList& kernel_size,
                              const IntList& stride = {}, const IntList& padding = 0, const IntList& output_size = {});

/// The norm of order `norm_type` of what is in each window: (sum of x^norm_type)^(1 / norm_type); infinite ones: the
/// largest or smallest |x|. Without a stride, windows lie beside each other.
INGOT_API Tensor lp_pool1d(const TensorArg& input, double norm_type, const IntList& kernel_size,
                           const IntList& stride = {}, bool ceil_mode = false);
INGOT_API Tensor lp_pool2d(const TensorArg& input, double norm_type, const IntList& kernel_size,
                           const IntList& stride = {}, bool ceil_mode = false);
INGOT_API Tensor lp_pool3d(const TensorArg& input, double norm_type, const IntList& kernel_size,
                           const IntList& stride = {}, bool ceil_mode = false);

/// The output_size of adaptive pooling over the last dims of an input, where a size that is absent stays as it is:
/// F::adaptive_avg_pool2d(x, F::adaptive_size(x, {std::nullopt, 2})).
INGOT_API Ints adaptive_size(const TensorArg& input, const std::vector<std::optional<int64_t>>& output_size);

}  // namespace ingot::nn::functional
