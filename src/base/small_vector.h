// A vector of trivially copyable elements with room for N of them inside.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>

namespace ingot {

template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(size_t n, T fill = T()) { resize(n, fill); }
  SmallVector(std::initializer_list<T> items) { assign(items.begin(), items.end()); }
  template <class Iterator>
  requires(!std::is_integral_v<Iterator>) SmallVector(Iterator first, Iterator last) { assign(first, last); }
  explicit SmallVector(std::span<const T> items) { assign(items.begin(), items.end()); }
  SmallVector(const SmallVector& other) {
    if (other.on_heap() || sizeof inline_ > 64) {
      assign(other.begin(), other.end());
    } else {
      std::memcpy(static_cast<void*>(inline_), other.inline_, sizeof inline_);  // of a size known here: no call
      size_ = other.size_;
    }
  }
  ~SmallVector() {
    if (on_heap()) delete[] data_;
  }
  SmallVector(SmallVector&& other) noexcept { *this = std::move(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this == &other) return *this;
    if (on_heap()) delete[] data_;
    data_ = other.on_heap() ? other.data_ : inline_;
    capacity_ = other.capacity_;
    size_ = other.size_;
    if (!on_heap())
      std::memcpy(static_cast<void*>(inline_), other.inline_, sizeof inline_ > 64 ? size_ * sizeof(T) : sizeof inline_);
    other.data_ = other.inline_;
    other.size_ = 0;
    other.capacity_ = N;
    return *this;
  }

  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    size_t n = static_cast<size_t>(std::distance(first, last));
    if (n > capacity_) grow(n);
    std::copy(first, last, data());
    size_ = n;
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  void clear() { size_ = 0; }
  void pop_back() { --size_; }
  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    data()[size_++] = value;
  }
  void resize(size_t n, T fill = T()) {
    if (n > capacity_) grow(n);
    if (n > size_) std::fill(data() + size_, data() + n, fill);
    size_ = n;
  }
  void insert(size_t at, T value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  operator std::span<const T>() const { return {data(), size_}; }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  bool on_heap() const { return data_ != inline_; }
  // Not in the way of those who have room.
  [[gnu::noinline]] void grow(size_t need) {
    size_t capacity = std::max(need, capacity_ * 2);
    T* heap = new T[capacity];
    std::copy(begin(), end(), heap);
    if (on_heap()) delete[] data_;
    data_ = heap;
    capacity_ = capacity;
  }
  size_t size_ = 0;
  size_t capacity_ = N;
  T* data_ = inline_;  // a pointer in any case: asking where they are at each element costs more than the elements
  T inline_[N] = {};
};

/// Sizes, strides or positions of a tensor, in elements.
using Ints = SmallVector<int64_t, 6>;

}  // namespace ingot
