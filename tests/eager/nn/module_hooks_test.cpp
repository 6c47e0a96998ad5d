// Hooks of modules: when they are called, with what, and what they may change. Numbers are PyTorch's.
#include <gtest/gtest.h>

#include "eager/autograd/checkpoint.h"
#include "eager/nn/layers.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;
using Tensors = std::vector<Tensor>;

nn::Linear make_linear() {
  nn::Linear linear(3, 2);
  const NoGradGuard off;
  linear->weight.copy_(tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}).view({2, 3}));
  linear->bias.copy_(tensor({0.5f, -0.5f}));
  return linear;
}
Tensor row(std::initializer_list<float> values) { return tensor(std::vector<float>(values)).unsqueeze(0); }

TEST(ModuleHooks, AreCalledInOrderAndChangeWhatPassesThem) {
  nn::Linear linear = make_linear();
  std::vector<std::string> order;
  linear->register_forward_pre_hook([&](nn::Module& module, const Tensors& inputs) {
    EXPECT_EQ(&module, &*linear);
    order.push_back("first");
    return Tensors{inputs[0] * 2};
  });
  linear->register_forward_pre_hook([&](nn::Module&, const Tensors& inputs) {
    ASSERT_EQ(inputs.size(), 1u);
    EXPECT_TRUE(equal(inputs[0], row({2, 0, -2})));
    order.push_back("second");
  });
  linear->register_forward_hook([&](nn::Module&, const Tensors& inputs, const Tensor& output) {
    EXPECT_TRUE(equal(inputs[0], row({2, 0, -2})));
    EXPECT_TRUE(equal(output, row({-3.5, -4.5})));
    order.push_back("forward");
    return output + 1;
  });
  linear->register_full_backward_hook([&](nn::Module&, const Tensors& grad_inputs, const Tensors& grad_outputs) {
    ASSERT_EQ(grad_inputs.size(), 1u) << "no gradient of the input";
    EXPECT_TRUE(equal(grad_inputs[0], row({9, 12, 15})));
    EXPECT_TRUE(equal(grad_outputs[0], row({1, 2})));
    order.push_back("backward");
  });
  linear->register_full_backward_hook(
      [](nn::Module&, const Tensors& grad_inputs, const Tensors&) { return Tensors{grad_inputs[0] * 10}; });
  const Tensor x = row({1, 0, -1}).requires_grad_();
  const Tensor y = linear(x);
  EXPECT_TRUE(equal(y, row({-2.5, -3.5})));
  y.backward(row({1, 2}));
  EXPECT_TRUE(equal(x.grad(), row({180, 240, 300})));
  EXPECT_TRUE(equal(linear->weight.grad(), tensor({2.f, 0.f, -2.f, 4.f, 0.f, -4.f}).view({2, 3})));
  EXPECT_TRUE(equal(linear->bias.grad(), tensor({1.f, 2.f})));
  EXPECT_EQ(order, (std::vector<std::string>{"first", "second", "forward", "backward"}));
}

TEST(ModuleHooks, GoWhereTheyAreRemoved) {
  nn::Linear linear = make_linear();
  int calls = 0;
  auto count = [&](nn::Module&, const Tensors&, const Tensor&) { ++calls; };
  const int64_t first = linear->register_forward_hook(count);
  const auto one = linear->hooks();
  const int64_t second = linear->register_forward_hook(count);
  EXPECT_NE(linear->hooks(), one);
  linear(row({1, 2, 3}));
  EXPECT_EQ(calls, 2);
  linear->remove_hook(first);
  linear->remove_hook(first);
  linear(row({1, 2, 3}));
  EXPECT_EQ(calls, 3);
  linear->remove_hook(second);
  EXPECT_EQ(linear->hooks(), nullptr);
  linear(row({1, 2, 3}));
  EXPECT_EQ(calls, 3);
  // One that removes itself.
  int64_t own = 0;
  own = linear->register_forward_pre_hook([&](nn::Module& module, const Tensors&) {
    ++calls;
    module.remove_hook(own);
  });
  linear(row({1, 2, 3})), linear(row({1, 2, 3}));
  EXPECT_EQ(calls, 4);
}

TEST(ModuleHooks, OfBackwardWithoutAnInputThatRequiresGrad) {
  nn::Linear linear = make_linear();
  int calls = 0;
  linear->register_full_backward_hook([&](nn::Module&, const Tensors& grad_inputs, const Tensors& grad_outputs) {
    EXPECT_TRUE(grad_inputs.empty());
    EXPECT_TRUE(equal(grad_outputs[0], row({1, 1})));
    ++calls;
  });
  const Tensor loss = linear(row({1, 0, -1})).sum();
  loss.backward({}, true);
  loss.backward();
  EXPECT_EQ(calls, 2);
  {
    const NoGradGuard off;
    EXPECT_FALSE(linear(row({1, 0, -1})).requires_grad());
  }
  linear->requires_grad_(false);
  EXPECT_FALSE(linear(row({1, 0, -1})).requires_grad());
  EXPECT_EQ(calls, 2);
}

TEST(ModuleHooks, SeeAllTensorsOfACall) {
  nn::Bilinear bilinear(2, 3, 2);
  Tensors seen;
  bilinear->register_forward_pre_hook([&](nn::Module&, const Tensors& inputs) {
    seen = inputs;
    return Tensors{inputs[0], inputs[1] * 2};
  });
  Tensors gradients;
  bilinear->register_full_backward_hook(
      [&](nn::Module&, const Tensors& grad_inputs, const Tensors&) { gradients = grad_inputs; });
  const Tensor a = row({1, 2}), b = row({3, 4, 5}).requires_grad_();
  const Tensor got = bilinear(a, b);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen[0].is_same(a));
  EXPECT_TRUE(seen[1].is_same(b));
  got.sum().backward();
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_FALSE(gradients[0].defined());
  EXPECT_TRUE(equal(gradients[1] * 2, b.grad()));
  EXPECT_TRUE(equal(bilinear->forward(a, b * 2), got));
}

TEST(ModuleHooks, OfASequentialsModulesAndOfCopies) {
  nn::Sequential net(make_linear(), nn::ReLU());
  std::vector<std::string> shapes;
  for (auto& [name, module] : net->named_modules())
    module->register_forward_hook([&shapes, name = name](nn::Module&, const Tensors&, const Tensor& output) {
      shapes.push_back(name + " " + std::to_string(output.size(1)));
    });
  const Tensor y = net(row({1, 0, -1}));
  EXPECT_EQ(shapes, (std::vector<std::string>{"0 2", "1 2", " 2"}));
  EXPECT_TRUE(equal(net.clone()(row({1, 0, -1})), y));
  EXPECT_EQ(shapes.size(), 6u);
  // A region of checkpoint() runs twice, and so do they.
  autograd::checkpoint(net, row({1, 0, -1})).sum().backward();
  EXPECT_EQ(shapes.size(), 12u);
}

struct PairImpl : nn::Module {
  std::pair<Tensor, Tensor> forward(const Tensor& x) const { return {x, x * 2}; }
};
INGOT_MODULE(Pair);
struct NumberImpl : nn::Module {
  Tensor forward(int64_t n) const { return ones({n}); }
  Tensor forward(int64_t n, int64_t m) const { return ones({n, m}); }
  Tensor forward() const { return ones({1}); }
};
INGOT_MODULE(Number);
struct WriterImpl : nn::Module {
  Tensor forward(const Tensor& x) const { return x.relu_(); }
};
INGOT_MODULE(Writer);

TEST(ModuleHooks, Errors) {
  auto nothing = [](nn::Module&, const Tensors&, const Tensor&) {};
  const Tensor x = row({1, 0, -1});
  Pair pair;
  int calls = 0;
  pair->register_forward_pre_hook([&](nn::Module&, const Tensors&) { ++calls; });
  EXPECT_TRUE(equal(pair(x).second, x * 2));
  EXPECT_EQ(calls, 1);
  pair->register_forward_hook(nothing);
  EXPECT_NE(message_of([&] { pair(x); }).find("Pair: hook: got a result that is no tensor"), std::string::npos);
  EXPECT_EQ(calls, 1);
  Number number;
  EXPECT_EQ(number(3).size(0), 3);
  number->register_forward_hook(nothing);
  for (const auto& call :
       std::vector<std::function<void()>>{[&] { number(3); }, [&] { number(3, 4); }, [&] { number(); }})
    EXPECT_NE(message_of(call).find("Number: hook: got a call whose first argument is no tensor"), std::string::npos);
  nn::Linear linear = make_linear();
  linear->register_forward_pre_hook([](nn::Module&, const Tensors& in) { return Tensors{in[0], in[0]}; });
  EXPECT_NE(message_of([&] { linear(x); }).find("Linear: forward pre-hook: got 2 tensors, expected 1 in place of"),
            std::string::npos);
  linear = make_linear();
  linear->register_full_backward_hook([](nn::Module&, const Tensors& in, const Tensors&) {
    return Tensors{in[0], in[0]};
  });
  const Tensor leaf = x.clone().requires_grad_();
  EXPECT_NE(message_of([&] { linear(leaf).sum().backward(); }).find("Linear: backward hook: got 2 tensors, expected 1"),
            std::string::npos);
  Writer writer;
  writer->register_full_backward_hook([](nn::Module&, const Tensors&, const Tensors&) {});
  EXPECT_NE(message_of([&] { writer(leaf * 2); }).find("a forward that writes to its argument in place"),
            std::string::npos);
  // What a hook throws goes on to the caller.
  linear = make_linear();
  linear->register_forward_hook([](nn::Module&, const Tensors&, const Tensor&) { throw std::runtime_error("no"); });
  EXPECT_THROW(linear(x), std::runtime_error);
}

}  // namespace
}  // namespace ingot
