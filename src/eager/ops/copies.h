// Copies of what views look at, under PyTorch's names: as the view of that name, in memory of its own and row-major.
#pragma once
#include <optional>
#include <vector>

#include "eager/ops/functions.h"

namespace ingot {

INGOT_API Tensor alias_copy(const TensorArg& self);
INGOT_API Tensor as_strided_copy(const TensorArg& self, const IntList& size, const IntList& stride,
                                 const SizeArg& storage_offset = 0);
INGOT_API Tensor detach_copy(const TensorArg& self);
INGOT_API Tensor diagonal_copy(const TensorArg& self, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
INGOT_API Tensor expand_copy(const TensorArg& self, const IntList& size);
INGOT_API Tensor narrow_copy(const TensorArg& self, int64_t dim, const SizeArg& start, const SizeArg& length);
INGOT_API Tensor permute_copy(const TensorArg& self, const IntList& dims);
INGOT_API Tensor select_copy(const TensorArg& self, int64_t dim, const SizeArg& index);
INGOT_API Tensor slice_copy(const TensorArg& self, int64_t dim = 0, const SizeArg& start = 0,
                            std::optional<SizeArg> end = {}, int64_t step = 1);
INGOT_API std::vector<Tensor> split_copy(const TensorArg& self, int64_t split_size, int64_t dim = 0);
INGOT_API std::vector<Tensor> split_with_sizes_copy(const TensorArg& self, const IntList& split_sizes, int64_t dim = 0);
INGOT_API Tensor squeeze_copy(const TensorArg& self, const IntList& dim = {});
INGOT_API Tensor t_copy(const TensorArg& self);
INGOT_API Tensor transpose_copy(const TensorArg& self, int64_t dim0, int64_t dim1);
INGOT_API std::vector<Tensor> unbind_copy(const TensorArg& self, int64_t dim = 0);
INGOT_API Tensor unfold_copy(const TensorArg& self, int64_t dimension, const SizeArg& size, int64_t step);
INGOT_API Tensor unsqueeze_copy(const TensorArg& self, int64_t dim);
/// Of any strides.
INGOT_API Tensor view_copy(const TensorArg& self, const IntList& size);

}  // namespace ingot
