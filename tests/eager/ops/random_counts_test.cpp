// Numbers of other distributions: means and deviations, exact ones at the ends, errors.
#include <cmath>
#include <limits>

#include "eager/ops/near.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;
using test::near;

constexpr int64_t kCount = 1 << 16;

/// Mean and variance within five deviations; `fourth`: the fourth central moment over the squared variance.
void expect_moments(const char* what, const Tensor& x, double mean, double variance, double fourth = 3) {
  const Tensor wide = x.to(kFloat64);
  const double n = static_cast<double>(x.numel());
  EXPECT_NEAR(wide.mean().item<double>(), mean, 5 * std::sqrt(variance / n) + 1e-12) << what;
  EXPECT_NEAR(wide.var().item<double>(), variance, 5 * variance * std::sqrt((fourth - 1) / n) + 25 * variance / n)
      << what;
}
bool has(const std::function<void()>& f, const char* text) { return message_of(f).find(text) != std::string::npos; }

TEST(Normal, EachOfItsOwnMeanAndDeviation) {
  manual_seed(3);
  const Tensor mean = tensor({{-4.f}, {10.f}}), std = full({2, kCount}, 0.5);
  std.select(0, 1).fill_(3);
  const Tensor x = normal(mean, std);
  expect_moments("first", x[0], -4, .25);
  expect_moments("second", x[1], 10, 9);
  expect_moments("a number and a tensor", normal(2, std[1]), 2, 9);
  expect_moments("a tensor and a number", normal(full({kCount}, 1.), 2), 1, 4);
  expect_moments("numbers", normal(5, 0.1, {kCount}), 5, .01);
  EXPECT_EQ(normal(zeros({2}, kFloat64), ones({2})).dtype(), kFloat64);
  EXPECT_EQ(normal(0.0, 1.0, {2, 0}, {}, kBFloat16).dtype(), kBFloat16);
  EXPECT_FALSE(normal(ones({2}).requires_grad_(), 1).requires_grad());
  Generator g(7), h(7);
  EXPECT_TRUE(near(normal(1, ones({3}), g), randn({3}, {}, h) + 1));
  EXPECT_TRUE(has([] { normal(ones({2}), -1); }, "normal: std: got -1.000000, expected no number below 0"));
  EXPECT_TRUE(has(
      [] {
        normal(0, tensor({1.f, -1.f}));
      },
      "normal: std: got a number that is negative or NaN, expected no such number"));
  EXPECT_TRUE(has([] { normal(0, 1); }, "normal: size: got none"));
  EXPECT_TRUE(has([] { normal(ones({2}, kInt64), 1); }, "normal: mean: got a tensor of i64, expected a floating"));
}

TEST(Poisson, HasItsRate) {
  manual_seed(4);
  for (double rate : {.01, .7, 3., 15.5, 40., 1234.5, 1e6}) {
    const Tensor x = poisson(full({kCount}, rate, kFloat64));
    expect_moments("poisson", x, rate, rate, 3 + 1 / rate);
    EXPECT_TRUE((x == x.floor()).all().item<bool>());
  }
  EXPECT_NEAR((poisson(full({kCount}, 2.)) == 1).to(kFloat64).mean().item<double>(), 2 * std::exp(-2.), 5 * .45 / 256);
  EXPECT_TRUE(near(poisson(zeros({3}, kFloat16)), zeros({3}, kFloat16)));
  EXPECT_EQ(poisson(zeros({0, 2})).sizes(), IntArrayRef(Ints{0, 2}));
  Generator g(5), same(5);
  const Tensor before = g.get_state();
  EXPECT_TRUE(has([&] { poisson(tensor({1.f, -1.f}), g); }, "poisson: self: got a rate of -1.0"));
  EXPECT_TRUE(equal(g.get_state(), before));
  EXPECT_TRUE(equal(poisson(full({9}, 4.), g), poisson(full({9}, 4.), same)));
}

TEST(Binomial, HasItsProbability) {
  manual_seed(6);
  const auto check = [](double n, double p) {
    const Tensor x = binomial(full({kCount}, n, kFloat64), full({kCount}, p, kFloat64));
    const double variance = n * p * (1 - p);
    expect_moments("binomial", x, n * p, variance, 3 + (1 - 6 * p * (1 - p)) / variance);
    EXPECT_TRUE(logical_and(x >= 0, x <= n).all().item<bool>());
  };
  for (double p : {.001, .3, .5, .92}) check(1, p), check(17, p), check(5000, p), check(1e6, p);
  EXPECT_TRUE(near(binomial(tensor({5.f, 5.f, 0.f}), tensor({0.f, 1.f, .5f})), tensor({0.f, 5.f, 0.f})));
  EXPECT_EQ(binomial(ones({2, 1}), full({3}, .5)).sizes(), IntArrayRef(Ints{2, 3}));
  EXPECT_TRUE(has([] { binomial(tensor({1.5f}), tensor({.5f})); }, "binomial: count: got 1.5"));
  EXPECT_TRUE(has([] { binomial(tensor({1.f}), tensor({1.5f})); }, "binomial: prob: got 1.5"));
}

TEST(InPlace, Distributions) {
  manual_seed(8);
  const Tensor x = empty({kCount}, kFloat64);
  expect_moments("logarithm", x.clone().log_normal_(.5, .25).log(), .5, .0625);
  // Half of Cauchy's numbers lie within sigma of the median.
  const Tensor cauchy = x.clone().cauchy_(3, 2);
  EXPECT_NEAR(((cauchy - 3).abs() < 2).to(kFloat64).mean().item<double>(), .5, 5 * .5 / 256);
  EXPECT_NEAR((cauchy < 3).to(kFloat64).mean().item<double>(), .5, 5 * .5 / 256);
  for (double p : {.9, .2}) {
    const double q = 1 - p;
    expect_moments("geometric", x.clone().geometric_(p), 1 / p, q / (p * p), 9 + p * p / q);
  }
  const Tensor whole = empty({kCount}, kInt64).geometric_(.5);
  EXPECT_EQ(whole.amin().item<int64_t>(), 1);
  expect_moments("random", empty({kCount}).random_(-3, 4), 0, 4, 1.75);
  EXPECT_EQ(empty({kCount}, kInt8).random_().amin().item<int>(), 0);
  EXPECT_EQ(empty({kCount}, kInt8).random_().amax().item<int>(), 127);
  EXPECT_EQ(empty({kCount}, kBool).random_().sum().item<int64_t>() / (kCount / 4), 1);
  EXPECT_EQ(empty({kCount}).random_(2).amax().item<float>(), 1);
  EXPECT_TRUE(has([&] { x.geometric_(0); }, "geometric_: p: got 0.0"));
  EXPECT_TRUE(has([&] { x.cauchy_(0, 0); }, "cauchy_: sigma: got 0.0"));
}

}  // namespace
}  // namespace ingot
