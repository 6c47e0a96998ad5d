// Derivatives as functions, and modules with other parameters.
#include "eager/func.h"

#include <gtest/gtest.h>

#include "eager/nn/layers.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;

Tensor cubes(const Tensor& x) { return (x * x * x).sum(); }

TEST(Func, GradIsAFunction) {
  const Tensor x = tensor({1., -2.}, kFloat64);
  EXPECT_TRUE(equal(func::grad(cubes)(x), tensor({3., 12.}, kFloat64)));
  const auto [gradient, value] = func::grad_and_value(cubes)(x);
  EXPECT_TRUE(equal(gradient, tensor({3., 12.}, kFloat64)));
  EXPECT_EQ(value.item<double>(), -7);
  EXPECT_FALSE(value.requires_grad());
  EXPECT_FALSE(gradient.requires_grad());
  const auto slope = [](const Tensor& y) { return func::grad(cubes)(y).sum(); };
  EXPECT_TRUE(equal(func::grad(slope)(x), tensor({6., -12.}, kFloat64)));
  EXPECT_TRUE(
      equal(func::grad([&](const Tensor& y) { return func::grad(slope)(y).sum(); })(x), tensor({6., 6.}, kFloat64)));
  EXPECT_TRUE(equal(func::hessian(cubes)(x), tensor({{6., 0.}, {0., -12.}}, kFloat64)));
  EXPECT_TRUE(equal(func::jacrev([](const Tensor& y) { return y * y; })(x), tensor({{2., 0.}, {0., -4.}}, kFloat64)));
  EXPECT_TRUE(equal(func::grad([](const Tensor& y) { return y.sum(); })(zeros({0})), zeros({0})));
}

TEST(Func, LeavesGradientsOfOthers) {
  const Tensor x = tensor({2.}, kFloat64).requires_grad_(), w = tensor({3.}, kFloat64).requires_grad_();
  const Tensor g = func::grad([&](const Tensor& y) { return (y * y * w).sum(); })(x);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
  // What is derived of a tensor on the tape is on it.
  g.sum().backward();
  EXPECT_TRUE(equal(x.grad(), tensor({6.}, kFloat64)));
  EXPECT_TRUE(equal(w.grad(), tensor({4.}, kFloat64)));
  const NoGradGuard no_grad;
  EXPECT_TRUE(equal(func::grad(cubes)(x), tensor({12.}, kFloat64)));
}

TEST(Func, ProductsWithTheJacobian) {
  const auto f = [](const Tensor& x) { return x * x; };
  const Tensor x = tensor({1., 3.}, kFloat64), v = tensor({10., 1.}, kFloat64);
  const auto [value, product] = func::vjp(f, x);
  EXPECT_TRUE(equal(value, tensor({1., 9.}, kFloat64)));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(equal(product(v), tensor({20., 6.}, kFloat64)));
  EXPECT_TRUE(equal(func::jvp(f, x, v).second, tensor({20., 6.}, kFloat64)));
  EXPECT_TRUE(equal(func::vjp([](const Tensor& y) { return ones_like(y); }, x).second(v), zeros({2}, kFloat64)));
}

TEST(Func, CallsAModuleWithOtherParameters) {
  const nn::Sequential net(nn::Linear(2, 3), nn::Tanh(), nn::Linear(3, 1));
  const StateDict own = net->state_dict();
  StateDict other;
  for (const auto& [name, t] : own) other[name] = full_like(t, 0.5);
  const Tensor x = tensor({{1.f, -2.f}}), before = net(x);
  // 0.5 * 3 * tanh(0.5 - 1 + 0.5) + 0.5.
  EXPECT_TRUE(equal(func::functional_call(net, other, x), tensor({{0.5f}})));
  EXPECT_TRUE(equal(net(x), before));
  // One of them, and gradients that go to what was given.
  const Tensor bias = tensor({1.f}).requires_grad_();
  EXPECT_TRUE(equal(func::functional_call(net, {{"2.bias", bias}}, x), before - own.at("2.bias") + 1));
  const StateDict gradients =
      func::grad([&](const StateDict& p) { return func::functional_call(net, p, x).sum(); })(other);
  EXPECT_EQ(gradients.size(), 4u);
  EXPECT_TRUE(equal(gradients.at("2.bias"), tensor({1.f})));
  EXPECT_TRUE(equal(gradients.at("0.bias"), full({3}, 0.5)));
  for (const Tensor& p : net->parameters()) EXPECT_FALSE(p.grad().defined());
}

struct TiedImpl : nn::Module {
  nn::Linear a{2, 2, false}, b{2, 2, false};
  TiedImpl() { b->weight = a->weight; }
  Tensor forward(const Tensor& x) { return b(a(x)); }
};
INGOT_MODULE(Tied, a, b);

TEST(Func, ReplacesTiedOnesTogether) {
  const Tied net;
  const Tensor x = tensor({{1.f, 2.f}}), twice = eye(2) * 2;
  EXPECT_TRUE(equal(func::functional_call(net, {{"a.weight", twice}}, x), x * 4));
  EXPECT_TRUE(net->a->weight.is_same(net->b->weight));
}

TEST(Func, WritesToTheBuffersThatAreGiven) {
  const nn::BatchNorm1d norm(2);
  const Tensor mean = zeros({2}), x = tensor({{1.f, 2.f}, {3.f, 4.f}});
  func::functional_call(norm, {{"running_mean", mean}}, x);
  EXPECT_TRUE(allclose(mean, tensor({0.2f, 0.3f})));
  EXPECT_TRUE(equal(norm->running_mean, zeros({2})));
}

TEST(Func, Errors) {
  const nn::Linear net(2, 2);
  const auto says = [](const std::function<void()>& f, const char* text) {
    const std::string message = message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_NE(message.find("func_test.cpp"), std::string::npos) << message;
  };
  says(
      [&] {
        func::functional_call(net, {{"weights", ones({2, 2})}}, ones({1, 2}));
      },
      "functional_call: parameters_and_buffers: got \"weights\", expected names of parameters");
  says([&] { func::functional_call(net, {{"weight", Tensor()}}, ones({1, 2})); }, "functional_call");
  says([&] { func::functional_call(net, {{"weight", ones({2, 3})}}, ones({1, 2})); }, "linear");
  says([] { func::jvp(cubes, ones({2}), ones({3})); }, "jvp: v: got f32[3], expected f32[2]");
  says([] { func::vjp(cubes, ones({2}, kInt64)); }, "vjp: primal: got a tensor of i64");
  EXPECT_NE(message_of([] {
              func::grad([](const Tensor& x) { return x; })(ones({2}));
            }).find("grad: function: got shape [2] as its result, expected one element"),
            std::string::npos);
  EXPECT_TRUE(net->weight.sizes() == (IntArrayRef(Ints{2, 2})));
}

}  // namespace
}  // namespace ingot
