// Objects of the process that are made when they are first asked for, and never destroyed: tensors, compiled functions
// and threads may outlive every static object. Instead of static objects of functions, which a fork in the instant of
// their making would leave half made in the child, for ever.
#pragma once
#include <atomic>
#include <mutex>

#include "base/mutex.h"

namespace ingot {

/// Stands as a constinit object, which needs no code to come to life.
template <class T>
class FirstUse {
 public:
  constexpr FirstUse() = default;
  FirstUse(const FirstUse&) = delete;
  T& operator*() {
    return get([] { return T(); });
  }
  T* operator->() { return &**this; }
  /// What `make` gives, the first time. Where it throws, the next one tries again. It must not ask for the object.
  template <class Make>
  T& get(Make make) {
    if (T* object = object_.load(std::memory_order_acquire)) return *object;
    std::lock_guard lock(mutex_);
    if (!object_.load(std::memory_order_relaxed)) object_.store(new T(make()), std::memory_order_release);
    return *object_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<T*> object_{nullptr};
  Mutex mutex_;
};

}  // namespace ingot
