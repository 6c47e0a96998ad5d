#include "trace/background.h"

#include <atomic>
#include <deque>
#include <utility>

#include "base/first_use.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace ingot::trace {
namespace {

class Worker {
 public:
  static Worker& instance() {
    static constinit FirstUse<Worker> worker;
    return worker.get([] { return Worker(); });
  }
  void add(std::function<void()> task) {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake();
  }
  void resume() {
    std::lock_guard lock(mutex_);
    if (!tasks_.empty()) wake();
  }

 private:
  Worker() {
    // The thread is not there in a child; another one begins where it is needed.
    at_fork(nullptr, [] { instance().running_ = false; });
  }
  void wake() {
    if (!running_) start_thread("ingot-compile", [this] { run(); });
    running_ = true;
    added_.fetch_add(1);
    added_.notify_one();
  }
  [[noreturn]] void run() {
    for (;;) {
      const uint32_t seen = added_.load();
      std::function<void()> task = take();
      if (!task) {
        added_.wait(seen);
        continue;
      }
      NoFork whole;
      task();
      task = nullptr;
    }
  }
  std::function<void()> take() {
    std::lock_guard lock(mutex_);
    if (tasks_.empty()) return nullptr;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  Mutex mutex_;
  std::atomic<uint32_t> added_{0};
  std::deque<std::function<void()>> tasks_;
  bool running_ = false;
};

}  // namespace

void compile_in_background(std::function<void()> task) { Worker::instance().add(std::move(task)); }
void resume_background() { Worker::instance().resume(); }

}  // namespace ingot::trace
