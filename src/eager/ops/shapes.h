// Further ways to reshape, cut and join, by PyTorch's names.
#pragma once
#include <vector>

#include "eager/ops/functions.h"

namespace ingot {

/// In one dim; a view where it can be.
INGOT_API Tensor ravel(const TensorArg& self);
/// With dims of size 1 until there are so many: in front, in three dims one in front and then one behind.
INGOT_API Tensor atleast_1d(const TensorArg& self);
INGOT_API Tensor atleast_2d(const TensorArg& self);
INGOT_API Tensor atleast_3d(const TensorArg& self);
INGOT_API std::vector<Tensor> atleast_1d(const TensorList& tensors);
INGOT_API std::vector<Tensor> atleast_2d(const TensorList& tensors);
INGOT_API std::vector<Tensor> atleast_3d(const TensorList& tensors);

/// tensor_split along columns (of one dim: its elements), rows, and the third dim; a number of sections must divide the
/// size.
INGOT_API std::vector<Tensor> hsplit(const TensorArg& self, int64_t sections);
INGOT_API std::vector<Tensor> hsplit(const TensorArg& self, const std::vector<int64_t>& indices);
INGOT_API std::vector<Tensor> vsplit(const TensorArg& self, int64_t sections);
INGOT_API std::vector<Tensor> vsplit(const TensorArg& self, const std::vector<int64_t>& indices);
INGOT_API std::vector<Tensor> dsplit(const TensorArg& self, int64_t sections);
INGOT_API std::vector<Tensor> dsplit(const TensorArg& self, const std::vector<int64_t>& indices);

/// A matrix with these along its diagonal and zeros elsewhere; what has fewer than two dims is one row. Dtypes are
/// promoted.
INGOT_API Tensor block_diag(const TensorList& tensors);
/// A diagonal matrix of all elements.
INGOT_API Tensor diagflat(const TensorArg& self, int64_t offset = 0);
/// All ways to take an element of each of the lines (one dim each, of one dtype), in order: [ways, lines]. One line is
/// given back as it is.
INGOT_API Tensor cartesian_prod(const TensorList& tensors);
/// All ways to choose r elements of one dim, in the order in which they stand: [ways, r].
INGOT_API Tensor combinations(const TensorArg& self, int64_t r = 2, bool with_replacement = false);
/// Positions in a tensor of this shape, taken as one dim, as one position a dim: an i64 tensor for each.
INGOT_API std::vector<Tensor> unravel_index(const TensorArg& indices, const IntList& shape);

}  // namespace ingot
