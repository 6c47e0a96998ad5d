// Waits of tests end: what has not come within a minute is a failure. (A test that hangs elsewhere: deadline.cpp.)
#pragma once
#include <sys/wait.h>

#include <chrono>
#include <csignal>
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

}  // namespace ingot::test
