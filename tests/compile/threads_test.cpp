// Eight threads that call compiled functions at once: the same one, different ones, and each its own.
#include <atomic>
#include <thread>

#include "bounded.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

constexpr int kThreads = 8;

/// Runs body(thread) on eight threads that start together; each counts what went wrong.
template <class Body>
int failures_of(Body body) {
  std::atomic<int> waiting{kThreads}, failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      --waiting;
      failures += test::eventually([&] { return waiting.load() <= 0; }) ? body(t) : 1;
    });
  for (std::thread& thread : threads) thread.join();
  return failures;
}

struct Work {
  Tensor weight = randn({24, 24});
  Tensor operator()(const Tensor& x) const { return softmax(matmul(x, weight).tanh() + x, 1) * 2; }
};

/// Inputs of several sizes and what eager makes of them.
struct Cases {
  std::vector<Tensor> inputs, expected;
  template <class F>
  explicit Cases(F f, int count = 5) {
    for (int i = 0; i < count; ++i) {
      inputs.push_back(randn({2 + 3 * i, 24}));
      expected.push_back(f(inputs.back()));
    }
  }
  /// Calls that gave other bits than eager, starting from another case on each thread.
  template <class Fast>
  int wrong(const Fast& fast, int thread, int rounds) const {
    int count = 0;
    for (int r = 0; r < rounds; ++r) {
      size_t i = static_cast<size_t>(thread + r) % inputs.size();
      count += !same_bits(fast(inputs[i]), expected[i]);
    }
    return count;
  }
};

TEST(Threads, CallOneFunctionAtOnce) {
  Work work;
  Cases cases(work);
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(work, {.mode = mode});
    EXPECT_EQ(failures_of([&](int t) { return cases.wrong(fast, t, 12); }), 0);
    EXPECT_EQ(fast.stats().fallbacks, 0);
    EXPECT_EQ(fast.stats().calls, kThreads * 12);
  }
}

TEST(Threads, CallFunctionsThatCompileInTheBackground) {
  Work work;
  Cases cases(work);
  // Many functions: a program may become ready at any moment of a call.
  for (int i = 0; i < 40; ++i) {
    auto fast = compile(work, {.background = true});
    EXPECT_EQ(failures_of([&](int t) { return cases.wrong(fast, t, 12); }), 0);
  }
}

// A program whose steps run once for each step of a sequence, of several lengths.
TEST(Threads, CallALayerOfSequencesAtOnce) {
  const NoGradGuard no_grad;
  const nn::GRU layer(4, 40);
  auto call = [&](const Tensor& x) { return std::get<0>(layer(x)); };
  std::vector<Tensor> given, expected;
  for (int64_t length : {3, 40, 41, 9}) given.push_back(randn({length, 2, 4}));
  for (const Tensor& x : given) expected.push_back(call(x));
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(call, {.mode = mode});
    EXPECT_EQ(failures_of([&](int t) {
                const NoGradGuard none;
                int wrong = 0;
                for (size_t i = 0; i < 12; ++i) {
                  const size_t which = (i + static_cast<size_t>(t)) % given.size();
                  wrong += !same_bits(fast(given[which]), expected[which]);
                }
                return wrong;
              }),
              0);
  }
}

TEST(Threads, CallDifferentFunctionsAtOnce) {
  Work work;
  auto other = [&](const Tensor& x) { return layer_norm(x, {24}).matmul(work.weight.t()).relu().sum(1); };
  Cases cases(work), other_cases(other);
  auto fast = compile(work);
  auto fast_other = compile(other);
  EXPECT_EQ(failures_of([&](int t) { return t % 2 ? cases.wrong(fast, t, 10) : other_cases.wrong(fast_other, t, 10); }),
            0);
}

TEST(Threads, CompileEachTheirOwn) {
  Work work;
  Cases cases(work);
  EXPECT_EQ(failures_of([&](int t) {
              auto fast = compile(work);
              return cases.wrong(fast, t, 6);
            }),
            0);
}

TEST(Threads, MixEagerCompiledAndQuestions) {
  Work work;
  Cases cases(work);
  auto fast = compile([&](const Tensor& x) { return x.sum().item<float>() > 0 ? work(x) : work(x); });
  EXPECT_EQ(failures_of([&](int t) {
              switch (t % 4) {
                case 0:
                  return cases.wrong(work, t, 8);
                case 1: {
                  int wrong = 0;
                  int64_t before = 0;
                  for (int i = 0; i < 20; ++i) {
                    const int64_t calls = fast.stats().calls;
                    wrong += calls < before || calls > kThreads * 8;
                    wrong += fast.explain().str().empty();
                    before = calls;
                  }
                  return wrong;
                }
                default:
                  return cases.wrong(fast, t, 8);
              }
            }),
            0);
}

TEST(Threads, DrawEachNumberOnce) {
  auto fast = compile([](const Tensor& x) { return x + rand({16}); });
  Tensor zero = zeros({16});
  std::vector<Tensor> drawn(kThreads);
  const int wrong = failures_of([&](int t) {
    std::vector<Tensor> mine;
    for (int i = 0; i < 8; ++i) mine.push_back(fast(zero));
    drawn[static_cast<size_t>(t)] = stack(mine);
    return static_cast<int>(fast.stats().fallbacks);
  });
  EXPECT_EQ(wrong, 0);
  Tensor rows = stack(drawn).reshape({kThreads * 8, 16});
  Tensor equal_rows = (rows.unsqueeze(0) == rows.unsqueeze(1)).all(2).sum();
  EXPECT_EQ(equal_rows.item<int64_t>(), kThreads * 8);
}

TEST(Threads, AnErrorOnOneLeavesTheOthersAlone) {
  Tensor table = randn({5, 3});
  auto f = [&](const Tensor& index) { return table.index_select(0, index) * 2; };
  auto fast = compile(f);
  Tensor good = tensor({0, 4, 2}), bad = tensor({0, 5, 2}), expected = f(good);
  EXPECT_EQ(failures_of([&](int t) {
              int wrong = 0;
              for (int i = 0; i < 10; ++i) try {
                  wrong += !same_bits(fast(t == 3 ? bad : good), expected);
                  wrong += t == 3;
                } catch (const Error&) {
                  wrong += t != 3;
                }
              return wrong;
            }),
            0);
}

}  // namespace
}  // namespace ingot
