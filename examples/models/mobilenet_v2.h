// MobileNetV2 (Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018), with the names of
// torchvision's mobilenet_v2.
#pragma once
#include <ingot/ingot.h>

#include <algorithm>

namespace models {
using namespace ingot;

struct MobileNetV2Config {
  /// Blocks alike: the factor by which they widen, channels, how many, stride of the first.
  struct Stage {
    int64_t expand, channels, count, stride;
  };
  std::vector<Stage> stages = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  double width = 1;           // times all channels, which are
  int64_t round_nearest = 8;  // then rounded to a multiple of this
  double dropout = 0.2;
  int64_t num_classes = 1000;
  int64_t channels(double count) const {
    const double scaled = count * width;
    const auto units = static_cast<int64_t>(scaled / static_cast<double>(round_nearest) + 0.5);
    const int64_t rounded = std::max<int64_t>(units, 1) * round_nearest;
    return static_cast<double>(rounded) < 0.9 * scaled ? rounded + round_nearest : rounded;
  }
};

/// Convolution, batch norm, ReLU6.
inline nn::Sequential conv_norm(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1) {
  return {nn::Conv2d(in, out, kernel, {.stride = stride, .padding = (kernel - 1) / 2, .groups = groups, .bias = false}),
          nn::BatchNorm2d(out), nn::ReLU6()};
}

/// Widened, convolved channel by channel, narrowed; the input is added where the shape stays.
struct InvertedResidualImpl : nn::Module {
  nn::Sequential conv;
  bool residual;
  InvertedResidualImpl(int64_t in, int64_t out, int64_t stride, int64_t expand) : residual(stride == 1 && in == out) {
    const int64_t wide = in * expand;
    if (expand != 1) conv->push_back(conv_norm(in, wide, 1));
    conv->push_back(conv_norm(wide, wide, 3, stride, wide));
    conv->push_back(nn::Conv2d(wide, out, 1, {.bias = false}));
    conv->push_back(nn::BatchNorm2d(out));
  }
  Tensor forward(const Tensor& x) { return residual ? x + conv(x) : conv(x); }
};
INGOT_MODULE(InvertedResidual, conv);

/// Images f32 [N, 3, H, W] to logits [N, num_classes].
struct MobileNetV2Impl : nn::Module {
  nn::Sequential features, classifier;
  explicit MobileNetV2Impl(const MobileNetV2Config& c = {}) {
    int64_t in = c.channels(32);
    features->push_back(conv_norm(3, in, 3, 2));
    for (const auto& stage : c.stages)
      for (int64_t i = 0; i < stage.count; ++i) {
        const int64_t out = c.channels(static_cast<double>(stage.channels));
        features->push_back(InvertedResidual(in, out, i == 0 ? stage.stride : 1, stage.expand));
        in = out;
      }
    const int64_t last = std::max<int64_t>(1280, c.channels(1280));
    features->push_back(conv_norm(in, last, 1));
    classifier = nn::Sequential(nn::Dropout(c.dropout), nn::Linear(last, c.num_classes));
  }
  Tensor forward(const Tensor& images) { return classifier(features(images).mean({2, 3})); }
};
INGOT_MODULE(MobileNetV2, features, classifier);

}  // namespace models
