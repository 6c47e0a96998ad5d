// Lists of tensors: joined, cut and broadcast together, under PyTorch's names.
#pragma once
#include <string_view>
#include <vector>

#include "eager/ops/functions.h"

namespace ingot {

/// Joined as columns: a tensor with fewer than two dims is one column.
INGOT_API Tensor column_stack(const TensorList& tensors);
/// Joined along the third dim, which tensors with fewer dims get.
INGOT_API Tensor dstack(const TensorList& tensors);
/// Each as a view with the shape to which all broadcast.
INGOT_API std::vector<Tensor> broadcast_tensors(const TensorList& tensors);
/// A grid over lines of coordinates: one tensor for each line, all with one dim a line. Indexing "xy" swaps the first
/// two dims.
INGOT_API std::vector<Tensor> meshgrid(const TensorList& tensors, Word indexing = "ij");
/// As many pieces as asked for, the first ones longer by one where the size does not divide; or cut before each index.
INGOT_API std::vector<Tensor> tensor_split(const TensorArg& self, int64_t sections, int64_t dim = 0);
INGOT_API std::vector<Tensor> tensor_split(const TensorArg& self, const std::vector<int64_t>& indices, int64_t dim = 0);
/// Sections or indices from the values of a tensor, which are read at once: a graph break in compiled code.
INGOT_API std::vector<Tensor> tensor_split(const TensorArg& self, const TensorArg& indices_or_sections,
                                           int64_t dim = 0);

}  // namespace ingot
