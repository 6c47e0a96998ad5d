// Integrals and derivatives of samples beside PyTorch's numbers.
#include "eager/ops/sampled_functions.h"

#include <limits>

#include "eager/autograd/autograd.h"
#include "eager/ops/near.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;
using test::near;

Tensor samples() { return tensor({{1.f, -2.f, 4.f, 0.f}, {.5f, 3.f, 3.f, -1.f}, {4.f, 1.f, 0.f, 2.f}}); }
Tensor places() { return tensor({0.f, 1.f, 1.5f, 4.f}); }

TEST(Trapezoid, ByDistanceAndByPlace) {
  EXPECT_TRUE(near(trapezoid(samples()), tensor({2.5f, 5.75f, 4.f})));
  EXPECT_TRUE(near(trapezoid(samples(), 0.5, 0), tensor({1.5f, 1.25f, 2.5f, 0.f})));
  EXPECT_TRUE(near(trapz(samples(), places()), tensor({5.f, 5.75f, 5.25f})));
  EXPECT_TRUE(near(trapezoid(samples().t(), places(), 0), tensor({5.f, 5.75f, 5.25f})));
  EXPECT_TRUE(near(trapezoid(samples(), samples().cumsum(1)), tensor({5.f, 13.25f, 4.5f})));
  EXPECT_TRUE(near(cumulative_trapezoid(samples(), places()),
                   tensor({{-0.5f, 0.f, 5.f}, {1.75f, 3.25f, 5.75f}, {2.5f, 2.75f, 5.25f}})));
  EXPECT_TRUE(near(cumulative_trapezoid(samples(), 2, 0), tensor({{1.5f, 1.f, 7.f, -1.f}, {6.f, 5.f, 10.f, 0.f}})));
  EXPECT_TRUE(near(trapezoid(tensor({1, 2, 3})), tensor(4.f)));
  EXPECT_TRUE(near(trapezoid(tensor({1, 2, 5}, kUInt8)), tensor(5.f), 0));
  EXPECT_TRUE(near(trapezoid(tensor({1.5f, 2.f, 5.f, 7.f}).to(kBFloat16), 0.5), tensor(5.625f).to(kBFloat16), 0));
  EXPECT_TRUE(near(trapezoid(tensor({1.f, std::numeric_limits<float>::infinity(), 2.f})).isinf(), tensor(true)));
  EXPECT_TRUE(near(trapezoid(zeros({2, 0})), zeros({2})));
  EXPECT_TRUE(near(trapezoid(zeros({2, 1})), zeros({2})));
  EXPECT_NE(message_of([] { trapezoid(samples(), tensor({1.f})); }).find("trapezoid: x: got shape [1]"),
            std::string::npos);
  EXPECT_THROW(trapezoid(tensor({true})), Error);
  EXPECT_THROW(trapezoid(tensor(1.f)), Error);
  EXPECT_THROW(cumulative_trapezoid(samples(), 1, 2), Error);
}

TEST(Gradient, OfEqualDistances) {
  const std::vector<Tensor> g = gradient(samples());
  ASSERT_EQ(g.size(), 2u);
  EXPECT_TRUE(near(g[0], tensor({{-0.5f, 5.f, -1.f, -1.f}, {1.5f, 1.5f, -2.f, 1.f}, {3.5f, -2.f, -3.f, 3.f}})));
  EXPECT_TRUE(near(g[1], tensor({{-3.f, 1.5f, 1.f, -4.f}, {2.5f, 1.25f, -2.f, -4.f}, {-3.f, -2.f, 0.5f, 2.f}})));
  EXPECT_TRUE(equal(gradient(samples(), std::nullopt)[1], g[1]));
  EXPECT_TRUE(near(gradient(samples(), 0.5, -1, 2)[0],
                   tensor({{-15.f, 3.f, 2.f, -18.f}, {7.5f, 2.5f, -4.f, -12.f}, {-8.f, -4.f, 1.f, 7.f}})));
  EXPECT_TRUE(near(gradient(samples(), std::vector<double>{2.0, 0.5})[1],
                   tensor({{-6.f, 3.f, 2.f, -8.f}, {5.f, 2.5f, -4.f, -8.f}, {-6.f, -4.f, 1.f, 4.f}})));
  EXPECT_TRUE(near(gradient(tensor({1, 4, 9, 16}))[0], tensor({3.f, 4.f, 6.f, 7.f})));
  // What is not used does not matter.
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(near(gradient(tensor({1.f, inf, 3.f}))[0], tensor({inf, 1.f, -inf})));
}

TEST(Gradient, OfPlaces) {
  EXPECT_TRUE(near(gradient(samples(), {places()}, 1)[0],
                   tensor({{-3.f, 7.f, 9.7333336f, -1.6f},
                           {2.5f, 0.83333325f, -0.26666647f, -1.6f},
                           {-3.f, -2.3333335f, -1.5333333f, 0.80000001f}}),
                   1e-5));
  EXPECT_TRUE(near(gradient(samples(), {places()}, 1, 2)[0],
                   tensor({{-13.f, 7.f, 9.7333336f, -12.933333f},
                           {4.166667f, 0.83333325f, -0.26666647f, -2.9333336f},
                           {-3.6666665f, -2.3333335f, -1.5333333f, 3.1333332f}}),
                   1e-5));
}

TEST(Gradient, RefusesWrongArguments) {
  EXPECT_NE(message_of([] { gradient(tensor({1.f})); }).find("gradient: self: got shape [1], expected at least 2"),
            std::string::npos);
  EXPECT_THROW(gradient(tensor({1.f, 2.f}), 1, {}, 2), Error);
  EXPECT_THROW(gradient(samples(), 1, {}, 3), Error);
  EXPECT_THROW(gradient(samples(), 1, {0, 0}), Error);
  EXPECT_THROW(gradient(samples(), std::vector<double>{1.0}), Error);
  EXPECT_THROW(gradient(samples(), {places()}, 0), Error);
  EXPECT_THROW(gradient(tensor({true, false})), Error);
}

TEST(SampledFunctions, HaveGradients) {
  const Tensor y = samples().to(kFloat64).requires_grad_(), x = places().to(kFloat64).requires_grad_();
  const auto all = [](const std::vector<Tensor>& v) {
    return std::vector<Tensor>{trapezoid(v[0], v[1]), cumulative_trapezoid(v[0], v[1]), gradient(v[0], {v[1]}, 1, 2)[0],
                               gradient(v[0], 0.5, 0)[0]};
  };
  EXPECT_TRUE(autograd::gradcheck(all, {y, x}));
  EXPECT_TRUE(autograd::gradgradcheck(all, {y, x}));
}

// As PyTorch's: products of integers are integers, which wrap.
TEST(Trapezoid, IntegersAtIntegers) {
  const Tensor y = tensor({5, 6, 4}, kUInt8), x = tensor({9, 3, 1}, kUInt8);
  EXPECT_TRUE(near(trapezoid(y, x), tensor(213.f), 0));
  EXPECT_TRUE(near(cumulative_trapezoid(y, x), tensor({95.f, 213.f}), 0));
  EXPECT_TRUE(near(trapezoid(tensor({1, 2, 4}), tensor({1, 3, 4})), tensor(6.f), 0));
  EXPECT_TRUE(near(trapezoid(tensor({200, 100, 4}, kUInt8)), tensor(202.f), 0));
}

}  // namespace
}  // namespace ingot
