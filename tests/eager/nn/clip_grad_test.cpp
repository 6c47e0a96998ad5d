#include "eager/nn/clip_grad.h"

#include <gtest/gtest.h>

#include <limits>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot::nn::utils {
namespace {

Tensor with_gradient(const Tensor& gradient) {
  Tensor p = zeros_like(gradient, requires_grad());
  p.set_grad(gradient);
  return p;
}

TEST(ClipGrad, TheNormOfAllGradientsIsBounded) {
  const Tensor a = with_gradient(tensor({3.f, 0.f})), b = with_gradient(tensor({{-4.f}})), none = zeros({2});
  EXPECT_EQ(clip_grad_norm_({a, none, b}, 10).item<float>(), 5.f);
  EXPECT_EQ(a.grad()[0].item<float>(), 3.f);
  EXPECT_EQ(clip_grad_norm_({a, none, b}, 1).item<float>(), 5.f);
  EXPECT_TRUE(allclose(a.grad(), tensor({0.6f, 0.f})));
  EXPECT_TRUE(allclose(b.grad(), tensor({{-0.8f}})));
}

TEST(ClipGrad, NormsOfAnyOrder) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor a = with_gradient(tensor({3.f, 0.f})), b = with_gradient(tensor({-4.f}));
  EXPECT_EQ(clip_grad_norm_({a, b}, 10, 1).item<float>(), 7.f);
  EXPECT_EQ(clip_grad_norm_({a, b}, 10, inf).item<float>(), 4.f);
  EXPECT_EQ(clip_grad_norm_({zeros({2})}, 10).item<float>(), 0.f);
}

TEST(ClipGrad, InTwoHalves) {
  const Tensor a = with_gradient(tensor({3.f, 0.f})), b = with_gradient(tensor({{-4.f}}));
  const Tensor norm = get_total_norm({a.grad(), b.grad()});
  EXPECT_EQ(norm.item<float>(), 5.f);
  clip_grads_with_norm_({a}, 1, norm);
  EXPECT_TRUE(allclose(a.grad(), tensor({0.6f, 0.f})));
  EXPECT_EQ(b.grad().item<float>(), -4.f);
  clip_grads_with_norm_({b}, 10, norm);
  EXPECT_EQ(b.grad().item<float>(), -4.f);
  EXPECT_EQ(get_total_norm({}).item<float>(), 0.f);
  EXPECT_THROW(get_total_norm({tensor({std::numeric_limits<float>::infinity()})}, 2, true), Error);
  EXPECT_THROW(clip_grads_with_norm_({b}, -1, norm), Error);
}

TEST(ClipGrad, SixteenBitGradientsKeepTheirType) {
  const Tensor a = with_gradient(tensor({3.f, 4.f}).to(kBFloat16)), b = with_gradient(tensor({0.f}));
  clip_grad_norm_({a, b}, 1);
  EXPECT_EQ(a.grad().dtype(), kBFloat16);
  EXPECT_TRUE(allclose(a.grad().to(kFloat32), tensor({0.6f, 0.8f}), 1e-2));
}

TEST(ClipGrad, ANormThatIsNoNumberIsRefusedOnDemand) {
  const Tensor a = with_gradient(tensor({std::numeric_limits<float>::quiet_NaN(), 1.f}));
  EXPECT_THROW(clip_grad_norm_({a}, 1, 2, true), Error);
  EXPECT_EQ(a.grad()[1].item<float>(), 1.f);
  EXPECT_NO_THROW(clip_grad_norm_({a}, 1));
}

TEST(ClipGrad, NegativeBoundsAreRefused) {
  const Tensor a = with_gradient(tensor({3.f, -4.f}));
  for (const double bound : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(clip_grad_norm_({a}, bound), Error);
    EXPECT_THROW(clip_grad_value_({a}, bound), Error);
  }
  EXPECT_TRUE(equal(a.grad(), tensor({3.f, -4.f})));
  clip_grad_value_({a}, 0);
  EXPECT_TRUE(equal(a.grad(), zeros({2})));
}

TEST(ClipGrad, ValuesAreCut) {
  const Tensor a = with_gradient(tensor({3.f, -0.5f, -7.f}));
  clip_grad_value_({a, zeros({1})}, 1);
  EXPECT_TRUE(equal(a.grad(), tensor({1.f, -0.5f, -1.f})));
}

}  // namespace
}  // namespace ingot::nn::utils
