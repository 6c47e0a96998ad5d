// What it takes to be frozen: sizes that never repeat, more sizes than are kept, threads that learn at once, tensors
// that the callable makes and fills, another number of threads; and what is said where a call is not frozen.
#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <thread>

#include "eager/ops/random.h"
#include "runtime/thread_pool.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

const CompileOptions kFrozen{.mode = CompileMode::frozen};

template <class F>
void on_threads(int count, F body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&body, t] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

bool refused(const std::string& state) { return state.find("refused") != std::string::npos; }

TEST(FrozenLearning, SizesThatNeverRepeatAreFrozen) {
  int runs = 0;
  auto f = [&](const Tensor& x) {
    ++runs;
    return (x.matmul(x.t()) + x.sum(1, true)).softmax(1) * x.size(0);
  };
  auto fast = compile(f, kFrozen);
  for (int64_t n = 1; n <= 100; ++n) {
    Tensor x = randn({n, 4});
    Tensor got = fast(x);
    const int before = runs;
    EXPECT_TRUE(same_bits(got, f(x))) << n;
    runs = before;
  }
  EXPECT_LE(runs, 4);
  EXPECT_FALSE(refused(fast.explain().frozen)) << fast.explain().frozen;
  EXPECT_NE(fast.explain().frozen.find(", 1 sizes free"), std::string::npos) << fast.explain().frozen;
}

TEST(FrozenLearning, ArgumentsThatShareMemoryInSeveralWaysAreSeveralCalls) {
  int runs = 0;
  auto f = [&](const Tensor& a, const Tensor& b) {
    ++runs;
    a.add_(1);
    return a * 3 + b * 2;
  };
  // How far the second begins behind the first, in rows; -1: elsewhere.
  auto arguments = [](int64_t rows) {
    Tensor x = arange(18).to(kFloat32).view({6, 3});
    return std::pair(x.narrow(0, 0, 3), rows < 0 ? ones({3, 3}) : x.narrow(0, rows, 3));
  };
  auto fast = compile(f, kFrozen);
  auto judge = [&](int64_t rows) {
    auto [a, b] = arguments(rows);
    auto [c, d] = arguments(rows);
    const int before = runs;
    const Tensor got = fast(a, b);
    const bool ran = runs > before;
    EXPECT_TRUE(same_bits(got, f(c, d))) << rows;
    EXPECT_TRUE(same_bits(a, c) && same_bits(b, d)) << rows;
    return ran;
  };
  for (int round = 0; round < 6; ++round)
    for (int64_t rows : {-1, 0, 3, -1, 1}) {
      const bool ran = judge(rows);
      // What overlaps in part is never one program; what is one tensor, or two, is frozen after some calls.
      if (round == 5 && rows != 1) EXPECT_FALSE(ran) << rows << " " << fast.explain().frozen;
    }
  EXPECT_FALSE(refused(fast.explain().frozen)) << fast.explain().frozen;
}

TEST(FrozenLearning, OneTensorInSeveralPlacesAtSizesThatNeverRepeat) {
  int runs = 0;
  auto f = [&](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    ++runs;
    return a * b - c / (d.square() + 1);
  };
  auto fast = compile(f, kFrozen);
  for (int64_t n = 1; n <= 40; ++n) {
    Tensor x = randn({n, 3});
    Tensor got = fast(x, x, x, x);
    const int before = runs;
    EXPECT_TRUE(same_bits(got, f(x, x, x, x))) << n;
    runs = before;
  }
  EXPECT_LE(runs, 4);
  Tensor x = randn({5, 3}), y = randn({5, 3});
  EXPECT_TRUE(same_bits(fast(x, y, x, x), f(x, y, x, x)));
  EXPECT_TRUE(same_bits(fast(x, x, y, y), f(x, x, y, y)));
}

TEST(FrozenLearning, SeveralArgumentsWhoseSizesNeverRepeat) {
  int runs = 0;
  auto f = [&](const Tensor& x, const std::vector<Tensor>& rest) {
    ++runs;
    Tensor all = x;
    for (const Tensor& t : rest) all = cat({all, t * 2}, 0);
    return std::pair(all, all.view({-1, all.size(0)}).sum(1));
  };
  auto fast = compile(f, kFrozen);
  for (int64_t n = 1; n <= 40; ++n) {
    Tensor x = randn({n, 3});
    std::vector<Tensor> rest{randn({2 * n, 3}), randn({n % 7 + 1, 3})};
    const int before = runs;
    auto [all, sum] = fast(x, rest);
    const int ran = runs - before;
    auto [expected, expected_sum] = f(x, rest);
    runs = before + ran;
    EXPECT_TRUE(same_bits(all, expected));
    EXPECT_TRUE(same_bits(sum, expected_sum));
  }
  EXPECT_LT(runs, 10);
}

TEST(FrozenLearning, AScalarOfTheCallablesOwnIsNotForetold) {
  // Calls of ever other sizes, each with another number that no argument tells.
  double counter = 0;
  auto fast = compile([&](const Tensor& x) { return x * ++counter; }, kFrozen);
  for (int64_t n = 1; n <= 60; ++n) EXPECT_TRUE(same_bits(fast(ones({n})), full({n}, static_cast<double>(n))));
}

TEST(FrozenLearning, ACapturedTensorThatWasAnArgumentIsTold) {
  Tensor w = randn({4});
  auto f = [w](const Tensor& x) { return x * 2 + w; };
  auto fast = compile(f, kFrozen);
  for (const Tensor& x : {w, randn({1}), randn({4}), w, randn({1}), randn({2, 4}), randn({3, 4}), w, randn({9, 4})})
    EXPECT_TRUE(same_bits(fast(x), f(x)));
}

// A callable that has been found out is not believed again, and nothing of it is kept.
TEST(FrozenLearning, ARefusalIsForGood) {
  int runs = 0;
  bool odd = false;
  auto held = std::make_shared<Tensor>(randn({64}));
  auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return odd ? x * *held : x + *held;
      },
      kFrozen);
  (void)fast(ones({64}));
  odd = true;
  (void)fast(ones({64}));
  const std::string state = fast.explain().frozen;
  EXPECT_TRUE(refused(state)) << state;
  runs = 0;
  for (int call = 0; call < 20; ++call) EXPECT_TRUE(same_bits(fast(ones({64})), *held));
  EXPECT_EQ(runs, 20);
  EXPECT_EQ(fast.explain().frozen, state);
}

TEST(FrozenLearning, ARefusalEndsWhatWasFrozenBefore) {
  int runs = 0;
  bool odd = false;
  auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return odd ? x * 3 : x + 3;
      },
      kFrozen);
  for (int64_t n : {1, 2, 2, 3, 4}) (void)fast(ones({n}));  // sizes are free by now
  EXPECT_LE(runs, 3);
  (void)fast(ones({8}, kFloat64));
  odd = true;
  (void)fast(ones({8}, kFloat64));
  EXPECT_TRUE(refused(fast.explain().frozen)) << fast.explain().frozen;
  for (int64_t n : {1, 2, 3, 4, 5}) {
    runs = 0;
    EXPECT_TRUE(same_bits(fast(ones({n})), full({n}, 3.0))) << n;
    EXPECT_EQ(runs, 1) << n;
  }
}

TEST(FrozenLearning, WhatIsKeptOfAResultCounts) {
  auto bytes = [](int results) {
    auto fast = compile([=](const Tensor& x) { return std::vector<Tensor>(static_cast<size_t>(results), x); }, kFrozen);
    for (int call = 0; call < 4; ++call) (void)fast(ones({2}));
    return fast.stats().frozen_bytes;
  };
  EXPECT_GE(bytes(101) - bytes(1), 100 * static_cast<int64_t>(sizeof(Tensor)));
}

// One tensor is the argument and captured, in calls of all orders, among others of the same sizes and of free ones.
TEST(FrozenLearning, AnArgumentThatIsCapturedAsWellStandsForItselfOnly) {
  Tensor stack = randn({3, 5, 5}), w = stack.select(0, 1), other = randn({5, 5});
  auto uses_both = [&](const Tensor& x) { return x.relu().matmul(w) * 2; };
  auto leaves_it = [&](const Tensor& x) { return (w * 1.25).matmul(w) + x.size(0); };
  auto gives_it = [&](const Tensor& x) { return std::vector<Tensor>{w, x.sum()}; };
  auto all = [](auto f) { return [f](const Tensor& x) { return std::vector<Tensor>{f(x)}; }; };
  auto judge = [&](auto f, const char* name) {
    const std::vector<Tensor> calls{
        randn({4, 5}), w, other, stack[1], stack[2], stack.select(0, 0), randn({6, 5}), w.t(), stack[1].contiguous()};
    for (int order = 0; order < 60; ++order) {
      auto fast = compile(f, kFrozen);
      for (int call = 0; call < 12; ++call) {
        const Tensor& x = calls[static_cast<size_t>(order * 7 + call * (1 + order % 5) + call / 3) % calls.size()];
        const std::vector<Tensor> got = fast(x), expected = f(x);
        for (size_t k = 0; k < expected.size(); ++k)
          EXPECT_TRUE(same_bits(got[k], expected[k])) << name << ", order " << order << ", call " << call;
      }
      EXPECT_FALSE(refused(fast.explain().frozen)) << name << ": " << fast.explain().frozen;
    }
  };
  judge(all(uses_both), "uses_both");
  judge(all(leaves_it), "leaves_it");
  judge(gives_it, "gives_it");
}

// Each size is held to, as it goes through a plain number.
TEST(FrozenLearning, MoreSizesThanABindingCacheHolds) {
  std::atomic<int> runs{0};
  auto f = [&](const Tensor& x) {
    ++runs;
    return (x * static_cast<double>(x.numel())).tanh();
  };
  for (int64_t sizes : {63, 64, 65, 150}) {
    auto fast = compile(f, kFrozen);
    for (int round = 0; round < 4; ++round) {
      runs = 0;
      for (int64_t n = 1; n <= sizes; ++n) {
        Tensor x = randn({n});
        EXPECT_TRUE(same_bits(fast(x), (x * static_cast<double>(n)).tanh()));
      }
      if (round >= 2) {
        EXPECT_EQ(runs, 0) << sizes << " " << fast.explain().frozen;
      }
    }
    EXPECT_FALSE(refused(fast.explain().frozen)) << sizes << " " << fast.explain().frozen;
  }
}

TEST(FrozenLearning, ThreadsWithSeveralSizesLearnOneProgram) {
  Tensor w = randn({8, 8});
  std::atomic<int> runs{0};
  auto plain = [w](const Tensor& x) { return x.matmul(w).relu().sum(1) / x.size(0); };
  auto pinned = [w](const Tensor& x) { return x.matmul(w).relu() * static_cast<double>(x.numel()); };
  std::vector<Tensor> inputs;
  for (int64_t n : {1, 2, 3, 5, 8, 13, 21}) inputs.push_back(randn({n, 8}));
  auto judge = [&](auto function) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      auto fast = compile(
          [&](const Tensor& x) {
            ++runs;
            std::this_thread::yield();  // others learn meanwhile
            Tensor y = function(x);
            std::this_thread::yield();
            return y;
          },
          kFrozen);
      std::atomic<int> wrong{0}, waiting{8};
      on_threads(8, [&](int t) {
        --waiting;
        while (waiting.load() > 0) std::this_thread::yield();
        for (size_t i = 0; i < 30; ++i) {
          const Tensor& x = inputs[(i + static_cast<size_t>(t)) % inputs.size()];
          if (!same_bits(fast(x), function(x))) ++wrong;
        }
      });
      EXPECT_EQ(wrong, 0);
      EXPECT_FALSE(refused(fast.explain().frozen)) << fast.explain().frozen;
      // What one thread learnt, all have: two calls of each size at most were still to be seen.
      for (int i = 0; i < 2; ++i)
        for (const Tensor& x : inputs) fast(x);
      runs = 0;
      on_threads(4, [&](int) {
        for (const Tensor& x : inputs) fast(x);
      });
      EXPECT_EQ(runs, 0) << fast.explain().frozen;
    }
  };
  judge(plain);
  judge(pinned);
}

TEST(FrozenLearning, ThreadsWhoseNumbersNeverRepeat) {
  auto f = [](const Tensor& x, double s) { return (x * s).tanh(); };
  auto fast = compile(f, kFrozen);
  std::atomic<int> wrong{0};
  on_threads(6, [&](int t) {
    Tensor x = randn({4});
    for (int i = 0; i < 600; ++i) {
      const double s = t + 6.0 * (i % 300);
      if (!same_bits(fast(x, s), f(x, s))) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(refused(fast.explain().frozen)) << fast.explain().frozen;
}

/// The third call does not run the callable, and every call gives what eager gives, the same draws included.
template <class F>
void third_call_is_frozen(const char* name, F f) {
  int runs = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return f(x);
      },
      kFrozen);
  for (int i = 0; i < 4; ++i) {
    Tensor x = randn({3, 4});
    manual_seed(static_cast<uint64_t>(i));
    Tensor expected = f(x);
    manual_seed(static_cast<uint64_t>(i));
    EXPECT_TRUE(same_bits(fast(x), expected)) << name;
  }
  EXPECT_EQ(runs, 2) << name << ": " << fast.explain().frozen;
}

TEST(FrozenLearning, TensorsThatTheCallableMakesAndFillsAreItsOwn) {
  third_call_is_frozen("empty_like.copy_", [](const Tensor& x) { return empty_like(x).copy_(x) * 2; });
  third_call_is_frozen("empty.fill_", [](const Tensor& x) { return empty({3, 4}).fill_(2) + x; });
  third_call_is_frozen("empty.zero_", [](const Tensor& x) { return empty(x.size(1)).zero_() + x; });
  third_call_is_frozen("empty.uniform_", [](const Tensor& x) { return empty({3, 4}).uniform_(-1, 1) + x; });
  third_call_is_frozen("empty.normal_", [](const Tensor& x) { return empty({3, 4}).normal_() + x; });
  third_call_is_frozen("empty.exponential_", [](const Tensor& x) { return empty({3, 4}).exponential_() + x; });
  third_call_is_frozen("empty_like.exponential_",
                       [](const Tensor& x) { return x - empty_like(x).exponential_().log(); });
  third_call_is_frozen("empty.bernoulli_", [](const Tensor& x) { return empty({3, 4}).bernoulli_(0.5) * x; });
  third_call_is_frozen("rows", [](const Tensor& x) {
    Tensor y = empty({3, 4});
    for (int64_t i = 0; i < 3; ++i) y[i].copy_(x[2 - i]);
    return y;
  });
  third_call_is_frozen("halves", [](const Tensor& x) {
    Tensor y = empty({3, 8});
    y.narrow(1, 0, 4).copy_(x);
    y.narrow(1, 4, 4).copy_(-x);
    return y + 1;
  });
  third_call_is_frozen("add_ after copy_", [](const Tensor& x) { return empty_like(x).copy_(x).add_(1).mul_(x); });
  third_call_is_frozen("dtype", [](const Tensor& x) { return empty({3, 4}, kFloat64).copy_(x); });
  third_call_is_frozen("clone", [](const Tensor& x) { return x.clone().add_(1).exp_(); });
  third_call_is_frozen("zeros", [](const Tensor& x) { return zeros_like(x).copy_(x).relu_(); });
  third_call_is_frozen("index_put_", [](const Tensor& x) {
    Tensor y = empty({3, 4}).zero_();
    y.index_put_({1}, x[0]);
    return y;
  });
  third_call_is_frozen("returned chunks", [](const Tensor& x) { return (x * 2).chunk(2, 1)[0]; });
  third_call_is_frozen("returned empty parts", [](const Tensor& x) {
    Tensor y = empty_like(x);
    y.copy_(x);
    return y.t();
  });
}

TEST(FrozenLearning, OwnTensorsOfOtherSizes) {
  int runs = 0;
  auto f = [&](const Tensor& x) {
    ++runs;
    Tensor y = empty({x.size(0), 2});
    y.select(1, 0).copy_(x);
    y.select(1, 1).fill_(3);
    return y + empty_like(y).zero_();
  };
  auto fast = compile(f, kFrozen);
  for (int64_t n = 1; n <= 30; ++n) {
    Tensor x = randn({n});
    const int before = runs;
    Tensor got = fast(x);
    const int ran = runs - before;
    EXPECT_TRUE(same_bits(got, f(x)));
    runs = before + ran;
  }
  EXPECT_LE(runs, 4) << fast.explain().frozen;
}

TEST(FrozenLearning, SeedingBetweenCallsIsNoneOfTheCallables) {
  third_call_is_frozen("rand", [](const Tensor& x) { return x + rand({3, 4}); });
  auto fast = compile(
      [](const Tensor& x) {
        manual_seed(3);
        return x + rand({3});
      },
      kFrozen);
  Tensor x = ones({3});
  for (int i = 0; i < 4; ++i) {
    manual_seed(3);
    Tensor expected = x + rand({3});
    EXPECT_TRUE(same_bits(fast(x), expected));
  }
  EXPECT_NE(fast.explain().frozen.find("manual_seed"), std::string::npos) << fast.explain().frozen;
}

template <class F>
std::string state_after(F f, int calls = 4) {
  auto fast = compile(f, kFrozen);
  for (int i = 0; i < calls; ++i) fast(ones({3}));
  const Explanation e = fast.explain();
  EXPECT_NE(e.str().find(e.frozen), std::string::npos);
  EXPECT_NE(e.html().find("<p class=dim>frozen: "), std::string::npos);
  return fast.explain().frozen;
}

TEST(FrozenLearning, AReasonNamesWhatStoodInTheWay) {
  auto names = [](const std::string& state, std::vector<std::string> parts) {
    EXPECT_TRUE(refused(state)) << state;
    for (const std::string& part : parts) EXPECT_NE(state.find(part), std::string::npos) << part << " in: " << state;
  };
  names(state_after([](const Tensor& x) { return x * x.sum().item<float>(); }), {"item", "frozen_learning_test.cpp"});
  names(state_after([](const Tensor& x) { return x * (x + 1).data_ptr<float>()[0]; }), {"data_ptr"});
  names(state_after([](const Tensor& x) { return (x + 1).nonzero() + 1; }), {"in parts", "frozen_learning_test.cpp"});
  names(state_after([](const Tensor& x) { return x + tensor({1.f, 2.f, 3.f}); }), {"made outside the ops"});
  auto inner = compile([](const Tensor& x) { return x.exp(); }, kFrozen);
  names(state_after([&](const Tensor& x) { return inner(x + 1) * 2; }), {"a frozen function is called"});
  int unrolled = 0;
  names(state_after(
            [&](const Tensor& x) {
              Tensor y = x;
              for (int i = 0; i < unrolled; ++i) y = y.exp();
              ++unrolled;
              return y;
            },
            4),
        {"other ops"});
}

TEST(FrozenLearning, WhatStoodInTheWayOfOneCallIsNotHeldAgainstOthers) {
  int runs = 0;
  auto fast = compile(
      [&](const Tensor& x, bool ask) {
        ++runs;
        return ask ? x * x.sum().item<float>() : x * 2;
      },
      kFrozen);
  Tensor x = ones({3});
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(same_bits(fast(x, true), x * 3));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(fast(x, false), x * 2));
  EXPECT_EQ(runs, 22) << fast.explain().frozen;
}

size_t system_threads() {
  using Entries = std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(Entries("/proc/self/task"), Entries()));
}

// Workers are started when a call wants them: a number of threads that the process never had shows whether one does.
TEST(FrozenLearning, ACallUsesTheThreadsThatThereAre) {
  struct Restore {
    int threads = num_threads();
    ~Restore() { set_num_threads(threads); }
  } restore;
  // Work that is cut for a number of threads when its sizes are bound.
  Tensor w = randn({1 << 19, 8});
  std::vector<std::pair<Tensor, std::function<Tensor(const Tensor&)>>> cases{
      {randn({1 << 17, 16}), [](const Tensor& x) { return (x * 2).sum(0); }},
      {randn({8, 1 << 19}), [w](const Tensor& x) { return x.matmul(w) + 1; }},
      {randn({1, 1 << 21}), [](const Tensor& x) { return (x * 2).softmax(1); }},
  };
  int judged = 0;
  for (auto& [x, f] : cases) {
    Tensor expected = f(x);
    size_t wanted = 0;
    auto judge = [&, &x = x](const char* name, const auto& fast) {
      set_num_threads(1);
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(fast(x), expected));
      wanted = system_threads() + 1;
      set_num_threads(static_cast<int>(wanted));
      Tensor got = fast(x);
      EXPECT_GE(system_threads(), wanted) << name << " of case " << judged / 3;
      EXPECT_TRUE(same_bits(got, expected));
      set_num_threads(1);
      EXPECT_TRUE(same_bits(fast(x), expected));
      ++judged;
    };
    judge("checked", compile(f));
    judge("frozen", compile(f, kFrozen));
    auto general = compile(f, kFrozen);
    set_num_threads(1);
    for (int64_t n : {4, 5, 6}) general(x.narrow(x.size(0) > 1 ? 0 : 1, 0, n).contiguous());
    judge("frozen for other sizes", general);
  }
  EXPECT_EQ(judged, 9);
}

}  // namespace
}  // namespace ingot
