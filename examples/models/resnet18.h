// ResNet-18 (He et al., "Deep Residual Learning for Image Recognition", 2015), with the names of torchvision's
// resnet18.
#pragma once
#include <ingot/ingot.h>

namespace models {
using namespace ingot;

struct ResNetConfig {
  int64_t width = 64, num_classes = 1000;
  std::vector<int64_t> layers = {2, 2, 2, 2};  // blocks of each stage; {3, 4, 6, 3} is ResNet-34
};

/// The input is carried past two convolutions; where they change its shape, by a convolution of its own.
struct BasicBlockImpl : nn::Module {
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  nn::Sequential downsample = nullptr;
  BasicBlockImpl(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out, 3, {.stride = stride, .padding = 1, .bias = false}),
        conv2(out, out, 3, {.padding = 1, .bias = false}),
        bn1(out),
        bn2(out) {
    if (stride != 1 || in != out)
      downsample = nn::Sequential(nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}), nn::BatchNorm2d(out));
  }
  Tensor forward(const Tensor& x) {
    Tensor y = bn2(conv2(F::relu(bn1(conv1(x)))));
    return F::relu(y + (downsample ? downsample(x) : x));
  }
};
INGOT_MODULE(BasicBlock, conv1, bn1, conv2, bn2, downsample);

/// Images f32 [N, 3, H, W] to logits [N, num_classes].
struct ResNet18Impl : nn::Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  std::vector<BasicBlock> layer1, layer2, layer3, layer4;
  nn::Linear fc;
  explicit ResNet18Impl(const ResNetConfig& c = {})
      : conv1(3, c.width, 7, {.stride = 2, .padding = 3, .bias = false}), bn1(c.width), fc(8 * c.width, c.num_classes) {
    int64_t in = c.width, out = c.width, stage = 0;
    for (auto* layer : {&layer1, &layer2, &layer3, &layer4}) {
      for (int64_t i = 0; i < c.layers.at(stage); ++i, in = out)
        layer->emplace_back(in, out, i == 0 && stage > 0 ? 2 : 1);
      ++stage, out *= 2;
    }
  }
  Tensor forward(const Tensor& images) {
    Tensor x = F::max_pool2d(F::relu(bn1(conv1(images))), 3, 2, 1);
    for (auto* layer : {&layer1, &layer2, &layer3, &layer4})
      for (auto& block : *layer) x = block(x);
    return fc(x.mean({2, 3}));
  }
};
INGOT_MODULE(ResNet18, conv1, bn1, layer1, layer2, layer3, layer4, fc);

}  // namespace models
