// Which different elements there are, and whether some are among others. What has a shape that depends on values reads
// them: a graph break in compiled code.
#pragma once
#include <optional>
#include <tuple>

#include "eager/ops/functions.h"

namespace ingot {

/// Of each element whether it is among `test_elements` (with `invert`: whether it is not): bool, in the shape of
/// `elements`. One of the two may be a number. NaN is equal to nothing. No bools. `assume_unique` changes no result.
INGOT_API Tensor isin(const OperandArg& elements, const OperandArg& test_elements, bool assume_unique = false,
                      bool invert = false);

/// Values in ascending order, each once; where each element of self is among them; how often each occurs.
INGOT_API std::tuple<Tensor, Tensor, Tensor> unique(const TensorArg& self);
/// The same of slices along a dim, in the lexicographic order of their elements. Results that are not asked for are
/// empty; `sorted` is always so.
INGOT_API std::tuple<Tensor, Tensor, Tensor> unique_dim(const TensorArg& self, int64_t dim, bool sorted = true,
                                                        bool return_inverse = false, bool return_counts = false);
/// Elements, or slices along a dim, without those that are equal to the one before; as unique_dim.
INGOT_API std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const TensorArg& self, bool return_inverse = false,
                                                                bool return_counts = false,
                                                                std::optional<int64_t> dim = {});

}  // namespace ingot
