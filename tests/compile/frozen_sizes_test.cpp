// Frozen mode at sizes that were not seen: what is repeated without the callable, and what is not.
#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

/// A frozen function beside the same function run eagerly; counts how often the callable ran.
template <class F>
class Frozen {
  using Function = std::function<Tensor(const Tensor&)>;

 public:
  explicit Frozen(F f)
      : plain_(f),
        fast_(compile(Function([this](const Tensor& x) {
                        ++runs_;
                        return plain_(x);
                      }),
                      {.mode = CompileMode::frozen})) {}
  /// Whether the callable ran; the result is eager's, to the bit.
  bool runs(const Tensor& x) {
    const int before = runs_;
    Tensor got = fast_(x);
    EXPECT_TRUE(same_bits(got, plain_(x)));
    return runs_ > before;
  }
  void see(const Tensor& once, const Tensor& other) {
    EXPECT_TRUE(runs(once));
    EXPECT_TRUE(runs(once.clone()));  // one tensor seen twice could be one that is captured
    EXPECT_FALSE(runs(once.clone()));
    EXPECT_TRUE(runs(other));
    EXPECT_FALSE(runs(other.clone())) << state();
  }
  std::string state() { return fast_.explain().frozen; }
  Statistics stats() { return fast_.stats(); }
  auto& fast() { return fast_; }

 private:
  std::atomic<int> runs_{0};
  F plain_;
  CompiledFunction<Function> fast_;
};

TEST(FrozenSizes, AreRepeatedOnceTheyWereSeenToVary) {
  Tensor w = randn({6, 5});
  auto function = [w](const Tensor& x) {
    Size n = x.size(0);
    Tensor rows = x.reshape({-1, 6}).matmul(w).view({n, -1, 5});
    Tensor positions = arange(x.size(1)).to(kFloat32).unsqueeze(1);
    Tensor y = (rows + positions).flatten(1) / n;
    return y.narrow(1, 0, x.size(1) * 5 - 1).contiguous() + zeros({n, 1});
  };
  Frozen f(function);
  auto checked = compile(function);
  f.see(randn({2, 3, 6}), randn({4, 7, 6}));
  checked(randn({2, 3, 6})), checked(randn({4, 7, 6}));
  for (int64_t n : {3, 1, 9, 30})
    for (int64_t m : {1, 2, 8, 15}) {
      EXPECT_FALSE(f.runs(randn({n, m, 6}))) << n << " " << m << " " << f.state();
      checked(randn({n, m, 6}));
    }
  // Of 21 calls three ran the callable.
  EXPECT_EQ(f.stats().calls, 21);
  EXPECT_EQ(f.stats().frozen_calls, 18);
  EXPECT_EQ(f.stats().compilations, checked.stats().compilations);
  EXPECT_EQ(f.stats().fallbacks, 0);
}

/// The library's own arithmetic of sizes is repeated as a user's.
TEST(FrozenSizes, ContractionsAreRepeated) {
  const Tensor w = randn({6, 2, 5}), v = randn({4, 6});
  Frozen f([w, v](const Tensor& x) {
    const Tensor heads = einsum("bti,ihd->bhtd", {x, w});
    const Tensor scores = einsum("bhtd,bhsd->bhts", {heads, heads});
    const Tensor outer = einsum("bt,bs->bts", {x.select(2, 0), x.select(2, 1)});
    return einsum("bhts,bhsd->bthd", {scores * outer.unsqueeze(1), heads}).flatten(2).sum(-1) +
           tensordot(x, v, {2}, {1}).sum(-1);
  });
  f.see(randn({2, 3, 6}), randn({4, 7, 6}));
  for (int64_t n : {3, 9})
    for (int64_t m : {2, 8, 15}) EXPECT_FALSE(f.runs(randn({n, m, 6}))) << n << " " << m << " " << f.state();
  for (auto [n, m] : {std::pair{1, 5}, {3, 1}, {1, 1}, {0, 4}, {3, 0}}) f.runs(randn({n, m, 6}));
  EXPECT_EQ(f.stats().fallbacks, 0);
}

TEST(FrozenSizes, IndexingIsRepeated) {
  Frozen last([](const Tensor& x) {
    return x.index({Slice(), x.size(1) - 1}) + x.index({Slice(), Slice(x.size(1) - 2, x.size(1))}).sum(1);
  });
  const Tensor table = randn({3, 4, 5});
  Frozen positions([table](const Tensor& x) {
    const Tensor ids = x.to(kInt64);
    return x.index({Slice(), ids.select(0, 0)}) *
           table.index({ids.remainder(3), ids.remainder(4)}).sum(-1).sum(1, true);
  });
  Frozen rows([](const Tensor& x) {
    const Tensor hot = nn::functional::one_hot(x.to(kInt64), 9).to(kFloat32);
    return hot.sum(1) + x.repeat_interleave(2, 1).sum(1, true) + x.repeat_interleave(3).sum();
  });
  const auto make = [](int64_t n, int64_t m) { return randint(0, 2, {n, m}).to(kFloat32); };
  auto judge = [&](auto& f, const char* name) {
    f.see(make(2, 3), make(4, 7));
    for (int64_t n : {3, 9})
      for (int64_t m : {2, 8, 15}) EXPECT_FALSE(f.runs(make(n, m))) << name << " " << n << " " << m << f.state();
    EXPECT_EQ(f.stats().fallbacks, 0) << name;
  };
  judge(last, "last"), judge(positions, "positions"), judge(rows, "rows");
}

TEST(FrozenSizes, ADimThatNeverVariedStays) {
  Frozen f([](const Tensor& x) { return x.softmax(1) * x.size(1); });
  f.see(randn({2, 8}), randn({3, 8}));
  EXPECT_FALSE(f.runs(randn({5, 8})));
  EXPECT_TRUE(f.runs(randn({5, 9})));
  EXPECT_FALSE(f.runs(randn({6, 11})));
}

TEST(FrozenSizes, ADecisionIsTakenAgain) {
  Frozen f([](const Tensor& x) { return x.size(0) > 5 ? x * 2 : x.exp(); });
  f.see(randn({2}), randn({3}));
  EXPECT_FALSE(f.runs(randn({5})));
  EXPECT_TRUE(f.runs(randn({6})));
  EXPECT_TRUE(f.runs(randn({6})));
  EXPECT_FALSE(f.runs(randn({6})));
  EXPECT_TRUE(f.runs(randn({9})));
  EXPECT_FALSE(f.runs(randn({12})));
  EXPECT_FALSE(f.runs(randn({4})));
}

TEST(FrozenSizes, DecisionsOnWhatTheCallMakes) {
  Frozen f([](const Tensor& x) {
    Tensor twice = cat({x, x});
    return twice.size(0) % 4 == 0 ? twice + 1 : twice - 1;
  });
  f.see(randn({2}), randn({4}));
  EXPECT_FALSE(f.runs(randn({6})));
  EXPECT_TRUE(f.runs(randn({3})));
}

TEST(FrozenSizes, PlainNumbersAreHeldTo) {
  auto held = [](auto number) {
    Frozen f([number](const Tensor& x) { return x * number(x); });
    for (int64_t n : {2, 3, 4}) {
      EXPECT_TRUE(f.runs(randn({n, 2})));
      EXPECT_TRUE(f.runs(randn({n, 2})));
      EXPECT_FALSE(f.runs(randn({n, 2})));
    }
  };
  held([](const Tensor& x) { return static_cast<double>(int64_t{x.size(0)}); });
  held([](const Tensor& x) { return static_cast<double>(x.sizes()[0]); });
  held([](const Tensor& x) { return static_cast<double>(x.numel()); });
  held([](const Tensor& x) { return static_cast<double>(x.nbytes()); });
  held([](const Tensor& x) { return x.is_contiguous() ? 2.0 : 3.0; });
  held([](const Tensor& x) { return static_cast<double>(x.stride(0)); });
  held([](const Tensor& x) { return std::sqrt(static_cast<double>(x.size(0))); });
}

TEST(FrozenSizes, StructuralArgumentsAreHeldTo) {
  Frozen f([](const Tensor& x) { return x.sum(x.size(0) - 2); });
  f.see(randn({2, 3}), randn({2, 5}));
  EXPECT_FALSE(f.runs(randn({2, 7})));
  EXPECT_TRUE(f.runs(randn({3, 7})));
}

// Functions that give back what they were given at some sizes, and something new at others.
TEST(FrozenSizes, WhatIsGivenBackAsItCame) {
  using Tensors = std::vector<Tensor>;
  using Function = Tensors (*)(const Tensor&);
  const Function functions[] = {
      [](const Tensor& x) {
        Tensor t = x.slice(0, 0, std::nullopt, 2), u = t.contiguous();
        return Tensors{t, u};
      },
      [](const Tensor& x) {
        Tensor t = x.slice(0, 0, std::nullopt, 2), u = t.contiguous();
        return Tensors{u, t, u + t};
      },
      [](const Tensor& x) {
        Tensor t = x.slice(0, 1, std::nullopt, 2);
        static_cast<void>(t.contiguous());
        return Tensors{t};
      },
      [](const Tensor& x) {
        Tensor t = x.t(), u = t.contiguous();
        return Tensors{t, u, x.contiguous()};
      },
      [](const Tensor& x) {
        Tensor t = x.slice(1, 0, 1), u = t.contiguous(), v = t.reshape({-1}), w = t.flatten();
        return Tensors{t, u, v, w};
      },
      [](const Tensor& x) {
        Tensor t = x.slice(0, 0, std::nullopt, 2), u = t.contiguous().contiguous(), v = t.clone().contiguous();
        return Tensors{u, v, t.contiguous()};
      },
  };
  for (const Function& f : functions)
    for (const std::vector<int64_t>& sizes :
         {std::vector<int64_t>{1, 2, 4, 7, 3, 1, 9}, {4, 7, 1, 2, 9, 1, 5}, {2, 1, 3}}) {
      auto fast = compile(f, {.mode = CompileMode::frozen});
      for (int64_t n : sizes) {
        Tensor x = randn({n, 3});
        const Tensors expected = f(x), got = fast(x);
        ASSERT_EQ(got.size(), expected.size());
        for (size_t i = 0; i < got.size(); ++i) {
          EXPECT_TRUE(same_bits(got[i], expected[i])) << n;
          EXPECT_EQ(got[i].strides(), expected[i].strides()) << n << " result " << i;
          for (size_t j = 0; j < i; ++j)
            EXPECT_EQ(got[i].shares_storage(got[j]), expected[i].shares_storage(expected[j]))
                << n << " " << i << " " << j;
        }
      }
    }
}

TEST(FrozenSizes, NumbersInAResultAreRight) {
  int runs = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return std::tuple(x * 2, x.size(0));
      },
      {.mode = CompileMode::frozen});
  for (int64_t n : {2, 2, 2, 3, 3, 3, 4}) {
    Tensor x = randn({n});
    auto [y, size] = fast(x);
    EXPECT_EQ(size, n);
    EXPECT_TRUE(same_bits(y, x * 2));
  }
  EXPECT_EQ(runs, 5);
}

TEST(FrozenSizes, ErrorsAreThoseOfTheCallable) {
  Tensor w = randn({4});
  auto f = [w](const Tensor& x) { return x + w; };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int i = 0; i < 3; ++i) fast(randn({4}));
  fast(randn({1}));
  EXPECT_TRUE(same_bits(fast(ones({1})), f(ones({1}))));
  std::string eager, compiled;
  try {
    f(ones({5}));
  } catch (const Error& e) {
    eager = e.what();
  }
  try {
    fast(ones({5}));
  } catch (const Error& e) {
    compiled = e.what();
  }
  EXPECT_NE(eager, "");
  EXPECT_EQ(eager, compiled);
  EXPECT_TRUE(same_bits(fast(ones({4})), f(ones({4}))));
}

TEST(FrozenSizes, RandomNumbersAreEagers) {
  auto f = [](const Tensor& x) { return x + rand({x.size(0)}); };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int64_t n : {2, 2, 2, 3, 3, 3, 5, 7}) {
    Tensor x = randn({n});
    manual_seed(7);
    Tensor expected = f(x), next = rand({1});
    manual_seed(7);
    EXPECT_TRUE(same_bits(fast(x), expected));
    EXPECT_TRUE(same_bits(rand({1}), next));
  }
}

TEST(FrozenSizes, PiecesAndPositions) {
  Frozen f([](const Tensor& x) {
    std::vector<Tensor> halves = x.chunk(2, 1);
    return (halves[0] * halves[1]).repeat({2, 1}).tril() + x[0].slice(0, 0, x.size(1) / 2).expand_as(halves[0]).sum();
  });
  f.see(randn({2, 4}), randn({3, 6}));
  EXPECT_FALSE(f.runs(randn({5, 10})));
  EXPECT_FALSE(f.runs(randn({1, 2})));
}

TEST(FrozenSizes, MoreThanAreKept) {
  Frozen f([](const Tensor& x) { return x.cumsum(0) + x.size(0); });
  f.see(ones({1}), ones({2}));
  for (int64_t n = 3; n < 400; ++n) EXPECT_FALSE(f.runs(ones({n})));
}

TEST(FrozenSizes, FromManyThreads) {
  Tensor w = randn({8, 8});
  auto f = [w](const Tensor& x) { return x.matmul(w).relu() / x.size(0); };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int64_t n : {2, 2, 2, 3, 3}) fast(randn({n, 8}));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 40; ++i) {
        Tensor x = ones({1 + (i * 7 + t) % 23, 8});
        if (!same_bits(fast(x), f(x))) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// An expression over sizes that is used twice is worked out once, not once for each way that leads to it.
TEST(FrozenSizes, ArithmeticThatIsSharedManyTimes) {
  auto f = [](const Tensor& x) {
    Size n = x.size(0);
    for (int i = 0; i < 200; ++i) n = (n + n) / 2;
    Size m = n;
    for (int i = 0; i < 1000; ++i) m = m + n - n;
    return zeros({n, 2}) + x.sum() + zeros({m, 1});
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int64_t rows : {3, 3, 5, 4, 3, 9, 7, 11}) {
    Tensor x = randn({rows});
    EXPECT_TRUE(equal(fast(x), f(x))) << rows;
  }
}

// Sizes that never come again: what keeps a Size is repeated without its callable from the third call on, and explain()
// says why a plain number is not.
TEST(FrozenSizes, ThatNeverComeAgain) {
  int runs = 0;
  auto open = [&](const Tensor& x) {
    ++runs;
    return x.view({x.size(0), 2, 4}).sum({1}) + x.size(0);
  };
  auto plain = [](const Tensor& x) {
    const int64_t n = x.size(0);
    return x.view({n, 2, 4}).sum({1}) + n;
  };
  auto fast = compile(open, {.mode = CompileMode::frozen});
  auto slow = compile(plain, {.mode = CompileMode::frozen});
  for (int64_t n = 1; n < 30; ++n) {
    Tensor x = randn({n, 8});
    const Tensor expected = plain(x);
    ASSERT_TRUE(same_bits(fast(x), expected));
    ASSERT_TRUE(same_bits(slow(x), expected));
  }
  EXPECT_LE(runs, 3);
  EXPECT_EQ(fast.stats().frozen_entries, 28);
  EXPECT_NE(slow.explain().frozen.find("a size went through a plain number"), std::string::npos)
      << slow.explain().frozen;
}

// Where gradients are recorded around it, and its parameters require grad.
TEST(FrozenSizes, AGuardOfTheFunctionsOwnIsAsGoodAsOneAround) {
  const nn::Linear net(4, 3);
  Frozen f([&](const Tensor& x) {
    const NoGradGuard no_grad;
    return net(x).tanh() * 2;
  });
  f.see(randn({2, 4}), randn({5, 4}));
  EXPECT_FALSE(f.runs(randn({9, 4})));
  EXPECT_FALSE(f.runs(randn({2, 4})));
}

TEST(FrozenSizes, ACapturedTensorThatRequiresGradByNowIsRefused) {
  Tensor weight = randn({4, 3}), other = randn({4, 3}).requires_grad_();
  auto fast = compile(
      [&](const Tensor& x) {
        Tensor y;
        {
          const NoGradGuard no_grad;
          y = x.matmul(other);
        }
        return y + x.matmul(weight);
      },
      {.mode = CompileMode::frozen});
  for (int64_t rows : {2, 2, 2, 5, 5, 6}) fast(randn({rows, 4}));
  EXPECT_GE(fast.stats().frozen_calls, 3);
  weight.requires_grad_();
  for (int64_t rows : {2, 5, 7})
    EXPECT_NE(test::error_of([&] { fast(randn({rows, 4})); }).find("writes no tape"), std::string::npos) << rows;
}

}  // namespace
}  // namespace ingot
