#include "eager/ops/fake_quantize.h"

#include <gtest/gtest.h>

#include "eager/autograd/autograd.h"
#include "eager/ops/functions.h"
#include "eager/support.h"

namespace ingot {
namespace {

// Numbers of PyTorch.
TEST(FakeQuantize, PerTensor) {
  const Tensor x = tensor({-1.f, -0.26f, 0.f, 0.04f, 0.26f, 1.3f, 30.f, -5.f}).requires_grad_();
  const Tensor expected = tensor({-1.f, -0.3f, 0.f, 0.f, 0.3f, 1.3f, 24.5f, -1.f});
  const Tensor y = fake_quantize_per_tensor_affine(x, 0.1, 10, 0, 255);
  EXPECT_TRUE(allclose(y, expected, 0, 2e-7));
  y.backward(arange(1, 9, kFloat32));
  EXPECT_TRUE(equal(x.grad(), tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 0.f, 0.f})));
  EXPECT_TRUE(equal(fake_quantize_per_tensor_affine(x, tensor({0.1f}), tensor(10), 0, 255), y));
  EXPECT_EQ(fake_quantize_per_tensor_affine(zeros({0, 3}), 0.1, 0, -8, 7).numel(), 0);
  EXPECT_EQ(fake_quantize_per_tensor_affine(scalar_tensor(0.9), 0.5, 0, -8, 7).item<float>(), 1.f);
}

TEST(FakeQuantize, PerChannel) {
  const Tensor x = tensor({{0.5f, -2.f, 0.33f}, {0.5f, -2.f, 0.33f}}).requires_grad_();
  const Tensor scale = tensor({0.1f, 0.01f}), zero_point = tensor({0, 3}).to(kInt32);
  const Tensor y = fake_quantize_per_channel_affine(x, scale, zero_point, 0, -8, 7);
  EXPECT_TRUE(allclose(y, tensor({{0.5f, -0.8f, 0.3f}, {0.04f, -0.11f, 0.04f}}), 0, 1e-7));
  y.sum().backward();
  EXPECT_TRUE(equal(x.grad(), tensor({{1.f, 0.f, 1.f}, {0.f, 0.f, 0.f}})));
  EXPECT_TRUE(equal(fake_quantize_per_channel_affine(x.t(), scale, zero_point, -1, -8, 7), y.t()));
}

TEST(FakeQuantize, SaysWhatIsWrong) {
  const Tensor x = ones({2, 3});
  const auto has = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(test::message_of([&] { fake_quantize_per_tensor_affine(x.to(kInt64), 0.1, 0, 0, 255); }),
      "fake_quantize_per_tensor_affine: self: got a tensor of i64, expected a floating dtype");
  has(test::message_of([&] { fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 4); }),
      "quant_min: got 5, expected at most quant_max, 4");
  has(test::message_of([&] { fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255); }),
      "zero_point: got 300, expected a number from quant_min to quant_max");
  has(test::message_of([&] { fake_quantize_per_tensor_affine(x, ones({3}), 0, 0, 255); }),
      "scale: got shape [3], expected a number or one element");
  has(test::message_of([&] { fake_quantize_per_tensor_affine(x, Tensor(), 0, 0, 255); }), "scale: ");
  has(test::message_of([&] { fake_quantize_per_channel_affine(x, ones({2}), zeros({2}), 1, 0, 255); }),
      "scale: got shape [2], expected one number for each position of dim 1 of shape [2, 3]");
  has(test::message_of([&] { fake_quantize_per_channel_affine(x, ones({2}), zeros({2}), 2, 0, 255); }), "axis: got 2");
}

}  // namespace
}  // namespace ingot
