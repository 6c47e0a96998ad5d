// Frozen calls whose programs check values that they compute: right ones run without the callable, wrong ones are
// refused as eager refuses them, and nothing is written by then.
#include <atomic>
#include <thread>

#include "runtime/memory/storage.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

/// The text of the error without its line, or nothing.
template <class F>
std::string refusal_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    const std::string text = e.what();
    return text.substr(0, text.rfind(" ("));
  }
  return "";
}

TEST(FrozenChecks, RightValuesDoNotRunTheCallableAndWrongOnesAreRefused) {
  const Tensor table = randn({5, 3});
  int runs = 0;
  auto compute = [&](const Tensor& x) { return std::pair(table.index_select(0, x.to(kInt64)) * 2, x + 1); };
  auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return compute(x);
      },
      {.mode = CompileMode::frozen});
  const Tensor right[] = {tensor({0.f, 4.f}), tensor({3.f, 1.f}), tensor({2.f, 2.f})};
  for (int round = 0; round < 3; ++round) {
    for (const Tensor& x : right) {
      auto [rows, next] = fast(x);
      auto [expected_rows, expected_next] = compute(x);
      EXPECT_TRUE(same_bits(rows, expected_rows) && same_bits(next, expected_next));
      EXPECT_EQ(rows.impl()->storage->references(), 1);
    }
    EXPECT_EQ(runs, 2 + 2 * round);
    for (const float wrong : {5.f, -7.f}) {
      const Tensor x = tensor({1.f, wrong});
      const std::string text = refusal_of([&] { fast(x); });
      EXPECT_EQ(text, refusal_of([&] { compute(x); }));
      EXPECT_FALSE(text.empty());
    }
  }
  EXPECT_EQ(fast.stats().frozen_calls, 7);
  EXPECT_EQ(fast.stats().calls, 9 + 6);
  EXPECT_EQ(fast.stats().compilations, 1);
}

TEST(FrozenChecks, DivisorsAndManyResults) {
  const Tensor numbers = tensor({12, 20, 35, 7});
  auto divided = [&](const Tensor& x) {
    std::vector<Tensor> all;
    for (int i = 1; i <= 12; ++i) all.push_back(floor_divide(numbers, x - 3) * i);
    return all;
  };
  auto fast = compile(divided, {.mode = CompileMode::frozen});
  const Tensor x = tensor({1, 2, 4, 5}), zero = tensor({1, 2, 3, 4});
  for (int call = 0; call < 6; ++call) {
    if (call % 2) EXPECT_EQ(refusal_of([&] { fast(zero); }), refusal_of([&] { divided(zero); }));
    const std::vector<Tensor> got = fast(x), expected = divided(x);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i]));
  }
  EXPECT_NE(refusal_of([&] { fast(zero); }), "");
  EXPECT_EQ(fast.stats().frozen_calls, 4) << fast.explain().frozen;
}

// A refused call leaves behind what eager's leaves behind; an allowed one writes as eager does.
TEST(FrozenChecks, WritesNothingBeforeItIsKnown) {
  const Tensor table = randn({3, 2});
  auto step = [&](const Tensor& state, const Tensor& x) {
    const Tensor rows = table.index_select(0, x.argmax(1) + state.sum().to(kInt64));
    state.add_(rows.sum() * 0 + 1);
    return rows + state;
  };
  auto fast = compile(step, {.mode = CompileMode::frozen});
  const Tensor state = zeros({1}), eager_state = zeros({1});
  for (int call = 0; call < 8; ++call) {
    const Tensor x = tensor({3.f, 1.f, 2.f, 0.f}).view({2, 2});
    Tensor expected;
    const std::string text = refusal_of([&] { expected = step(eager_state, x); });
    EXPECT_EQ(text.empty(), call % 4 != 3) << call;  // there is no row 3
    const uint64_t version = state.version();
    EXPECT_EQ(refusal_of([&] {
                const Tensor got = fast(state, x);
                EXPECT_TRUE(same_bits(got, expected)) << call;
              }),
              text);
    EXPECT_TRUE(same_bits(state, eager_state)) << call;
    if (!text.empty()) EXPECT_EQ(state.version(), version);
    if (!text.empty()) state.zero_(), eager_state.zero_();
  }
  EXPECT_GE(fast.stats().frozen_calls, 3) << fast.explain().frozen;
}

TEST(FrozenChecks, OtherSizesAreFrozenToo) {
  int runs = 0;
  auto rows_of = [](const Tensor& table, const Tensor& x) { return table.index_select(0, (x * 2).to(kInt64)) + 1; };
  auto fast = compile(
      [&](const Tensor& table, const Tensor& x) {
        ++runs;
        return rows_of(table, x);
      },
      {.mode = CompileMode::frozen});
  for (const int64_t n : {4, 4, 6, 6, 8, 9, 10, 9}) {
    const Tensor table = randn({2 * n, 3}), x = arange(n).to(kFloat32);
    EXPECT_TRUE(same_bits(fast(table, x), rows_of(table, x))) << n;
    const std::string text = refusal_of([&] { rows_of(table, x + 1); });  // one row further than there are
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(refusal_of([&] { fast(table, x + 1); }), text) << n;
  }
  EXPECT_GT(fast.stats().frozen_calls, 0) << fast.explain().frozen;
}

// Where a call of other sizes is refused before the callable runs, the thread is in no frozen function any more.
TEST(FrozenChecks, ARefusedCallLeavesTheThreadAsItWas) {
  for (const bool computed : {false, true}) {
    std::string last;
    {
      auto fast = compile(
          [&](const Tensor& table, const Tensor& at) { return table.index_select(0, computed ? at + 1 : at) + 1; },
          {.mode = CompileMode::frozen});
      for (const int64_t n : {4, 4, 6, 6, 8}) fast(randn({n + 1, 3}), arange(n));
      for (const int64_t n : {9, 10, 11}) last = refusal_of([&] { fast(randn({n - 1, 3}), arange(n)); });
    }
    EXPECT_NE(last, "");
    const Tensor w = ones({2}).requires_grad_();
    (w * 2).sum().backward();
    EXPECT_TRUE(equal(w.grad(), full({2}, 2.0))) << computed;
  }
}

// Draws of a call that is refused after them would be taken twice.
TEST(FrozenChecks, NotWithRandomNumbers) {
  const Tensor table = randn({4, 2});
  auto f = [&](const Tensor& x) { return table.index_select(0, x.to(kInt64)) + rand({2, 2}); };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (const float last : {1.f, 2.f, 9.f, 3.f, 9.f, 0.f}) {
    const Tensor x = tensor({0.f, last});
    manual_seed(5);
    const std::string text = refusal_of([&] { f(x); });
    const Tensor after = rand({3});
    manual_seed(5);
    EXPECT_EQ(refusal_of([&] { fast(x); }), text);
    EXPECT_TRUE(same_bits(rand({3}), after)) << last;
  }
  EXPECT_EQ(fast.stats().frozen_calls, 0);
  EXPECT_NE(fast.explain().frozen.find("draws random numbers"), std::string::npos) << fast.explain().frozen;
}

TEST(FrozenChecks, RightAndWrongCallsOfManyThreads) {
  const Tensor table = randn({8, 3});
  auto f = [&](const Tensor& x) { return table.index_select(0, x.to(kInt64)) * 2; };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int i = 0; i < 3; ++i) fast(tensor({0.f, 1.f}));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const Tensor x = tensor({static_cast<float>((i + t) % 10), 1.f});
        const bool refused = (i + t) % 10 > 7;
        try {
          if (!same_bits(fast(x), f(x)) || refused) ++wrong;
        } catch (const Error&) {
          if (!refused) ++wrong;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(fast.stats().frozen_calls, 50);
}

}  // namespace
}  // namespace ingot
