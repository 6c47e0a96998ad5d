// Batch norms as parts of the layers in front of them.
#include "eager/nn/fuse.h"

#include <gtest/gtest.h>

#include "eager/autograd/autograd.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

using nn::utils::fuse_conv_bn_eval;
using test::message_of;

nn::BatchNorm followed(int64_t channels, bool affine = true) {
  const nn::BatchNorm norm(channels, {.affine = affine});
  norm->running_mean.copy_(randn({channels}));
  norm->running_var.copy_(rand({channels}) + 0.5);
  const NoGradGuard no_grad;
  if (affine) norm->weight.copy_(randn({channels})), norm->bias.copy_(randn({channels}));
  norm->eval();
  return norm;
}
template <class M>
void expect_fused(M conv, const nn::BatchNorm& norm, const Tensor& x) {
  conv->eval();
  const Tensor before = conv(x);
  const M fused = fuse_conv_bn_eval(conv, norm);
  EXPECT_TRUE(allclose(fused(x), norm(before), 1e-4, 1e-5));
  EXPECT_TRUE(equal(conv(x), before));
  EXPECT_TRUE(fused->weight.requires_grad());
  EXPECT_EQ(fused->state_dict().size(), 2u);
}

TEST(Fuse, GivesWhatTheNormMakesOfTheLayer) {
  manual_seed(1);
  const Tensor x = randn({2, 4, 5, 5});
  expect_fused(nn::Conv2d(4, 6, 3), followed(6), x);
  expect_fused(nn::Conv2d(4, 6, 3, {.groups = 2, .bias = false}), followed(6, false), x);
  expect_fused(nn::ConvTranspose2d(4, 6, 3), followed(6), x);
  expect_fused(nn::ConvTranspose2d(4, 6, 2, {.groups = 2, .bias = false}), followed(6), x);
  expect_fused(nn::Conv1d(4, 1, 1), followed(1), x[0].view({1, 4, 25}));
  nn::Linear linear(5, 3);
  linear->eval();
  const nn::BatchNorm norm = followed(3);
  EXPECT_TRUE(allclose(nn::utils::fuse_linear_bn_eval(linear, norm)(x[0][0]), norm(linear(x[0][0])), 1e-4, 1e-5));
}

TEST(Fuse, Errors) {
  nn::Conv2d conv(4, 6, 3);
  const auto says = [](const std::function<void()>& f, const char* text) {
    const std::string message = message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_NE(message.find("fuse_test.cpp"), std::string::npos) << message;
  };
  says([&] { fuse_conv_bn_eval(conv, followed(6)); }, "fuse_conv_bn_eval: layer: got a module in training");
  conv->eval();
  says([&] { fuse_conv_bn_eval(conv, nn::BatchNorm2d(6)); }, "fuse_conv_bn_eval: bn: got a module in training");
  says([&] { fuse_conv_bn_eval(conv, followed(4)); }, "bn: got 4 channels, expected 6");
  const nn::BatchNorm2d without(6, {.track_running_stats = false});
  without->eval();
  says([&] { fuse_conv_bn_eval(conv, without); }, "bn: got one without running statistics");
}

}  // namespace
}  // namespace ingot
