#include "eager/nn/convert_parameters.h"

#include <string>

#include "eager/autograd/autograd.h"
#include "eager/ops/checks.h"
#include "eager/ops/functions.h"

namespace ingot::nn::utils {

Tensor parameters_to_vector(const std::vector<Tensor>& parameters, Location location) {
  const CallerLine line(location);
  if (parameters.empty()) eager::fail("parameters_to_vector", "parameters", "none", "one tensor or more", location);
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters) {
    ingot::detail::checked_impl(p.impl(), "parameters_to_vector", location);
    parts.push_back(p.flatten());
  }
  return cat(parts);
}

void vector_to_parameters(const TensorArg& vec, const std::vector<Tensor>& parameters, Location location) {
  const NoGradGuard no_grad;
  const CallerLine line(location);
  const Tensor& all = eager::present_with_dims("vector_to_parameters", "vec", TensorArg(vec.get(), location), 1);
  std::vector<int64_t> lengths;
  int64_t total = 0;
  for (const Tensor& p : parameters) {
    ingot::detail::checked_impl(p.impl(), "vector_to_parameters", location);
    lengths.push_back(p.numel());
    total += p.numel();
  }
  if (all.numel() != total)
    eager::fail("vector_to_parameters", "vec", eager::shape_text(all),
                std::to_string(total) + " elements, as the parameters have", location);
  const std::vector<Tensor> parts = all.split(lengths);
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(parts[i].view_as(parameters[i]));
}

}  // namespace ingot::nn::utils
