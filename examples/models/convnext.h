// ConvNeXt (Liu et al., "A ConvNet for the 2020s", 2022), with the names of torchvision's convnext_tiny.
#pragma once
#include "stochastic_depth.h"

namespace models {

/// ConvNeXt-tiny.
struct ConvNeXtConfig {
  std::vector<int64_t> depths = {3, 3, 9, 3}, dims = {96, 192, 384, 768};  // blocks and channels of each stage
  int64_t num_classes = 1000;
  double stochastic_depth = 0.1, layer_scale = 1e-6;
};

struct PermuteImpl : nn::Module {
  std::vector<int64_t> dims;
  explicit PermuteImpl(std::vector<int64_t> order) : dims(std::move(order)) {}
  Tensor forward(const Tensor& x) { return x.permute(dims); }
};
INGOT_MODULE(Permute);

/// Of images [N, C, H, W], over the channels of each pixel.
struct LayerNorm2dImpl : nn::Module {
  Tensor weight, bias;
  explicit LayerNorm2dImpl(int64_t channels) : weight(ones({channels})), bias(zeros({channels})) {}
  Tensor forward(const Tensor& x) {
    return F::layer_norm(x.permute({0, 2, 3, 1}), weight.sizes(), weight, bias, 1e-6).permute({0, 3, 1, 2});
  }
};
INGOT_MODULE(LayerNorm2d, weight, bias);

/// A convolution channel by channel, then two linear layers over the channels of each pixel, beside the residual.
struct CNBlockImpl : nn::Module {
  nn::Sequential block;
  Tensor layer_scale;
  double drop;
  CNBlockImpl(int64_t dim, double scale, double drop_probability)
      : block(nn::Conv2d(dim, dim, 7, {.padding = 3, .groups = dim}), Permute(std::vector<int64_t>{0, 2, 3, 1}),
              nn::LayerNorm(dim, {.eps = 1e-6}), nn::Linear(dim, 4 * dim), nn::GELU(), nn::Linear(4 * dim, dim),
              Permute(std::vector<int64_t>{0, 3, 1, 2})),
        layer_scale(ones({dim, 1, 1}) * scale),
        drop(drop_probability) {}
  Tensor forward(const Tensor& x) { return x + stochastic_depth(layer_scale * block(x), drop, is_training()); }
};
INGOT_MODULE(CNBlock, block, layer_scale);

/// Images f32 [N, 3, H, W] to logits [N, num_classes].
struct ConvNeXtImpl : nn::Module {
  nn::Sequential features, classifier;
  explicit ConvNeXtImpl(const ConvNeXtConfig& c = {}) {
    int64_t blocks = 0, at = 0;
    for (int64_t depth : c.depths) blocks += depth;
    features->push_back(nn::Sequential(nn::Conv2d(3, c.dims.at(0), 4, {.stride = 4}), LayerNorm2d(c.dims.at(0))));
    for (size_t stage = 0; stage < c.depths.size(); ++stage) {
      const int64_t dim = c.dims.at(stage);
      nn::Sequential alike;
      for (int64_t i = 0; i < c.depths[stage]; ++i, ++at)
        alike->push_back(CNBlock(dim, c.layer_scale,
                                 c.stochastic_depth * static_cast<double>(at) / (static_cast<double>(blocks) - 1)));
      features->push_back(alike);
      if (stage + 1 < c.depths.size())
        features->push_back(nn::Sequential(LayerNorm2d(dim), nn::Conv2d(dim, c.dims.at(stage + 1), 2, {.stride = 2})));
    }
    classifier = nn::Sequential(LayerNorm2d(c.dims.back()), nn::Flatten(1), nn::Linear(c.dims.back(), c.num_classes));
  }
  Tensor forward(const Tensor& images) { return classifier(features(images).mean({2, 3}, /*keepdim=*/true)); }
};
INGOT_MODULE(ConvNeXt, features, classifier);

}  // namespace models
