#include "eager/nn/fuse.h"

#include <string>

#include "eager/ops/checks.h"
#include "eager/ops/functions.h"

namespace ingot::nn {

void detail::fold_norm(const char* function, Tensor* weight, Tensor* bias, const BatchNorm& norm, bool in_training,
                       bool transposed, int64_t groups, Location location) {
  const BatchNormImpl& bn = *norm;
  if (in_training || bn.is_training())
    eager::fail(function, in_training ? "layer" : "bn", "a module in training", "one in eval()", location);
  if (!bn.running_mean.defined())
    eager::fail(function, "bn", "one without running statistics", "one that has followed batches", location);
  const int64_t channels = transposed ? weight->size(1) * groups : weight->size(0);
  if (bn.running_mean.numel() != channels)
    eager::fail(function, "bn", std::to_string(bn.running_mean.numel()) + " channels",
                std::to_string(channels) + ", those of the layer", location);
  const NoGradGuard no_grad;
  Tensor scale = rsqrt(bn.running_var + bn.eps), shift = -bn.running_mean;
  if (bias->defined()) shift = shift + *bias;
  if (bn.weight.defined()) scale = scale * bn.weight;
  shift = shift * scale;
  if (bn.bias.defined()) shift = shift + bn.bias;
  const bool tracked = weight->requires_grad();
  // One row a channel; of a transposed one, the channels of a group stand beside each other in each row of the group.
  const Tensor rows =
      transposed ? weight->view({groups, -1, channels / groups, weight->numel() / weight->size(0) / weight->size(1)})
                 : weight->view({channels, -1});
  const Tensor scales = transposed ? scale.view({groups, 1, -1, 1}) : scale.unsqueeze(1);
  *weight = (rows * scales).view_as(*weight).to(weight->dtype()).requires_grad_(tracked);
  *bias = shift.to(weight->dtype()).requires_grad_(tracked);
}

Linear utils::fuse_linear_bn_eval(const Linear& linear, const BatchNorm& bn, Location location) {
  const Linear fused = linear.clone(location);
  detail::fold_norm("fuse_linear_bn_eval", &fused->weight, &fused->bias, bn, fused->is_training(), false, 1, location);
  return fused;
}

}  // namespace ingot::nn
