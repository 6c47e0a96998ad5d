#include "base/mutex.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/thread_object.h"

namespace ingot {
namespace {

struct Thread {
  std::atomic<int> depth{0};  // written by its thread
  Thread* next = nullptr;
};
constinit thread_local Thread* self = nullptr;

using Action = void (*)();
struct Hook {
  std::atomic<Action> in_parent{nullptr}, in_child{nullptr};
};
constexpr int kMostHooks = 8;

constinit std::mutex gate;            // held by the thread that forks until it has; guards the list
constinit Thread* threads = nullptr;  // all that were ever inside and live
constinit Hook hooks[kMostHooks];
constinit std::atomic<int> hook_count{0};
constinit std::atomic<bool> forking{false};
// The thread that forks makes the others' stores visible (membarrier), so that they need no fence of their own.
constinit std::atomic<bool> asymmetric{false};

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }
void nap() {
  const timespec a_little{0, 20'000};
  nanosleep(&a_little, nullptr);
}

void unlist(void* thread) {
  std::lock_guard lock(gate);
  self = nullptr;
  for (Thread** at = &threads; *at; at = &(*at)->next)
    if (*at == thread) {
      *at = (*at)->next;
      break;
    }
  delete static_cast<Thread*>(thread);
}

[[gnu::noinline]] Thread& list_this_thread() {
  auto* thread = new Thread;
  at_thread_end(unlist, thread);
  std::lock_guard lock(gate);
  thread->next = threads;
  threads = thread;
  self = thread;
  return *thread;
}
Thread& this_thread() { return self ? *self : list_this_thread(); }

// Announces this thread; false if a fork is under way and it must not go on.
bool announce(Thread& thread) {
  if (asymmetric.load(std::memory_order_relaxed)) {
    thread.depth.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return !forking.load(std::memory_order_acquire);
  }
  thread.depth.store(1, std::memory_order_seq_cst);
  return !forking.load(std::memory_order_seq_cst);
}

[[gnu::noinline]] void wait_for_fork(Thread& thread) {
  do {
    thread.depth.store(0, std::memory_order_release);
    std::lock_guard lock(gate);
  } while (!announce(thread));
}

void before_fork() {
  Thread& mine = this_thread();
  gate.lock();
  forking.store(true, std::memory_order_seq_cst);
  // Where the barrier is refused after all, a store is on its way for less than this.
  if (asymmetric.load() && !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) nap();
  for (Thread* thread = threads; thread; thread = thread->next)
    while (thread != &mine && thread->depth.load(std::memory_order_acquire)) nap();
  mine.depth.store(mine.depth.load() + 1);  // so that the hooks may lock
}
void leave_fork() {
  self->depth.store(self->depth.load() - 1, std::memory_order_release);
  forking.store(false, std::memory_order_seq_cst);
  gate.unlock();
}
void call_hooks(std::atomic<Action> Hook::*when) {
  for (Hook& hook : hooks)
    if (Action action = (hook.*when).load(std::memory_order_acquire)) action();
}
void after_fork_in_parent() {
  call_hooks(&Hook::in_parent);
  leave_fork();
}
void after_fork_in_child() {
  asymmetric.store(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
  for (Thread* thread = threads; thread;) {  // the others are not here any more
    Thread* next = thread->next;
    if (thread != self) delete thread;
    thread = next;
  }
  threads = self;
  self->next = nullptr;
  call_hooks(&Hook::in_child);
  leave_fork();
}

// As the library is loaded: of all handlers that prepare a fork, this one then runs last, when those of the user's
// have taken what they need.
const bool watching = [] {
  asymmetric.store(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
  return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}();

}  // namespace

void NoFork::enter() noexcept {
  Thread& thread = this_thread();
  if (int depth = thread.depth.load(std::memory_order_relaxed))
    thread.depth.store(depth + 1, std::memory_order_relaxed);
  else if (!announce(thread))
    wait_for_fork(thread);
}

void NoFork::join() noexcept {
  Thread& thread = this_thread();
  thread.depth.store(thread.depth.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
}

void NoFork::leave() noexcept {
  self->depth.store(self->depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
}

bool NoFork::inside() noexcept { return self && self->depth.load(std::memory_order_relaxed) != 0; }

void at_fork(void (*in_parent)(), void (*in_child)()) {
  Hook& hook = hooks[hook_count.fetch_add(1)];
  hook.in_parent.store(in_parent, std::memory_order_release);
  hook.in_child.store(in_child, std::memory_order_release);
}

}  // namespace ingot
