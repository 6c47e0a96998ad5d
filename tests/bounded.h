// Waits of tests end: what has not come within a minute is a failure, and no hang.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace ingot::test {

inline constexpr std::chrono::seconds kPatience{60};

/// Whether `done` becomes true in time.
template <class F>
bool eventually(F&& done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// The exit code of a child; -1 where it was ended by a signal, or by this after its time.
inline int exit_code_of(pid_t child) {
  int status = 0;
  if (!eventually([&] { return waitpid(child, &status, WNOHANG) != 0; })) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// While it lives, waits that nobody can leave (a join, a barrier of the library's own) end the program in time, with
/// the test's name.
class Deadline {
 public:
  Deadline() : watcher_([this] { watch(); }) {}
  ~Deadline() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    watcher_.join();
  }
  Deadline(const Deadline&) = delete;

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kPatience * 5, [this] { return over_; })) return;
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    std::fprintf(stderr, "%s.%s waits for what does not come\n", test ? test->test_suite_name() : "?",
                 test ? test->name() : "?");
    std::abort();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread watcher_;  // the last member: it uses the others
};

}  // namespace ingot::test
