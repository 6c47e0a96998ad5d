#include "eager/nn/init.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "eager/autograd/autograd.h"
#include "eager/nn/windows.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

namespace init = nn::init;

bool equal(const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes() && eq(a, b).all().item<bool>(); }

struct Moments {
  double mean, std, least, most;
};

Moments moments(const Tensor& t) {
  const Tensor x = t.detach().to(kFloat64);
  return {x.mean().item<double>(), x.std().item<double>(), x.min().item<double>(), x.max().item<double>()};
}

/// Within what 120,000 numbers leave open.
void expect_moments(const char* what, const std::function<void(const Tensor&)>& f, double mean, double std,
                    double bound) {
  SCOPED_TRACE(what);
  manual_seed(3);
  const Tensor t = zeros({200, 60, 2, 5}).requires_grad_();
  f(t);
  EXPECT_TRUE(t.is_leaf() && t.requires_grad());
  const Moments m = moments(t);
  EXPECT_NEAR(m.mean, mean, 0.02 * std);
  EXPECT_NEAR(m.std, std, 0.02 * std);
  if (bound > 0) {
    EXPECT_GE(m.least, mean - bound);
    EXPECT_LE(m.most, mean + bound);
    EXPECT_GT(m.most, mean + 0.98 * bound);
  } else {
    EXPECT_GT(m.most, mean + 3.5 * std);
  }
}

TEST(Init, NumbersHaveTheirMeansVariancesAndBounds) {
  const double fan_in = 60 * 10, fan_out = 200 * 10, both = fan_in + fan_out, root3 = std::sqrt(3.0);
  expect_moments(
      "uniform", [](const Tensor& t) { init::uniform_(t, -1, 5); }, 2, 3 / root3, 3);
  expect_moments(
      "normal", [](const Tensor& t) { init::normal_(t, 2, 0.5); }, 2, 0.5, 0);
  // The variance of a normal number inside two of its deviations is 0.774 times as large.
  expect_moments(
      "truncated", [](const Tensor& t) { init::trunc_normal_(t, 0, 1); }, 0, 0.8796, 2);
  expect_moments(
      "truncated, moved", [](const Tensor& t) { init::trunc_normal_(t, 1, 0.5, 0, 2); }, 1, 0.4398, 1);
  double std = 1.5 * std::sqrt(2 / both);
  expect_moments(
      "xavier", [](const Tensor& t) { init::xavier_uniform_(t, 1.5); }, 0, std, root3 * std);
  expect_moments(
      "xavier", [](const Tensor& t) { init::xavier_normal_(t, 1.5); }, 0, std, 0);
  std = std::sqrt(2 / fan_in);
  expect_moments(
      "kaiming", [](const Tensor& t) { init::kaiming_uniform_(t); }, 0, std, root3 * std);
  std = std::sqrt(2 / (1 + 0.25)) / std::sqrt(fan_out);
  expect_moments(
      "kaiming", [](const Tensor& t) { init::kaiming_normal_(t, 0.5, "fan_out"); }, 0, std, 0);
  std = 5.0 / 3 / std::sqrt(fan_in);
  expect_moments(
      "kaiming", [](const Tensor& t) { init::kaiming_normal_(t, 0, "fan_in", "tanh"); }, 0, std, 0);
}

TEST(Init, Gains) {
  EXPECT_EQ(init::calculate_gain("linear"), 1);
  EXPECT_EQ(init::calculate_gain("conv_transpose2d"), 1);
  EXPECT_EQ(init::calculate_gain("relu"), std::sqrt(2.0));
  EXPECT_EQ(init::calculate_gain("leaky_relu"), std::sqrt(2 / 1.0001));
  EXPECT_EQ(init::calculate_gain("leaky_relu", 2), std::sqrt(0.4));
  EXPECT_EQ(init::calculate_gain("selu"), 0.75);
}

TEST(Init, FixedValues) {
  const Tensor t = randn({3, 5}).requires_grad_();
  EXPECT_TRUE(equal(init::ones_(t).detach(), ones({3, 5})));
  EXPECT_TRUE(equal(init::constant_(t, 2.5).detach(), full({3, 5}, 2.5)));
  EXPECT_TRUE(equal(init::zeros_(t).detach(), zeros({3, 5})));
  EXPECT_TRUE(equal(init::eye_(t).detach(), eye(3, 5)));
  EXPECT_TRUE(equal(init::eye_(zeros({0, 4})), zeros({0, 4})));
  EXPECT_TRUE(equal(init::eye_(randn({4, 6}).t()), eye(6, 4)));
}

/// Convolutions with such weights leave channels as they are.
TEST(Init, DiracKeepsChannels) {
  const Tensor line = randn({2, 4, 9}), image = randn({2, 6, 5, 7});
  EXPECT_TRUE(equal(conv1d(line, init::dirac_(randn({4, 4, 3})), {}, 1, 1), line));
  EXPECT_TRUE(equal(conv2d(image, init::dirac_(randn({6, 2, 3, 5}), 3), {}, 1, {1, 2}, 1, 3), image));
  const Tensor fewer = init::dirac_(randn({2, 6, 1, 1}));
  EXPECT_TRUE(equal(conv2d(image, fewer), image.narrow(1, 0, 2)));
  EXPECT_EQ(init::dirac_(randn({8, 3, 1, 1, 1}), 2).sum().item<double>(), 6);
}

TEST(Init, OrthogonalRowsOrColumns) {
  for (const DType dtype : {kFloat32, kFloat64, kBFloat16}) {
    const double tolerance = dtype == kFloat64 ? 1e-14 : dtype == kFloat32 ? 1e-6 : 2e-2;
    const Tensor wide = init::orthogonal_(empty({4, 3, 5}, dtype).requires_grad_()).detach().flatten(1).to(kFloat64);
    EXPECT_TRUE(allclose(matmul(wide, wide.t()), eye(4).to(kFloat64), 0, tolerance));
    const Tensor tall = init::orthogonal_(empty({4, 7}, dtype).t(), 3).to(kFloat64);
    EXPECT_TRUE(allclose(matmul(tall.t(), tall), 9 * eye(4).to(kFloat64), 0, 9 * tolerance));
  }
  EXPECT_NEAR(init::orthogonal_(empty({1, 1})).abs().item<double>(), 1, 1e-6);
  EXPECT_EQ(init::orthogonal_(empty({0, 3})).numel(), 0);
  // No side is preferred: of 400 matrices about half have a positive corner.
  manual_seed(5);
  int positive = 0;
  for (int i = 0; i < 400; ++i) positive += init::orthogonal_(empty({2, 2}))[0][0].item<float>() > 0;
  EXPECT_NEAR(positive, 200, 40);
}

TEST(Init, SparseColumns) {
  manual_seed(5);
  const Tensor t = init::sparse_(empty({10, 300}), 0.25, 2);
  EXPECT_TRUE(equal(t.eq(0).sum(0), full({300}, 3)));
  EXPECT_NEAR(moments(t.masked_select(t.ne(0))).std, 2, 0.1);
  // The zeros of different columns are in different rows.
  EXPECT_GT(t.eq(0).sum(1).min().item<double>(), 50);
  EXPECT_TRUE(equal(init::sparse_(empty({4, 2}), 1), zeros({4, 2})));
  EXPECT_EQ(init::sparse_(empty({4, 2}), 0).eq(0).sum().item<double>(), 0);
  EXPECT_EQ(init::sparse_(empty({0, 2}), 0.5).numel(), 0);
}

TEST(Init, SaysWhatIsWrong) {
  const Tensor line = randn({4}), t = randn({4, 3}), kept = t.clone();
  EXPECT_NE(test::message_of([&] { init::kaiming_uniform_(line); }).find("kaiming_uniform_: tensor: got 1 dims"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] { init::xavier_normal_(line); }).find("xavier_normal_"), std::string::npos);
  EXPECT_NE(test::message_of([&] { init::kaiming_normal_(t, 0, "fan"); }).find("mode: got \"fan\""), std::string::npos);
  EXPECT_NE(test::message_of([&] { init::kaiming_normal_(t, 0, "fan_in", "gelu"); }).find("nonlinearity: got \"gelu\""),
            std::string::npos);
  EXPECT_NE(test::message_of([&] { init::trunc_normal_(t, 0, 0); }).find("std: got"), std::string::npos);
  EXPECT_NE(test::message_of([&] { init::trunc_normal_(t, 0, 1, 2, 2); }).find("expected less than b"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] { init::eye_(line); }).find("eye_"), std::string::npos);
  EXPECT_NE(test::message_of([&] { init::dirac_(t); }).find("dirac_"), std::string::npos);
  EXPECT_NE(test::message_of([&] { init::dirac_(randn({4, 3, 2}), 3); }).find("groups: got 3"), std::string::npos);
  EXPECT_NE(test::message_of([&] { init::orthogonal_(line); }).find("orthogonal_: tensor: got 1 dims"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] {
              init::orthogonal_(zeros({2, 2}, kInt64));
            }).find("expected a floating dtype"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] { init::sparse_(line, 0.5); }).find("sparse_: tensor: got shape [4], expected 2 dims"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] { init::sparse_(t, 1.5); }).find("sparsity: got 1.5"), std::string::npos);
  EXPECT_NE(test::message_of([&] { init::ones_(Tensor()); }).find("ones_"), std::string::npos);
  EXPECT_TRUE(equal(t, kept));
}

}  // namespace
}  // namespace ingot
