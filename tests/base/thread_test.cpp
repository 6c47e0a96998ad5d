// Threads of the library, objects of threads, and how a thread computes.
#include "base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/float_environment.h"
#include "base/thread_object.h"

namespace ingot {
namespace {

std::vector<std::string> events;

struct Logged {
  int number = 0;
  ~Logged() { events.push_back("object " + std::to_string(number) + " ends"); }
};
constinit thread_local ThreadObject<Logged> object;

struct Later {
  const char* name;
  bool used = false;
  ~Later() {
    if (used) events.push_back(std::string(name) + " sees " + std::to_string(object->number));
  }
};

TEST(ThreadObject, OutlivesTheThreadsOtherObjects) {
  events.clear();
  std::thread([] {
    thread_local Later before{"before"};
    before.used = true;
    object->number = 7;
    thread_local Later after{"after"};
    after.used = true;
  }).join();
  EXPECT_EQ(events, (std::vector<std::string>{"after sees 7", "before sees 7", "object 7 ends"}));
}

TEST(ThreadObject, IsMadeAnewForWhatComesAfterIt) {
  events.clear();
  static pthread_key_t key;
  pthread_key_create(&key, [](void*) { object->number += 1; });
  std::thread([] {
    object->number = 3;
    pthread_setspecific(key, &key);
  }).join();
  // Either key may be called first.
  EXPECT_TRUE(events == std::vector<std::string>({"object 4 ends"}) ||
              events == std::vector<std::string>({"object 3 ends", "object 1 ends"}));
  pthread_key_delete(key);
}

TEST(Thread, LeavesSignalsToTheUsersButForItsOwnFaultsAndTheProfilers) {
  std::promise<sigset_t> masked;
  start_thread("ingot-test", [&] {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    masked.set_value(now);
  });
  std::future<sigset_t> answer = masked.get_future();
  ASSERT_EQ(answer.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  const sigset_t mask = answer.get();
  for (int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF}) EXPECT_FALSE(sigismember(&mask, open)) << open;
  for (int blocked : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD, SIGHUP})
    EXPECT_TRUE(sigismember(&mask, blocked)) << blocked;
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_FALSE(sigismember(&mine, SIGINT));  // the maker's are as they were
}

TEST(Thread, ComputesInTheDefaultModesWhateverItsMakers) {
  const uint32_t mine = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(0xffc0);
  std::promise<uint32_t> modes;
  start_thread("ingot-test", [&] { modes.set_value(__builtin_ia32_stmxcsr()); });
  __builtin_ia32_ldmxcsr(mine);
  std::future<uint32_t> there = modes.get_future();
  ASSERT_EQ(there.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(there.get(), 0x1f80u);
}

template <class Environment>
void expect_default_inside() {
  const uint32_t mine = __builtin_ia32_stmxcsr();
  for (uint32_t modes : {0x9f80u, 0x1fc0u, 0x3f80u, 0x5f80u, 0x7f80u, 0x1900u, 0x1f80u}) {
    __builtin_ia32_ldmxcsr(modes);
    uint32_t inside = 0;
    try {
      Environment outer;
      Environment inner;
      inside = __builtin_ia32_stmxcsr();
      throw 1;
    } catch (int) {
    }
    const uint32_t after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mine);
    EXPECT_EQ(inside & 0xffc0u, 0x1f80u) << modes;
    EXPECT_EQ(after & 0xffc0u, modes);
  }
}

TEST(FloatEnvironment, IsTheDefaultAndGivesTheCallersBack) {
  expect_default_inside<FloatEnvironment>();
  expect_default_inside<WholeFloatEnvironment>();
  std::fesetround(FE_UPWARD);
  int inside = -1;
  {
    WholeFloatEnvironment environment;
    inside = std::fegetround();
  }
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(inside, FE_TONEAREST);
  EXPECT_EQ(after, FE_UPWARD);
}

}  // namespace
}  // namespace ingot
