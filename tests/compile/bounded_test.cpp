// What a compiled function keeps has a bound, and past it calls stay right.
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

/// Twenty branches on data: a million paths, each with twenty flushes.
Tensor branches(const Tensor& x) {
  Tensor y = x;
  for (int64_t i = 0; i < 20; ++i) y = x[i % 20].item<float>() > 0 ? y * 2 + 1 : y - x;
  return y;
}

TEST(Bounded, PathsOfDataDependentBranches) {
  auto fast = compile(branches);
  int64_t most = 0, before_last = 0;
  for (int i = 0; i < 4000; ++i) {
    Tensor x = randn({20});
    ASSERT_TRUE(same_bits(fast(x), branches(x))) << i;
    most = std::max(most, fast.stats().trace_nodes);
    if (i == 3000) before_last = most;
  }
  EXPECT_LE(most, 32768 + 200);
  EXPECT_GT(before_last, 0);
  EXPECT_LE(fast.stats().cache_entries, 1024);
  // A path that comes again and again is compiled even now.
  Tensor x = ones({20});
  const int64_t hits = fast.stats().hits;
  for (int i = 0; i < 200'000 && fast.stats().hits < hits + 100; ++i) ASSERT_TRUE(same_bits(fast(x), branches(x)));
  EXPECT_GE(fast.stats().hits, hits + 100);
}

// What runs eagerly for want of room must not be taken for a call that computes nothing.
TEST(Bounded, FrozenFunctionsPastTheirBounds) {
  CompileOptions options{.mode = CompileMode::frozen};
  options.recompile_limit = 1;
  auto limited =
      compile([](const Tensor& x, int way) { return way == 0   ? x * 2
                                                    : way == 1 ? x + 3
                                                               : x.exp() - way; }, options);
  for (int i = 0; i < 40; ++i) {
    Tensor x = randn({4});
    const int way = i < 8 ? i % 4 : i / 4 % 4;
    ASSERT_TRUE(same_bits(limited(x, way), way == 0 ? x * 2 : way == 1 ? x + 3 : x.exp() - way)) << i;
  }
  auto crowded = compile(branches, {.mode = CompileMode::frozen});
  Tensor same = ones({20});
  for (int i = 0; i < 3000; ++i) {
    Tensor x = i % 3 ? randn({20}) : same;
    ASSERT_TRUE(same_bits(crowded(x), branches(x))) << i;
  }
}

TEST(Bounded, ALongPathIsRecordedWhole) {
  auto f = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 40000; ++i) {
      y = y + 1;
      if (i % 500 == 499) y = y * static_cast<double>(y.max().item<float>() > 1e30f ? 0 : 0.5);
    }
    return y;
  };
  auto fast = compile(f);
  Tensor x = randn({3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(fast(x), f(x)));
  EXPECT_GT(fast.stats().trace_nodes, 40000);
  EXPECT_GE(fast.stats().hits, 2);
}

// A path each for 1,100 numbers, all in use: past the bound new ones run op by op, and old ones stay compiled.
TEST(Bounded, MoreProgramsThanAreKept) {
  CompileOptions options;
  options.recompile_limit = 1 << 20;
  auto f = [](const Tensor& x, int way) {
    Tensor y = x;
    for (int bit = 0; bit < 11; ++bit) y = way >> bit & 1 ? y + 1 : y * 2;
    return y;
  };
  auto fast = compile(f, options);
  const Tensor x = randn({3});
  for (int way = 0; way < 1100; ++way) {
    Tensor got = fast(x, way);
    if (way % 7 == 0 || way > 1000) EXPECT_TRUE(same_bits(got, f(x, way))) << way;
    ASSERT_LE(fast.stats().cache_entries, 1024);
  }
  EXPECT_GE(fast.stats().cache_entries, 1000);
  const int64_t compilations = fast.stats().compilations;
  for (int way = 0; way < 500; ++way) EXPECT_TRUE(same_bits(fast(x, way), f(x, way)));
  EXPECT_EQ(fast.stats().compilations, compilations) << "those that were known stay";
}

TEST(Bounded, LoopsOfEveryLength) {
  auto f = [](const Tensor& x, int n) {
    Tensor y = x;
    for (int i = 0; i < n; ++i) y = y * 0.5 + 1;
    return y;
  };
  auto fast = compile(f);
  Tensor x = randn({5});
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(same_bits(fast(x, (i * 37) % 300), f(x, (i * 37) % 300)));
  EXPECT_LE(fast.stats().cache_entries, 8);
  EXPECT_LE(fast.explain().recompiles.size(), 256u);
}

// Thousands of tensors from outside, read and written: each has one slot, whatever the order in which they return.
TEST(Bounded, ManyCapturedTensors) {
  std::vector<Tensor> mine, theirs;
  for (int i = 0; i < 600; ++i) {
    mine.push_back(randn({3}));
    theirs.push_back(mine.back().clone());
  }
  auto f = [](const std::vector<Tensor>& w, const Tensor& x, int64_t skip) {
    Tensor sum = x;
    for (size_t i = 0; i < w.size(); ++i) sum = sum + w[i] * w[(i * 7) % w.size()];
    for (size_t i = 0; i < w.size(); ++i)
      if (static_cast<int64_t>(i) != skip) w[i].mul_(0.5);
    return sum + w[3];
  };
  auto fast = compile([&](const Tensor& x, int64_t skip) { return f(mine, x, skip); });
  for (int i = 0; i < 6; ++i) {
    Tensor x = randn({3});
    ASSERT_TRUE(same_bits(fast(x, i % 2 ? 50 : -1), f(theirs, x, i % 2 ? 50 : -1))) << i;
    for (size_t t = 0; t < mine.size(); t += 7) ASSERT_TRUE(same_bits(mine[t], theirs[t]));
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

}  // namespace
}  // namespace ingot
