// Hooks of modules in compiled functions: part of what is recorded, and no frozen call outlives them.
#include "small_net.h"

namespace ingot {
namespace {

using namespace test;
using Tensors = std::vector<Tensor>;

Tensor doubled(nn::Module&, const Tensors&, const Tensor& output) { return output * 2; }

TEST(ModuleHooks, ArePartOfACheckedCall) {
  Net eager = make_net(), compiled = make_net();
  auto step = [](const Net& net) {
    return [net](const Tensor& x) {
      const Tensor loss = net(x).square().mean();
      return autograd::grad({loss}, net->parameters());
    };
  };
  auto fast = compile(step(compiled));
  auto expect_equal = [&](int64_t n) {
    const Tensors expected = step(eager)(batch(n, n)), got = fast(batch(n, n));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << i;
  };
  for (int64_t n = 2; n < 5; ++n) expect_equal(n);
  std::vector<int64_t> ids;
  std::vector<int> calls(2);
  for (int i : {0, 1}) {
    const Net& net = i ? compiled : eager;
    ids.push_back(net->first->register_forward_hook(doubled));
    net->second->register_full_backward_hook([&calls, i](nn::Module&, const Tensors& grad_inputs, const Tensors&) {
      ++calls[static_cast<size_t>(i)];
      return Tensors{grad_inputs[0].tanh()};
    });
  }
  for (int64_t n = 2; n < 5; ++n) expect_equal(n);
  EXPECT_EQ(calls, (std::vector<int>{3, 3}));
  eager->first->remove_hook(ids[0]), compiled->first->remove_hook(ids[1]);
  for (int64_t n = 2; n < 5; ++n) expect_equal(n);
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(ModuleHooks, OfAFunctionCompiledAlone) {
  Net eager = make_net(), compiled = make_net();
  for (const Net& net : {eager, compiled})
    net->second->register_full_backward_hook([](nn::Module&, const Tensors& grad_inputs, const Tensors& grad_outputs) {
      return Tensors{grad_inputs[0] * grad_outputs[0].sum()};
    });
  auto fast = compile(compiled);
  for (int s = 0; s < 4; ++s) {
    eager(batch(3, s)).square().mean().backward(), fast(batch(3, s)).square().mean().backward();
    expect_same(eager, compiled);
  }
}

TEST(ModuleHooks, TellFrozenCallsApart) {
  const NoGradGuard no_grad;
  const Net net = make_net();
  auto model = compile(net, {.mode = CompileMode::frozen});
  auto lambda = compile([net](const Tensor& x) { return net(x) + 1; }, {.mode = CompileMode::frozen});
  auto expect_equal = [&] {
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(same_bits(model(batch(4, 1)), net(batch(4, 1))));
      EXPECT_TRUE(same_bits(lambda(batch(4, 1)), net(batch(4, 1)) + 1));
    }
  };
  expect_equal();
  EXPECT_GT(model.stats().frozen_calls, 0);
  EXPECT_GT(lambda.stats().frozen_calls, 0);
  const int64_t inner = net->first->register_forward_hook(doubled);
  expect_equal();
  const int64_t outer =
      net->register_forward_pre_hook([](nn::Module&, const Tensors& in) { return Tensors{in[0] + 1}; });
  expect_equal();
  const int64_t frozen = model.stats().frozen_calls;
  expect_equal();
  EXPECT_EQ(model.stats().frozen_calls, frozen + 5);  // hooks that stay are no hindrance
  net->first->remove_hook(inner);
  expect_equal();
  net->remove_hook(outer);
  expect_equal();
}

}  // namespace
}  // namespace ingot
