#include "runtime/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/first_use.h"
#include "base/float_environment.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "runtime/cpu.h"

namespace ingot {
namespace runtime {
namespace {

// About 50 us: time stamp counters run at 2 to 4 GHz.
constexpr uint64_t kSpinCycles = 150'000, kEagerCycles = 3'000;

// Thrown by await in the threads that did not fail themselves; never leaves run_region.
struct RegionAborted {};

struct Job {
  RegionFunction function = nullptr;
  void* context = nullptr;
  int threads = 1;
  bool no_fork = false;  // the caller is inside a NoFork, and so are they who work for it
};

struct alignas(128) Worker {
  // Odd: a region is offered. The worker takes it, or the caller takes it back, by moving the ticket on. Also the futex
  // that the worker sleeps on.
  std::atomic<uint32_t> ticket{0};
  std::atomic<uint32_t> asleep{0};
  uint32_t offered = 0;  // the caller's note
  Job job;  // the region, in the line that brings the ticket: written before it is offered, read when it is taken
  alignas(64) std::atomic<uint32_t> done{0};  // the ticket after the last region that was worked off
  std::exception_ptr error;
};

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

class Pool {
 public:
  static Pool& instance() {
    static constinit FirstUse<Pool> pool;
    return pool.get([] { return Pool(); });
  }

  int limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(int n) {
    limit_.store(n, std::memory_order_relaxed);
    // Where threads outnumber processors, the one awaited may need ours.
    spin_cycles_.store(n > processors_ ? 0 : kSpinCycles, std::memory_order_relaxed);
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

  // Looks until `done` or the patience is out; tells which. The first microsecond goes without pauses, which take up to
  // 140 cycles: what comes soon is seen at once.
  template <class Done>
  bool spin(Done done) const {
    if (done()) return true;
    uint64_t start = __builtin_ia32_rdtsc(), patience = spin_cycles_.load(std::memory_order_relaxed), spent = 0;
    while (spent < patience) {
      for (int i = 0; i < 8; ++i) {
        if (done()) return true;
        if (spent > kEagerCycles) __builtin_ia32_pause();
      }
      spent = __builtin_ia32_rdtsc() - start;
    }
    return done();
  }
  // Spins, then yields the processor between looks.
  template <class Done>
  void wait_until(Done done) const {
    if (!spin(done))
      while (!done()) sched_yield();
  }

  /// As in a region that does not end.
  static void leave() { inside_region_ = true; }

  void run(int threads, RegionFunction function, void* context) {
    threads = std::min(threads, limit());
    if (threads <= 1 || inside_region_ || busy_.exchange(true, std::memory_order_acquire))
      return function(context, 0, 1);
    try {
      start_workers(threads - 1);
    } catch (...) {  // the system has no more threads: those that run are enough
    }
    threads = std::min(threads, static_cast<int>(workers_.size()) + 1);
    Job job{function, context, threads, NoFork::inside()};
    failed_.store(false, std::memory_order_relaxed);
    for (int i = 0; i < threads - 1; ++i) {
      Worker& worker = *workers_[i];
      worker.job = job;
      worker.offered = worker.ticket.fetch_add(1, std::memory_order_seq_cst) + 1;
      if (worker.asleep.load(std::memory_order_seq_cst)) futex(worker.ticket, FUTEX_WAKE, 1);
    }
    std::exception_ptr error = work(job, 0);
    for (int i = 0; i < threads - 1; ++i) {
      std::exception_ptr theirs = join(*workers_[i], job, i + 1);
      if (!error) error = theirs;
    }
    busy_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
  }

 private:
  Pool() {
    const NoFork whole;
    processors_ = usable_processors();
    int threads = processors_;
    if (const char* text = std::getenv("INGOT_NUM_THREADS"); text && *text) {
      char* end;
      long value = std::strtol(text, &end, 10);
      if (*end || value < 1 || value > kMostThreads)
        throw Error("INGOT_NUM_THREADS is '" + std::string(text) + "'; expected a number from 1 to " +
                    std::to_string(kMostThreads));
      threads = static_cast<int>(value);
    }
    set_limit(std::min(threads, kMostThreads));
    // A child made by fork() has only the thread that called it: its workers start anew when they are first needed.
    at_fork(nullptr, [] {
      instance().workers_.clear();
      instance().busy_.store(false);
    });
  }

  void start_workers(int count) {
    while (static_cast<int>(workers_.size()) < count) {
      auto* worker = new Worker;
      int number = static_cast<int>(workers_.size()) + 1;
      try {
        start_thread("ingot-" + std::to_string(number), [this, worker, number] { serve(*worker, number); });
      } catch (...) {
        delete worker;
        throw;
      }
      workers_.push_back(worker);
    }
  }

  // A worker that has not begun, because it sleeps or has no processor, is not waited for.
  std::exception_ptr join(Worker& worker, const Job& job, int number) {
    const uint32_t offered = worker.offered;
    auto ended = [&] { return worker.done.load(std::memory_order_acquire) == offered + 1; };
    uint32_t expected = offered;
    if (!ended() && worker.ticket.compare_exchange_strong(expected, offered + 1, std::memory_order_relaxed)) {
      worker.done.store(offered + 1, std::memory_order_relaxed);
      return failed() ? nullptr : work(job, number);
    }
    wait_until(ended);
    return std::exchange(worker.error, nullptr);
  }

  [[noreturn]] void serve(Worker& worker, int number) {
    for (;;) {
      uint32_t offered = await_offer(worker);
      if (!worker.ticket.compare_exchange_strong(offered, offered + 1, std::memory_order_acquire)) continue;
      uint32_t taken = offered + 1;
      const bool no_fork = worker.job.no_fork;
      if (no_fork) NoFork::join();
      worker.error = work(worker.job, number);
      if (no_fork) NoFork::leave();
      worker.done.store(taken, std::memory_order_release);
    }
  }

  // Spins a while, since the next region often follows at once; then sleeps.
  uint32_t await_offer(Worker& worker) {
    uint32_t ticket;
    auto offered = [&] { return ((ticket = worker.ticket.load(std::memory_order_relaxed)) & 1u) != 0; };
    if (spin(offered)) return ticket;
    // The caller moves the ticket before it looks at asleep, and we the other way round: one of us sees the other.
    worker.asleep.store(1, std::memory_order_seq_cst);
    while (ticket = worker.ticket.load(std::memory_order_seq_cst), !(ticket & 1u))
      futex(worker.ticket, FUTEX_WAIT, ticket);
    worker.asleep.store(0, std::memory_order_relaxed);
    return ticket;
  }

  // The share of one thread; what it throws becomes the region's failure.
  std::exception_ptr work(const Job& job, int thread) {
    std::exception_ptr error;
    inside_region_ = true;
    try {
      job.function(job.context, thread, job.threads);
    } catch (const RegionAborted&) {
    } catch (...) {
      error = std::current_exception();
      failed_.store(true, std::memory_order_relaxed);
    }
    inside_region_ = false;
    return error;
  }

  static inline thread_local bool inside_region_ = false;

  int processors_ = 1;
  std::atomic<int> limit_{1};
  std::atomic<uint64_t> spin_cycles_{0};
  std::vector<Worker*> workers_;  // guarded by busy_
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<bool> failed_{false};
};

}  // namespace

void run_region(int threads, RegionFunction function, void* context) {
  Pool::instance().run(threads, function, context);
}

void leave_pool() { Pool::leave(); }

void await(const std::atomic<int>& value, int target) {
  Pool& pool = Pool::instance();
  auto reached = [&] { return value.load(std::memory_order_acquire) == target; };
  pool.wait_until([&] { return reached() || pool.failed(); });
  if (!reached()) throw RegionAborted();
}

}  // namespace runtime

int num_threads() { return runtime::Pool::instance().limit(); }

void set_num_threads(int n) {
  if (n < 1 || n > kMostThreads)
    throw Error("set_num_threads: got " + std::to_string(n) + ", expected a number from 1 to " +
                std::to_string(kMostThreads));
  runtime::Pool::instance().set_limit(n);
}

}  // namespace ingot
