#include "eager/nn/clip_grad.h"

#include <cmath>

#include "eager/autograd/autograd.h"
#include "eager/call/call.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot::nn {

void detail::clear_gradient(const Tensor& tensor, bool set_to_none, Location location) {
  const NoGradGuard no_grad;
  const Tensor gradient = tensor.grad();
  if (!gradient.defined()) return;
  // One that has a history is left to it.
  tensor.set_grad(set_to_none                ? Tensor()
                  : gradient.requires_grad() ? zeros_like(TensorArg(gradient, location))
                                             : gradient.zero_(location),
                  location);
}

namespace utils {
namespace {

std::vector<Tensor> gradients_of(const char* op, const std::vector<Tensor>& parameters, Location location) {
  std::vector<Tensor> gradients;
  for (const Tensor& p : parameters) {
    ingot::detail::checked_impl(p.impl(), op, location);
    if (Tensor g = p.grad(); g.defined()) gradients.push_back(std::move(g));
  }
  return gradients;
}

/// NaN is no bound either.
void check_bound(const char* op, const char* argument, double bound, Location location) {
  if (!(bound >= 0)) eager::fail(op, argument, std::to_string(bound), "no negative number", location);
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite, Location location) {
  const NoGradGuard no_grad;
  const CallerLine line(location);
  check_bound("clip_grad_norm_", "max_norm", max_norm, location);
  const std::vector<Tensor> gradients = gradients_of("clip_grad_norm_", parameters, location);
  if (gradients.empty()) return scalar_tensor(0.0);
  std::vector<Tensor> norms;
  for (const Tensor& g : gradients) norms.push_back(vector_norm(g, norm_type));
  const Tensor total = vector_norm(stack(norms), norm_type);
  if (error_if_nonfinite && !std::isfinite(total.item<double>(location)))
    eager::fail("clip_grad_norm_", "parameters", "gradients whose norm is " + total.str(location), "a finite norm",
                location);
  const Tensor scale = div(max_norm, total + 1e-6).clamp_max_(1);
  for (const Tensor& g : gradients) g.mul_(scale);
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value, Location location) {
  const NoGradGuard no_grad;
  const CallerLine line(location);
  check_bound("clip_grad_value_", "clip_value", clip_value, location);
  for (const Tensor& g : gradients_of("clip_grad_value_", parameters, location)) g.clamp_(-clip_value, clip_value);
}

}  // namespace utils
}  // namespace ingot::nn
