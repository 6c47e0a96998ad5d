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
/// The same of channels as PyTorch finds them: dim 1 of a batch; without one ([C, L] and [C, D, H, W]), dim 0.
INGOT_API Tensor dropout1d(const TensorArg& input, double p = 0.5, bool training = true);
INGOT_API Tensor dropout2d(const TensorArg& input, double p = 0.5, bool training = true);
INGOT_API Tensor dropout3d(const TensorArg& input, double p = 0.5, bool training = true);
/// Elements, or whole channels, that are put with probability p where selu has its lower end; scaled and moved so that
/// mean 0 and variance 1 stay (Klambauer et al., "Self-normalizing neural networks", 2017).
INGOT_API Tensor alpha_dropout(const TensorArg& input, double p = 0.5, bool training = false);
INGOT_API Tensor feature_alpha_dropout(const TensorArg& input, double p = 0.5, bool training = false);
/// x above 0, else x times a slope: in training a random one for each element, uniform in [lower, upper), else their
/// mean.
INGOT_API Tensor rrelu(const TensorArg& input, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false);
/// softmax((logits + g) / tau) along a dim, g drawn from the Gumbel distribution: a draw from the classes, made smooth.
/// With `hard` a one at the largest and zeros, with the gradient of the smooth one.
INGOT_API Tensor gumbel_softmax(const TensorArg& logits, double tau = 1, bool hard = false, int64_t dim = -1);
/// x1^T W[k] x2 + bias[k] for each k: input1 [..., in1], input2 [..., in2], weight [out, in1, in2], bias [out].
INGOT_API Tensor bilinear(const TensorArg& input1, const TensorArg& input2, const TensorArg& weight,
                          const TensorArg& bias = {});
/// The distances of order p between rows i < j of [N, C], in that order: [N (N - 1) / 2].
INGOT_API Tensor pdist(const TensorArg& input, double p = 2);
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

// Also where LibTorch has them beside the ops.
using nn::functional::alpha_dropout;
using nn::functional::bilinear;
using nn::functional::feature_alpha_dropout;
using nn::functional::feature_dropout;
using nn::functional::pdist;
using nn::functional::rrelu;
template <detail::Flag Train>
Tensor dropout(const TensorArg& input, double p, Train train) {
  return F::dropout(input, p, std::optional<bool>(train).value_or(true));
}

}  // namespace ingot
