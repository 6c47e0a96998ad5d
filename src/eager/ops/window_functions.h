// Windows that a stretch of a signal is multiplied by. Of `window_length` numbers; periodic: the first ones of a window
// that is longer by one, which repeats without a seam. Of a floating dtype, f32 unless told otherwise, computed in
// double and rounded once; one number is 1.
#pragma once
#include <optional>
#include <vector>

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

/// torch.signal.windows: of M numbers, symmetric, or with `sym` false the first M of a window that is longer by one.
/// (Not `signal`: that is a function of the C library, which a program may call after `using namespace ingot`.)
namespace signal_windows {

INGOT_API Tensor bartlett(int64_t M, bool sym = true, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor blackman(int64_t M, bool sym = true, TensorOptions options = {}, Location location = Location());
/// sin(pi (i + 1/2) / n), n the length of the symmetric window.
INGOT_API Tensor cosine(int64_t M, bool sym = true, TensorOptions options = {}, Location location = Location());
/// exp(-|i - center| / tau); a center, in the middle unless given, is one of a window that is not symmetric.
INGOT_API Tensor exponential(int64_t M, std::optional<double> center = {}, double tau = 1, bool sym = true,
                             TensorOptions options = {}, Location location = Location());
/// exp(-(i - (n - 1) / 2)^2 / (2 std^2))
INGOT_API Tensor gaussian(int64_t M, double std = 1, bool sym = true, TensorOptions options = {},
                          Location location = Location());
/// a[0] - a[1] cos(2 pi i / (n - 1)) + a[2] cos(4 pi i / (n - 1)) - ...
INGOT_API Tensor general_cosine(int64_t M, const std::vector<double>& a, bool sym = true, TensorOptions options = {},
                                Location location = Location());
/// general_cosine of alpha and 1 - alpha.
INGOT_API Tensor general_hamming(int64_t M, double alpha = 0.54, bool sym = true, TensorOptions options = {},
                                 Location location = Location());
INGOT_API Tensor hamming(int64_t M, bool sym = true, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor hann(int64_t M, bool sym = true, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor kaiser(int64_t M, double beta = 12, bool sym = true, TensorOptions options = {},
                        Location location = Location());
/// general_cosine of 0.3635819, 0.4891775, 0.1365995 and 0.0106411 (Nuttall, Some windows with very good sidelobe
/// behavior, 1981).
INGOT_API Tensor nuttall(int64_t M, bool sym = true, TensorOptions options = {}, Location location = Location());

}  // namespace signal_windows
}  // namespace ingot
