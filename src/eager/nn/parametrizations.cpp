#include "eager/nn/parametrizations.h"

#include <string>

#include "eager/autograd/rerun.h"
#include "eager/call/call.h"
#include "eager/nn/checks.h"
#include "eager/nn/functional.h"
#include "eager/ops/functions.h"
#include "eager/ops/random.h"

namespace ingot::nn {

Tensor detail::take_weight(const char* parametrization, const char* layer, Tensor& weight) {
  if (!weight.defined() || !weight.is_floating_point())
    detail::refuse(parametrization, "module", std::string(layer) + " without a floating-point weight",
                   "a layer that has one");
  return std::exchange(weight, Tensor()).detach();
}

Tensor detail::norm_except(const char* parametrization, const Tensor& v, std::optional<int64_t> dim) {
  if (!dim) return v.norm();
  if (*dim < 0 || *dim >= v.dim())
    detail::refuse(parametrization, "dim", std::to_string(*dim), "one of the weight's " + std::to_string(v.dim()));
  if (v.dim() == 1) return v.abs();
  Ints others;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != *dim) others.push_back(d);
  return v.norm(2, others, true);
}

Tensor detail::weight_of_norm(const Tensor& g, const Tensor& v, std::optional<int64_t> dim) {
  return v * (g / norm_except("WeightNorm", v, dim));
}

detail::SpectralWeight::SpectralWeight(Tensor weight, const SpectralNormOptions& options, bool transposed)
    : original(std::move(weight)), options_(options) {
  const int64_t dim = options.dim.value_or(transposed ? 1 : 0);
  if (dim < 0 || dim >= original.dim())
    detail::refuse("SpectralNorm", "dim", std::to_string(dim), "one of the weight's " + std::to_string(original.dim()));
  if (options.n_power_iterations < 1)
    detail::refuse("SpectralNorm", "n_power_iterations", std::to_string(options.n_power_iterations), "one or more");
  options_.dim = dim;
  if (original.dim() == 1) return;
  const Tensor m = matrix();
  u = functional::normalize(randn({m.size(0)}, m.dtype()), 2, 0, options_.eps);
  v = functional::normalize(randn({m.size(1)}, m.dtype()), 2, 0, options_.eps);
  iterate(15);
}

Tensor detail::SpectralWeight::matrix() const { return original.movedim(*options_.dim, 0).flatten(1); }

void detail::SpectralWeight::iterate(int64_t times) const {
  const NoGradGuard no_grad;
  const Tensor m = matrix();
  for (int64_t i = 0; i < times; ++i) {
    u.copy_(functional::normalize(m.mv(v), 2, 0, options_.eps));
    v.copy_(functional::normalize(m.t().mv(u), 2, 0, options_.eps));
  }
}

Tensor detail::SpectralWeight::weight(bool training) const {
  if (original.dim() == 1) return functional::normalize(original, 2, 0, options_.eps);
  if (training)
    if (const autograd::SideEffect steps; steps.is_due()) iterate(options_.n_power_iterations);
  // Copies: the next call's steps write to the vectors, and backward reads these.
  const Tensor left = u.clone(), right = v.clone();
  return original / left.dot(matrix().mv(right));
}

}  // namespace ingot::nn
