// Losses beyond those of the op table, under PyTorch's names. `reduction` is "none", "mean" or "sum"; another word is
// an Error, as is a tensor that is missing or of a wrong shape.
#pragma once
#include <functional>

#include "eager/ops/functions.h"

namespace ingot::nn::functional {

/// max(0, -target (input1 - input2) + margin); a target is 1 where input1 should be the larger one, else -1. All have
/// the same number of dims, and broadcast.
INGOT_API Tensor margin_ranking_loss(const TensorArg& input1, const TensorArg& input2, const TensorArg& target,
                                     double margin = 0, Word reduction = "mean");
/// Of distances: input where the target is 1, max(0, margin - input) where it is -1; of another target, both.
INGOT_API Tensor hinge_embedding_loss(const TensorArg& input, const TensorArg& target, double margin = 1,
                                      Word reduction = "mean");
/// Of the cosine c between rows: 1 - c where the target is 1, max(0, c - margin) where it is -1, else 0. Inputs [N, C]
/// and target [N], or [C] and a target without dims.
INGOT_API Tensor cosine_embedding_loss(const TensorArg& input1, const TensorArg& input2, const TensorArg& target,
                                       double margin = 0, Word reduction = "mean");
/// max(0, margin + d(anchor, positive) - d(anchor, negative)) with pairwise_distance of order `p`; margin is above 0.
/// With `swap` the negative's distance is the smaller one of those to the anchor and to the positive (Balntas et al.,
/// "Learning shallow convolutional feature descriptors with triplet losses", 2016).
INGOT_API Tensor triplet_margin_loss(const TensorArg& anchor, const TensorArg& positive, const TensorArg& negative,
                                     double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                                     Word reduction = "mean");
using Distance = std::function<Tensor(const Tensor&, const Tensor&)>;
/// The same with a distance of the caller's; none: pairwise_distance.
INGOT_API Tensor triplet_margin_with_distance_loss(const TensorArg& anchor, const TensorArg& positive,
                                                   const TensorArg& negative, const Distance& distance_function = {},
                                                   double margin = 1, bool swap = false, Word reduction = "mean");

/// The mean over classes j other than the target y of weight[y] max(0, margin - x[y] + x[j])^p, p 1 or 2. Input [N, C]
/// and target i64 [N] of classes, or [C] and a target without dims; weight [C]. Of no sample the mean is 0.
INGOT_API Tensor multi_margin_loss(const TensorArg& input, const TensorArg& target, int64_t p = 1, double margin = 1,
                                   const TensorArg& weight = {}, Word reduction = "mean");
/// The sum over target classes y and other classes j of max(0, 1 - x[y] + x[j]), divided by C. Input and target (i64)
/// are [N, C] or [C]: a row of the target lists classes up to its first -1.
INGOT_API Tensor multilabel_margin_loss(const TensorArg& input, const TensorArg& target, Word reduction = "mean");
/// The mean over the last dim of binary cross entropies of sigmoid(input), times `weight`.
INGOT_API Tensor multilabel_soft_margin_loss(const TensorArg& input, const TensorArg& target,
                                             const TensorArg& weight = {}, Word reduction = "mean");

/// Of counts with mean exp(input): exp(input) - target input; of mean `input` without `log_input`: input - target
/// log(input + eps). With `full` Stirling's approximation of log(target!) is added where the target is above 1.
INGOT_API Tensor poisson_nll_loss(const TensorArg& input, const TensorArg& target, bool log_input = true,
                                  bool full = false, double eps = 1e-8, Word reduction = "mean");
/// (log(var) + (input - target)^2 / var) / 2; with `full`, + log(2 pi) / 2. `var` is a number, or a tensor of the
/// input's sizes, of these without the last one, or with 1 in place of one of them. It counts as eps where it is
/// smaller, which its gradient does not see; a negative one is an Error.
INGOT_API Tensor gaussian_nll_loss(const TensorArg& input, const TensorArg& target, const OperandArg& var,
                                   bool full = false, double eps = 1e-6, Word reduction = "mean");

/// cross_entropy of linear(input, linear_weight, linear_bias). Input [..., in]; linear_weight [C, in], or [C, d1, ...,
/// in] for targets with dims d1, ... behind the batch; linear_bias: the weight's sizes without the last; `weight` [C].
/// 16-bit logits are those of f32.
INGOT_API Tensor linear_cross_entropy(const TensorArg& input, const TensorArg& linear_weight, const TensorArg& target,
                                      const TensorArg& linear_bias = {}, const TensorArg& weight = {},
                                      Word reduction = "mean", int64_t ignore_index = -100, double label_smoothing = 0);

}  // namespace ingot::nn::functional

namespace ingot {

// Also where LibTorch has them beside the ops.
using nn::functional::cosine_embedding_loss;
using nn::functional::hinge_embedding_loss;
using nn::functional::margin_ranking_loss;
using nn::functional::multi_margin_loss;
using nn::functional::multilabel_margin_loss;
using nn::functional::poisson_nll_loss;
using nn::functional::triplet_margin_loss;

}  // namespace ingot
