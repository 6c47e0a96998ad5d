// One owning pointer for all that counts its references itself.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace ingot {

/// How many references there are; one at first.
class ReferenceCount {
 public:
  void add() { count_.fetch_add(1, std::memory_order_relaxed); }
  /// True if it was the last. Who holds the only one need not count it down: nobody else can take another.
  bool drop() {
    return count_.load(std::memory_order_acquire) == 1 || count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  int32_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int32_t> count_{1};
};

/// A counted reference, no larger than a pointer. T is told by add_reference(T&) and drop_reference(T&), which may be
/// declared where T is not complete; it is made with one reference.
template <class T>
class CountedPtr {
 public:
  CountedPtr() = default;
  /// Takes over a reference: the one that T is made with, or one that was detached.
  static CountedPtr take(T* object) {
    CountedPtr owner;
    owner.object_ = object;
    return owner;
  }
  /// One more reference.
  explicit CountedPtr(T* object) : object_(object) {
    if (object_) add_reference(*object_);
  }
  CountedPtr(const CountedPtr& other) : CountedPtr(other.object_) {}
  CountedPtr(CountedPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  CountedPtr& operator=(CountedPtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~CountedPtr() {
    if (object_) drop_reference(*object_);
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const CountedPtr& a, const CountedPtr& b) { return a.object_ == b.object_; }
  /// Gives the reference to the caller.
  T* detach() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

}  // namespace ingot
