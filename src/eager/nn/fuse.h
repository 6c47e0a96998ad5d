// A batch norm that no longer follows its batches as part of the layer in front of it.
#pragma once
#include "eager/nn/convolution_layers.h"
#include "eager/nn/layers.h"

namespace ingot::nn {
namespace detail {
/// Scales a weight whose channels are dim 0, or dim 1 of each of `groups` where it is transposed, and shifts the bias.
INGOT_API void fold_norm(const char* function, Tensor* weight, Tensor* bias, const BatchNorm& norm, bool in_training,
                         bool transposed, int64_t groups, Location location);
}  // namespace detail

namespace utils {

/// A copy of the layer that gives what the batch norm makes of it, up to rounding: the norm's scale is in its weight,
/// the shift in its bias, which it has from then on. Throws Error unless both are in eval(), the norm has running
/// statistics, and they are of the layer's channels.
template <class M>
requires std::is_base_of_v<ConvolutionImpl, typename M::Impl> M fuse_conv_bn_eval(const M& conv, const BatchNorm& bn,
                                                                                  Location location = Location()) {
  constexpr bool transposed = requires(typename M::Impl layer) { layer.options.output_padding; };
  const M fused = conv.clone(location);
  detail::fold_norm("fuse_conv_bn_eval", &fused->weight, &fused->bias, bn, fused->is_training(), transposed,
                    fused->options.groups, location);
  return fused;
}
INGOT_API Linear fuse_linear_bn_eval(const Linear& linear, const BatchNorm& bn, Location location = Location());

}  // namespace utils
}  // namespace ingot::nn
