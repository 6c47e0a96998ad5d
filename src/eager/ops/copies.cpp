#include "eager/ops/copies.h"

#include "eager/call/call.h"

namespace ingot {
namespace {

std::vector<Tensor> copies(std::vector<Tensor> views) {
  for (Tensor& view : views) view = view.clone();
  return views;
}

}  // namespace

Tensor alias_copy(const TensorArg& self) { return clone(self); }
Tensor as_strided_copy(const TensorArg& self, const IntList& size, const IntList& stride,
                       const SizeArg& storage_offset) {
  return clone({as_strided(self, size, stride, storage_offset), self.location});
}
Tensor detach_copy(const TensorArg& self) { return clone({detach(self), self.location}); }
Tensor diagonal_copy(const TensorArg& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return clone({diagonal(self, offset, dim1, dim2), self.location});
}
Tensor expand_copy(const TensorArg& self, const IntList& size) { return clone({expand(self, size), self.location}); }
Tensor narrow_copy(const TensorArg& self, int64_t dim, const SizeArg& start, const SizeArg& length) {
  return clone({narrow(self, dim, start, length), self.location});
}
Tensor permute_copy(const TensorArg& self, const IntList& dims) { return clone({permute(self, dims), self.location}); }
Tensor select_copy(const TensorArg& self, int64_t dim, const SizeArg& index) {
  return clone({select(self, dim, index), self.location});
}
Tensor slice_copy(const TensorArg& self, int64_t dim, const SizeArg& start, std::optional<SizeArg> end, int64_t step) {
  return clone({slice(self, dim, start, end, step), self.location});
}
std::vector<Tensor> split_copy(const TensorArg& self, int64_t split_size, int64_t dim) {
  const CallerLine line(self.location);
  return copies(split(self, split_size, dim));
}
std::vector<Tensor> split_with_sizes_copy(const TensorArg& self, const IntList& split_sizes, int64_t dim) {
  const CallerLine line(self.location);
  return copies(split_with_sizes(self, split_sizes, dim));
}
Tensor squeeze_copy(const TensorArg& self, const IntList& dim) { return clone({squeeze(self, dim), self.location}); }
Tensor t_copy(const TensorArg& self) { return clone({t(self), self.location}); }
Tensor transpose_copy(const TensorArg& self, int64_t dim0, int64_t dim1) {
  return clone({transpose(self, dim0, dim1), self.location});
}
std::vector<Tensor> unbind_copy(const TensorArg& self, int64_t dim) {
  const CallerLine line(self.location);
  return copies(unbind(self, dim));
}
Tensor unfold_copy(const TensorArg& self, int64_t dimension, const SizeArg& size, int64_t step) {
  return clone({unfold(self, dimension, size, step), self.location});
}
Tensor unsqueeze_copy(const TensorArg& self, int64_t dim) { return clone({unsqueeze(self, dim), self.location}); }
Tensor view_copy(const TensorArg& self, const IntList& size) { return view({clone(self), self.location}, size); }

}  // namespace ingot
