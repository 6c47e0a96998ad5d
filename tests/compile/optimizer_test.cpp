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

}  // namespace
}  // namespace ingot
