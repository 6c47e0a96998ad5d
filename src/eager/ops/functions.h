// Functions written over the ops of the table: shapes, pieces; beside the factories.
#pragma once
#include "eager/ops/factories.h"
#include "eager/ops/indexing.h"
#include "eager/ops/operators.h"

namespace ingot {

INGOT_API Tensor reshape(const TensorArg& self, const IntList& shape);
INGOT_API Tensor flatten(const TensorArg& self, int64_t start_dim = 0, int64_t end_dim = -1);
INGOT_API Tensor unflatten(const TensorArg& self, int64_t dim, const IntList& sizes);
INGOT_API Tensor transpose(const TensorArg& self, int64_t dim0, int64_t dim1);
INGOT_API Tensor t(const TensorArg& self);
INGOT_API Tensor movedim(const TensorArg& self, const IntList& source, const IntList& destination);
INGOT_API Tensor narrow(const TensorArg& self, int64_t dim, const SizeArg& start, const SizeArg& length);
INGOT_API std::vector<Tensor> unbind(const TensorArg& self, int64_t dim = 0);
INGOT_API std::vector<Tensor> split(const TensorArg& self, int64_t split_size, int64_t dim = 0);
INGOT_API std::vector<Tensor> split(const TensorArg& self, const std::vector<int64_t>& split_sizes, int64_t dim = 0);
INGOT_API std::vector<Tensor> split_with_sizes(const TensorArg& self, const IntList& split_sizes, int64_t dim = 0);
INGOT_API std::vector<Tensor> chunk(const TensorArg& self, int64_t chunks, int64_t dim = 0);
INGOT_API Tensor tile(const TensorArg& self, const IntList& repeats);
INGOT_API Tensor hstack(const TensorList& tensors);
INGOT_API Tensor vstack(const TensorList& tensors);
INGOT_API Tensor max(const TensorArg& self);
INGOT_API Tensor max(const TensorArg& self, const TensorArg& other);
INGOT_API Tensor min(const TensorArg& self);
INGOT_API Tensor min(const TensorArg& self, const TensorArg& other);
/// LibTorch's order: whether equal elements keep their order comes first.
template <detail::Flag Stable>
std::tuple<Tensor, Tensor> sort(const TensorArg& self, Stable stable, int64_t dim = -1, bool descending = false) {
  return sort(self, dim, descending, std::optional<bool>(stable).value_or(false));
}
template <detail::Flag Stable>
Tensor argsort(const TensorArg& self, Stable stable, int64_t dim = -1, bool descending = false) {
  return argsort(self, dim, descending, std::optional<bool>(stable).value_or(false));
}
/// Over all dims; unbiased: with n - 1.
template <detail::Flag Unbiased>
Tensor var(const TensorArg& self, Unbiased unbiased) {
  return var(self, {}, std::optional<bool>(unbiased).value_or(true));
}
template <detail::Flag Unbiased>
Tensor std(const TensorArg& self, Unbiased unbiased) {
  return ingot::std(self, {}, std::optional<bool>(unbiased).value_or(true));
}
/// The differences of neighbours along a dim, `n` times; `prepend` and `append` are joined to it first.
INGOT_API Tensor diff(const TensorArg& self, int64_t n = 1, int64_t dim = -1, const TensorArg& prepend = {},
                      const TensorArg& append = {});
/// All true: there are no complex numbers.
INGOT_API Tensor isreal(const TensorArg& self);
/// True if shapes and all elements are equal.
INGOT_API bool equal(const TensorArg& self, const TensorArg& other);
/// True if every element satisfies |self - other| <= atol + rtol * |other|.
INGOT_API bool allclose(const TensorArg& self, const TensorArg& other, double rtol = 1e-5, double atol = 1e-8,
                        bool equal_nan = false);

/// base to the powers from start to end (numbers or zero-dim tensors), evenly apart.
INGOT_API Tensor logspace(const OperandArg& start, const OperandArg& end, const SizeArg& steps, double base = 10,
                          TensorOptions options = {});

}  // namespace ingot
