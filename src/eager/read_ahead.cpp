#include "eager/read_ahead.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "eager/autograd/autograd.h"
#include "runtime/thread_pool.h"

namespace ingot::detail {

struct ReadAhead::State {
  struct Slot {
    bool made = false;
    std::shared_ptr<void> value;
    std::exception_ptr error;
  };
  const int64_t count;
  const Make make;
  const bool grad = GradMode::is_enabled();
  const pid_t process = getpid();
  std::atomic<uint32_t> changes{0};  // what who waits looks at
  Mutex mutex;
  // Guarded by it. Slot n % slots.size() has value n, for n from `first` on, which was not given away yet.
  std::vector<Slot> slots;
  int64_t first = 0, begun = 0, threads = 0;
  bool stopped = false;

  State(int64_t of, int64_t ahead, Make by) : count(of), make(std::move(by)), slots(static_cast<size_t>(ahead)) {}

  Slot& slot(int64_t number) { return slots[static_cast<size_t>(number) % slots.size()]; }
  void notify() {
    changes.fetch_add(1);
    changes.notify_all();
  }
  /// The next value to be made: -1 while there is no room for it, -2 at the end.
  int64_t next() {
    const std::lock_guard lock(mutex);
    begun = std::max(begun, first);
    if (stopped || begun == count) return --threads, -2;
    return begun < first + static_cast<int64_t>(slots.size()) ? begun++ : -1;
  }
  void run() {
    const AutoGradMode mode(grad);
    for (;;) {
      const uint32_t seen = changes.load();
      const int64_t number = next();
      if (number == -2) return notify();
      if (number == -1) {
        changes.wait(seen);
        continue;
      }
      Slot result{true, nullptr, nullptr};
      try {
        result.value = make(number);
      } catch (...) {
        result.error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex);
        if (number >= first) std::swap(slot(number), result);
      }
      notify();
    }
  }
};

ReadAhead::ReadAhead(int64_t count, int64_t threads, int64_t ahead, Make make)
    : state_(std::make_shared<State>(count, ahead, std::move(make))) {
  for (int64_t i = 0; i < threads; ++i) {
    {
      const std::lock_guard lock(state_->mutex);
      ++state_->threads;
    }
    try {
      start_thread("ingot-data-" + std::to_string(i), [state = state_] {
        runtime::leave_pool();
        state->run();
      });
    } catch (const std::system_error&) {  // no more threads: those that run are enough, or take() makes all
      const std::lock_guard lock(state_->mutex);
      --state_->threads;
      break;
    }
  }
}

ReadAhead::~ReadAhead() {
  State& s = *state_;
  for (bool told = false;; told = true) {
    const uint32_t seen = s.changes.load();
    {
      const std::lock_guard lock(s.mutex);
      s.stopped = true;
      if (s.threads == 0 || s.process != getpid()) return;
    }
    if (told)
      s.changes.wait(seen);
    else
      s.notify();
  }
}

std::shared_ptr<void> ReadAhead::take(int64_t number) {
  State& s = *state_;
  for (bool told = false;; told = true) {
    const uint32_t seen = s.changes.load();
    {
      const std::lock_guard lock(s.mutex);
      if (number < s.first) return nullptr;
      State::Slot& slot = s.slot(number);
      // What is made of a number that was passed over gives room, too.
      for (; s.first < number; ++s.first) s.slot(s.first) = {};
      if (slot.made) {
        const State::Slot taken = std::exchange(slot, {});
        s.first = number + 1;
        s.changes.fetch_add(1);
        s.changes.notify_all();
        if (taken.error) std::rethrow_exception(taken.error);
        return taken.value;
      }
      // In a child made by fork() there are no threads, and where all have left, none was to be had.
      if (s.process != getpid() || (s.threads == 0 && s.begun <= number)) {
        s.first = number + 1;
        return nullptr;
      }
    }
    if (told)
      s.changes.wait(seen);
    else
      s.notify();
  }
}

}  // namespace ingot::detail
