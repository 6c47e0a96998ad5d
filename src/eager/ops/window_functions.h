// Windows that a stretch of a signal is multiplied by. Of `window_length` numbers; periodic: the first ones of a window
// that is longer by one, which repeats without a seam. Of a floating dtype, f32 unless told otherwise, computed in
// double and rounded once; one number is 1.
#pragma once
#include "eager/ops/functions.h"

namespace ingot {

/// 1/2 - 1/2 cos(2 pi i / (n - 1))
INGOT_API Tensor hann_window(int64_t window_length, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor hann_window(int64_t window_length, bool periodic, TensorOptions options = {},
                             Location location = Location());
/// alpha - beta cos(2 pi i / (n - 1))
INGOT_API Tensor hamming_window(int64_t window_length, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor hamming_window(int64_t window_length, bool periodic, TensorOptions options = {},
                                Location location = Location());
INGOT_API Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta = 0.46,
                                TensorOptions options = {}, Location location = Location());
/// 0.42 - 1/2 cos(2 pi i / (n - 1)) + 0.08 cos(4 pi i / (n - 1))
INGOT_API Tensor blackman_window(int64_t window_length, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor blackman_window(int64_t window_length, bool periodic, TensorOptions options = {},
                                 Location location = Location());
/// 1 - |2 i / (n - 1) - 1|
INGOT_API Tensor bartlett_window(int64_t window_length, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor bartlett_window(int64_t window_length, bool periodic, TensorOptions options = {},
                                 Location location = Location());
/// i0(beta sqrt(1 - (2 i / (n - 1) - 1)^2)) / i0(beta)
INGOT_API Tensor kaiser_window(int64_t window_length, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor kaiser_window(int64_t window_length, bool periodic, TensorOptions options = {},
                               Location location = Location());
INGOT_API Tensor kaiser_window(int64_t window_length, bool periodic, double beta, TensorOptions options = {},
                               Location location = Location());

}  // namespace ingot
