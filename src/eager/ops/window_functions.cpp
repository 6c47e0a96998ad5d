#include "eager/ops/window_functions.h"

#include <numbers>

#include "eager/call/call.h"
#include "eager/ops/special.h"

namespace ingot {
namespace {

using std::numbers::pi;

/// `shape` of the places in the window, from 0 at its beginning to 1 at its end, and of the number that the end has.
template <class Shape>
Tensor window(const char* op, int64_t n, bool periodic, const TensorOptions& options, Location location, Shape shape,
              const char* length = "window_length") {
  const CallerLine line(location);
  const DType dtype = options.dtype_or(kFloat32);
  if (n < 0) eager::fail(op, length, std::to_string(n), "no negative number", location);
  if (!is_floating(dtype)) eager::fail(op, "dtype", std::string(name_of(dtype)), "a floating dtype", location);
  const int64_t last = n - (periodic ? 0 : 1);
  const Tensor result = n < 2 ? ones({n}, kFloat64) : shape(arange(n, kFloat64) / last, last);
  return eager::as_asked(result.to(dtype), options, location);
}

/// factors[0] - factors[1] cos(2 pi place) + factors[2] cos(4 pi place) - ...
Tensor cosines(const Tensor& place, const std::vector<double>& factors) {
  Tensor sum = zeros_like(place);
  for (size_t k = 0; k < factors.size(); ++k)
    sum = sum + cos(place * (2 * pi * static_cast<double>(k))) * (k % 2 ? -factors[k] : factors[k]);
  return sum;
}

Tensor kaiser_of(const Tensor& place, double beta) {
  const Tensor root = sqrt(1 - square(place * 2 - 1));
  return special::i0(root * beta) / special::i0(scalar_tensor(beta, kFloat64));
}

}  // namespace

Tensor hann_window(int64_t window_length, TensorOptions options, Location location) {
  return hann_window(window_length, true, options, location);
}
Tensor hann_window(int64_t window_length, bool periodic, TensorOptions options, Location location) {
  return window("hann_window", window_length, periodic, options, location, [](const Tensor& place, int64_t) {
    return cosines(place, {0.5, 0.5});
  });
}

Tensor hamming_window(int64_t window_length, TensorOptions options, Location location) {
  return hamming_window(window_length, true, options, location);
}
Tensor hamming_window(int64_t window_length, bool periodic, TensorOptions options, Location location) {
  return hamming_window(window_length, periodic, 0.54, 0.46, options, location);
}
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta, TensorOptions options,
                      Location location) {
  return window("hamming_window", window_length, periodic, options, location, [=](const Tensor& place, int64_t) {
    return cosines(place, {alpha, beta});
  });
}

Tensor blackman_window(int64_t window_length, TensorOptions options, Location location) {
  return blackman_window(window_length, true, options, location);
}
Tensor blackman_window(int64_t window_length, bool periodic, TensorOptions options, Location location) {
  return window("blackman_window", window_length, periodic, options, location, [](const Tensor& place, int64_t) {
    return cosines(place, {0.42, 0.5, 0.08});
  });
}

Tensor bartlett_window(int64_t window_length, TensorOptions options, Location location) {
  return bartlett_window(window_length, true, options, location);
}
Tensor bartlett_window(int64_t window_length, bool periodic, TensorOptions options, Location location) {
  return window("bartlett_window", window_length, periodic, options, location,
                [](const Tensor& place, int64_t) { return 1 - abs(place * 2 - 1); });
}

Tensor kaiser_window(int64_t window_length, TensorOptions options, Location location) {
  return kaiser_window(window_length, true, options, location);
}
Tensor kaiser_window(int64_t window_length, bool periodic, TensorOptions options, Location location) {
  return kaiser_window(window_length, periodic, 12, options, location);
}
Tensor kaiser_window(int64_t window_length, bool periodic, double beta, TensorOptions options, Location location) {
  return window("kaiser_window", window_length, periodic, options, location,
                [=](const Tensor& place, int64_t) { return kaiser_of(place, beta); });
}

namespace signal_windows {
namespace {

constexpr const char* kLength = "M";

}  // namespace

Tensor bartlett(int64_t M, bool sym, TensorOptions options, Location location) {
  return window(
      "signal_windows::bartlett", M, !sym, options, location,
      [](const Tensor& place, int64_t) { return 1 - abs(place * 2 - 1); }, kLength);
}
Tensor blackman(int64_t M, bool sym, TensorOptions options, Location location) {
  return general_cosine(M, {0.42, 0.5, 0.08}, sym, options, location);
}
Tensor cosine(int64_t M, bool sym, TensorOptions options, Location location) {
  return window(
      "signal_windows::cosine", M, !sym, options, location,
      [](const Tensor& place, int64_t last) {
        const auto n = static_cast<double>(last);
        return sin((place * n + 0.5) * (pi / (n + 1)));
      },
      kLength);
}
Tensor exponential(int64_t M, std::optional<double> center, double tau, bool sym, TensorOptions options,
                   Location location) {
  constexpr const char* kOp = "signal_windows::exponential";
  if (!(tau > 0)) eager::fail(kOp, "tau", std::to_string(tau), "a positive number", location);
  if (center && sym) eager::fail(kOp, "center", std::to_string(*center), "none, unless sym is false", location);
  return window(
      kOp, M, !sym, options, location,
      [=](const Tensor& place, int64_t last) {
        const auto n = static_cast<double>(last);
        return exp(abs(place * n - center.value_or(n / 2)) / -tau);
      },
      kLength);
}
Tensor gaussian(int64_t M, double std, bool sym, TensorOptions options, Location location) {
  constexpr const char* kOp = "signal_windows::gaussian";
  if (!(std > 0)) eager::fail(kOp, "std", std::to_string(std), "a positive number", location);
  return window(
      kOp, M, !sym, options, location,
      [=](const Tensor& place, int64_t last) {
        return exp(square((place - 0.5) * (static_cast<double>(last) / std)) * -0.5);
      },
      kLength);
}
Tensor general_cosine(int64_t M, const std::vector<double>& a, bool sym, TensorOptions options, Location location) {
  constexpr const char* kOp = "signal_windows::general_cosine";
  if (a.empty()) eager::fail(kOp, "a", "an empty list", "at least one number", location);
  return window(
      kOp, M, !sym, options, location, [&](const Tensor& place, int64_t) { return cosines(place, a); }, kLength);
}
Tensor general_hamming(int64_t M, double alpha, bool sym, TensorOptions options, Location location) {
  return general_cosine(M, {alpha, 1 - alpha}, sym, options, location);
}
Tensor hamming(int64_t M, bool sym, TensorOptions options, Location location) {
  return general_hamming(M, 0.54, sym, options, location);
}
Tensor hann(int64_t M, bool sym, TensorOptions options, Location location) {
  return general_hamming(M, 0.5, sym, options, location);
}
Tensor kaiser(int64_t M, double beta, bool sym, TensorOptions options, Location location) {
  constexpr const char* kOp = "signal_windows::kaiser";
  if (!(beta >= 0)) eager::fail(kOp, "beta", std::to_string(beta), "no negative number", location);
  return window(
      kOp, M, !sym, options, location, [=](const Tensor& place, int64_t) { return kaiser_of(place, beta); }, kLength);
}
Tensor nuttall(int64_t M, bool sym, TensorOptions options, Location location) {
  return general_cosine(M, {0.3635819, 0.4891775, 0.1365995, 0.0106411}, sym, options, location);
}

}  // namespace signal_windows
}  // namespace ingot
