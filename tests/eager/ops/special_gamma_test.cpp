// Incomplete gamma functions beside mpmath's numbers, which have more digits than PyTorch's.
#include <limits>

#include "eager/autograd/autograd.h"
#include "eager/ops/near.h"
#include "eager/ops/special.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;
using test::near;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

TEST(IncompleteGamma, ValuesAndTheirEnds) {
  const Tensor a = tensor({.5, 2., 10., 100., .1}, kFloat64), x = tensor({.2, 3., 8., 120., 2.}, kFloat64);
  EXPECT_TRUE(near(
      special::gammainc(a, x),
      tensor({0.4729107431345, 0.8008517265285, 0.283375741273, 0.9721362601095, 0.9943261760202}, kFloat64), 1e-12));
  EXPECT_TRUE(
      near(igammac(a, x),
           tensor({0.5270892568655, 0.1991482734715, 0.716624258727, 0.02786373989052, 0.005673823979812}, kFloat64),
           1e-12));
  const Tensor order = tensor({0., 0., 2., 2., kInf, kInf, -1., 2., kNan}, kFloat64),
               end = tensor({0., 1., 0., kInf, 1., kInf, 1., -1., 1.}, kFloat64);
  EXPECT_TRUE(near(igamma(order, end), tensor({kNan, 1., 0., 1., 0., kNan, kNan, kNan, kNan}, kFloat64)));
  EXPECT_TRUE(near(igammac(order, end), tensor({kNan, 0., 1., 0., 1., kNan, kNan, kNan, kNan}, kFloat64)));
  EXPECT_TRUE(near(igamma(tensor({2.f}), tensor({{3.f}, {1.f}})), tensor({{0.80085170f}, {0.26424110f}})));
  EXPECT_EQ(igamma(zeros({0}), zeros({0})).numel(), 0);
}

TEST(IncompleteGamma, LoseNoDigits) {
  const Tensor a = tensor({1e-10, .05, 100., 1e4, 1e4}, kFloat64), x = tensor({.3, 1., 30., 9900., 1e4}, kFloat64);
  EXPECT_TRUE(near(igamma(a, x) / tensor({0.9999999999094323, 0.98847634705146, 7.338468632878333e-24,
                                          0.15865119219356466, 0.5013298083399552},
                                         kFloat64),
                   ones_like(a), 1e-13));
  EXPECT_TRUE(near(
      igammac(a, x) /
          tensor({9.056766516920478e-11, 0.011523652948539912, 1.0, 0.8413488078064354, 0.4986701916600448}, kFloat64),
      ones_like(a), 1e-13));
}

TEST(IncompleteGamma, GradientsGoToTheEnd) {
  const Tensor a = tensor({.5, 3.}, kFloat64), x = tensor({.7, 4.}, kFloat64).requires_grad_();
  const auto both = [&](const std::vector<Tensor>& v) {
    return std::vector<Tensor>{special::gammainc(a, v[0]), special::gammaincc(a, v[0])};
  };
  EXPECT_TRUE(autograd::gradcheck(both, {x}));
  EXPECT_TRUE(autograd::gradgradcheck(both, {x}));
  const Tensor order = tensor({.5, 3.}, kFloat64).requires_grad_();
  EXPECT_NE(message_of([&] {
              igamma(order, x).sum().backward();
            }).find("self: got a tensor that requires grad, expected one that does not: there is no gradient to it"),
            std::string::npos);
  EXPECT_NE(message_of([&] { igamma(a, ones({2})); }).find("igamma: other: got a tensor of f32, expected f64"),
            std::string::npos);
}

// PyTorch's numbers.
TEST(SpecialInPlace, WritesWhatTheFunctionGives) {
  const auto written = [](auto f) {
    const Tensor x = tensor({1.5, 2.5}, kFloat64);
    EXPECT_TRUE(f(x).is_same(x));
    return x;
  };
  EXPECT_TRUE(near(written([](const Tensor& x) -> const Tensor& { return x.i0_(); }),
                   tensor({1.646723189772891, 3.289839144050123}, kFloat64), 1e-14));
  EXPECT_TRUE(near(written([](const Tensor& x) -> const Tensor& { return x.polygamma_(1); }),
                   tensor({0.934802200544679, 0.490357756100235}, kFloat64), 1e-14));
  EXPECT_TRUE(near(written([](const Tensor& x) -> const Tensor& { return x.mvlgamma_(2); }),
                   tensor({0.451582705289455, 0.857047813397619}, kFloat64), 1e-14));
  const Tensor two = tensor(2., kFloat64);
  EXPECT_TRUE(near(written([&](const Tensor& x) -> const Tensor& { return x.igamma_(two); }) +
                       written([&](const Tensor& x) -> const Tensor& { return x.igammac_(two); }),
                   ones({2}, kFloat64), 1e-14));
}

TEST(SpecialInPlace, HasTheGradientOfTheFunction) {
  const Tensor x = tensor({1.5, 2.5}, kFloat64).requires_grad_();
  const auto gradient = [&](auto f) { return autograd::grad({f(x * 1).sum()}, {x})[0]; };
  EXPECT_TRUE(
      equal(gradient([](const Tensor& y) { return y.i0_(); }), gradient([](const Tensor& y) { return y.i0(); })));
  EXPECT_TRUE(equal(gradient([](const Tensor& y) { return y.polygamma_(2); }),
                    gradient([](const Tensor& y) { return y.polygamma(2); })));
  EXPECT_TRUE(equal(gradient([](const Tensor& y) { return y.mvlgamma_(2); }),
                    gradient([](const Tensor& y) { return y.mvlgamma(2); })));
}

TEST(SpecialInPlace, WhatItDoesNotHoldIsRefused) {
  const Tensor whole = tensor({1, 2}), x = tensor({1.f, 2.f}), before = x.clone();
  const auto says = [](const std::function<void()>& f, const char* text) {
    const std::string message = test::message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_NE(message.find("special_gamma_test.cpp"), std::string::npos) << message;
  };
  says([&] { whole.i0_(); }, "i0_: self: got a tensor of i64, expected a floating dtype");
  says([&] { whole.mvlgamma_(1); }, "mvlgamma_: self: got a tensor of i64");
  says([&] { x.igamma_(ones({2, 2})); }, "igamma_");
  says([&] { x.polygamma_(-1); }, "polygamma_");
  EXPECT_TRUE(equal(whole, tensor({1, 2})));
  EXPECT_TRUE(equal(x, before));
}

}  // namespace
}  // namespace ingot
