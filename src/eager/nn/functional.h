// F:: has every op under its name (F::gelu, F::linear, F::cross_entropy); what PyTorch has there beyond the op table
// follows.
#pragma once
#include "eager/functions.h"

namespace ingot {

namespace nn::functional {
using namespace ingot;

/// Zero with probability p and scaled by 1 / (1 - p) in training, else the input.
INGOT_API Tensor dropout(const TensorArg& input, double p = 0.5, bool training = true);
/// x / max(norm(x), eps) along a dim.
INGOT_API Tensor normalize(const TensorArg& input, double p = 2, int64_t dim = 1, double eps = 1e-12);
}  // namespace nn::functional

namespace F = nn::functional;

}  // namespace ingot
