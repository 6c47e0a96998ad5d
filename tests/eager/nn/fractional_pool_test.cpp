// Pooling over windows at random, with PyTorch's numbers for given samples.
#include "eager/nn/fractional_pool.h"

#include <gtest/gtest.h>

#include <cmath>

#include "eager/nn/layers.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

Tensor numbers(const IntList& sizes, int64_t count) {
  return (arange(count) * 37).remainder(101).to(kFloat32).view(sizes);
}

TEST(FractionalMaxPool, IsPyTorchsForItsSamples) {
  const Tensor x = numbers({2, 2, 5, 6}, 120);
  const Tensor samples = tensor({0.1f, 0.9f, 0.5f, 0.2f, 0.7f, 0.3f, 0.f, 0.6f}).view({2, 2, 2});
  const auto [values, indices] = F::fractional_max_pool2d_with_indices(x, {2, 3}, {3, 2}, {}, samples);
  EXPECT_TRUE(equal(values.flatten(), tensor({94, 84, 94, 87, 97, 90, 100, 83, 93, 86, 96, 89,
                                              99, 82, 92, 85, 95, 88, 98,  81, 94, 84, 94, 87})
                                          .to(kFloat32)));
  EXPECT_TRUE(equal(indices.flatten(),
                    tensor({8, 5, 8, 16, 19, 27, 0, 5, 8, 16, 19, 27, 0, 5, 8, 16, 19, 27, 0, 5, 19, 16, 19, 27})));
  EXPECT_TRUE(equal(F::fractional_max_pool2d(x[1], {2, 3}, {3, 2}, {}, samples.slice(0, 1)), values[1]));
  const Tensor volume = numbers({1, 4, 5, 6}, 120);
  const auto [deep, places] = F::fractional_max_pool3d_with_indices(volume, {2, 2, 3}, {2, 3, 2}, {},
                                                                    tensor({0.2f, 0.8f, 0.5f}).view({1, 1, 3}));
  EXPECT_TRUE(equal(deep.flatten(), tensor({100, 84, 94, 87, 97, 90, 99, 82, 92, 85, 95, 88}).to(kFloat32)));
  EXPECT_TRUE(equal(places.flatten(), tensor({30, 5, 8, 16, 19, 27, 60, 65, 68, 76, 79, 87})));
}

TEST(FractionalMaxPool, DrawsWindowsThatCoverTheEnds) {
  const Tensor x = arange(49).view({1, 1, 7, 7}).to(kFloat64).requires_grad_();
  const nn::FractionalMaxPool2d pool(2, {.output_ratio = {0.6, 0.9}});
  manual_seed(1);
  const Tensor y = pool(x);
  EXPECT_EQ(y.size(2), 4);
  EXPECT_EQ(y.size(3), 6);
  EXPECT_EQ(y.amax().item<double>(), 48);
  EXPECT_EQ(y.amin().item<double>(), 8);
  manual_seed(1);
  const auto [again, indices] = pool->forward_with_indices(x);
  EXPECT_TRUE(equal(y, again));
  EXPECT_TRUE(equal(indices.to(kFloat64), y));
  y.sum().backward();
  EXPECT_EQ(x.grad().sum().item<double>(), 24);
  // One window is the last one; a NaN is the largest.
  EXPECT_EQ(F::fractional_max_pool2d(x, 3, 1).item<double>(), 48);
  EXPECT_TRUE(F::fractional_max_pool2d(x.masked_fill(x == 40, std::nan("")), 3, 1).isnan().item<bool>());
  EXPECT_EQ(F::fractional_max_pool2d(zeros({0, 2, 4, 4}, kBFloat16), 2, 2).size(3), 2);
  EXPECT_EQ(F::fractional_max_pool2d(zeros({1, 2, 4, 4}, kBFloat16), 2, 2).dtype(), kBFloat16);
}

TEST(FractionalMaxPool, Errors) {
  const auto says = [](const std::function<void()>& f, const char* text) {
    const std::string message = test::message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_NE(message.find("fractional_pool_test.cpp"), std::string::npos) << message;
  };
  const Tensor x = zeros({1, 2, 4, 4});
  says([&] { F::fractional_max_pool2d(x, 2); },
       "fractional_max_pool2d: output_ratio: got 0 numbers and no output_size");
  says([&] { F::fractional_max_pool2d(x, 3, 3); }, "fractional_max_pool2d: output_size: got 3 windows of 3");
  says([&] { F::fractional_max_pool2d(x, 2, {}, {1.5}); }, "fractional_max_pool2d: output_ratio: got 1.5");
  says([&] { F::fractional_max_pool3d(zeros({4, 4}), 2, 2); }, "fractional_max_pool3d: input: got shape [4, 4]");
  says([&] { F::fractional_max_pool2d(x, 2, 2, {}, zeros({1, 2, 3})); }, "random_samples: got shape [1, 2, 3]");
  says([&] { F::fractional_max_pool2d(x.to(kInt64), 2, 2); }, "input: got a tensor of i64");
  says([] { nn::FractionalMaxPool2d(2, {.output_size = 2, .output_ratio = {0.5}}); },
       "FractionalMaxPool2d: output_size: got output_size and output_ratio");
  says([] { nn::FractionalMaxPool3d(2, {.output_ratio = {1.0}}); }, "FractionalMaxPool3d: output_ratio: got 1.0");
}

}  // namespace
}  // namespace ingot
