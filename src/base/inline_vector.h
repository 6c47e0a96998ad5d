// A vector of elements with constructors that needs no allocation while they are few.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace ingot {

/// Room for N elements inside; with more than that all move to the heap. Where elements are plain, see SmallVector.
template <class T, size_t N>
class InlineVector {
 public:
  InlineVector() = default;
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;
  ~InlineVector() { clear(); }

  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (size_ == capacity_) reserve(size_t{2} * capacity_);
    T* made = new (data() + size_) T{std::forward<Arguments>(arguments)...};
    ++size_;
    return *made;
  }
  void push_back(T value) { emplace_back(std::move(value)); }
  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    T* larger = std::allocator<T>().allocate(capacity);
    std::uninitialized_move_n(data(), size_, larger);
    std::destroy_n(data(), size_);
    release();
    heap_ = larger;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  /// Lets go of the memory, too.
  void clear() {
    std::destroy_n(data(), size_);
    release();
    size_ = 0;
  }

  T* data() { return heap_ ? heap_ : reinterpret_cast<T*>(inline_); }
  const T* data() const { return heap_ ? heap_ : reinterpret_cast<const T*>(inline_); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  operator std::span<const T>() const { return {data(), size_}; }

 private:
  void release() {
    if (heap_) std::allocator<T>().deallocate(heap_, capacity_);
    heap_ = nullptr;
    capacity_ = N;
  }

  T* heap_ = nullptr;
  uint32_t size_ = 0, capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace ingot
