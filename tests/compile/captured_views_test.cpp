// What a compiled function remembers of captured tensors, views, offsets and sizes must be what identifies them: each
// test varies one of these between calls and compares every call with eager.
#include <thread>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;
using test::same_strides;

CompileOptions mode(CompileMode m) { return {.mode = m}; }
constexpr CompileMode kModes[] = {CompileMode::checked, CompileMode::frozen};

/// Calls f and its compiled form alike, with host indices in an order that comes back to each.
template <class F>
void check_indices(F f, const Tensor& x, int64_t count) {
  for (CompileMode m : kModes) {
    auto fast = compile(f, mode(m));
    for (int round = 0; round < 4; ++round)
      for (int64_t n = 0; n < count; ++n) {
        const int64_t i = round % 2 ? count - 1 - n : n;
        ASSERT_TRUE(same_bits(fast(x, i), f(x, i))) << "index " << i << " round " << round;
      }
  }
}

TEST(CapturedViews, AMatrixChosenFromAStack) {
  for (DType dtype : {kFloat32, kFloat64, kBFloat16}) {
    Tensor w = randn({7, 24, 40}).to(dtype), x = randn({5, 24}).to(dtype);
    check_indices([&](const Tensor& a, int64_t i) { return a.matmul(w[i]); }, x, 7);
    check_indices([&](const Tensor& a, int64_t i) { return F::linear(a, w[i].t()); }, x, 7);
  }
}

TEST(CapturedViews, AMatrixForASingleRow) {
  Tensor w = randn({7, 64, 96}), x = randn({1, 64});
  check_indices([&](const Tensor& a, int64_t i) { return a.matmul(w[i]); }, x, 7);
}

TEST(CapturedViews, SlicesOfRowsAndColumns) {
  Tensor w = randn({64, 60}), x = randn({6, 16});
  check_indices([&](const Tensor& a, int64_t i) { return a.matmul(w.narrow(0, 4 * i, 16)); }, x, 9);
  check_indices([&](const Tensor& a, int64_t i) { return a.matmul(w.narrow(0, 0, 16).narrow(1, 5 * i, 20)); }, x, 8);
}

TEST(CapturedViews, SlicesOfGrowingWidthAndDepth) {
  Tensor w = randn({64, 60});
  check_indices([&](const Tensor& a, int64_t i) { return a.matmul(w.narrow(0, 0, 16).narrow(1, 0, 4 + 7 * i)); },
                randn({6, 16}), 8);
  check_indices([&](const Tensor& a, int64_t i) { return a.narrow(1, 0, 8 + 5 * i).matmul(w.narrow(0, 3, 8 + 5 * i)); },
                randn({6, 50}), 8);
}

TEST(CapturedViews, StridesThatChangeOverTheSamePlace) {
  Tensor w = randn({48, 48}), x = randn({6, 12});
  check_indices(
      [&](const Tensor& a, int64_t i) {
        return a.matmul(w.as_strided({12, 12}, {48 * (1 + i % 3), 1 + i / 3}, 0));
      },
      x, 9);
}

TEST(CapturedViews, ABatchOfMatricesThatGrowsAndMoves) {
  Tensor w = randn({9, 12, 20}), x = randn({9, 4, 12});
  check_indices([&](const Tensor& a, int64_t i) { return a.narrow(0, 0, 1 + i).matmul(w.narrow(0, 0, 1 + i)); }, x, 9);
  check_indices([&](const Tensor& a, int64_t i) { return a.narrow(0, 0, 2).matmul(w.narrow(0, i, 2)); }, x, 8);
}

TEST(CapturedViews, ACapturedBatchHeldByAChangingHandle) {
  Tensor w = randn({9, 12, 20}), x = randn({9, 4, 12}), held;
  auto f = [&](const Tensor& a) { return a.matmul(held); };
  auto fast = compile(f);
  for (int round = 0; round < 3; ++round)
    for (int64_t n = 1; n <= 9; ++n) {
      held = w.narrow(0, 0, n);
      Tensor a = x.narrow(0, 0, n);
      ASSERT_TRUE(same_bits(fast(a), f(a))) << n;
      held = w.narrow(0, 9 - n, n);
      ASSERT_TRUE(same_bits(fast(a), f(a))) << n;
    }
}

TEST(CapturedViews, FiltersOfAConvolution) {
  Tensor w = randn({6, 8, 4, 3, 3}), x = randn({2, 4, 9, 9});
  check_indices([&](const Tensor& a, int64_t i) { return F::conv2d(a, w[i]); }, x, 6);
  Tensor all = randn({24, 4, 3, 3});
  check_indices([&](const Tensor& a, int64_t i) { return F::conv2d(a, all.narrow(0, 3 * i, 8)); }, x, 5);
  Tensor wide = randn({8, 12, 3, 3});
  check_indices([&](const Tensor& a, int64_t i) { return F::conv2d(a, wide.narrow(1, 2 * i, 4)); }, x, 4);
}

TEST(CapturedViews, TablesOfRowsAndHeads) {
  Tensor table = randn({5, 10, 6}), positions = tensor({0, 9, 3});
  check_indices([&](const Tensor& p, int64_t i) { return F::embedding(table[i], p); }, positions, 5);
  Tensor q = randn({1, 4, 3, 8}), cache = randn({6, 1, 4, 12, 8});
  check_indices([&](const Tensor& a, int64_t i) { return F::scaled_dot_product_attention(a, cache[i], cache[5 - i]); },
                q, 6);
}

TEST(CapturedViews, SeveralThreadsWithIndicesOfTheirOwn) {
  Tensor w = randn({8, 24, 40}), x = randn({5, 24});
  auto f = [&](const Tensor& a, int64_t i) { return a.matmul(w[i]); };
  std::vector<Tensor> expected;
  for (int64_t i = 0; i < 8; ++i) expected.push_back(f(x, i));
  for (CompileMode m : kModes) {
    auto fast = compile(f, mode(m));
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int64_t i = 0; i < 60; ++i)
          if (const int64_t at = (i * (t + 1)) % 8; !equal(fast(x, at), expected[static_cast<size_t>(at)])) ++wrong;
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(CapturedViews, WeightsThatAreWrittenOrReplacedBetweenCalls) {
  Tensor w = randn({4, 24, 40}), x = randn({5, 24});
  auto f = [&](const Tensor& a, int64_t i) { return a.matmul(w[i]); };
  for (CompileMode m : kModes) {
    auto fast = compile(f, mode(m));
    for (int i = 0; i < 24; ++i) {
      ASSERT_TRUE(same_bits(fast(x, i % 4), f(x, i % 4))) << i;
      if (i % 5 == 4) w[i % 4].mul_(1.5);
      if (i % 7 == 6) w.mutable_data_ptr<float>()[i] = 3;
      if (i % 11 == 10 && m == CompileMode::checked) w = randn({4, 24, 40});
    }
  }
}

TEST(CapturedViews, MemoryOfTheCallersOwnMayChangeUnseen) {
  std::vector<float> mine(24 * 40, 0.5f);
  Tensor w = from_blob(mine.data(), {24, 40}), x = randn({5, 24});
  auto f = [&](const Tensor& a) { return a.matmul(w); };
  for (CompileMode m : kModes) {
    auto fast = compile(f, mode(m));
    for (int i = 0; i < 6; ++i) {
      mine[static_cast<size_t>(i * 11)] += 1;
      ASSERT_TRUE(same_bits(fast(x), f(x))) << i;
    }
  }
}

// Programs compiled at one tuple of sizes serve others: what they took from dims of size 0 and 1 must hold there too.
TEST(CapturedViews, ResultsAtEveryOrderOfSizesOfZeroAndOne) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 2 + 1, z = y.transpose(0, 1).exp();
    return std::tuple(y, z, y.sum(0), z.contiguous());
  };
  const std::vector<std::vector<int64_t>> sizes{{2, 3}, {1, 0}, {0, 1}, {5, 3}, {1, 1}, {3, 1}, {1, 4}, {0, 0}, {4, 2}};
  for (size_t first = 0; first < sizes.size(); ++first)
    for (size_t second = 0; second < sizes.size(); ++second) {
      auto fast = compile(f);
      for (size_t at : {first, second, size_t{0}, size_t{3}, size_t{8}, first}) {
        Tensor x = randn(IntList(Ints(sizes[at])));
        auto [a, b, c, d] = fast(x);
        auto [a0, b0, c0, d0] = f(x);
        ASSERT_TRUE(same_bits(a, a0) && same_bits(b, b0) && same_bits(c, c0) && same_bits(d, d0)) << first << second;
        ASSERT_TRUE(same_strides(a, a0) && same_strides(b, b0) && same_strides(d, d0)) << first << " " << second;
      }
    }
}

TEST(CapturedViews, ArgumentsWrittenAtSizesOfZeroAndOne) {
  auto f = [](const Tensor& x) {
    x.add_(1);
    x.select(0, 0).mul_(3);
    return x.t() * 2;
  };
  const std::vector<std::vector<int64_t>> sizes{{2, 3}, {1, 0}, {1, 1}, {5, 3}, {3, 1}, {2, 0}, {4, 2}};
  for (bool transposed : {false, true})
    for (size_t first = 0; first < sizes.size(); ++first) {
      auto fast = compile(f);
      for (size_t i = 0; i < 2 * sizes.size(); ++i) {
        Tensor a = randn(IntList(Ints(sizes[(first + i) % sizes.size()])));
        if (transposed && a.size(1) > 0) a = a.t();
        Tensor b = a.clone();
        ASSERT_TRUE(same_bits(fast(a), f(b)));
        ASSERT_TRUE(same_bits(a, b));
      }
    }
}

// A path that views a tensor is recorded after others that did not look at where it starts.
TEST(CapturedViews, ViewsRecordedOnALaterPath) {
  Tensor base = randn({40, 6});
  auto f = [](const Tensor& x, int way) {
    Tensor y = x + 1;
    if (way == 0) return y;
    if (way == 1) return y + x.narrow(0, 0, 4).t().contiguous().sum();
    return x.select(0, 1) * 2;
  };
  auto fast = compile(f);
  for (int i = 0; i < 30; ++i) {
    const int way = i < 4 ? 0 : i % 3;
    Tensor x = base.narrow(0, (i * 7) % 33, 5);
    ASSERT_TRUE(same_bits(fast(x, way), f(x, way))) << i;
  }
}

TEST(CapturedViews, ResultsThatAreViewsOfAnArgumentThatMoves) {
  Tensor base = randn({40, 6});
  auto f = [](const Tensor& x, bool view) {
    Tensor y = x.exp();
    return view ? std::tuple(y, x.t().narrow(1, 1, 2)) : std::tuple(y, y);
  };
  // Every order of three places and two ways, in words of five calls.
  for (int word = 0; word < 6 * 6 * 6 * 6 * 6; word += 5) {
    auto fast = compile(f);
    for (int i = 0, rest = word; i < 5; ++i, rest /= 6) {
      Tensor x = base.narrow(0, rest % 3 * 12, 5);
      auto [y, v] = fast(x, rest % 6 > 2);
      auto [y0, v0] = f(x, rest % 6 > 2);
      ASSERT_TRUE(same_bits(y, y0) && same_bits(v, v0)) << word;
      ASSERT_EQ(v.storage_offset(), v0.storage_offset()) << word;
      ASSERT_EQ(v.shares_storage(base), v0.shares_storage(base));
    }
  }
}

TEST(CapturedViews, PositionsAreCheckedWhereTheyLie) {
  Tensor table = randn({4, 3}), positions = tensor({0, 1, 2, 3, 1'000'000, 1'000'000, 1, 2, 3, 0});
  auto f = [&](const Tensor& p, bool part) {
    Tensor scaled = p * 1;
    if (!part) return scaled;
    return F::embedding(table, p.narrow(0, 0, 2));
  };
  auto fast = compile(f);
  for (int64_t start : {4, 0})
    EXPECT_TRUE(same_bits(fast(positions.narrow(0, start, 3), false), f(positions.narrow(0, start, 3), false)));
  int refused = 0;
  for (int64_t start : {0, 4, 1, 0, 4, 6, 3, 5, 7}) {
    Tensor p = positions.narrow(0, start, 3);
    std::string expected, got;
    Tensor a, b;
    try {
      a = f(p, true);
    } catch (const Error& e) {
      expected = e.what();
    }
    try {
      b = fast(p, true);
    } catch (const Error& e) {
      got = e.what();
    }
    refused += !expected.empty();
    EXPECT_EQ(got.empty(), expected.empty()) << "start " << start << ": " << got << expected;
    if (got.empty() && expected.empty()) EXPECT_TRUE(same_bits(a, b));
  }
  EXPECT_EQ(refused, 4);
}

}  // namespace
}  // namespace ingot
