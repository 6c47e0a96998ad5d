#include "base/thread.h"

#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace ingot {

void start_thread(const std::string& name, std::function<void()> body) {
  sigset_t left, previous;
  sigfillset(&left);
  for (int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) sigdelset(&left, open);
  struct Restore {
    const sigset_t& mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } restore{previous};
  pthread_sigmask(SIG_BLOCK, &left, &previous);
  std::thread([name, body = std::move(body)] {
    pthread_setname_np(pthread_self(), name.c_str());
    std::fesetenv(FE_DFL_ENV);  // a thread inherits its maker's
    { NoFork known; }           // from here on it never waits for a fork to which its work is joined
    body();
  }).detach();
}

}  // namespace ingot
