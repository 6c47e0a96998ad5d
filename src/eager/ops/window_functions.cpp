#include "eager/ops/window_functions.h"

#include <numbers>

#include "eager/call/call.h"
#include "eager/ops/special.h"

namespace ingot {
namespace {

using std::numbers::pi;

/// `shape` of the places in the window, from 0 at its beginning to 1 at its end.
template <class Shape>
Tensor window(const char* op, int64_t n, bool periodic, const TensorOptions& options, Location location, Shape shape) {
  const CallerLine line(location);
  const DType dtype = options.dtype_or(kFloat32);
  if (n < 0) eager::fail(op, "window_length", std::to_string(n), "no negative number", location);
  if (!is_floating(dtype)) eager::fail(op, "dtype", std::string(name_of(dtype)), "a floating dtype", location);
  const int64_t last = n - (periodic ? 0 : 1);
  const Tensor result = n < 2 ? ones({n}, kFloat64) : shape(arange(n, kFloat64) / last);
  return eager::as_asked(result.to(dtype), options, location);
}

Tensor cosines(const Tensor& place, double first, double second, double third = 0) {
  const Tensor two = first - cos(place * (2 * pi)) * second;
  return third == 0 ? two : two + cos(place * (4 * pi)) * third;
}

}  // namespace

Tensor hann_window(int64_t window_length, TensorOptions options, Location location) {
  return hann_window(window_length, true, options, location);
}
Tensor hann_window(int64_t window_length, bool periodic, TensorOptions options, Location location) {
  return window("hann_window", window_length, periodic, options, location,
                [](const Tensor& place) { return cosines(place, 0.5, 0.5); });
}

Tensor hamming_window(int64_t window_length, TensorOptions options, Location location) {
  return hamming_window(window_length, true, options, location);
}
Tensor hamming_window(int64_t window_length, bool periodic, TensorOptions options, Location location) {
  return hamming_window(window_length, periodic, 0.54, 0.46, options, location);
}
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta, TensorOptions options,
                      Location location) {
  return window("hamming_window", window_length, periodic, options, location,
                [=](const Tensor& place) { return cosines(place, alpha, beta); });
}

Tensor blackman_window(int64_t window_length, TensorOptions options, Location location) {
  return blackman_window(window_length, true, options, location);
}
Tensor blackman_window(int64_t window_length, bool periodic, TensorOptions options, Location location) {
  return window("blackman_window", window_length, periodic, options, location,
                [](const Tensor& place) { return cosines(place, 0.42, 0.5, 0.08); });
}

Tensor bartlett_window(int64_t window_length, TensorOptions options, Location location) {
  return bartlett_window(window_length, true, options, location);
}
Tensor bartlett_window(int64_t window_length, bool periodic, TensorOptions options, Location location) {
  return window("bartlett_window", window_length, periodic, options, location,
                [](const Tensor& place) { return 1 - abs(place * 2 - 1); });
}

Tensor kaiser_window(int64_t window_length, TensorOptions options, Location location) {
  return kaiser_window(window_length, true, options, location);
}
Tensor kaiser_window(int64_t window_length, bool periodic, TensorOptions options, Location location) {
  return kaiser_window(window_length, periodic, 12, options, location);
}
Tensor kaiser_window(int64_t window_length, bool periodic, double beta, TensorOptions options, Location location) {
  return window("kaiser_window", window_length, periodic, options, location, [=](const Tensor& place) {
    const Tensor root = sqrt(1 - square(place * 2 - 1));
    return special::i0(root * beta) / special::i0(scalar_tensor(beta, kFloat64));
  });
}

}  // namespace ingot
