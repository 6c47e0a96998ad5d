// Checked mode: one test a kind of guard. Each changes that fact and asks for the right answer.
#include <cmath>
#include <thread>

#include "runtime/memory/storage.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

auto layer(const Tensor& w, const Tensor& b) {
  return [w, b](const Tensor& x) { return (x.matmul(w.t()) + b).relu(); };
}

TEST(Checked, ReplaysWithoutCompilingAgain) {
  Tensor w = randn({16, 8}), b = randn({16});
  auto f = layer(w, b);
  auto fast = compile(f);
  for (int i = 0; i < 5; ++i) {
    Tensor x = randn({4, 8});
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
  EXPECT_EQ(fast.stats().compilations, 1);
  EXPECT_EQ(fast.stats().calls, 5);
  EXPECT_EQ(fast.stats().hits, 4);
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().graph_breaks, 0);
}

TEST(Checked, Dtype) {
  auto f = [](const Tensor& x) { return x * 2 + 1; };
  auto fast = compile(f);
  for (DType d : {kFloat32, kFloat64, kInt64, kBFloat16, kInt32}) {
    Tensor x = ones({3, 5}, d);
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
  EXPECT_EQ(fast.stats().compilations, 5);
  EXPECT_TRUE(same_bits(fast(ones({3, 5})), f(ones({3, 5}))));
  EXPECT_EQ(fast.stats().compilations, 5);
}

TEST(Checked, Rank) {
  auto f = [](const Tensor& x) { return x.exp() + 1; };
  auto fast = compile(f);
  for (IntList size : {IntList({6}), IntList({2, 3}), IntList({1, 2, 3})}) {
    Tensor x = randn(size);
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
  EXPECT_EQ(fast.stats().compilations, 3);
}

TEST(Checked, ABatchFrom1To64CostsTwoCompilations) {
  Tensor w = randn({16, 8}), b = randn({16});
  auto f = layer(w, b);
  auto fast = compile(f);
  for (int64_t batch = 1; batch <= 64; ++batch) {
    Tensor x = randn({batch, 8});
    ASSERT_TRUE(same_bits(fast(x), f(x))) << batch;
  }
  EXPECT_LE(fast.stats().compilations, 2);
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().recompile_limit_hits, 0);
}

TEST(Checked, SizesInAttributesGeneralizeToo) {
  auto f = [](const Tensor& x) {
    int64_t n = x.size(0), m = x.size(1);
    return x.view({n * m}).reshape({m, n}) + arange(n).to(kFloat32);
  };
  auto fast = compile(f);
  for (int64_t n : {3, 4, 7, 2, 9, 5}) {
    Tensor x = randn({n, 6});
    EXPECT_TRUE(same_bits(fast(x), f(x))) << n;
  }
  EXPECT_LE(fast.stats().compilations, 3);
}

TEST(Checked, TrianglesOfAnySizeCostTwoCompilations) {
  for (int64_t offset : {-3, 0, 2}) {
    auto f = [=](const Tensor& x) {
      Tensor upper = triu_indices(x.size(0), x.size(1), offset);
      return cat({tril_indices(x.size(0), x.size(1), offset), upper}, 1);
    };
    auto fast = compile(f);
    for (auto [rows, columns] : {std::pair{4, 5}, {6, 9}, {9, 3}, {2, 2}, {12, 12}, {3, 17}}) {
      Tensor x = zeros({rows, columns});
      EXPECT_TRUE(same_bits(fast(x), f(x))) << rows << " " << columns << " " << offset;
    }
    EXPECT_LE(fast.stats().compilations, 2) << offset;
    EXPECT_EQ(fast.stats().fallbacks, 0);
  }
}

TEST(Checked, ASizeThatBecomes1IsStillRight) {
  auto f = [](const Tensor& x, const Tensor& y) { return x + y; };
  auto fast = compile(f);
  for (auto [a, b] : {std::pair{4, 4}, {5, 5}, {5, 1}, {1, 6}, {7, 7}, {1, 1}}) {
    Tensor x = randn({a, 3}), y = randn({b, 3});
    EXPECT_TRUE(same_bits(fast(x, y), f(x, y))) << a << " " << b;
  }
}

TEST(Checked, Strides) {
  auto f = [](const Tensor& x) { return x.tanh() * 3; };
  auto fast = compile(f);
  Tensor base = randn({6, 6});
  for (const Tensor& x :
       {base, base.t(), base.index({Slice(None, None, 2)}), base.narrow(1, 0, 5), base[0].expand({6, 6}), base}) {
    Tensor y = fast(x), expected = f(x);
    EXPECT_TRUE(same_bits(y, expected));
    EXPECT_TRUE(test::same_strides(y, expected));
  }
}

TEST(Checked, AnOffsetOfAViewedArgument) {
  auto f = [](const Tensor& x) { return x.t(); };
  auto g = [](const Tensor& x) { return x.select(0, 1) * 2; };
  auto fast_f = compile(f);
  auto fast_g = compile(g);
  Tensor base = randn({8, 3, 4});
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(same_bits(fast_f(base[i]), f(base[i])));
    EXPECT_TRUE(fast_f(base[i]).shares_storage(base));
    EXPECT_TRUE(same_bits(fast_g(base[i]), g(base[i])));
  }
}

TEST(Checked, CapturedTensorsMayBeReplaced) {
  Tensor w = randn({4, 4});
  auto f = [&](const Tensor& x) { return x.matmul(w); };
  auto fast = compile(f);
  Tensor x = randn({2, 4});
  EXPECT_TRUE(same_bits(fast(x), f(x)));
  w = randn({4, 4});
  EXPECT_TRUE(same_bits(fast(x), f(x)));
  EXPECT_EQ(fast.stats().compilations, 1);
  w = randn({4, 4}, kFloat64).to(kFloat32).t();
  EXPECT_TRUE(same_bits(fast(x), f(x)));
}

TEST(Checked, CapturedTensorsMayBeWritten) {
  Tensor w = randn({4, 4});
  auto f = [&](const Tensor& x) { return x.matmul(w); };
  auto fast = compile(f);
  Tensor x = randn({2, 4});
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(same_bits(fast(x), f(x)));
    w.add_(1);
  }
  w.mutable_data_ptr<float>()[5] = 17;
  EXPECT_TRUE(same_bits(fast(x), f(x)));
  EXPECT_EQ(fast.stats().compilations, 1);
}

TEST(Checked, AScalarsValueNeverRecompiles) {
  double captured = 0.5;
  auto f = [&](const Tensor& x, double a, int64_t b) { return (x * a + b) / captured; };
  auto fast = compile(f);
  Tensor x = randn({5});
  for (int i = 0; i < 20; ++i) {
    captured = 0.25 * (i + 1);
    EXPECT_TRUE(same_bits(fast(x, 0.1 * i, i), f(x, 0.1 * i, i)));
  }
  EXPECT_EQ(fast.stats().compilations, 1);
}

TEST(Checked, AScalarsCategoryIsStructural) {
  Tensor x = ones({3}, kInt64);
  auto f = [](const Tensor& x, Scalar s) { return x * s; };
  auto fast = compile(f);
  EXPECT_TRUE(same_bits(fast(x, 2), f(x, 2)));
  EXPECT_TRUE(same_bits(fast(x, 2.5), f(x, 2.5)));
  EXPECT_EQ(fast(x, 2.5).dtype(), kFloat32);
  EXPECT_EQ(fast.stats().compilations, 2);
}

// One op, one place, and as its operand in turn a number, a special one, a captured tensor, an argument, a value that
// was computed, nothing; in every order.
TEST(Checked, TheKindOfAnOperandIsStructural) {
  Tensor w = randn({4, 4}), b = randn({4});
  auto arithmetic = [&](const Tensor& x, const Tensor& y, int kind) {
    Tensor z = x.exp();
    switch (kind) {
      case 0:
        return x + 2.5;
      case 1:
        return x + 2;
      case 2:
        return x + b;
      case 3:
        return x + y;
      default:
        return x + z;
    }
  };
  auto power = [&](const Tensor& x, const Tensor& y, int kind) {
    Tensor z = x.exp(), base = x.abs();
    return kind == 0 ? base.pow(2) : kind == 1 ? base.pow(1.7) : kind == 2 ? base.pow(b) : base.pow(kind == 3 ? y : z);
  };
  auto optional = [&](const Tensor& x, const Tensor& y, int kind) {
    Tensor z = x.sum(0);
    const Tensor bias = kind == 0 ? Tensor() : kind == 1 ? b : kind == 2 ? y.select(0, 0) : kind == 3 ? z : z * 2;
    return nn::functional::linear(x, w, bias);
  };
  Tensor x = randn({4, 4}), y = randn({4, 4});
  auto judge = [&](auto f, const char* name) {
    for (int first = 0; first < 5; ++first)
      for (int second = 0; second < 5; ++second) {
        auto fast = compile(f, {.recompile_limit = 20});
        for (int kind : {first, second, first, second, 0, 1, 2, 3, 4, first})
          EXPECT_TRUE(same_bits(fast(x, y, kind), f(x, y, kind))) << name << " " << first << second << kind;
      }
  };
  judge(arithmetic, "add");
  judge(power, "pow");
  judge(optional, "linear");
}

TEST(Checked, Branches) {
  bool flag = true;
  auto f = [&](const Tensor& x, const std::string& mode) {
    Tensor y = x + 1;
    if (flag) y = y * 2;
    return mode == "exp" ? y.exp() : y.sqrt();
  };
  auto fast = compile(f);
  Tensor x = rand({4});
  for (int round = 0; round < 2; ++round)
    for (bool on : {true, false})
      for (const char* mode : {"exp", "sqrt"}) {
        flag = on;
        EXPECT_TRUE(same_bits(fast(x, mode), f(x, mode)));
      }
  EXPECT_EQ(fast.stats().compilations, 4);
  EXPECT_EQ(fast.stats().hits, 4);
}

TEST(Checked, LoopsOfAnyLength) {
  auto f = [](Tensor x, int n) {
    for (int i = 0; i < n; ++i) x = x * 0.5 + i;
    return x;
  };
  auto fast = compile(f);
  Tensor x = randn({3});
  for (int n : {0, 3, 5, 1, 3, 0, 5}) EXPECT_TRUE(same_bits(fast(x, n), f(x, n))) << n;
}

TEST(Checked, Exceptions) {
  Tensor state = zeros({3});
  bool fail = false;
  auto f = [&](const Tensor& x) {
    state.add_(x);
    if (fail) throw std::runtime_error("stop");
    return state * 2;
  };
  auto fast = compile(f);
  Tensor x = ones({3});
  fast(x);
  fail = true;
  EXPECT_THROW(fast(x), std::runtime_error);
  EXPECT_TRUE(same_bits(state, full({3}, 2.0))) << "what ran before the exception took effect";
  fail = false;
  EXPECT_TRUE(same_bits(fast(x), full({3}, 6.0)));
  EXPECT_EQ(fast.stats().compilations, 1);
}

TEST(Checked, ProbabilitiesOfALossAreCheckedWhereverTheyComeFrom) {
  auto given = compile([](const Tensor& x, const Tensor& y) { return binary_cross_entropy(x, y); });
  auto computed = compile([](const Tensor& x, const Tensor& y) { return binary_cross_entropy(x * 1, y * 1); });
  const Tensor good = tensor({0.0, 0.25, 1.0}), target = good.clone(), bad = tensor({0.5, 1.25, 0.5}),
               missing = tensor({0.5, 0.5, NAN});
  auto check = [&](auto& fast) {
    EXPECT_TRUE(same_bits(fast(good, target), binary_cross_entropy(good, target)));
    for (const Tensor& wrong : {bad, missing}) {
      EXPECT_THROW(binary_cross_entropy(wrong, good), Error);
      EXPECT_THROW(binary_cross_entropy(good, wrong), Error);
      EXPECT_THROW(fast(wrong, target), Error);
      EXPECT_THROW(fast(good, wrong), Error);
    }
    EXPECT_EQ(fast.stats().compilations, 1);
  };
  check(given);
  check(computed);
}

TEST(Checked, AnErrorInsideIsEagersError) {
  auto f = [](const Tensor& x, const Tensor& y) { return x + y; };
  auto fast = compile(f);
  std::string eager, compiled;
  try {
    f(ones({2}), ones({3}));
  } catch (const Error& e) {
    eager = e.what();
  }
  try {
    fast(ones({2}), ones({3}));
  } catch (const Error& e) {
    compiled = e.what();
  }
  EXPECT_FALSE(eager.empty());
  EXPECT_EQ(eager, compiled);
}

TEST(Checked, TensorsThatEscape) {
  std::vector<Tensor> kept;
  bool keep = false;
  auto f = [&](const Tensor& x) {
    Tensor hidden = x * 3;
    if (keep) kept.push_back(hidden);
    return hidden + 1;
  };
  auto fast = compile(f);
  for (int i = 0; i < 4; ++i) {
    keep = i % 2;
    Tensor x = randn({4});
    EXPECT_TRUE(same_bits(fast(x), x * 3 + 1));
    if (keep) EXPECT_TRUE(same_bits(kept.back(), x * 3));
  }
  EXPECT_EQ(fast.stats().compilations, 2) << "what is alive at the end is part of the key";
}

TEST(Checked, ACheckedFunctionInsideIsInlined) {
  auto inner = compile([](const Tensor& x) { return x.sin(); });
  auto outer = compile([&](const Tensor& x) { return inner(x + 1) * 2; });
  Tensor x = randn({5});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(outer(x), (x + 1).sin() * 2));
  EXPECT_EQ(outer.stats().compilations, 1);
  EXPECT_EQ(outer.stats().graph_breaks, 0);
  EXPECT_EQ(inner.stats().compilations, 0);
}

TEST(Checked, AnItemBreaksTheGraph) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 2;
    double sum = y.sum().item<float>();
    return sum > 0 ? y + sum : y - sum;
  };
  auto fast = compile(f);
  for (double v : {1.0, -1.0, 2.0, -2.0}) {
    Tensor x = full({4}, v);
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
  EXPECT_EQ(fast.stats().graph_breaks, 4);
  EXPECT_EQ(fast.stats().compilations, 3);
  Explanation e = fast.explain();
  ASSERT_EQ(e.breaks.size(), 1u);
  EXPECT_NE(e.breaks[0].reason.find("item"), std::string::npos);
  EXPECT_NE(e.breaks[0].location.find("checked_test.cpp"), std::string::npos);
}

TEST(Checked, DataAndTruthBreakTheGraph) {
  auto f = [](const Tensor& x) {
    Tensor y = x + 1;
    float first = y.data_ptr<float>()[0];
    if (y.sum() > 0) return y * first;
    return y / first;
  };
  auto fast = compile(f);
  for (double v : {1.0, -3.0, 4.0}) {
    Tensor x = full({4}, v);
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
}

TEST(Checked, TwoThreadsAtOnce) {
  Tensor w = randn({8, 8});
  auto f = [&](const Tensor& x) { return x.matmul(w).relu() + 1; };
  auto fast = compile(f);
  std::vector<Tensor> inputs, outputs(8), expected;
  for (int i = 0; i < 8; ++i) {
    inputs.push_back(randn({4, 8}));
    expected.push_back(f(inputs.back()));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) outputs[i] = fast(inputs[i]);
    });
  for (auto& t : threads) t.join();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(same_bits(outputs[i], expected[i]));
  EXPECT_EQ(fast.stats().compilations, 1);
  EXPECT_EQ(fast.stats().calls, 160);
}

TEST(Checked, APendingTensorOnAnotherThreadIsAnError) {
  std::string message;
  auto fast = compile(
      [&](const Tensor& x) {
        Tensor y = x + 1;
        std::thread([&] {
          try {
            Tensor z = y * 2;
          } catch (const Error& e) {
            message = e.what();
          }
        }).join();
        return y;
      },
      {.name = "leaky"});
  Tensor x = ones({2});
  EXPECT_TRUE(same_bits(fast(x), x + 1));
  EXPECT_NE(message.find("leaky"), std::string::npos) << message;
}

TEST(Checked, DrawsAreEagers) {
  auto f = [](const Tensor& x) { return x * rand({4}) + randn({4}); };
  auto fast = compile(f);
  Tensor x = ones({4});
  manual_seed(5);
  std::vector<Tensor> expected{f(x), f(x), f(x)};
  manual_seed(5);
  for (const Tensor& e : expected) EXPECT_TRUE(same_bits(fast(x), e));
  EXPECT_EQ(fast.stats().compilations, 1);
}

TEST(Checked, ResultsBelongToTheCallerAlone) {
  auto fast = compile([](const Tensor& x) { return x + 1; });
  for (int i = 0; i < 3; ++i) {
    Tensor y = fast(ones({3}));
    EXPECT_EQ(y.impl()->references, 1);
    EXPECT_EQ(y.impl()->storage->references(), 1);
  }
}

TEST(Checked, ManyThreadsOnManyPaths) {
  std::atomic<int> wrong{0};
  auto f = [](Tensor x, int n, bool ask) {
    for (int i = 0; i < n; ++i) x = x * 0.5 + i;
    if (ask && x.sum().item<float>() > 1e9) return x;
    if (n == 2) throw std::runtime_error("two");
    return x.relu();
  };
  auto fast = compile(f, {.recompile_limit = 4});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 60; ++round) {
        Tensor x = full({1 + (round + t) % 3, 5}, 0.25 * t);
        int n = (round * 7 + t) % 6;
        try {
          Tensor a = fast(x, n, round % 4 == 0), b = f(x, n, false);
          wrong += !same_bits(a, b) || n == 2;
        } catch (const std::runtime_error&) {
          wrong += n != 2;
        }
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Checked, TheRecompileLimitStopsNewPathsOnly) {
  auto f = [](Tensor x, int n) {
    for (int i = 0; i < n; ++i) x = x.sin();
    return x.cos();
  };
  auto fast = compile(f, {.recompile_limit = 3});
  Tensor x = randn({4});
  for (int n = 0; n < 6; ++n) EXPECT_TRUE(same_bits(fast(x, n), f(x, n))) << n;
  EXPECT_EQ(fast.stats().compilations, 3);
  EXPECT_EQ(fast.stats().recompile_limit_hits, 3);
  int64_t hits = fast.stats().hits;
  EXPECT_TRUE(same_bits(fast(x, 1), f(x, 1)));
  EXPECT_EQ(fast.stats().hits, hits + 1);
}

// Layers that are frozen in turns: each phase is a path of its own, and the last one is the steady state.
TEST(Checked, PastTheRecompileLimitTheSteadyStateIsCompiled) {
  std::vector<Tensor> weights;
  for (int i = 0; i < 4; ++i) weights.push_back(rand({3, 3}).requires_grad_());
  auto step = [&](const Tensor& x) {
    Tensor y = x;
    for (const Tensor& w : weights) y = matmul(y, w);
    y.sum().backward();
    NoGradGuard guard;
    for (const Tensor& w : weights)
      if (w.requires_grad()) w.sub_(w.grad() * 1e-3), w.mutable_grad() = Tensor();
    return y.detach();
  };
  auto fast = compile(step, {.recompile_limit = 2});
  const Tensor x = rand({2, 3});
  for (size_t phase = 0; phase < 3; ++phase) {
    weights[phase].requires_grad_(false);
    for (int i = 0; i < 3; ++i) fast(x);
  }
  EXPECT_EQ(fast.stats().compilations, 2);
  EXPECT_GT(fast.stats().recompile_limit_hits, 0);
  for (int i = 0; i < 520; ++i) fast(x);
  EXPECT_EQ(fast.stats().compilations, 3);
  const int64_t hits = fast.stats().hits, refused = fast.stats().recompile_limit_hits;
  for (int i = 0; i < 10; ++i) fast(x);
  EXPECT_EQ(fast.stats().hits, hits + 10);
  EXPECT_EQ(fast.stats().recompile_limit_hits, refused);
}

TEST(Checked, RecompilesSayWhichGuardFailed) {
  auto fast = compile([](const Tensor& x) { return x + 1; });
  fast(ones({4}));
  fast(ones({5}));
  fast(ones({5}, kFloat64));
  Explanation e = fast.explain();
  ASSERT_EQ(e.recompiles.size(), 2u);
  EXPECT_EQ(e.recompiles[0].guard, "size 0 of operand self of add");
  EXPECT_EQ(e.recompiles[0].before, "4");
  EXPECT_EQ(e.recompiles[0].after, "5");
  EXPECT_EQ(e.recompiles[1].guard, "dtype of operand self of add");
  EXPECT_EQ(e.recompiles[1].before, "f32");
  EXPECT_EQ(e.recompiles[1].after, "f64");
}

TEST(Checked, PositionsInAnEmptyTensorAreRefused) {
  auto none_of = [](const Tensor& x) { return take_along_dim(x.narrow(0, 0, 0), (x > 100).to(kInt64), 0) + 1; };
  auto fast = compile(none_of);
  const Tensor x = randn({5});
  EXPECT_THROW(none_of(x), Error);
  for (int call = 0; call < 3; ++call) EXPECT_THROW(fast(x), Error);
}

// Computed positions that a view repeats, as messages of a graph are added up: checked once each.
TEST(Checked, RepeatedPositionsAreCheckedBehindTheirView) {
  auto f = [](const Tensor& x, const Tensor& steps, int64_t rows) {
    const Tensor at = steps.cumsum(0) - 1;
    return zeros({rows, x.size(1)}).scatter_add(0, at.unsqueeze(1).expand(x.sizes()), x);
  };
  auto fast = compile(f);
  for (int64_t width : {3, 2, 1, 0, 4}) {
    const Tensor x = rand({4, width}), steps = tensor({1, 0, 1, 1});
    EXPECT_TRUE(same_bits(fast(x, steps, 3), f(x, steps, 3))) << width;
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().graph_breaks, 0);
  const Tensor x = rand({4, 3}), wrong = tensor({1, 0, 5, 1}), none = rand({4, 0});
  const std::string expected = test::error_of([&] { f(x, wrong, 3); });
  EXPECT_NE(expected.find("scatter_add"), std::string::npos) << expected;
  EXPECT_EQ(test::error_of([&] { fast(x, wrong, 3); }), expected);
  EXPECT_TRUE(same_bits(fast(none, wrong, 3), f(none, wrong, 3)));
}

}  // namespace
}  // namespace ingot
