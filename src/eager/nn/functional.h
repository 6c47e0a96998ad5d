// F:: has every op under its name (F::gelu, F::linear, F::cross_entropy); what PyTorch has there beyond the op table
// follows.
#pragma once
#include "eager/ops/functions.h"

namespace ingot {

namespace nn::functional {
using namespace ingot;

/// Zero with probability p and scaled by 1 / (1 - p) in training, else the input.
INGOT_API Tensor dropout(const TensorArg& input, double p = 0.5, bool training = true);
/// Whole channels (of the dims [N, C, ...]) zero with probability p and scaled by 1 / (1 - p) in training.
INGOT_API Tensor feature_dropout(const TensorArg& input, double p = 0.5, bool training = true);
/// In training, by the statistics of the batch, which the running ones (where there are any) then follow: they move by
/// `momentum` of the way, the variance with n - 1.
INGOT_API Tensor batch_norm(const TensorArg& input, const TensorArg& running_mean, const TensorArg& running_var,
                            const TensorArg& weight = {}, const TensorArg& bias = {}, bool training = false,
                            const OperandArg& momentum = 0.1, double eps = 1e-5);
/// By the statistics of each channel of each sample, whose means the running ones (where there are any) then follow.
INGOT_API Tensor instance_norm(const TensorArg& input, const TensorArg& running_mean = {},
                               const TensorArg& running_var = {}, const TensorArg& weight = {},
                               const TensorArg& bias = {}, bool use_input_stats = true,
                               const OperandArg& momentum = 0.1, double eps = 1e-5);
/// dropout_p is the share of attention weights that are dropped, in training or not.
INGOT_API Tensor scaled_dot_product_attention(const TensorArg& query, const TensorArg& key, const TensorArg& value,
                                              const TensorArg& attn_mask = {}, double dropout_p = 0,
                                              bool is_causal = false, const ScalarArg& scale = {},
                                              bool enable_gqa = false);
/// x / (k + alpha * mean of squares)^beta over `size` neighbouring channels: f32 of integers, but an empty integer
/// tensor is given back as it is, as PyTorch does.
INGOT_API Tensor local_response_norm(const TensorArg& input, int64_t size, const ScalarArg& alpha = 0.0001,
                                     const ScalarArg& beta = 0.75, const ScalarArg& k = 1.0);
/// x / max(norm(x), eps) along a dim.
INGOT_API Tensor normalize(const TensorArg& input, double p = 2, int64_t dim = 1, double eps = 1e-12);
}  // namespace nn::functional

namespace F = nn::functional;

}  // namespace ingot
