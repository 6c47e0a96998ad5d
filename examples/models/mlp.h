// A multilayer perceptron; layers are named 0, 2, 4, ... as in PyTorch's nn.Sequential of linear layers and ReLUs.
#pragma once
#include <ingot/ingot.h>

namespace models {
using namespace ingot;

/// `sizes`, of the input, of each layer: x [N, sizes.front()] to [N, sizes.back()], a ReLU between two linear layers.
inline nn::Sequential mlp(const std::vector<int64_t>& sizes = {784, 1024, 1024, 10}) {
  nn::Sequential layers;
  for (size_t i = 1; i < sizes.size(); ++i) {
    if (i > 1) layers->push_back(nn::ReLU());
    layers->push_back(nn::Linear(sizes[i - 1], sizes[i]));
  }
  return layers;
}

}  // namespace models
