#include "eager/nn/convert_parameters.h"

#include <gtest/gtest.h>

#include "eager/autograd/autograd.h"
#include "eager/nn/layers.h"
#include "eager/ops/functions.h"
#include "eager/support.h"

namespace ingot::nn::utils {
namespace {

TEST(ConvertParameters, ThereAndBack) {
  const Tensor a = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}).t(), b = scalar_tensor(7.0).requires_grad_(),
               none = zeros({0, 2});
  const Tensor vec = parameters_to_vector({a, none, b});
  EXPECT_TRUE(equal(vec, tensor({1.f, 4.f, 2.f, 5.f, 3.f, 6.f, 7.f})));
  vector_to_parameters(vec * 2, {a, none, b});
  EXPECT_TRUE(equal(a, tensor({{2.f, 8.f}, {4.f, 10.f}, {6.f, 12.f}})));
  EXPECT_EQ(b.item<float>(), 14.f);
  EXPECT_TRUE(b.is_leaf() && b.requires_grad());
}

TEST(ConvertParameters, GradientsGoThroughTheVector) {
  const Linear net(3, 2);
  const Tensor vec = parameters_to_vector(net->parameters());
  (vec * test::counting({8})).sum().backward();
  EXPECT_TRUE(equal(net->weight.grad(), tensor({{0.f, 1.f, 2.f}, {3.f, 4.f, 5.f}})));
  EXPECT_TRUE(equal(net->bias.grad(), tensor({6.f, 7.f})));
}

TEST(ConvertParameters, SixteenBitParametersKeepTheirType) {
  const Tensor p = zeros({2}, kBFloat16);
  vector_to_parameters(tensor({1.f, 1.0001f}), {p});
  EXPECT_TRUE(equal(p, ones({2}, kBFloat16)));
}

TEST(ConvertParameters, SaysWhatIsWrongAndChangesNothing) {
  const Tensor p = ones({2, 2});
  EXPECT_NE(test::message_of([&] { parameters_to_vector({}); }).find("parameters_to_vector: parameters: got none"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] {
              vector_to_parameters(zeros({5}), {p});
            }).find("vector_to_parameters: vec: got shape [5], expected 4 elements, as the parameters have"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] {
              vector_to_parameters(zeros({2, 2}), {p});
            }).find("expected one dim"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] { vector_to_parameters({}, {p}); }).find("vector_to_parameters"), std::string::npos);
  EXPECT_NE(test::message_of([&] {
              vector_to_parameters(zeros({4}), {p, Tensor()});
            }).find("vector_to_parameters"),
            std::string::npos);
  EXPECT_TRUE(equal(p, ones({2, 2})));
}

}  // namespace
}  // namespace ingot::nn::utils
