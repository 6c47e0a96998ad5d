// Steps of optimizers in compiled functions: eager's bits, in place, and compiled once whatever the rate and the step.
#include <gtest/gtest.h>

#include "compile/support.h"
#include "eager/nn/clip_grad.h"
#include "eager/optim/optimizers.h"
#include "eager/optim/schedulers.h"

namespace ingot {
namespace {

template <class O>
using OptionsOf = std::decay_t<decltype(std::declval<O&>().options())>;

template <class O>
struct Trained {
  std::vector<Tensor> params;
  O opt;
  optim::CosineAnnealingLR rate{opt, 20};
  explicit Trained(const OptionsOf<O>& options) : params(leaves()), opt(params, options) {}
  static std::vector<Tensor> leaves() {
    return {arange(20).to(kFloat32).requires_grad_(), arange(6).to(kFloat32).reshape({2, 3}).requires_grad_()};
  }
  void gradients(int step) {
    for (const Tensor& p : params) {
      const NoGradGuard no_grad;
      p.set_grad((p * 0.1 - step).sin());
    }
  }
};

template <class O>
void same_bits(const OptionsOf<O>& options) {
  Trained<O> eager(options), compiled(options);
  auto step = compile([&] { compiled.opt.step(); });
  int64_t compilations = 0;
  for (int i = 0; i < 12; ++i) {
    eager.gradients(i), compiled.gradients(i);
    eager.opt.step(), step();
    for (size_t p = 0; p < eager.params.size(); ++p)
      EXPECT_TRUE(bitwise_equal(eager.params[p], compiled.params[p])) << eager.opt.name() << ", step " << i;
    eager.rate.step(), compiled.rate.step();
    if (i == 2) compilations = step.stats().compilations;
  }
  EXPECT_EQ(step.stats().compilations, compilations) << eager.opt.name();
  EXPECT_EQ(step.stats().fallbacks, 0);
  EXPECT_EQ(step.stats().graph_breaks, 0);
  // What the optimizer keeps stayed where it was made.
  for (const auto& [name, t] : compiled.opt.state_dict())
    EXPECT_TRUE(bitwise_equal(t, eager.opt.state_dict().at(name))) << eager.opt.name() << ", " << name;
}

/// Calls `check.operator()<O>(options)` for every optimizer, with options that leave nothing out.
template <class Check>
void for_every_optimizer(Check check) {
  check.template operator()<optim::SGD>({.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1});
  check.template operator()<optim::Adam>({.weight_decay = 0.1, .amsgrad = true});
  check.template operator()<optim::AdamW>({.lr = 0.1});
  check.template operator()<optim::RMSprop>({.momentum = 0.5, .centered = true});
  check.template operator()<optim::Adagrad>({.lr_decay = 0.5});
  check.template operator()<optim::Lion>({.weight_decay = 0.1});
  check.template operator()<optim::NAdam>({.weight_decay = 0.1, .decoupled_weight_decay = true});
  check.template operator()<optim::RAdam>({.lr = 0.1, .betas = {0.9, 0.5}, .weight_decay = 0.1});
  check.template operator()<optim::Adamax>({.weight_decay = 0.1});
  check.template operator()<optim::Adadelta>({.weight_decay = 0.1});
  check.template operator()<optim::ASGD>({.lambd = 0.1, .t0 = 6, .weight_decay = 0.1});
  check.template operator()<optim::Rprop>({.lr = 0.1});
}

TEST(CompiledOptimizer, IsCompiledOnceAndGivesEagersBits) {
  for_every_optimizer([]<class O>(const OptionsOf<O>& options) { same_bits<O>(options); });
}

// Eagerly these are updated a few rows at a time; what is recorded is whole.
template <class O>
void same_bits_of_large(const OptionsOf<O>& options) {
  auto make = [] {
    manual_seed(1);
    return std::vector<Tensor>{randn({1500, 701}).requires_grad_(), randn({900001}).requires_grad_(),
                               randn({3, 350000}).requires_grad_(), randn({700, 1, 1500}).requires_grad_()};
  };
  const std::vector<Tensor> eager = make(), compiled = make();
  O opt(eager, options), compiled_opt(compiled, options);
  auto step = compile([&] { compiled_opt.step(); });
  for (int i = 0; i < 3; ++i) {
    for (size_t p = 0; p < eager.size(); ++p) {
      Tensor gradient = randn(IntList(eager[p].sizes()));
      // One that lies otherwise than its parameter.
      if (p == 0) gradient = gradient.t().contiguous().t();
      eager[p].set_grad(gradient), compiled[p].set_grad(gradient.clone());
    }
    opt.step(), step();
    for (size_t p = 0; p < eager.size(); ++p)
      EXPECT_TRUE(bitwise_equal(eager[p], compiled[p])) << opt.name() << ", step " << i << ", parameter " << p;
  }
  for (const auto& [name, t] : compiled_opt.state_dict())
    EXPECT_TRUE(bitwise_equal(t, opt.state_dict().at(name))) << opt.name() << ", " << name;
}

TEST(CompiledOptimizer, LargeParametersAreUpdatedInPieces) {
  for_every_optimizer([]<class O>(const OptionsOf<O>& options) { same_bits_of_large<O>(options); });
}

// The first steps of RAdam are of another kind: a path of its own, compiled once.
TEST(CompiledOptimizer, RAdamIsCompiledOnceMoreWhenItRectifies) {
  const optim::RAdamOptions options{.lr = 0.1};
  Trained<optim::RAdam> eager(options), compiled(options);
  auto step = compile([&] { compiled.opt.step(); });
  std::vector<int64_t> compilations;
  for (int i = 0; i < 12; ++i) {
    eager.gradients(i), compiled.gradients(i);
    eager.opt.step(), step();
    for (size_t p = 0; p < eager.params.size(); ++p)
      EXPECT_TRUE(bitwise_equal(eager.params[p], compiled.params[p])) << i;
    eager.rate.step(), compiled.rate.step();
    compilations.push_back(step.stats().compilations);
  }
  EXPECT_EQ(compilations[4], compilations[1]);
  EXPECT_EQ(compilations[5], compilations[4] + 1);
  EXPECT_EQ(compilations[11], compilations[5]);
  EXPECT_EQ(step.stats().graph_breaks, 0);
}

TEST(CompiledOptimizer, ClippingAsksForNoValue) {
  optim::SGDOptions options{.lr = 0.1};
  Trained<optim::SGD> eager(options), compiled(options);
  auto clip = [](Trained<optim::SGD>& t) {
    Tensor norm = nn::utils::clip_grad_norm_(t.params, 0.5);
    t.opt.step();
    return norm;
  };
  auto step = compile([&] { return clip(compiled); });
  for (int i = 0; i < 4; ++i) {
    eager.gradients(i), compiled.gradients(i);
    EXPECT_TRUE(bitwise_equal(clip(eager), step()));
    EXPECT_TRUE(bitwise_equal(eager.params[0], compiled.params[0]));
  }
  EXPECT_EQ(step.stats().graph_breaks, 0);
  EXPECT_EQ(step.stats().fallbacks, 0);
}

// L-BFGS decides by numbers: its closure may be compiled, and where all of the step is, it is in parts.
TEST(CompiledOptimizer, LBFGSWithACompiledClosure) {
  struct Run {
    Tensor p = tensor({-1.2f, 1.f, 0.5f}).requires_grad_();
    optim::LBFGS opt{{p}, {.max_iter = 6, .line_search_fn = "strong_wolfe"}};
    Tensor loss() {
      opt.zero_grad();
      const Tensor from = p.slice(0, 0, 2), to = p.slice(0, 1, 3);
      Tensor loss = (100 * (to - from.square()).square() + (1 - from).square()).sum();
      loss.backward();
      return loss.detach();
    }
    Tensor step() {
      return opt.step([&] { return loss(); });
    }
  } eager, closure, whole;
  auto loss = compile([&] { return closure.loss(); });
  auto step = compile([&] { return whole.step(); });
  for (int i = 0; i < 4; ++i) {
    const Tensor expected = eager.step();
    EXPECT_TRUE(bitwise_equal(closure.opt.step([&] { return loss(); }), expected)) << i;
    EXPECT_TRUE(bitwise_equal(step(), expected)) << i;
    EXPECT_TRUE(bitwise_equal(closure.p, eager.p)) << i;
    EXPECT_TRUE(bitwise_equal(whole.p, eager.p)) << i;
  }
  EXPECT_EQ(loss.stats().graph_breaks, 0);
  EXPECT_EQ(loss.stats().fallbacks, 0);
}

// A step and the average after it in one function.
TEST(CompiledOptimizer, AveragesOfAModel) {
  struct Run {
    nn::Linear net = [] {
      manual_seed(2);
      return nn::Linear(3, 2);
    }();
    optim::NAdam opt{net->parameters(), {.lr = 0.1}};
    optim::swa_utils::AveragedModel<nn::Linear> ema{net, {.multi_avg_fn = optim::swa_utils::get_ema_multi_avg_fn(0.9)}};
    void step(const Tensor& x) {
      net(x).square().mean().backward();
      opt.step(), opt.zero_grad();
      ema->update_parameters(net);
    }
  } eager, compiled;
  auto step = compile([&](const Tensor& x) { compiled.step(x); });
  int64_t compilations = 0;
  for (int i = 0; i < 8; ++i) {
    const Tensor x = test::batch(4, i).slice(1, 0, 3);
    eager.step(x), step(x);
    EXPECT_TRUE(bitwise_equal(eager.ema->module->weight, compiled.ema->module->weight)) << i;
    if (i == 2) compilations = step.stats().compilations;
  }
  EXPECT_EQ(step.stats().compilations, compilations);
  EXPECT_EQ(compiled.ema->n_averaged.item<int64_t>(), 8);
}

TEST(CompiledGenerator, DrawsAreTakenWhenRecorded) {
  Generator g(3), h(3);
  auto noise = [](const Tensor& x, const Generator& from) { return x + randn({4}, {}, from) * rand({4}, {}, from); };
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile([&](const Tensor& x) { return noise(x, g); }, {.mode = mode});
    for (int i = 0; i < 6; ++i) {
      Tensor x = full({4}, i);
      EXPECT_TRUE(bitwise_equal(fast(x), noise(x, h))) << i;
    }
    EXPECT_EQ(fast.stats().frozen_calls, 0);
    if (mode == CompileMode::checked) {
      EXPECT_EQ(fast.stats().graph_breaks, 0);
    }
  }
}

// Those that update a parameter as a whole.
template <class O>
Tensor trained(bool compiled) {
  manual_seed(1);
  const nn::Linear net(6, 4);
  const Tensor x = randn({5, 6});
  O opt({net->weight}, {.lr = 0.05});
  const auto step = [&](const Tensor& in) {
    opt.zero_grad();
    const Tensor loss = net(in).square().mean();
    loss.backward();
    opt.step();
    return loss;
  };
  auto fast = compile(step);
  for (int i = 0; i < 5; ++i) {
    opt.set_lr(0.05 / (i + 1));
    (void)(compiled ? fast(x) : step(x));
  }
  if (compiled) {
    EXPECT_LE(fast.stats().compilations, 2);
    EXPECT_EQ(fast.stats().fallbacks + fast.stats().graph_breaks, 0);
  }
  return net->weight.detach();
}
TEST(CompiledOptimizer, OfWholeMatrices) {
  EXPECT_TRUE(bitwise_equal(trained<optim::Muon>(true), trained<optim::Muon>(false)));
  EXPECT_TRUE(bitwise_equal(trained<optim::Adafactor>(true), trained<optim::Adafactor>(false)));
}

}  // namespace
}  // namespace ingot
