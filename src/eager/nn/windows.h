// Padding in every mode, and the forms of convolution and embedding that PyTorch has beyond the op table.
#pragma once
#include <string_view>

#include "eager/ops/functions.h"

namespace ingot::nn {

namespace detail {

/// What is put around the spatial dims of a convolution.
struct Around {
  Ints before, after;
  bool even() const { return before == after; }
  /// As functional::pad takes it.
  Ints pairs() const;
};
/// As much as gives the output the input's size.
INGOT_API Around same_padding(const Tensor& weight, const Ints& dilation);

}  // namespace detail

namespace functional {

/// Pairs (before, after) from the last dim inwards; a negative number cuts. Modes: constant, reflect, replicate,
/// circular.
INGOT_API Tensor pad(const TensorArg& input, const IntList& pad, Word mode = "constant", Scalar value = 0);

/// Padding "same" (the output has the input's size; stride 1) or "valid" (none).
INGOT_API Tensor conv1d(const TensorArg& input, const TensorArg& weight, const TensorArg& bias, const IntList& stride,
                        Word padding, const IntList& dilation = 1, int64_t groups = 1);
INGOT_API Tensor conv2d(const TensorArg& input, const TensorArg& weight, const TensorArg& bias, const IntList& stride,
                        Word padding, const IntList& dilation = 1, int64_t groups = 1);
INGOT_API Tensor conv3d(const TensorArg& input, const TensorArg& weight, const TensorArg& bias, const IntList& stride,
                        Word padding, const IntList& dilation = 1, int64_t groups = 1);
using ingot::conv1d;
using ingot::conv2d;
using ingot::conv3d;

/// Scales those rows of `weight` (two dims) that `indices` (i64 or i32) name and whose norm is above max_norm down to
/// it, in place. A row that is not there is an Error.
INGOT_API const Tensor& embedding_renorm_(const Tensor& weight, const TensorArg& indices, double max_norm,
                                          double norm_type = 2);

}  // namespace functional
}  // namespace ingot::nn
