// Locks that hold over fork().
#include "base/mutex.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/sanitizer.h"

namespace ingot {
namespace {

#if INGOT_TSAN || INGOT_ASAN
// ThreadSanitizer knows threads by what a child has of its parent's; AddressSanitizer's own allocator is locked for
// ever in a child, if a thread that came or went held it.
constexpr bool kThreadsInChildren = false;
#else
constexpr bool kThreadsInChildren = true;
#endif

/// Runs f in a child; true if the child returns true within a minute.
template <class F>
bool in_child(F f) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(f() ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct Guarded {
  Mutex mutex;
  SharedMutex shared;
  int64_t a = 0, b = 0;  // equal but inside of the mutex
  int64_t c = 0, d = 0;  // of the shared mutex
  void step() {
    std::lock_guard lock(mutex);
    ++a;
    std::unique_lock inner(shared);
    ++c;
    std::this_thread::yield();
    ++b;
    ++d;
  }
  bool whole() {
    std::lock_guard lock(mutex);
    std::shared_lock inner(shared);
    return a == b && c == d;
  }
};

TEST(Mutex, IsFreeInAChildAndWhatItGuardsIsWhole) {
  Guarded guarded[3];
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = t; !stop; ++i) {
        Guarded& g = guarded[i % 3];
        g.step();
        if (g.mutex.try_lock()) g.mutex.unlock();
        std::shared_lock(g.shared).unlock();
        std::thread([&] { g.step(); }).join();  // threads come and go
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    });
  int good = 0;
  for (int i = 0; i < 100; ++i)
    good += in_child([&] {
      bool whole = true;
      for (Guarded& g : guarded) {
        whole = whole && g.whole();
        g.step();
        whole = whole && g.mutex.try_lock();
        g.mutex.unlock();
      }
      if (kThreadsInChildren) std::thread([&] { guarded[0].step(); }).join();
      // A child is as good a parent.
      return whole && in_child([&] { return guarded[1].whole(); });
    });
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 100);
}

TEST(NoFork, NestsAndHoldsBackOtherThreadsOnly) {
  EXPECT_FALSE(NoFork::inside());
  {
    NoFork outer;
    NoFork inner;
    EXPECT_TRUE(NoFork::inside());
    EXPECT_TRUE(in_child([] { return NoFork::inside(); }));  // who forks does not wait for itself
  }
  EXPECT_FALSE(NoFork::inside());
  std::atomic<bool> entered{false}, leaving{false};
  std::thread other([&] {
    NoFork scope;
    entered = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    leaving = true;
  });
  while (!entered) std::this_thread::yield();
  EXPECT_TRUE(in_child([&] { return leaving.load(); }));
  other.join();
}

int calls_in_parent = 0, calls_in_child = 0;

TEST(AtFork, CallsItsHooksWithLocksFree) {
  static Mutex mutex;
  at_fork(
      [] {
        std::lock_guard lock(mutex);
        ++calls_in_parent;
      },
      [] {
        std::lock_guard lock(mutex);
        ++calls_in_child;
      });
  EXPECT_TRUE(in_child([] { return calls_in_child == 1 && calls_in_parent == 0; }));
  EXPECT_EQ(calls_in_parent, 1);
  EXPECT_EQ(calls_in_child, 0);
}

}  // namespace
}  // namespace ingot
