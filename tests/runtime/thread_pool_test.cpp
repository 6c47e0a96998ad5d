#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/sanitizer.h"
#include "bounded.h"

namespace ingot::runtime {
namespace {

class ThreadPool : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override { set_num_threads(initial_); }
  int initial_ = num_threads();
};

TEST_P(ThreadPool, EachThreadIsCalledOnce) {
  for (int round = 0; round < 1000; ++round) {
    std::vector<int> calls(GetParam(), 0);
    int seen = 0;
    parallel(GetParam(), [&](int thread, int threads) {
      ++calls[thread];
      if (thread == 0) seen = threads;
    });
    ASSERT_EQ(seen, GetParam());
    for (int count : calls) ASSERT_EQ(count, 1);
  }
}

TEST_P(ThreadPool, FewerThreadsThanThePoolHas) {
  std::atomic<int> calls{0};
  parallel(2, [&](int, int) { ++calls; });
  EXPECT_EQ(calls, std::min(2, GetParam()));
  parallel(GetParam(), [&](int, int) { ++calls; });
  EXPECT_EQ(calls, std::min(2, GetParam()) + GetParam());
}

TEST_P(ThreadPool, NestedRegionsRunOnTheirCaller) {
  std::vector<int> inner(GetParam(), 0);
  parallel(GetParam(), [&](int thread, int) {
    parallel(8, [&](int nested, int threads) {
      EXPECT_EQ(nested, 0);
      EXPECT_EQ(threads, 1);
      ++inner[thread];
    });
  });
  for (int count : inner) EXPECT_EQ(count, 1);
}

TEST_P(ThreadPool, AwaitOrdersWhatThreadsWrite) {
  constexpr int kRounds = 200;
  std::vector<int> cells(GetParam(), 0);
  std::vector<std::atomic<int>> written(kRounds + 1), read(kRounds + 1);
  std::atomic<int> wrong{0};
  parallel(GetParam(), [&](int thread, int threads) {
    for (int round = 1; round <= kRounds; ++round) {
      cells[thread] = round;
      ++written[round];
      await(written[round], threads);
      if (std::accumulate(cells.begin(), cells.end(), 0) != round * threads) ++wrong;
      ++read[round];
      await(read[round], threads);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(ThreadPool, ExceptionsReachTheCallerAndThoseWhoWait) {
  for (int thrower = 0; thrower < GetParam(); ++thrower) {
    std::atomic<int> never{0};
    std::atomic<int> begun{0};
    auto region = [&](int thread, int threads) {
      ++begun;
      await(begun, threads);
      if (thread == thrower) throw std::runtime_error("thread " + std::to_string(thrower));
      await(never, 1);
    };
    try {
      parallel(GetParam(), region);
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "thread " + std::to_string(thrower));
    }
  }
  std::atomic<int> calls{0};
  parallel(GetParam(), [&](int, int) { ++calls; });
  EXPECT_EQ(calls, GetParam());
}

TEST_P(ThreadPool, ASecondCallerHasItsOwnThreadOnly) {
  constexpr int kItems = 1000;
  auto sum = [&] {
    for (int round = 0; round < 300; ++round) {
      std::vector<int64_t> parts(GetParam(), 0);
      parallel(GetParam(), [&](int thread, int threads) {
        Range range = share(kItems, thread, threads);
        for (int64_t i = range.begin; i < range.end; ++i) parts[thread] += i;
      });
      ASSERT_EQ(std::accumulate(parts.begin(), parts.end(), int64_t{0}), kItems * (kItems - 1) / 2);
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) callers.emplace_back(sum);
  for (std::thread& caller : callers) caller.join();
}

// No thread need be there for the others: the caller does what nobody has begun.
TEST_P(ThreadPool, AbsentWorkersAreNotWaitedFor) {
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> calls(GetParam());
    parallel(GetParam(), [&](int thread, int) { ++calls[thread]; });
    for (const auto& count : calls) ASSERT_EQ(count, 1);
    if (round % 20 == 0) usleep(500);
  }
}

TEST_P(ThreadPool, WorkersThatSleepWakeUp) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> calls{0};
    parallel(GetParam(), [&](int, int threads) {
      ++calls;
      await(calls, threads);  // so each must be there
    });
    ASSERT_EQ(calls, GetParam());
    usleep(2000);  // longer than workers spin
  }
}

#if !INGOT_TSAN  // ThreadSanitizer does not start threads in the child of a process with threads
TEST_P(ThreadPool, StartsAgainAfterFork) {
  parallel(GetParam(), [](int, int) {});
  pid_t child = fork();
  if (child == 0) {
    std::atomic<int> calls{0};
    parallel(GetParam(), [&](int, int) { ++calls; });
    _exit(calls == GetParam() ? 0 : 1);
  }
  EXPECT_EQ(test::exit_code_of(child), 0);
}
#endif

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPool, testing::Values(1, 2, 3, 7));

TEST(Share, CoversTheRangeInOrder) {
  for (int64_t n : {0, 1, 15, 16, 17, 1000})
    for (int threads : {1, 2, 3, 7})
      for (int64_t grain : {1, 16}) {
        int64_t at = 0;
        for (int thread = 0; thread < threads; ++thread) {
          Range range = share(n, thread, threads, grain);
          EXPECT_EQ(range.begin, at);
          EXPECT_TRUE(range.begin % grain == 0 || range.begin == n);
          at = range.end;
        }
        EXPECT_EQ(at, n);
      }
}

TEST(NumThreads, WrongNumbersAreErrors) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(-3), Error);
  EXPECT_THROW(set_num_threads(1025), Error);
}

int threads_with(const char* text) {
  setenv("INGOT_NUM_THREADS", text, 1);
  try {
    return num_threads();
  } catch (const Error& error) {
    return std::string(error.what()).find(text) != std::string::npos ? 100 : 101;
  }
}

TEST(NumThreadsDeathTest, EnvironmentDecides) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(threads_with("5")), testing::ExitedWithCode(5), "");
  EXPECT_EXIT(std::_Exit(threads_with("0")), testing::ExitedWithCode(100), "");
  EXPECT_EXIT(std::_Exit(threads_with("two")), testing::ExitedWithCode(100), "");
}

}  // namespace
}  // namespace ingot::runtime
