// Elements of a tensor by their positions, as fast as an array.
#pragma once
#include <cstddef>
#include <cstdint>

#include "eager/ops/arguments.h"

namespace ingot {

/// What Tensor::accessor gives: a[i][j] is an element. Positions are not checked. It borrows the tensor's memory, sizes
/// and strides, and must not outlive it.
template <class T, size_t N>
class TensorAccessor {
  static_assert(N > 0, "a tensor without dims has item()");

 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1) {
      return (data_[i * strides_[0]]);
    } else {
      return TensorAccessor<T, N - 1>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
    }
  }
  int64_t size(int64_t dim) const { return sizes_[dim]; }
  int64_t stride(int64_t dim) const { return strides_[dim]; }
  IntArrayRef sizes() const { return {sizes_, N}; }
  IntArrayRef strides() const { return {strides_, N}; }
  T* data() const { return data_; }

 private:
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
};

}  // namespace ingot
