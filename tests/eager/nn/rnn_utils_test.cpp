#include "eager/nn/rnn_utils.h"

#include <gtest/gtest.h>

#include "eager/autograd/autograd.h"
#include "eager/ops/functions.h"
#include "eager/support.h"

namespace ingot::nn::utils::rnn {
namespace {

// Numbers of PyTorch.
TEST(PadSequence, OnEitherSide) {
  const Tensor a = tensor({1.f, 2.f, 3.f}), b = tensor({4.f}), c = tensor({5.f, 6.f}).requires_grad_();
  EXPECT_TRUE(equal(pad_sequence({a, b, c}), tensor({{1.f, 4.f, 5.f}, {2.f, 0.f, 6.f}, {3.f, 0.f, 0.f}})));
  const Tensor left = pad_sequence({a, b, c}, true, -1, "left");
  EXPECT_TRUE(equal(left, tensor({{1.f, 2.f, 3.f}, {-1.f, -1.f, 4.f}, {-1.f, 5.f, 6.f}})));
  (left * arange(9).view({3, 3})).sum().backward();
  EXPECT_TRUE(equal(c.grad(), tensor({7.f, 8.f})));
}

TEST(PadSequence, OfMoreDimsAndOfNothing) {
  const Tensor a = arange(6).view({3, 2}), b = arange(2).view({1, 2}), none = zeros({0, 2}, kInt64);
  const Tensor y = pad_sequence({a, b, none}, true, 9);
  EXPECT_TRUE(equal(y[0], a));
  EXPECT_TRUE(equal(y[1], tensor({{0, 1}, {9, 9}, {9, 9}})));
  EXPECT_TRUE(equal(y[2], full({3, 2}, 9, kInt64)));
  EXPECT_EQ(y.dtype(), kInt64);
  EXPECT_EQ(pad_sequence({none, none}).sizes(), zeros({0, 2, 2}).sizes());
  EXPECT_TRUE(equal(pad_sequence(std::vector<Tensor>{a}), a.unsqueeze(1)));
}

TEST(PadSequence, SaysWhatIsWrong) {
  const auto has = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const Tensor a = ones({2, 3});
  has(test::message_of([&] { pad_sequence({}); }), "pad_sequence: sequences: got none, expected one tensor or more");
  has(test::message_of([&] {
        pad_sequence({a, ones({2, 4})});
      }),
      "sequences: got a tensor of f32 and shape [2, 4] as number 1, expected one dim or more, and the dtype and later "
      "dims of the first");
  has(test::message_of([&] { pad_sequence({a, a.to(kInt64)}); }), "a tensor of i64 and shape [2, 3] as number 1");
  has(test::message_of([&] { pad_sequence({scalar_tensor(1)}); }), "shape [] as number 0");
  has(test::message_of([&] { pad_sequence({a, Tensor()}); }), "pad_sequence: sequences");
  has(test::message_of([&] { pad_sequence({a}, true, 0, "middle"); }), "padding_side: got \"middle\"");
}

}  // namespace
}  // namespace ingot::nn::utils::rnn
