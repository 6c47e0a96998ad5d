// Sequences of several lengths as one tensor, under PyTorch's name (torch.nn.utils.rnn).
#pragma once
#include "eager/tensor.h"

namespace ingot::nn::utils::rnn {

/// Sequences [length, dims...] as one tensor [T, N, dims...], with batch_first [N, T, dims...]: T is the length of the
/// longest, and what others lack is `padding_value`, behind them ("right") or in front ("left"). Throws Error for no
/// sequence, one without dims, and dtypes or dims behind the first that differ.
INGOT_API Tensor pad_sequence(const TensorList& sequences, bool batch_first = false, double padding_value = 0,
                              Word padding_side = "right");

}  // namespace ingot::nn::utils::rnn
