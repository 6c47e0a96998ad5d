// The adaptive softmax beside PyTorch's numbers.
#include "eager/nn/adaptive_softmax.h"

#include <gtest/gtest.h>

#include "eager/support.h"

namespace ingot {
namespace {

/// PyTorch's names and sizes, with numbers that are easily made there, too.
nn::AdaptiveLogSoftmaxWithLoss example() {
  nn::AdaptiveLogSoftmaxWithLoss layer(4, 7, {2, 5}, {.div_value = 2, .head_bias = true});
  StateDict state;
  for (const auto& [name, t] : layer->state_dict())
    state[name] = ((arange(t.numel()) * 7).remainder(11).to(kFloat32) - 5).view(t.sizes()) / 8;
  layer->load_state_dict(state);
  return layer;
}

TEST(AdaptiveLogSoftmax, IsPyTorchs) {
  const nn::AdaptiveLogSoftmaxWithLoss layer = example();
  std::vector<std::string> names;
  for (const auto& [name, t] : layer->named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"head.weight", "head.bias", "tail.0.0.weight", "tail.0.1.weight",
                                             "tail.1.0.weight", "tail.1.1.weight"}));
  const Tensor x = (((arange(20) * 5).remainder(13)).to(kFloat32).view({5, 4}) / 6 - 1).requires_grad_();
  const Tensor y = tensor({0, 6, 3, 1, 4});
  const auto [output, loss] = layer(x, y);
  EXPECT_TRUE(
      allclose(output, tensor({-2.419941187f, -1.545268059f, -2.404074669f, -1.062597513f, -2.918784618f}), 1e-6));
  EXPECT_TRUE(allclose(loss, tensor(2.0701332f), 1e-6));
  loss.backward();
  EXPECT_TRUE(allclose(x.grad()[1], tensor({-0.037040707f, 0.028696591f, -0.062219694f, -0.054195926f}), 1e-5));
  EXPECT_TRUE(
      allclose(layer->head->weight.grad()[0], tensor({0.171414793f, 0.061103188f, -0.109702259f, 0.145180926f}), 1e-5));
  EXPECT_TRUE(allclose(
      layer->log_prob(x.detach())[1],
      tensor({-1.415446162f, -1.602946162f, -2.968993187f, -2.961180687f, -2.237222433f, -2.019226551f, -1.545268059f}),
      1e-6));
  EXPECT_TRUE(equal(layer->predict(x * 4), tensor({3, 0, 3, 1, 1})));
  const auto [one, its_loss] = layer(x[1], y[1]);
  EXPECT_EQ(one.dim(), 0);
  EXPECT_TRUE(equal(one, output[1]));
  EXPECT_TRUE(equal(its_loss, -one));
  EXPECT_EQ(std::get<0>(layer(zeros({0, 4}), zeros({0}, kInt64))).numel(), 0);
}

TEST(AdaptiveLogSoftmax, Errors) {
  const nn::AdaptiveLogSoftmaxWithLoss layer = example();
  const auto says = [](const std::function<void()>& f, const char* text) {
    const std::string message = test::message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_NE(message.find("adaptive_softmax_test.cpp"), std::string::npos) << message;
  };
  says(
      [&] {
        layer(zeros({1, 4}), tensor({7}));
      },
      "AdaptiveLogSoftmaxWithLoss: target: got 7, expected numbers from 0 to 6");
  says([&] { layer(zeros({2, 4}), tensor({1})); }, "AdaptiveLogSoftmaxWithLoss: target: got shape [1]");
  says([&] { layer(zeros({2, 4}), tensor({1.f, 2.f})); }, "AdaptiveLogSoftmaxWithLoss: target: got a tensor of f32");
  says([] { nn::AdaptiveLogSoftmaxWithLoss(4, 7, {5, 2}); }, "AdaptiveLogSoftmaxWithLoss: cutoffs: got [5, 2]");
  says([] { nn::AdaptiveLogSoftmaxWithLoss(4, 7, {7}); }, "AdaptiveLogSoftmaxWithLoss: cutoffs: got [7]");
  says([] { nn::AdaptiveLogSoftmaxWithLoss(4, 9, {2, 5}, {.div_value = 4}); }, "AdaptiveLogSoftmaxWithLoss: div_value");
}

}  // namespace
}  // namespace ingot
