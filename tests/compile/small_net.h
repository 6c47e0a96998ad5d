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

/// Parameters and their gradients.
inline void expect_same(const Net& a, const Net& b) {
  for (size_t i = 0; i < a->parameters().size(); ++i) {
    const Tensor x = a->parameters()[i], y = b->parameters()[i];
    EXPECT_TRUE(same_bits(x.detach(), y.detach())) << "parameter " << i;
    ASSERT_EQ(x.grad().defined(), y.grad().defined()) << i;
    if (x.grad().defined()) {
      EXPECT_TRUE(same_bits(x.grad(), y.grad())) << "gradient " << i;
    }
  }
}

}  // namespace ingot::test
