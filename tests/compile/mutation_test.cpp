// In-place ops, views and aliasing: compiled code changes what eager changes, in values and in sharing.
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

/// Three calls, each on what the one before has written: results and argument are eager's. Gives what they counted.
template <class F>
Statistics expect_same_writes(const F& f) {
  auto fast = compile(f);
  Tensor a = randn({3, 4}), b = a.clone();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_bits(fast(a), f(b)));
    EXPECT_TRUE(same_bits(a, b));
  }
  return fast.stats();
}

TEST(Mutation, OfAnArgument) {
  const Statistics stats = expect_same_writes([](const Tensor& x) {
    x.mul_(2);
    return x + 1;
  });
  EXPECT_EQ(stats.compilations, 1);
}

TEST(Mutation, ThroughAViewOfAnArgument) {
  expect_same_writes([](const Tensor& x) {
    Tensor row = x[1];
    row.add_(10);
    x.select(1, 0).fill_(7);
    return row * 2;
  });
}

TEST(Mutation, ByAssignmentToATemporary) {
  const Statistics stats = expect_same_writes([](const Tensor& x) {
    Tensor y = x * 2;
    y[0] = x[1] + 1;
    y.index({Slice(), 1}) = 3;
    x[2] = y[0];
    return y.sum(0);
  });
  EXPECT_EQ(stats.compilations, 1);
  EXPECT_EQ(stats.graph_breaks, 0);
}

TEST(Mutation, OfAStridedArgumentLeavesTheRestAlone) {
  auto f = [](const Tensor& x) { x.copy_(x.exp()); };
  auto fast = compile(f);
  Tensor a = randn({6, 6}), b = a.clone();
  fast(a.index({Slice(None, None, 2), Slice(1, 4)}).t());
  f(b.index({Slice(None, None, 2), Slice(1, 4)}).t());
  EXPECT_TRUE(same_bits(a, b));
}

TEST(Mutation, OfAnIntermediateAndItsViews) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 1.5;
    Tensor flat = y.view({12}), t = y.t();
    flat.narrow(0, 2, 5).sub_(1);
    t[1].mul_(3);
    y[2].copy_(flat.narrow(0, 0, 4));
    return std::tuple(y, flat, t + 0);
  };
  auto fast = compile(f);
  Tensor x = randn({3, 4});
  for (int i = 0; i < 2; ++i) {
    auto [y, flat, t] = fast(x);
    auto [y0, flat0, t0] = f(x);
    EXPECT_TRUE(same_bits(y, y0));
    EXPECT_TRUE(same_bits(flat, flat0));
    EXPECT_TRUE(same_bits(t, t0));
    EXPECT_TRUE(y.shares_storage(flat));
    y.fill_(0);
    EXPECT_TRUE(same_bits(flat, zeros({12})));
  }
}

TEST(Mutation, OfTransposedIntermediates) {
  auto f = [](const Tensor& x) {
    Tensor y = x.t() * 2;
    y[1].add_(5);
    y.select(1, 2).mul_(0.5);
    return y;
  };
  auto fast = compile(f);
  Tensor x = randn({3, 4});
  EXPECT_TRUE(same_bits(fast(x), f(x)));
  EXPECT_TRUE(test::same_strides(fast(x), f(x)));
}

TEST(Mutation, AsStrided) {
  auto f = [](const Tensor& x) {
    Tensor y = x + 1;
    Tensor diagonal = y.as_strided({3}, {5}, 0);
    diagonal.fill_(0);
    return std::pair(y, x.as_strided({2, 2}, {1, 4}, 3) * 2);
  };
  auto fast = compile(f);
  Tensor base = randn({6, 4});
  for (const Tensor& x : {base.narrow(0, 0, 3), base.narrow(0, 2, 3), base.narrow(0, 0, 3)}) {
    auto [y, z] = fast(x);
    auto [y0, z0] = f(x);
    EXPECT_TRUE(same_bits(y, y0));
    EXPECT_TRUE(same_bits(z, z0));
  }
  EXPECT_EQ(fast.stats().graph_breaks, 1) << "of a tensor that is not the beginning of its storage";
}

TEST(Mutation, AsStridedCountsThroughTheElementsOfItsTensor) {
  auto f = [](const Tensor& x) {
    Tensor part = x.reshape({-1}).narrow(0, 1, 6).reshape({2, 3}).clone();
    Tensor turned = x.t() * 2;
    return std::pair(part.as_strided({2, 2}, {3, 1}, 1) + 1, turned.contiguous().as_strided({4}, {3}, 1) + 1);
  };
  auto fast = compile(f);
  for (const Tensor& x : {randn({3, 4}), randn({4, 3}).t()}) {
    auto [y, z] = fast(x);
    auto [y0, z0] = f(x);
    EXPECT_TRUE(same_bits(y, y0));
    EXPECT_TRUE(same_bits(z, z0));
  }
  EXPECT_EQ(fast.stats().graph_breaks, 0);
}

TEST(Mutation, OfElementsThatOverlapIsRefused) {
  auto f = [](const Tensor& x, int64_t size) {
    x.unfold(0, size, 2).add_(1);
    return x + 0;
  };
  auto fast = compile(f);
  const Tensor x = randn({7}), before = x.clone();
  EXPECT_THROW(f(x, 3), Error);
  EXPECT_THROW(fast(x, 3), Error);
  EXPECT_TRUE(same_bits(x, before));
  Tensor y = x.clone(), z = x.clone();
  EXPECT_TRUE(same_bits(fast(y, 2), f(z, 2)));
  EXPECT_THROW(fast(y, 3), Error) << "the same trace at a size where elements overlap";
  EXPECT_TRUE(same_bits(y, z));
}

TEST(Mutation, OfDimsThatAreInterleaved) {
  auto f = [](const Tensor& x) {
    x.as_strided({3, 2}, {2, 3}).add_(1);  // the places 0 2 4 and 3 5 7
    return x * 2;
  };
  auto fast = compile(f);
  for (int i = 0; i < 3; ++i) {
    Tensor a = arange(8), b = arange(8);
    EXPECT_TRUE(same_bits(fast(a), f(b)));
    EXPECT_TRUE(same_bits(a, tensor({1, 1, 3, 4, 5, 6, 6, 8})));
    EXPECT_TRUE(same_bits(a, b));
  }
}

TEST(Mutation, OfAPartOfElementsThatOverlap) {
  auto f = [](const Tensor& windows) {
    windows[0].mul_(2);
    return windows + 0;
  };
  auto fast = compile(f);
  Tensor x = randn({7}), y = x.clone();
  EXPECT_TRUE(same_bits(fast(x.unfold(0, 3, 2)), f(y.unfold(0, 3, 2))));
  EXPECT_TRUE(same_bits(x, y));
  EXPECT_EQ(fast.stats().fallbacks, 1) << "counted, and right";
}

TEST(Mutation, KeepsTheDtypeOfItsTarget) {
  auto f = [](const Tensor& x, const Tensor& y) {
    x.add_(y);
    return x;
  };
  auto fast = compile(f);
  Tensor a = ones({4}, kFloat16), b = a.clone(), y = randn({4});
  EXPECT_TRUE(same_bits(fast(a, y), f(b, y)));
  EXPECT_TRUE(same_bits(a, b));
}

TEST(Mutation, AliasingArguments) {
  auto f = [](const Tensor& x, const Tensor& y) {
    x.add_(1);
    return y * 2;
  };
  auto fast = compile(f);
  auto check = [&](auto make) {
    Tensor a = randn({6}), b = a.clone();
    auto [x0, y0] = make(a);
    auto [x1, y1] = make(b);
    EXPECT_TRUE(same_bits(fast(x0, y0), f(x1, y1)));
    EXPECT_TRUE(same_bits(a, b));
  };
  for (int round = 0; round < 2; ++round) {
    check([](Tensor t) { return std::pair(t, randn({6}).fill_(3.0) + 0.0); });
    check([](Tensor t) { return std::pair(t, t); });
    check([](Tensor t) { return std::pair(t, t.view({6})); });
    check([](Tensor t) { return std::pair(t.narrow(0, 0, 4), t.narrow(0, 2, 4)); });
    check([](Tensor t) { return std::pair(t.narrow(0, 0, 3), t.narrow(0, 3, 3)); });
  }
}

TEST(Mutation, ResultsShareAsInEager) {
  Tensor x = randn({3, 4});
  auto fast = compile([](const Tensor& x) {
    Tensor y = x + 1;
    return std::pair(x.t(), std::pair(y, y[0]));
  });
  auto [t, inner] = fast(x);
  EXPECT_TRUE(t.shares_storage(x));
  EXPECT_TRUE(inner.first.shares_storage(inner.second));
  x.fill_(2);
  EXPECT_TRUE(same_bits(t, full({4, 3}, 2.0)));
}

TEST(Mutation, OfModuleLikeStateAcrossCalls) {
  Tensor count = zeros({1}), cache = zeros({8, 2});
  auto step = compile([&](const Tensor& x, int64_t position) {
    cache.select(0, position).copy_(x);
    count.add_(1);
    return cache.sum();
  });
  Tensor expected = zeros({8, 2});
  for (int64_t i = 0; i < 8; ++i) {
    Tensor x = randn({2});
    expected.select(0, i).copy_(x);
    EXPECT_TRUE(same_bits(step(x, i), expected.sum())) << i;
    EXPECT_TRUE(same_bits(cache, expected)) << i;
  }
  EXPECT_EQ(count.item<float>(), 8);
  EXPECT_LE(step.stats().compilations, 3);
}

TEST(Mutation, AFailingCheckWritesNothingOfTheProgramAndThrowsEagersError) {
  auto f = [](const Tensor& table, const Tensor& index, const Tensor& counter) {
    counter.add_(1);
    Tensor rows = table.index_select(0, index);
    counter.add_(rows.sum());
    return rows;
  };
  auto fast = compile(f);
  Tensor table = ones({4, 2}), good = tensor({1, 3}), bad = tensor({1, 9});
  Tensor a = zeros({1}), b = zeros({1});
  fast(table, good, a);
  f(table, good, b);
  std::string compiled, eager;
  try {
    fast(table, bad, a);
  } catch (const Error& e) {
    compiled = e.what();
  }
  try {
    f(table, bad, b);
  } catch (const Error& e) {
    eager = e.what();
  }
  EXPECT_FALSE(eager.empty());
  EXPECT_EQ(compiled, eager);
  EXPECT_TRUE(same_bits(a, b)) << "the write before the failing op took effect, the one after it did not";
  EXPECT_TRUE(same_bits(fast(table, good, a), f(table, good, b)));
  EXPECT_TRUE(same_bits(a, b));
}

TEST(Mutation, ComputedPositionsAreChecked) {
  auto f = [](const Tensor& table, const Tensor& x) { return table.index_select(0, (x * 2).to(kInt64)); };
  auto fast = compile(f);
  Tensor table = randn({5, 3});
  Tensor good = tensor({0.0f, 1.0f, 2.0f}), bad = tensor({0.0f, 4.0f, 1.0f});
  EXPECT_TRUE(same_bits(fast(table, good), f(table, good)));
  EXPECT_THROW(fast(table, bad), Error);
  EXPECT_TRUE(same_bits(fast(table, good), f(table, good)));
}

TEST(Mutation, IntegerDivisionByZero) {
  auto f = [](const Tensor& x, const Tensor& y) { return x.floor_divide(y + 1); };
  auto fast = compile(f);
  Tensor x = tensor({7, 8, 9}), good = tensor({0, 1, 2}), bad = tensor({0, -1, 2});
  EXPECT_TRUE(same_bits(fast(x, good), f(x, good)));
  EXPECT_THROW(fast(x, bad), Error);
  EXPECT_TRUE(same_bits(fast(x, good), f(x, good)));
}

}  // namespace
}  // namespace ingot
