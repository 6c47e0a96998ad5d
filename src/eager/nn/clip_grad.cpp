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

/// Of tensors as one vector.
Tensor total_norm(const char* op, const char* argument, const std::vector<Tensor>& tensors, double norm_type,
                  bool error_if_nonfinite, Location location) {
  if (tensors.empty()) return scalar_tensor(0.0);
  std::vector<Tensor> norms;
  for (const Tensor& t : tensors) norms.push_back(vector_norm(TensorArg(t, location), norm_type));
  const Tensor total = vector_norm(stack(norms), norm_type);
  if (error_if_nonfinite && !std::isfinite(total.item<double>(location)))
    eager::fail(op, argument, "gradients whose norm is " + total.str(location), "a finite norm", location);
  return total;
}

void scale(const std::vector<Tensor>& gradients, double max_norm, const Tensor& total) {
  const Tensor factor = div(max_norm, total + 1e-6).clamp_max_(1);
  for (const Tensor& g : gradients) g.mul_(factor);
}

}  // namespace

Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type, bool error_if_nonfinite,
                      Location location) {
  const NoGradGuard no_grad;
  const CallerLine line(location);
  return total_norm("get_total_norm", "tensors", tensors, norm_type, error_if_nonfinite, location);
}

void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm, const TensorArg& total_norm) {
  constexpr const char* kOp = "clip_grads_with_norm_";
  const NoGradGuard no_grad;
  const CallerLine line(total_norm.location);
  check_bound(kOp, "max_norm", max_norm, total_norm.location);
  scale(gradients_of(kOp, parameters, total_norm.location), max_norm, eager::present(kOp, "total_norm", total_norm));
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite, Location location) {
  const NoGradGuard no_grad;
  const CallerLine line(location);
  check_bound("clip_grad_norm_", "max_norm", max_norm, location);
  const std::vector<Tensor> gradients = gradients_of("clip_grad_norm_", parameters, location);
  const Tensor total = total_norm("clip_grad_norm_", "parameters", gradients, norm_type, error_if_nonfinite, location);
  scale(gradients, max_norm, total);
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
