// The network that tests of gradients train: two layers and a residual, with the same weights each time.
#pragma once
#include "support.h"

namespace ingot::test {

struct NetImpl : nn::Module {
  nn::Linear first{8, 16}, second{16, 8};
  Tensor forward(const Tensor& x) { return second(gelu(first(x))) + x; }
};
INGOT_MODULE(Net, first, second);

inline Net make_net() {
  manual_seed(7);
  return Net();
}

}  // namespace ingot::test
