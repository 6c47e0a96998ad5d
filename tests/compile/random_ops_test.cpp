// Random ops in traces: the draws of a compiled call are those of the eager call in its place.
#include <cmath>

#include "lacks.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

/// Calls f and its compiled form in turns from one state of the generator; every call must agree, and leave the
/// generator where eager does.
template <class F, class Fast, class... Args>
void expect_same_draws(F& f, Fast& fast, uint64_t seed, const Args&... args) {
  manual_seed(seed);
  Tensor expected = f(args...), expected_next = rand({3});
  manual_seed(seed);
  Tensor got = fast(args...), next = rand({3});
  EXPECT_TRUE(same_bits(got, expected));
  EXPECT_TRUE(same_bits(next, expected_next));
}

TEST(RandomOps, FirstValuesOfParameters) {
  auto f = [](const Tensor& x) {
    const Tensor a = nn::init::kaiming_uniform_(empty_like(x)), b = nn::init::xavier_normal_(empty_like(x));
    return a + b * nn::init::trunc_normal_(empty_like(x), 0, 0.02);
  };
  auto fast = compile(f);
  for (uint64_t seed = 0; seed < 3; ++seed) expect_same_draws(f, fast, seed, randn({7, 33}));
}

TEST(RandomOps, CompiledDrawsAreEagersOnEveryInstructionSet) {
  auto f = [](const Tensor& x) {
    Tensor noise = randn_like(x) * 0.1 + rand(x.sizes());
    Tensor kept = F::dropout((x + noise).tanh(), 0.3);
    Tensor shuffled = kept.index_select(0, randperm(x.size(0)));
    return shuffled + bernoulli(x.sigmoid()) + randint(-3, 9, x.sizes()).to(x.dtype());
  };
  const test::RestoredSettings restored;
  for (Isa isa : {Isa::none, Isa::avx2, Isa::avx512}) {
    if (test::lacks(isa)) continue;
    runtime::set_host_target(runtime::target_of(isa));
    auto fast = compile(f);
    for (uint64_t seed = 0; seed < 3; ++seed) expect_same_draws(f, fast, seed, randn({7, 33}));
    EXPECT_EQ(fast.stats().compilations, 1);
    for (int64_t rows : {2, 9, 40}) expect_same_draws(f, fast, 11, randn({rows, 33}));
    EXPECT_EQ(fast.stats().compilations, 2);
    EXPECT_EQ(fast.stats().fallbacks, 0);
    expect_same_draws(f, fast, 12, randn({5, 6}, kFloat64));
    expect_same_draws(f, fast, 13, randn({5, 6}, kBFloat16));
  }
}

TEST(RandomOps, MultinomialInsideOfAStep) {
  for (bool replacement : {false, true})
    for (bool frozen : {false, true}) {
      auto f = [replacement](const Tensor& logits) {
        const Tensor drawn = multinomial(logits.softmax(-1), 3, replacement);
        return logits.gather(-1, drawn) + rand({3});
      };
      auto fast = compile(f, {.mode = frozen ? CompileMode::frozen : CompileMode::checked});
      for (uint64_t seed = 0; seed < 4; ++seed) expect_same_draws(f, fast, seed, randn({4, 50}));
      for (int64_t rows : {2, 9, 1}) expect_same_draws(f, fast, 11, randn({rows, 33 + rows}));
      EXPECT_EQ(fast.stats().fallbacks, 0);
      // What cannot be drawn from is refused as in eager, and later calls are right.
      Tensor bad = randn({2, 33});
      bad[1][4].fill_(NAN);
      EXPECT_THROW(fast(bad), Error);
      expect_same_draws(f, fast, 12, randn({2, 33}));
    }
}

TEST(RandomOps, EachCallDrawsAnew) {
  auto fast = compile([](const Tensor& x) { return x + rand({4}); });
  Tensor x = zeros({4});
  EXPECT_FALSE(equal(fast(x), fast(x)));
  EXPECT_EQ(fast.stats().compilations, 1);
}

TEST(RandomOps, DrawsAreTakenAlsoWhereTheResultIsUnused) {
  auto f = [](const Tensor& x) {
    rand({100});
    Tensor y = x + rand({4});
    randn({5});
    return y;
  };
  auto fast = compile(f);
  for (int i = 0; i < 3; ++i) expect_same_draws(f, fast, 3, ones({4}));
}

TEST(RandomOps, WriteInPlace) {
  Tensor state = zeros({8});
  auto f = [&](const Tensor& x) {
    state.narrow(0, 2, 4).uniform_(-1, 1);
    Tensor y = x.clone();
    y.normal_(1, 2).mul_(state);
    return y;
  };
  auto fast = compile(f);
  for (int i = 0; i < 3; ++i) expect_same_draws(f, fast, 5, ones({8}));
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(RandomOps, ProbabilitiesAreChecked) {
  auto computed = compile([](const Tensor& x) { return bernoulli(x * 2); });
  auto given = compile([](const Tensor& x, double p) { return F::dropout(bernoulli(x), p); });
  Tensor good = full({3}, 0.5), bad = full({3}, 0.75);
  EXPECT_TRUE(same_bits(computed(good), ones({3})));
  EXPECT_THROW(computed(bad), Error);
  EXPECT_NO_THROW(given(good, 0.5));
  EXPECT_THROW(given(good * 4, 0.5), Error);
  EXPECT_THROW(given(good, 2.0), Error);
  EXPECT_NO_THROW(given(good, 0.25));
}

TEST(RandomOps, AnExceptionLeavesTheGeneratorWhereEagerDoes) {
  auto f = [](const Tensor& x) -> Tensor {
    Tensor y = x + rand({4});
    if (x.dim() == 1) throw std::runtime_error("stop");
    return y;
  };
  auto fast = compile(f);
  manual_seed(6);
  EXPECT_THROW(f(ones({4})), std::runtime_error);
  Tensor expected = rand({4});
  manual_seed(6);
  EXPECT_THROW(fast(ones({4})), std::runtime_error);
  EXPECT_TRUE(same_bits(rand({4}), expected));
}

TEST(RandomOps, FrozenCallsDrawAsTheCallableWould) {
  int runs = 0;
  auto f = [&](const Tensor& x) {
    ++runs;
    rand({3});
    return F::dropout(x, 0.5) + randn({6, 1});
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  Tensor x = randn({6, 20});
  manual_seed(8);
  std::vector<Tensor> expected;
  for (int i = 0; i < 6; ++i) expected.push_back(f(x));
  runs = 0;
  manual_seed(8);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(same_bits(fast(x), expected[static_cast<size_t>(i)])) << i;
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(fast.explain().frozen, "1 frozen, 0 seen once");
}

TEST(RandomOps, FrozenCallsThatComputeNothingStillDraw) {
  auto fast = compile([](const Tensor&) { rand({5}); }, {.mode = CompileMode::frozen});
  Tensor x = ones({1});
  manual_seed(8);
  for (int i = 0; i < 5; ++i) fast(x);
  Tensor got = rand({2});
  manual_seed(8);
  rand({25});
  EXPECT_TRUE(same_bits(got, rand({2})));
}

TEST(RandomOps, ACallableThatSeedsIsNotFrozen) {
  auto f = [](const Tensor& x) {
    manual_seed(3);
    return x + rand({4});
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(fast(ones({4})), f(ones({4}))));
  EXPECT_EQ(fast.explain().frozen, "refused: the call is computed in parts: manual_seed");
}

TEST(RandomOps, ANetworkInTraining) {
  nn::Sequential net{nn::Linear(12, 20), nn::BatchNorm1d(20), nn::ReLU(), nn::Dropout(0.4), nn::Linear(20, 3)};
  auto fast = compile(net);
  auto& norm = *static_cast<nn::BatchNormImpl*>(net->named_modules().at(2).second);
  Tensor mean = norm.running_mean.clone(), var = norm.running_var.clone();
  for (uint64_t i = 0; i < 4; ++i) {
    Tensor x = randn({16, 12});
    manual_seed(i);
    norm.running_mean.copy_(mean), norm.running_var.copy_(var);
    Tensor expected = net(x), mean_after = norm.running_mean.clone(), var_after = norm.running_var.clone();
    manual_seed(i);
    norm.running_mean.copy_(mean), norm.running_var.copy_(var);
    EXPECT_TRUE(same_bits(fast(x), expected));
    EXPECT_TRUE(same_bits(norm.running_mean, mean_after));
    EXPECT_TRUE(same_bits(norm.running_var, var_after));
    mean = mean_after, var = var_after;
  }
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 8);
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().compilations, 1);
}

}  // namespace
}  // namespace ingot
