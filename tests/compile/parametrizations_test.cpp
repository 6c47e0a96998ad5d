// Layers with a computed weight in compiled functions: eager's bits, in training and frozen.
#include "support.h"

namespace ingot {
namespace {

using namespace test;

struct NormedImpl : nn::Module {
  nn::WeightNorm<nn::Linear> first{nn::Linear(8, 16)};
  nn::SpectralNorm<nn::Linear> second{nn::Linear(16, 8)};
  Tensor forward(const Tensor& x) const { return second(gelu(first(x))); }
};
INGOT_MODULE(Normed, first, second);

Normed make_normed() {
  manual_seed(3);
  return Normed();
}

TEST(Parametrizations, TrainWithEagersBits) {
  const Normed eager = make_normed(), compiled = make_normed();
  optim::AdamW eager_opt(eager->parameters(), {.lr = 1e-2}), compiled_opt(compiled->parameters(), {.lr = 1e-2});
  auto step = [](const Normed& net, optim::Optimizer& opt) {
    return [net, &opt](const Tensor& x) {
      const Tensor loss = net(x).square().mean();
      loss.backward(), opt.step(), opt.zero_grad();
      return loss.detach();
    };
  };
  auto one = step(eager, eager_opt);
  auto fast = compile(step(compiled, compiled_opt));
  for (int s = 0; s < 6; ++s) EXPECT_TRUE(same_bits(fast(batch(s % 3 + 2, s)), one(batch(s % 3 + 2, s)))) << s;
  const StateDict expected = eager->state_dict();
  for (const auto& [name, t] : compiled->state_dict()) EXPECT_TRUE(same_bits(t, expected.at(name))) << name;
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().graph_breaks, 0);
}

TEST(Parametrizations, AreFrozen) {
  const NoGradGuard no_grad;
  const Normed net = make_normed();
  net->eval();
  auto fast = compile(net, {.mode = CompileMode::frozen});
  for (int s = 0; s < 5; ++s) EXPECT_TRUE(same_bits(fast(batch(4, s)), net(batch(4, s))));
  EXPECT_GT(fast.stats().frozen_calls, 0);
  net->first->original0.mul_(2);
  net->second->parametrization.original = net->second->parametrization.original * 3;
  for (int s = 0; s < 5; ++s) EXPECT_TRUE(same_bits(fast(batch(4, s)), net(batch(4, s))));
}

}  // namespace
}  // namespace ingot
