// Reading and making tensors from inside the library: data pointers, pending tensors computed, and new tensors.
#pragma once
#include "eager/tensor.h"
#include "runtime/memory/storage.h"

namespace ingot::eager {

/// Makes sure that the data of `tensor` is there and current: flushes this thread's recording. Throws Error for an
/// undefined tensor, and for one that another thread is still recording.
void materialize(const Tensor& tensor, const char* op, Location location);
/// The first element of a tensor that is not pending.
inline char* data_of(const detail::TensorImpl& t) {
  return static_cast<char*>(t.storage->data()) + t.offset * size_of(t.dtype);
}

/// The bytes that a tensor reaches, from its first element to its last; empty where it has none.
struct Extent {
  const char *begin = nullptr, *end = nullptr;
  bool meets(const Extent& other) const { return begin < other.end && other.begin < end; }
};
Extent extent_of(const detail::TensorImpl& t);
/// True if element by element both are at the same place.
bool same_places(const detail::TensorImpl& a, const detail::TensorImpl& b);

/// A fresh row-major tensor, not initialised.
Tensor make_empty(DType dtype, std::span<const int64_t> sizes);
/// A tensor over `storage` (takes one reference; null: pending).
Tensor make_tensor(DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset,
                   runtime::Storage* storage);
Ints contiguous_strides(std::span<const int64_t> sizes);
int64_t count(std::span<const int64_t> sizes);
/// Calls f(element offset) for every element in row-major order.
template <class F>
void for_each_offset(const detail::TensorImpl& t, F&& f) {
  size_t rank = t.sizes.size();
  int64_t n = count(t.sizes), offset = 0;
  Ints position(rank, 0);
  for (int64_t i = 0; i < n; ++i) {
    f(offset);
    for (size_t d = rank; d-- > 0;) {
      offset += t.strides[d];
      if (++position[d] < t.sizes[d]) break;
      offset -= position[d] * t.strides[d];
      position[d] = 0;
    }
  }
}
/// One element as a number. Complex dtypes hold no data yet.
Scalar read_element(DType dtype, const char* at);
void write_element(DType dtype, char* at, Scalar value);
/// Says who is recording a pending tensor; the tracer sets it.
using PendingDescription = std::string (*)(const detail::TensorImpl&);
void set_pending_description(PendingDescription f);

}  // namespace ingot::eager
