// An array whose length is known when it is made; short ones lie on the stack and are not initialised.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace ingot {

template <class T, size_t N>
class ScratchArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit ScratchArray(size_t size) : size_(size) {
    if (size > N) heap_.reset(new std::byte[size * sizeof(T)]), data_ = reinterpret_cast<T*>(heap_.get());
  }
  ScratchArray(const ScratchArray&) = delete;
  ScratchArray& operator=(const ScratchArray&) = delete;
  T* data() { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  operator std::span<const T>() { return {data(), size_}; }

 private:
  size_t size_;
  T* data_ = reinterpret_cast<T*>(inline_);
  std::unique_ptr<std::byte[]> heap_;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace ingot
