// Stochastic depth (Huang et al., "Deep Networks with Stochastic Depth", 2016).
#pragma once
#include <ingot/ingot.h>

namespace models {
using namespace ingot;

/// In training, a residual branch x [N, C, H, W] is zero with probability p, image by image, else x / (1 - p).
inline Tensor stochastic_depth(const Tensor& x, double p, bool training) {
  return training && p > 0 ? x * F::dropout(ones({x.size(0), 1, 1, 1}, x.dtype()), p) : x;
}

}  // namespace models
