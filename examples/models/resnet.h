// Residual networks (He et al., "Deep Residual Learning for Image Recognition", 2015), with the names of torchvision's
// resnet18 and resnet50.
#pragma once
#include <ingot/ingot.h>

namespace models {
using namespace ingot;

/// ResNet-18.
struct ResNetConfig {
  int64_t width = 64, num_classes = 1000;
  std::vector<int64_t> layers = {2, 2, 2, 2};  // blocks of each stage; {3, 4, 6, 3} is ResNet-34
  bool bottleneck = false;
  static ResNetConfig resnet50() { return {.layers = {3, 4, 6, 3}, .bottleneck = true}; }
};

/// What carries a block's input past its convolutions where they change its shape; else nothing.
inline nn::Sequential downsample_of(int64_t in, int64_t out, int64_t stride) {
  if (stride == 1 && in == out) return nullptr;
  return nn::Sequential(nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}), nn::BatchNorm2d(out));
}

struct BasicBlockImpl : nn::Module {
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  nn::Sequential downsample;
  BasicBlockImpl(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out, 3, {.stride = stride, .padding = 1, .bias = false}),
        conv2(out, out, 3, {.padding = 1, .bias = false}),
        bn1(out),
        bn2(out),
        downsample(downsample_of(in, out, stride)) {}
  Tensor forward(const Tensor& x) {
    Tensor y = bn2(conv2(F::relu(bn1(conv1(x)))));
    return F::relu(y + (downsample ? downsample(x) : x));
  }
};
INGOT_MODULE(BasicBlock, conv1, bn1, conv2, bn2, downsample);

/// Narrowed, convolved, widened; the convolution of 3x3 takes the stride, as torchvision's does.
struct BottleneckImpl : nn::Module {
  nn::Conv2d conv1, conv2, conv3;
  nn::BatchNorm2d bn1, bn2, bn3;
  nn::Sequential downsample;
  BottleneckImpl(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out / 4, 1, {.bias = false}),
        conv2(out / 4, out / 4, 3, {.stride = stride, .padding = 1, .bias = false}),
        conv3(out / 4, out, 1, {.bias = false}),
        bn1(out / 4),
        bn2(out / 4),
        bn3(out),
        downsample(downsample_of(in, out, stride)) {}
  Tensor forward(const Tensor& x) {
    Tensor y = F::relu(bn1(conv1(x)));
    y = F::relu(bn2(conv2(y)));
    return F::relu(bn3(conv3(y)) + (downsample ? downsample(x) : x));
  }
};
INGOT_MODULE(Bottleneck, conv1, bn1, conv2, bn2, conv3, bn3, downsample);

/// Images f32 [N, 3, H, W] to logits [N, num_classes].
struct ResNetImpl : nn::Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Sequential layer1, layer2, layer3, layer4;
  nn::Linear fc;
  explicit ResNetImpl(const ResNetConfig& c = {})
      : conv1(3, c.width, 7, {.stride = 2, .padding = 3, .bias = false}),
        bn1(c.width),
        fc(8 * c.width * (c.bottleneck ? 4 : 1), c.num_classes) {
    int64_t in = c.width, out = c.bottleneck ? 4 * c.width : c.width, stage = 0;
    for (auto* layer : {&layer1, &layer2, &layer3, &layer4}) {
      for (int64_t i = 0; i < c.layers.at(stage); ++i, in = out) {
        const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
        if (c.bottleneck)
          (*layer)->push_back(Bottleneck(in, out, stride));
        else
          (*layer)->push_back(BasicBlock(in, out, stride));
      }
      ++stage, out *= 2;
    }
  }
  Tensor forward(const Tensor& images) {
    Tensor x = F::max_pool2d(F::relu(bn1(conv1(images))), 3, 2, 1);
    x = layer4(layer3(layer2(layer1(x))));
    return fc(x.mean({2, 3}));
  }
};
INGOT_MODULE(ResNet, conv1, bn1, layer1, layer2, layer3, layer4, fc);

}  // namespace models
