// Locks that hold over fork(): the process forks while no other thread is inside one, so that the child finds what they
// guard whole, and free. Every lock of the library is one of these.
#pragma once
#include <mutex>
#include <shared_mutex>

namespace ingot {

/// While it lives, a fork() of another thread waits; where a fork is under way, its constructor waits. Nests, and costs
/// a few instructions. A thread that is inside must not wait for one that may not be.
class NoFork {
 public:
  NoFork() { enter(); }
  ~NoFork() { leave(); }
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;

  static void enter() noexcept;
  static void leave() noexcept;
  /// Enters without waiting, for a thread (one that was inside before) whose work another waits for that is inside.
  static void join() noexcept;
  /// True if this thread is inside.
  static bool inside() noexcept;
};

/// What the thread that forks calls in the parent and in the child before any other thread goes on; either may be null.
/// For good; there is room for eight.
void at_fork(void (*in_parent)(), void (*in_child)());

template <class Base>
class ForkSafe {
 public:
  void lock() {
    NoFork::enter();
    base_.lock();
  }
  bool try_lock() {
    NoFork::enter();
    if (base_.try_lock()) return true;
    NoFork::leave();
    return false;
  }
  void unlock() {
    base_.unlock();
    NoFork::leave();
  }
  void lock_shared() {
    NoFork::enter();
    base_.lock_shared();
  }
  void unlock_shared() {
    base_.unlock_shared();
    NoFork::leave();
  }

 private:
  Base base_;
};
using Mutex = ForkSafe<std::mutex>;
using SharedMutex = ForkSafe<std::shared_mutex>;

}  // namespace ingot
