// Where the drivers of a binding live, and what they have in common with those of other bindings.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>
#include <type_traits>
#include <utility>

namespace ingot::runtime {

/// Drivers side by side with the lists that they hold, freed as a whole: binding asks malloc for one block, not for
/// several a step.
class DriverMemory {
 public:
  /// `expected`: bytes that will be asked for, as far as is known.
  explicit DriverMemory(size_t expected) : blocks_(expected) {}
  DriverMemory(const DriverMemory&) = delete;
  DriverMemory& operator=(const DriverMemory&) = delete;
  /// Only what owns something elsewhere is visited.
  ~DriverMemory() {
    for (const Owner* owner = last_; owner; owner = owner->before) owner->destroy(owner->object);
  }

  template <class T, class... Arguments>
  T* make(Arguments&&... arguments) {
    constexpr bool owns = !std::is_trivially_destructible_v<T>;
    void* to = allocate(sizeof(T), alignof(T));
    Owner* owner = owns ? static_cast<Owner*>(allocate(sizeof(Owner), alignof(Owner))) : nullptr;
    T* object = ::new (to) T(std::forward<Arguments>(arguments)...);
    if (owner) last_ = ::new (owner) Owner{[](void* o) { std::destroy_at(static_cast<T*>(o)); }, object, last_};
    return object;
  }
  /// n zeros.
  template <class T>
  std::span<T> array(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* to = static_cast<T*>(allocate(n * sizeof(T), alignof(T)));
    std::uninitialized_value_construct_n(to, n);
    return {to, n};
  }
  size_t bytes() const { return bytes_; }

 private:
  struct Owner {
    void (*destroy)(void*);
    void* object;
    const Owner* before;
  };
  void* allocate(size_t bytes, size_t alignment) {
    bytes_ += bytes + alignment;
    return blocks_.allocate(bytes, alignment);
  }
  std::pmr::monotonic_buffer_resource blocks_;
  const Owner* last_ = nullptr;
  size_t bytes_ = 0;
};

/// Something that is the same at all sizes: made by who asks first, kept for all others. Always asked for with the same
/// type. May be used by many threads at once.
class MadeOnce {
 public:
  MadeOnce() = default;
  MadeOnce(const MadeOnce&) = delete;
  MadeOnce& operator=(const MadeOnce&) = delete;
  ~MadeOnce() { delete kept_.load(std::memory_order_relaxed); }

  template <class Make>
  const std::invoke_result_t<Make>& get(Make make) {
    using Value = Kept<std::invoke_result_t<Make>>;
    const Any* kept = kept_.load(std::memory_order_acquire);
    if (!kept) {
      std::unique_ptr<const Any> fresh(new Value(make()));
      if (kept_.compare_exchange_strong(kept, fresh.get(), std::memory_order_acq_rel)) kept = fresh.release();
    }
    return static_cast<const Value*>(kept)->value;
  }

 private:
  struct Any {
    virtual ~Any() = default;
  };
  template <class T>
  struct Kept final : Any {
    explicit Kept(T value) : value(std::move(value)) {}
    const T value;
  };
  std::atomic<const Any*> kept_{nullptr};
};

}  // namespace ingot::runtime
