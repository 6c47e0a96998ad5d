// What frozen functions keep has bounds; past them calls give the same results, and what was of use is found again.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "compile/frozen_table.h"
#include "eager/execute/caches.h"
#include "support.h"

namespace ingot {
namespace {

using detail::FrozenTable;
using test::same_bits;

const CompileOptions kFrozen{.mode = CompileMode::frozen};
constexpr int64_t kMost = FrozenTable::kMostEntries;

void expect_bounded(const Statistics& s) {
  EXPECT_LE(s.frozen_entries, kMost);
  EXPECT_LE(s.frozen_bytes, FrozenTable::kMostBytes);
}

TEST(FrozenBounds, AScalarThatIsAlwaysAnother) {
  auto f = [](const Tensor& x, double s) { return x * s + 1; };
  auto fast = compile(f, kFrozen);
  Tensor x = ones({3});
  for (int i = 0; i < 20000; ++i) {
    Tensor y = fast(x, i);
    if (i % 97 == 0) {
      EXPECT_TRUE(same_bits(y, f(x, i)));
    }
  }
  expect_bounded(fast.stats());
  EXPECT_EQ(fast.stats().compilations, 1);
  EXPECT_EQ(fast.stats().frozen_calls, 0);
  // One that stays is frozen all the same, if later.
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(same_bits(fast(x, -1.5), f(x, -1.5)));
  EXPECT_GT(fast.stats().frozen_calls, 1000);
}

TEST(FrozenBounds, SlightCallsThatNeverFreezeRunEagerly) {
  // Of a function whose calls are long, or whose tensors are, none does; where that changes, it is noticed.
  struct Form {
    int64_t elements;
    int ops;
    bool eager;
  };
  for (const Form& form : {Form{16, 1, true}, Form{1024, 3, true}, Form{1025, 1, false}, Form{16, 4, false}}) {
    int ops = form.ops;
    auto f = [&](const Tensor& x, double s) {
      Tensor y = x;
      for (int i = 0; i < ops; ++i) y = y * s;
      return y;
    };
    auto fast = compile(f, kFrozen);
    Tensor x = rand({form.elements});
    auto call = [&](int first, int last) {
      const int64_t before = fast.stats().eager_calls;
      for (int i = first; i < last; ++i) {
        Tensor y = fast(x, i / 1000.0);
        if (i % 97 == 0) {
          EXPECT_TRUE(same_bits(y, f(x, i / 1000.0)));
        }
      }
      return fast.stats().eager_calls - before;
    };
    call(0, 200'000);  // until it is given up
    const int64_t eager = call(200'000, 201'000);
    EXPECT_EQ(eager > 900, form.eager) << form.elements << " elements, " << form.ops << " ops: " << eager;
    EXPECT_EQ(eager == 0, !form.eager);
    ops = 9;
    call(201'000, 202'000);  // some calls are looked at again
    EXPECT_EQ(call(202'000, 203'000), 0) << "noticed that the calls are longer";
    const Statistics s = fast.stats();
    EXPECT_EQ(s.calls, 203'000);
    EXPECT_LE(s.hits + s.eager_calls, s.calls);
  }
  // Errors, breaks and other levels of numerics as in any call.
  Tensor x = rand({4});
  auto throws = compile([](const Tensor& t, double s) { return s < 0 ? t.reshape({3}) : t * s; }, kFrozen);
  for (int i = 0; i < 200'000; ++i) throws(x, i);
  EXPECT_GT(throws.stats().eager_calls, 1000);
  for (int i = 0; i < 300; ++i) {
    EXPECT_THROW(throws(x, -1), Error);
    EXPECT_TRUE(same_bits(throws(x, i + 0.5), x * (i + 0.5)));
  }
  auto asks = compile([](const Tensor& t, double s) { return t * (t * s).sum().item<double>(); }, kFrozen);
  for (int i = 0; i < 20'000; ++i) asks(x, i);
  EXPECT_EQ(asks.stats().eager_calls, 0);
}

TEST(FrozenBounds, ScalarsThatComeRound) {
  // Fewer than there is room for are frozen in the end; of more, those that are.
  for (int64_t values : {300, 3000}) {
    int64_t runs = 0;
    auto fast = compile(
        [&](const Tensor& x, int64_t s) {
          ++runs;
          return x * s;
        },
        kFrozen);
    Tensor x = ones({3});
    for (int64_t i = 0; i < 60000; ++i) {
      Tensor y = fast(x, i % values);
      if (i % 89 == 0) {
        EXPECT_TRUE(same_bits(y, x * (i % values)));
      }
    }
    const Statistics s = fast.stats();
    expect_bounded(s);
    EXPECT_EQ(s.frozen_calls + runs, 60000);
    if (values == 300) {
      EXPECT_EQ(s.frozen_entries, values);
    }
  }
}

TEST(FrozenBounds, SizesBeyondTheTable) {
  auto f = [](const Tensor& x) { return x.cumsum(0) + x.size(0); };
  auto fast = compile(f, kFrozen);
  for (int64_t n = 1; n <= 3 * kMost; ++n) {
    Tensor x = ones({n});
    Tensor y = fast(x);
    if (n % 61 == 0) {
      EXPECT_TRUE(same_bits(y, f(x)));
    }
  }
  const Statistics s = fast.stats();
  expect_bounded(s);
  EXPECT_EQ(s.frozen_entries, kMost);
  EXPECT_GT(s.frozen_evictions, 0);
  EXPECT_LE(s.compilations, 3);
}

TEST(FrozenBounds, TextsCount) {
  auto f = [](const Tensor& x, const std::string& text) { return x * static_cast<double>(text.size()); };
  auto fast = compile(f, kFrozen);
  Tensor x = ones({3});
  for (size_t i = 1; i <= 40; ++i)
    for (int call = 0; call < 3; ++call) {
      const std::string text((1 << 20) + i, 'x');
      EXPECT_TRUE(same_bits(fast(x, text), f(x, text)));
    }
  expect_bounded(fast.stats());
  EXPECT_GT(fast.stats().frozen_evictions, 0);
}

int64_t resident_mebibytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

// A mebibyte a call, of which nothing may stay.
TEST(FrozenBounds, TensorsOfPastCallsAreLetGoOf) {
  constexpr int64_t kElements = 1 << 18;
  constexpr int kCalls = 400;
  Tensor weight;
  std::vector<float> numbers(kElements, 2.0f);
  auto captures = [&](const Tensor& x, double s) { return (weight * s).sum() + x; };
  auto makes = [&](const Tensor& x, double s) {
    return (from_blob(numbers.data(), {kElements}).clone() * s).sum() + (empty({kElements}).fill_(s)).sum() + x;
  };
  auto adopts = [&](const Tensor& x, double s) {
    auto* own = new std::vector<float>(kElements, 3.0f);
    Tensor t = from_blob(own->data(), {kElements}, [own](void*) { delete own; });
    return (t * s).sum() + x;
  };
  auto writes = [&](const Tensor& x, double s) {
    Tensor t = empty({kElements}).fill_(1);
    t.mutable_data_ptr<float>()[7] = 3;
    return (t * s).sum() + x;
  };
  auto judge = [&](const char* name, auto f) {
    for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
      auto fast = compile(f, {.mode = mode});
      int64_t before = 0;
      for (int i = 0; i < kCalls; ++i) {
        if (i == 20) before = resident_mebibytes();
        weight = full({kElements}, 1 + i % 7);
        Tensor x = full({1 + i % 3}, 5);
        EXPECT_TRUE(same_bits(fast(x, i), f(x, i))) << name;
      }
      EXPECT_LT(resident_mebibytes() - before, 40) << name;
    }
  };
  judge("captures", captures);
  judge("makes", makes);
  judge("adopts", adopts);
  judge("writes", writes);
}

TEST(FrozenBounds, ClearingForgetsWhatWasLearnt) {
  int runs = 0;
  auto f = [&](const Tensor& x, double s) {
    ++runs;
    return x * s;
  };
  auto fast = compile(f, kFrozen), dropped = compile(f, kFrozen);
  Tensor x = ones({3});
  for (int round = 0; round < 3; ++round) {
    for (double s : {1.0, 2.0, 3.0})
      for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(fast(x, s), x * s));
    for (int64_t n : {4, 5, 6}) EXPECT_TRUE(same_bits(fast(ones({n}), 1.0), ones({n})));
    EXPECT_GT(fast.stats().frozen_entries, 3);
    runs = 0;
    fast(x, 2.0);
    EXPECT_EQ(runs, 0);
    clear_caches();
    EXPECT_EQ(fast.stats().frozen_entries, 0);
    EXPECT_EQ(fast.stats().frozen_bytes, 0);
    EXPECT_TRUE(same_bits(fast(x, 2.0), x * 2.0));
    EXPECT_EQ(runs, 1);
    clear_caches();
  }
}

// What another thread clears is held while a call reads it.
TEST(FrozenBounds, ClearingUnderThreads) {
  auto f = [](const Tensor& x) { return (x * 2).sum(0) + x.size(0); };
  auto fast = compile(f, kFrozen);
  std::atomic<int> wrong{0}, running{4};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 500; ++i) {
        const int64_t n = 1 + (i + t) % 9;
        if (fast(ones({n})).item<float>() != static_cast<float>(3 * n)) ++wrong;
      }
      --running;
    });
  int cleared = 0;
  for (; running > 0 || !cleared; ++cleared) {
    clear_caches();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Calls are taken out while other threads run them.
TEST(FrozenBounds, EvictionUnderThreads) {
  auto f = [](const Tensor& x) { return (x * 2).sum(0) + x.size(0); };
  auto fast = compile(f, kFrozen);
  for (int64_t n : {2, 3, 4}) fast(ones({n}));
  std::atomic<int> wrong{0}, calls{3};
  // Who finds the recorder at work learns nothing, so how many calls it takes depends on how threads meet.
  auto ended = [&](int64_t i) {
    return i >= 1500 && i % 256 == 0 && (fast.stats().frozen_evictions > 0 || i >= 100 * 1500);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; !ended(i); ++i, ++calls) {
        const int64_t n = i % 3 ? 1 + (i * 7 + t) % 20 : 1 + (i * 13 + 211 * t) % (2 * kMost);
        if (fast(ones({n})).item<float>() != static_cast<float>(3 * n)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  expect_bounded(fast.stats());
  EXPECT_GT(fast.stats().frozen_evictions, 0);
  EXPECT_EQ(fast.stats().calls, calls);
}

TEST(FrozenBounds, MoreThreadsThanIdleRecorders) {
  auto f = [](const Tensor& x) { return (x * 2).tanh(); };
  auto fast = compile(f);
  Tensor x = ones({5}), expected = f(x);
  for (int round = 0; round < 2; ++round) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 100; ++t) threads.emplace_back([&] { wrong += !same_bits(fast(x), expected); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_EQ(fast.stats().compilations, 1);
}

}  // namespace
}  // namespace ingot
