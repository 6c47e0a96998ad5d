// Copies of a tensor with a part of it replaced: a slice, a diagonal, elements at positions.
#pragma once
#include <optional>

#include "eager/ops/functions.h"

namespace ingot {

/// `src` stands where self.select(dim, index), self.slice(dim, start, end, step) or self.diagonal(offset, dim1, dim2)
/// did; it has the shape of that view and becomes of self's dtype.
INGOT_API Tensor select_scatter(const TensorArg& self, const TensorArg& src, int64_t dim, const SizeArg& index);
INGOT_API Tensor slice_scatter(const TensorArg& self, const TensorArg& src, int64_t dim = 0, const SizeArg& start = 0,
                               std::optional<SizeArg> end = {}, int64_t step = 1);
INGOT_API Tensor diagonal_scatter(const TensorArg& self, const TensorArg& src, int64_t offset = 0, int64_t dim1 = 0,
                                  int64_t dim2 = 1);
/// Elements of `source` (self's dtype) go to positions of self taken as one dim; negative ones count from the end. With
/// `accumulate` they are added. `index`: i64, as many as source has.
INGOT_API Tensor put(const TensorArg& self, const TensorArg& index, const TensorArg& source, bool accumulate = false);
/// Slices of `source` (self's dtype) are joined with those of self along a dim at `index` (one dim of i64 or i32):
/// reduce is "prod", "mean", "amax" or "amin". Without include_self, what self had there takes no part.
INGOT_API Tensor index_reduce(const TensorArg& self, int64_t dim, const TensorArg& index, const TensorArg& source,
                              Word reduce, bool include_self = true);

}  // namespace ingot
