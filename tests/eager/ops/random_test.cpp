// Random numbers: their bits against the published ones, their statistics, and what the generator hands out.
#include "eager/ops/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "eager/nn/layers.h"
#include "eager/ops/factories.h"
#include "lacks.h"
#include "runtime/cpu.h"
#include "runtime/thread_pool.h"

namespace ingot {
namespace {

double mean_of(const Tensor& t) { return t.to(kFloat64).mean().item<double>(); }
double deviation_of(const Tensor& t) { return t.to(kFloat64).std().item<double>(); }
bool same(const Tensor& a, const Tensor& b) { return equal(a, b); }

// The known answers of the authors' Random123 library, as far as a counter of 64 bits reaches them.
TEST(Random, BitsAreThoseOfPhilox) {
  Tensor zero = tensor({0});
  EXPECT_EQ(random_bits(zero, 0, 0).item<int64_t>(), static_cast<int64_t>(0xe169c58d6627e8d5));
  EXPECT_EQ(random_bits(zero, 0, 0, 1).item<int64_t>(), static_cast<int64_t>(0x9b00dbd8bc57ac4c));
  // Counter and offset add up.
  EXPECT_TRUE(same(random_bits(arange(5, 9), 3, -2), random_bits(arange(4), 3, 3)));
  EXPECT_THROW(random_bits(tensor({1.f}), 0, 0), Error);
}

TEST(Random, ASeedRepeatsAndCallsGoOn) {
  manual_seed(42);
  Tensor a = rand({1000}), b = rand({1000});
  EXPECT_FALSE(same(a, b));
  manual_seed(42);
  Tensor both = rand({2, 1000});
  EXPECT_TRUE(same(both[0], a));
  EXPECT_TRUE(same(both[1], b));
  manual_seed(43);
  EXPECT_FALSE(same(rand({1000}), a));
}

TEST(Random, InstructionSetsAndThreadsChangeNoBit) {
  std::vector<Tensor> expected;
  int threads = num_threads();
  for (Isa isa : {Isa::none, Isa::avx2, Isa::avx512}) {
    if (test::lacks(isa)) continue;
    runtime::set_host_target(runtime::target_of(isa));
    set_num_threads(1 + 2 * static_cast<int>(isa));
    manual_seed(7);
    std::vector<Tensor> got = {rand({70000}), randn({301, 257}), randint(-5, 1000, {70001}), randn({1001}, kFloat64)};
    if (expected.empty()) expected = got;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same(got[i], expected[i])) << i;
  }
  runtime::set_host_target(std::nullopt);
  set_num_threads(threads);
}

// Bounds are five standard deviations of the estimate.
TEST(Random, MomentsAreThoseOfTheDistribution) {
  manual_seed(1);
  const int64_t n = 1 << 18;
  const double root = std::sqrt(static_cast<double>(n));
  Tensor u = rand({n}), z = randn({n}), k = randint(10, 30, {n});
  EXPECT_NEAR(mean_of(u), 0.5, 5 * 0.2887 / root);
  EXPECT_NEAR(deviation_of(u), 0.2887, 1e-3);
  EXPECT_GE(u.min().item<float>(), 0);
  EXPECT_LT(u.max().item<float>(), 1);
  EXPECT_NEAR(mean_of(z), 0, 5 / root);
  EXPECT_NEAR(deviation_of(z), 1, 5 / root);
  EXPECT_NEAR(mean_of(z.pow(4)), 3, 5 * std::sqrt(96.0) / root);
  EXPECT_NEAR(mean_of(z.abs() < 1), 0.6827, 5 * 0.4655 / root);
  EXPECT_EQ(k.min().item<int64_t>(), 10);
  EXPECT_EQ(k.max().item<int64_t>(), 29);
  EXPECT_NEAR(mean_of(k), 19.5, 5 * 5.77 / root);
  EXPECT_NEAR(mean_of(bernoulli(full({n}, 0.3))), 0.3, 5 * 0.458 / root);
  Tensor filled = empty({n});
  filled.uniform_(-3, 5);
  EXPECT_NEAR(mean_of(filled), 1, 5 * 2.31 / root);
  filled.normal_(2, 0.5);
  EXPECT_NEAR(mean_of(filled), 2, 5 * 0.5 / root);
  filled.bernoulli_(0.75);
  EXPECT_NEAR(mean_of(filled), 0.75, 5 * 0.433 / root);
  EXPECT_EQ(filled.unsqueeze(1).eq(tensor({0.f, 1.f})).sum().item<int64_t>(), n);
}

TEST(Random, PermutationsHoldEachNumberOnce) {
  manual_seed(9);
  for (int64_t n : {0, 1, 2, 17, 5000}) {
    Tensor p = randperm(n);
    EXPECT_EQ(p.dtype(), kInt64);
    EXPECT_TRUE(same(std::get<0>(p.sort()), arange(n)));
  }
  EXPECT_EQ(randperm(4, kInt32).dtype(), kInt32);
  EXPECT_THROW(randperm(-1), Error);
  EXPECT_EQ(randperm(128, kInt8).amax().item<int>(), 127);
  // Every place is as likely for the first number: 6 places, 3,000 draws, five deviations.
  Tensor counts = zeros({6});
  for (int i = 0; i < 3000; ++i) counts.add_(randperm(6) == 0);
  EXPECT_LT((counts - 500).abs().max().item<float>(), 5 * std::sqrt(3000 * (1 / 6.0) * (5 / 6.0)));
}

TEST(Random, ExponentialHasItsRate) {
  manual_seed(10);
  const int64_t n = 1 << 18;
  Tensor x = empty({n});
  x.exponential_(4);
  EXPECT_NEAR(mean_of(x), 0.25, 5 * 0.25 / std::sqrt(static_cast<double>(n)));
  EXPECT_GE(x.min().item<float>(), 0);
  EXPECT_NEAR(mean_of(x > 0.25), std::exp(-1.0), 5 * 0.48 / std::sqrt(static_cast<double>(n)));
  EXPECT_THROW(x.exponential_(-1), Error);
}

TEST(Random, NeighboursAreIndependent) {
  manual_seed(2);
  const int64_t n = 1 << 16;
  Tensor z = randn({n});
  double lag = mean_of(z.slice(0, 1) * z.slice(0, 0, n - 1));
  EXPECT_NEAR(lag, 0, 5 / std::sqrt(static_cast<double>(n)));
}

TEST(Random, SixteenBitFloatsStayBelowOne) {
  for (DType d : {kFloat16, kBFloat16}) {
    Tensor u = rand({1 << 16}, d);
    EXPECT_EQ(u.dtype(), d);
    EXPECT_LT(u.max().item<float>(), 1);
    EXPECT_NEAR(mean_of(u), 0.5, 0.01);
  }
}

TEST(Random, LikeTakesSizesAndDtype) {
  Tensor x = zeros({3, 5}, kFloat64);
  EXPECT_EQ(rand_like(x).sizes(), x.sizes());
  EXPECT_EQ(randn_like(x).dtype(), kFloat64);
  EXPECT_EQ(randn_like(x, kFloat32).dtype(), kFloat32);
  EXPECT_EQ(randint_like(x, 4).dtype(), kFloat64);
  EXPECT_EQ(randint(4, {2, 2}).dtype(), kInt64);
  EXPECT_LE(randint(0, 256, {1000}, kUInt8).amax().item<int>(), 255);
  EXPECT_EQ(rand({0, 3}).numel(), 0);
}

TEST(Random, MultinomialDrawsByWeight) {
  manual_seed(12);
  const int64_t n = 1 << 16;
  for (DType d : {kFloat32, kFloat64, kBFloat16}) {
    const Tensor weights = tensor({0.f, 1.f, 0.f, 4.f, 3.f, 0.f}).to(d);
    Tensor drawn = multinomial(weights, n, true);
    EXPECT_EQ(drawn.dtype(), kInt64);
    EXPECT_EQ(drawn.sizes(), IntArrayRef({n}));
    const double expected[] = {0, 1 / 8.0, 0, 4 / 8.0, 3 / 8.0, 0};
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(mean_of(drawn == i), expected[i], 5 * std::sqrt(expected[i] / static_cast<double>(n))) << i;
    // One a row, without replacement: the same chances.
    drawn = multinomial(weights.expand({n, 6}), 1);
    EXPECT_EQ(drawn.sizes(), IntArrayRef({n, 1}));
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(mean_of(drawn == i), expected[i], 5 * std::sqrt(expected[i] / static_cast<double>(n))) << i;
  }
}

TEST(Random, WeightsOfAnySizeAreShares) {
  manual_seed(16);
  for (double scale : {1e-320, 1e-300, 1e307}) {
    const Tensor weights = tensor({1.0, 0.0, 3.0}, kFloat64) * scale;
    const Tensor drawn = multinomial(weights, 1 << 14, true), first = multinomial(weights.expand({1 << 14, 3}), 1);
    for (const Tensor& d : {drawn, first.flatten()}) {
      EXPECT_NEAR(mean_of(d == 0), 0.25, 0.02) << scale;
      EXPECT_NEAR(mean_of(d == 2), 0.75, 0.02) << scale;
    }
  }
  const Tensor many = full({100}, 1e308, kFloat64);  // whose sum overflows
  EXPECT_LT(multinomial(many, 5000, true).max().item<int64_t>(), 100);
  EXPECT_NEAR(mean_of(multinomial(many, 5000, true)), 49.5, 5 * 28.9 / std::sqrt(5000.0));
}

TEST(Random, WithoutReplacementNothingComesTwice) {
  manual_seed(13);
  const Tensor weights = rand({50, 40}) + 0.01;
  const Tensor drawn = multinomial(weights, 40);
  EXPECT_TRUE(same(std::get<0>(drawn.sort(1)), arange(40).expand({50, 40}).contiguous()));
  // What weighs nothing comes last. Of 1 and 3 the first one comes first in a quarter.
  const Tensor few = tensor({0.f, 1.f, 3.f}).expand({4000, 3});
  const Tensor order = multinomial(few, 3);
  EXPECT_TRUE(same(order.select(1, 2), zeros({4000}, kInt64)));
  EXPECT_NEAR(mean_of(order.select(1, 0) == 1), 0.25, 5 * std::sqrt(0.25 * 0.75 / 4000));
}

TEST(Random, ManyCategoriesAreAllReached) {
  manual_seed(14);
  // Longer than a block of the running sum.
  const Tensor weights = (arange(20000) % 7 == 3).to(kFloat32);
  const Tensor drawn = multinomial(weights, 200000, true);
  EXPECT_TRUE((drawn % 7 == 3).all().item<bool>());
  EXPECT_NEAR(mean_of(drawn), 10000, 5 * 5774 / std::sqrt(200000.0));
}

TEST(Random, MultinomialTakesDrawsOfItsOwn) {
  manual_seed(15);
  const Tensor weights = ones({3, 100});
  multinomial(weights, 2);
  EXPECT_EQ(default_generator().get_state()[1].item<int64_t>(), 300);
  multinomial(weights, 200, true);
  EXPECT_EQ(default_generator().get_state()[1].item<int64_t>(), 900);
  const Generator g(3), h(3);
  EXPECT_TRUE(same(multinomial(weights, 5, false, g), multinomial(weights, 5, false, h)));
  EXPECT_EQ(multinomial(empty({0, 4}), 2).sizes(), IntArrayRef({0, 2}));
}

TEST(Random, DropoutKeepsTheMean) {
  manual_seed(3);
  const int64_t n = 1 << 16;
  nn::Dropout dropout(0.2);
  Tensor x = ones({n}), y = dropout(x);
  EXPECT_NEAR(mean_of(y), 1, 5 * 0.5 / std::sqrt(static_cast<double>(n)));
  EXPECT_EQ(y.unsqueeze(1).eq(tensor({0.f, 1.25f})).sum().item<int64_t>(), n);
  EXPECT_EQ(F::dropout(x, 1.0).abs().max().item<float>(), 0);
  EXPECT_TRUE(same(F::dropout(x, 0.0), x));
  dropout->eval();
  EXPECT_TRUE(dropout(x).is_same(x));
}

TEST(Random, FeatureDropoutDropsWholeChannels) {
  manual_seed(3);
  nn::Dropout2d dropout(0.5);
  Tensor y = dropout(ones({20, 30, 4, 5})), channels = y.amax({2, 3});
  EXPECT_TRUE(same(channels, y.amin({2, 3})));
  EXPECT_NEAR(mean_of(channels), 1, 5 / std::sqrt(600.0));
  EXPECT_EQ(channels.unsqueeze(2).eq(tensor({0.f, 2.f})).sum().item<int64_t>(), 600);
  EXPECT_THROW(dropout(ones({3})), Error);
  dropout->eval();
  EXPECT_TRUE(dropout(y).is_same(y));
}

// Averaged over draws, dropped attention is attention.
TEST(Random, AttentionDropsWeights) {
  manual_seed(4);
  Tensor q = randn({2, 4, 5, 8}), k = randn({2, 2, 7, 8}), v = randn({2, 2, 7, 8});
  Tensor mask = rand({5, 7}) < 0.8;
  mask.select(1, 0).fill_(true);
  Tensor plain = F::scaled_dot_product_attention(q, k, v, mask, 0, false, {}, true);
  Tensor sum = zeros_like(plain);
  const int draws = 2000;
  Tensor first = F::scaled_dot_product_attention(q, k, v, mask, 0.1, false, {}, true);
  EXPECT_FALSE(allclose(first, plain, 1e-2, 1e-2));
  for (int i = 0; i < draws; ++i) sum.add_(F::scaled_dot_product_attention(q, k, v, mask, 0.1, false, {}, true));
  EXPECT_TRUE(allclose(sum / draws, plain, 0.1, 0.1));
  Tensor causal = F::scaled_dot_product_attention(q, q, q, {}, 1e-9, true);
  EXPECT_TRUE(allclose(causal, F::scaled_dot_product_attention(q, q, q, {}, 0, true), 1e-5, 1e-5));
  EXPECT_THROW(F::scaled_dot_product_attention(q, q, q, {}, 1.5), Error);
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    std::string text = e.what();
    return text.substr(0, text.rfind(" ("));
  }
  return "no error";
}

TEST(Random, WrongArgumentsAreNamedAndDrawNothing) {
  manual_seed(5);
  Tensor next = rand({4});
  manual_seed(5);
  Tensor x = zeros({3}), whole = zeros({3}, kInt64);
  EXPECT_EQ(error_of([&] { rand({2, -1}); }), "rand: size: got -1, expected no negative number");
  EXPECT_EQ(error_of([&] { rand({2}, kInt64); }), "rand: dtype: got i64, expected a floating point dtype");
  EXPECT_EQ(error_of([&] { whole.normal_(); }), "normal: self: got i64, expected a floating point dtype");
  EXPECT_EQ(error_of([&] { bernoulli(x, zeros({4})); }),
            "bernoulli: p: got shape [4], expected a shape that broadcasts with [3]");
  EXPECT_TRUE(same(rand({4}), next));
  EXPECT_EQ(error_of([&] { randint(5, 5, {2}); }), "randint: high: got 5, expected a number above low (5)");
  EXPECT_EQ(error_of([&] { randint(0, 257, {2}, kUInt8); }),
            "randint: high: got 257, expected a number from 1 to 256, for a result of u8");
  EXPECT_EQ(error_of([&] { randint(-129, 3, {2}, kInt8); }),
            "randint: low: got -129, expected a number from -128 to 127, for a result of i8");
  EXPECT_EQ(error_of([&] { randperm(257, kUInt8); }),
            "randperm: n: got 257, expected at most 256: the numbers below it, in u8");
  EXPECT_EQ(error_of([&] { bernoulli(full({2}, 1.5)); }),
            "bernoulli: self: got 1.500000, expected numbers from 0 to 1");
  EXPECT_EQ(error_of([&] { x.uniform_(2, 1); }), "uniform: to: got 1, expected no number below from (2)");
  EXPECT_EQ(error_of([&] { x.normal_(0, -1); }), "normal: std: got -1.000000, expected no number below 0");
  EXPECT_EQ(error_of([&] { F::dropout(x, 1.5); }), "dropout: p: got 1.500000, expected numbers from 0 to 1");
  EXPECT_TRUE(same(x, zeros({3})));
  const std::string weights = ", expected finite numbers, none of them negative, and in each row one above 0";
  for (float bad : {-1.f, INFINITY, NAN})
    EXPECT_EQ(error_of([&] {
                multinomial(tensor({1.f, bad}), 1);
              }),
              "multinomial: self: got " + std::to_string(bad) + weights);
  EXPECT_EQ(error_of([&] {
              multinomial(tensor({1.f, 0.f, 0.f, 0.f}).view({2, 2}), 1);
            }),
            "multinomial: self: got a row of zeros" + weights);
  EXPECT_EQ(error_of([&] { multinomial(ones({3}), 4); }),
            "multinomial: num_samples: got 4, expected 1 to 3 without replacement");
  EXPECT_EQ(error_of([&] { multinomial(ones({3}), 0, true); }), "multinomial: num_samples: got 0, expected 1 or more");
  EXPECT_EQ(error_of([&] { multinomial(whole, 1); }), "multinomial: self: got i64, expected a floating point dtype");
  EXPECT_EQ(error_of([&] {
              multinomial(ones({2, 0}), 1, true);
            }),
            "multinomial: self: got shape [2, 0], expected one or two dims, the last of which is not empty");
}

}  // namespace
}  // namespace ingot
