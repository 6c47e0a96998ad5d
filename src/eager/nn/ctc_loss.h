// Connectionist temporal classification, under PyTorch's name.
#pragma once
#include "eager/ops/functions.h"

namespace ingot::nn::functional {

/// -log of the sum of the probabilities of all alignments of a target with the input (Graves et al., "Connectionist
/// temporal classification", 2006), by the forward recursion over T steps in log space. log_probs: [T, N, C], or [T, C]
/// without a batch, logarithms of probabilities (16 bits are computed in f32). Targets: classes other than `blank`,
/// [N, S] of which what is behind a row's length is not looked at, or all rows joined in one dim, for which a function
/// that is recorded reads the lengths (a graph break). Lengths: integers [N], from 0 to T and to S; numbers out of
/// range are an Error. "mean" divides each loss by its target's length, at least 1, first.
/// A target that fits into no alignment has an infinite loss, or with `zero_infinity` none, and no gradient. The
/// gradient is PyTorch's: as of log_softmax's result, where C probabilities sum to 1 (exp(log_probs) minus each class's
/// share of the alignments), which makes no difference for what log_softmax was taken of. A program is compiled for
/// each T.
INGOT_API Tensor ctc_loss(const TensorArg& log_probs, const TensorArg& targets, const TensorArg& input_lengths,
                          const TensorArg& target_lengths, int64_t blank = 0, Word reduction = "mean",
                          bool zero_infinity = false);
INGOT_API Tensor ctc_loss(const TensorArg& log_probs, const TensorArg& targets, const IntList& input_lengths,
                          const IntList& target_lengths, int64_t blank = 0, Word reduction = "mean",
                          bool zero_infinity = false);

}  // namespace ingot::nn::functional

namespace ingot {

// Also where LibTorch has them beside the ops.
using nn::functional::ctc_loss;

}  // namespace ingot
