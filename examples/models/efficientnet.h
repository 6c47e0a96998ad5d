// EfficientNet (Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", 2019), with the
// names of torchvision's efficientnet_b0.
#pragma once
#include <algorithm>

#include "stochastic_depth.h"

namespace models {

/// EfficientNet-B0.
struct EfficientNetConfig {
  /// Blocks alike: the factor by which they widen, the kernel of their depthwise convolution, stride of the first,
  /// channels, how many.
  struct Stage {
    int64_t expand, kernel, stride, channels, count;
  };
  std::vector<Stage> stages = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                               {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
  int64_t stem = 32, last = 1280, num_classes = 1000;
  double dropout = 0.2, stochastic_depth = 0.2;
};

/// Convolution, batch norm and, but for the last of a block, SiLU.
inline nn::Sequential conv_norm_silu(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1,
                                     bool activation = true) {
  nn::Sequential layers(
      nn::Conv2d(in, out, kernel, {.stride = stride, .padding = (kernel - 1) / 2, .groups = groups, .bias = false}),
      nn::BatchNorm2d(out));
  if (activation) layers->push_back(nn::SiLU());
  return layers;
}

/// Each channel is weighted by what the means of all channels say of it (Hu et al., "Squeeze-and-Excitation Networks",
/// 2018).
struct SqueezeExcitationImpl : nn::Module {
  nn::Conv2d fc1, fc2;
  SqueezeExcitationImpl(int64_t channels, int64_t squeezed) : fc1(channels, squeezed, 1), fc2(squeezed, channels, 1) {}
  Tensor forward(const Tensor& x) {
    Tensor means = x.mean({2, 3}, /*keepdim=*/true);
    return x * sigmoid(fc2(F::silu(fc1(means))));
  }
};
INGOT_MODULE(SqueezeExcitation, fc1, fc2);

/// Widened, convolved channel by channel, weighted, narrowed; the input is added where the shape stays.
struct MBConvImpl : nn::Module {
  nn::Sequential block;
  bool residual;
  double drop;
  MBConvImpl(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t expand, double drop_probability)
      : residual(stride == 1 && in == out), drop(drop_probability) {
    const int64_t wide = in * expand;
    if (expand != 1) block->push_back(conv_norm_silu(in, wide, 1));
    block->push_back(conv_norm_silu(wide, wide, kernel, stride, wide));
    block->push_back(SqueezeExcitation(wide, std::max<int64_t>(1, in / 4)));
    block->push_back(conv_norm_silu(wide, out, 1, 1, 1, /*activation=*/false));
  }
  Tensor forward(const Tensor& x) { return residual ? x + stochastic_depth(block(x), drop, is_training()) : block(x); }
};
INGOT_MODULE(MBConv, block);

/// Images f32 [N, 3, H, W] to logits [N, num_classes].
struct EfficientNetImpl : nn::Module {
  nn::Sequential features, classifier;
  explicit EfficientNetImpl(const EfficientNetConfig& c = {}) {
    int64_t blocks = 0, at = 0, in = c.stem;
    for (const auto& stage : c.stages) blocks += stage.count;
    features->push_back(conv_norm_silu(3, in, 3, 2));
    for (const auto& stage : c.stages) {
      nn::Sequential alike;
      for (int64_t i = 0; i < stage.count; ++i, ++at, in = stage.channels)
        alike->push_back(MBConv(in, stage.channels, stage.kernel, i == 0 ? stage.stride : 1, stage.expand,
                                c.stochastic_depth * static_cast<double>(at) / static_cast<double>(blocks)));
      features->push_back(alike);
    }
    features->push_back(conv_norm_silu(in, c.last, 1));
    classifier = nn::Sequential(nn::Dropout(c.dropout), nn::Linear(c.last, c.num_classes));
  }
  Tensor forward(const Tensor& images) { return classifier(features(images).mean({2, 3})); }
};
INGOT_MODULE(EfficientNet, features, classifier);

}  // namespace models
