// Choosing elements by masks, counts and positions, beyond the op table. What has a shape that depends on values reads
// them: a graph break in compiled code.
#pragma once
#include <optional>

#include "eager/ops/functions.h"

namespace ingot {

/// Coordinates of the elements that are not zero: i64 [count, dims].
INGOT_API Tensor nonzero(const TensorArg& self);
/// The same, one i64 tensor [count] a dim, as indexing takes them; a zero-dim tensor counts as one of one element.
INGOT_API std::vector<Tensor> nonzero(const TensorArg& self, AsTuple);
INGOT_API std::vector<Tensor> where(const TensorArg& condition);
/// As nonzero.
INGOT_API Tensor argwhere(const TensorArg& self);
/// The elements where the mask is true, in one dim; self and mask broadcast.
INGOT_API Tensor masked_select(const TensorArg& self, const TensorArg& mask);
/// self, and where the mask is true the elements of `source` in their order. It reads no value on the host.
INGOT_API Tensor masked_scatter(const TensorArg& self, const TensorArg& mask, const TensorArg& source);
/// Elements of self taken as one dim; negative positions count from the end.
INGOT_API Tensor take(const TensorArg& self, const TensorArg& index);
/// Every element (with a dim: every slice) so many times in a row. No dim: of all elements as one dim.
INGOT_API Tensor repeat_interleave(const TensorArg& self, int64_t repeats, std::optional<int64_t> dim = {});
/// The same, each its own number of times. `output_size`, the sum of repeats, spares reading them.
INGOT_API Tensor repeat_interleave(const TensorArg& self, const TensorArg& repeats, std::optional<int64_t> dim = {},
                                   std::optional<int64_t> output_size = {});
/// Position i as often as repeats[i] says.
INGOT_API Tensor repeat_interleave(const TensorArg& repeats, std::optional<int64_t> output_size = {});
/// A copy with values written to positions, as Tensor::index_put_.
INGOT_API Tensor index_put(const TensorArg& self, const std::vector<TensorIndex>& indices, const OperandArg& values,
                           bool accumulate = false);
/// Zeros with a one at the position that each element names, in a new last dim. num_classes -1: the largest + 1, which
/// reads the values.
INGOT_API Tensor one_hot(const TensorArg& self, int64_t num_classes = -1);

namespace nn::functional {

/// Rows of `weight` joined bag by bag: bag b has the indices from offsets[b] on (a matrix of indices: its rows are the
/// bags). Offsets begin with 0 and never fall (Error); with include_last_offset the last one is where the last bag
/// ends. Modes: sum, mean, max (where a NaN counts only if it comes first, as PyTorch has it); an empty bag gives
/// zeros. Indices equal to padding_idx take no part. scale_grad_by_freq, with sum and mean: the gradient of a row is
/// divided by how often its index is among them.
INGOT_API Tensor embedding_bag(const TensorArg& indices, const TensorArg& weight, const TensorArg& offsets = {},
                               Word mode = "mean", const TensorArg& per_sample_weights = {},
                               bool include_last_offset = false, std::optional<int64_t> padding_idx = {},
                               bool scale_grad_by_freq = false);

}  // namespace nn::functional
}  // namespace ingot
