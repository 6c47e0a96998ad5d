#include "eager/nn/init.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/float_environment.h"
#include "eager/autograd/autograd.h"
#include "eager/call/call.h"
#include "eager/ops/checks.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/linalg.h"

namespace ingot::nn::init {
namespace {

/// What every function here does first: nothing of it is on a tape, and errors name the user's line.
struct Setting {
  NoGradGuard no_grad;
  CallerLine line;
  FloatEnvironment environment;
  Setting(const char* name, const Tensor& tensor, Location location) : line(location) {
    ingot::detail::checked_impl(tensor.impl(), name, location);
  }
};

struct Fans {
  double in, out;
};

Fans fans_of(const char* name, const Tensor& tensor, Location location) {
  if (tensor.dim() < 2)
    eager::fail(name, "tensor", std::to_string(tensor.dim()) + " dims", "two or more: [out, in, window...]", location);
  double window = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) window *= static_cast<double>(tensor.sizes()[static_cast<size_t>(d)]);
  return {static_cast<double>(tensor.sizes()[1]) * window, static_cast<double>(tensor.sizes()[0]) * window};
}

double xavier_std(const char* name, const Tensor& tensor, double gain, Location location) {
  const Fans fans = fans_of(name, tensor, location);
  return fans.in + fans.out > 0 ? gain * std::sqrt(2 / (fans.in + fans.out)) : 0;
}

double kaiming_std(const char* name, const Tensor& tensor, double a, std::string_view mode,
                   std::string_view nonlinearity, Location location) {
  const Fans fans = fans_of(name, tensor, location);
  if (mode != "fan_in" && mode != "fan_out")
    eager::fail(name, "mode", "\"" + std::string(mode) + "\"", "\"fan_in\" or \"fan_out\"", location);
  const double fan = mode == "fan_in" ? fans.in : fans.out;
  return fan > 0 ? calculate_gain(nonlinearity, a, location) / std::sqrt(fan) : 0;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

const double kRoot3 = std::sqrt(3.0);

}  // namespace

double calculate_gain(std::string_view nonlinearity, std::optional<double> param, Location location) {
  constexpr std::string_view kPlain[] = {"linear", "sigmoid",          "conv1d",           "conv2d",
                                         "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};
  if (std::find(std::begin(kPlain), std::end(kPlain), nonlinearity) != std::end(kPlain)) return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2 / (1 + param.value_or(0.01) * param.value_or(0.01)));
  if (nonlinearity == "selu") return 0.75;
  eager::fail("calculate_gain", "nonlinearity", "\"" + std::string(nonlinearity) + "\"",
              "linear, conv1d to conv_transpose3d, sigmoid, tanh, relu, leaky_relu or selu", location);
}

const Tensor& uniform_(const Tensor& tensor, double a, double b, Location location) {
  const Setting setting("uniform_", tensor, location);
  return tensor.uniform_(a, b);
}

const Tensor& normal_(const Tensor& tensor, double mean, double std, Location location) {
  const Setting setting("normal_", tensor, location);
  return tensor.normal_(mean, std);
}

// Uniform numbers between the values of the distribution's function at both ends, through its inverse.
const Tensor& trunc_normal_(const Tensor& tensor, double mean, double std, double a, double b, Location location) {
  const Setting setting("trunc_normal_", tensor, location);
  if (!(std > 0)) eager::fail("trunc_normal_", "std", std::to_string(std), "a number above 0", location);
  if (!(a < b)) eager::fail("trunc_normal_", "a", std::to_string(a), "less than b, " + std::to_string(b), location);
  const double low = normal_cdf((a - mean) / std), high = normal_cdf((b - mean) / std);
  tensor.uniform_(2 * low - 1, 2 * high - 1).erfinv_().mul_(std * std::sqrt(2.0)).add_(mean);
  return tensor.clamp_(a, b);
}

const Tensor& constant_(const Tensor& tensor, double value, Location location) {
  const Setting setting("constant_", tensor, location);
  return tensor.fill_(value);
}
const Tensor& ones_(const Tensor& tensor, Location location) {
  const Setting setting("ones_", tensor, location);
  return tensor.fill_(1);
}
const Tensor& zeros_(const Tensor& tensor, Location location) {
  const Setting setting("zeros_", tensor, location);
  return tensor.zero_();
}

const Tensor& eye_(const Tensor& tensor, Location location) {
  const Setting setting("eye_", tensor, location);
  if (tensor.dim() != 2) eager::fail("eye_", "tensor", std::to_string(tensor.dim()) + " dims", "two", location);
  tensor.zero_();
  tensor.diagonal().fill_(1);
  return tensor;
}

const Tensor& dirac_(const Tensor& tensor, int64_t groups, Location location) {
  const Setting setting("dirac_", tensor, location);
  if (tensor.dim() < 3 || tensor.dim() > 5)
    eager::fail("dirac_", "tensor", std::to_string(tensor.dim()) + " dims", "3, 4 or 5: [out, in, window...]",
                location);
  const int64_t out = tensor.sizes()[0], in = tensor.sizes()[1];
  if (groups < 1 || out % groups != 0)
    eager::fail("dirac_", "groups", std::to_string(groups), "a divisor of the " + std::to_string(out) + " results",
                location);
  tensor.zero_();
  Tensor middle = tensor;
  for (int64_t d = 2; d < tensor.dim(); ++d) {
    const int64_t size = tensor.sizes()[static_cast<size_t>(d)];
    if (size == 0) return tensor;
    middle = middle.select(2, size / 2);
  }
  const int64_t same = std::min(out / groups, in);
  for (int64_t g = 0; g < groups; ++g)
    middle.narrow(0, g * (out / groups), same).narrow(1, 0, same).diagonal().fill_(1);
  return tensor;
}

const Tensor& xavier_uniform_(const Tensor& tensor, double gain, Location location) {
  const Setting setting("xavier_uniform_", tensor, location);
  const double bound = kRoot3 * xavier_std("xavier_uniform_", tensor, gain, location);
  return tensor.uniform_(-bound, bound);
}

const Tensor& xavier_normal_(const Tensor& tensor, double gain, Location location) {
  const Setting setting("xavier_normal_", tensor, location);
  return tensor.normal_(0, xavier_std("xavier_normal_", tensor, gain, location));
}

const Tensor& kaiming_uniform_(const Tensor& tensor, double a, std::string_view mode, std::string_view nonlinearity,
                               Location location) {
  const Setting setting("kaiming_uniform_", tensor, location);
  const double bound = kRoot3 * kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity, location);
  return tensor.uniform_(-bound, bound);
}

const Tensor& kaiming_normal_(const Tensor& tensor, double a, std::string_view mode, std::string_view nonlinearity,
                              Location location) {
  const Setting setting("kaiming_normal_", tensor, location);
  return tensor.normal_(0, kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity, location));
}

// Q of a matrix of normal numbers is uniformly distributed once the signs of R's diagonal are positive.
const Tensor& orthogonal_(const Tensor& tensor, double gain, Location location) {
  const Setting setting("orthogonal_", tensor, location);
  fans_of("orthogonal_", tensor, location);
  eager::present_floating("orthogonal_", "tensor", TensorArg(tensor, location));
  if (tensor.numel() == 0) return tensor;
  const int64_t rows = tensor.sizes()[0], columns = tensor.numel() / rows;
  const auto [q, r] = linalg::qr(
      randn({std::max(rows, columns), std::min(rows, columns)}, tensor.dtype() == kFloat64 ? kFloat64 : kFloat32));
  const Tensor uniform = q * r.diagonal().sign() * gain;
  return tensor.copy_((rows < columns ? uniform.t() : uniform).reshape_as(tensor));
}

const Tensor& sparse_(const Tensor& tensor, double sparsity, double std, Location location) {
  const Setting setting("sparse_", tensor, location);
  eager::present_with_dims("sparse_", "tensor", TensorArg(tensor, location), 2);
  if (!(sparsity >= 0 && sparsity <= 1))
    eager::fail("sparse_", "sparsity", std::to_string(sparsity), "a number from 0 to 1", location);
  tensor.normal_(0, std);
  const auto zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(tensor.sizes()[0])));
  return tensor.scatter_(0, rand(tensor.sizes()).argsort(0).narrow(0, 0, zeros), 0);
}

}  // namespace ingot::nn::init
