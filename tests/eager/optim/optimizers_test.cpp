// Every optimizer against PyTorch's results in double (tests/data/optimizers.safetensors), and what a group, a state
// dict and a wrong option are.
#include "eager/optim/optimizers.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "eager/autograd/autograd.h"
#include "eager/nn/clip_grad.h"
#include "eager/nn/layers.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/random.h"
#include "eager/optim/schedulers.h"
#include "eager/serialization.h"
#include "eager/support.h"

namespace ingot::optim {
namespace {

const std::string kFile = INGOT_SOURCE_DIR "/tests/data/optimizers.safetensors";

template <class... O>
struct Types {};
template <class O>
using OptionsOf = std::decay_t<decltype(std::declval<O&>().options())>;
using All = Types<SGD, Adam, AdamW, RMSprop, Adagrad, Lion, NAdam, RAdam, Adamax, Adadelta, ASGD, Rprop>;
template <class F, class... O>
void for_each_type(Types<O...>, F&& f) {
  (f.template operator()<O>(), ...);
}

/// Of a configuration's name, which begins with the optimizer's; each list of parameters is a group, the second one's
/// rate half the first one's.
std::unique_ptr<Optimizer> make(const std::string& configuration, const nlohmann::json& options,
                                const std::vector<std::vector<Tensor>>& groups) {
  std::unique_ptr<Optimizer> opt;
  for_each_type(All(), [&]<class O>() {
    if (configuration.substr(0, configuration.find(' ')) != OptionsOf<O>::kName) return;
    std::vector<typename O::ParamGroup> all;
    for (const auto& params : groups) all.push_back({params});
    opt = std::make_unique<O>(all);
  });
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const auto& [name, value] : options.items()) {
      if (value.is_boolean())
        *opt->option<bool>(name, g) = value;
      else if (value.is_array())
        *opt->option<Betas>(name, g) = {value[0], value[1]};
      else
        *opt->option<double>(name, g) = value;
    }
    if (g > 0) opt->set_lr(opt->lr() / 2, g);
  }
  return opt;
}

Tensor leaf(const Tensor& values) {
  const NoGradGuard no_grad;
  return values.clone().requires_grad_();
}
double distance(const Tensor& a, const Tensor& b) {
  const NoGradGuard no_grad;
  return (a.to(kFloat64) - b.to(kFloat64)).abs().max().item<double>();
}
/// The parameters that stand in one vector.
std::vector<Tensor> split(const Tensor& vector) {
  return {vector.slice(0, 0, 7), vector.slice(0, 7, 22).reshape({3, 5}), vector.slice(0, 22, 34).reshape({2, 3, 2})};
}
Tensor joined(const std::vector<Tensor>& parts) {
  const NoGradGuard no_grad;
  return cat({parts[0].flatten(), parts[1].flatten(), parts[2].flatten()});
}

class AgainstPyTorch : public testing::TestWithParam<DType> {};

TEST_P(AgainstPyTorch, EveryConfiguration) {
  const DType dtype = GetParam();
  const double tolerance = dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-5 : 3e-2;
  // 16-bit floats drift.
  const std::vector<int> steps = dtype == kBFloat16 ? std::vector<int>{1, 2} : std::vector<int>{1, 2, 10, 50};
  StateDict file = load(kFile);
  const auto configurations = nlohmann::json::parse(load_metadata(kFile).at("configurations"));
  ASSERT_EQ(configurations.size(), 28u);
  for (const auto& [configuration, options] : configurations.items()) {
    std::vector<Tensor> params;
    for (const Tensor& p : split(file.at("start"))) params.push_back(leaf(p.to(dtype)));
    const std::unique_ptr<Optimizer> opt = make(configuration, options, {{params[0], params[1]}, {params[2]}});
    int done = 0;
    for (size_t row = 0; row < steps.size(); ++row) {
      for (; done < steps[row]; ++done) {
        const std::vector<Tensor> gradients = split(file.at("grad")[done].to(dtype));
        for (size_t i = 0; i < params.size(); ++i) params[i].set_grad(gradients[i]);
        opt->step();
      }
      EXPECT_LE(distance(joined(params), file.at("after/" + configuration)[row]), tolerance)
          << configuration << ", step " << done;
    }
    for (const Tensor& p : params) EXPECT_TRUE(p.is_leaf() && p.requires_grad());
  }
}
INSTANTIATE_TEST_SUITE_P(Optimizers, AgainstPyTorch, testing::Values(kFloat64, kFloat32, kBFloat16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// By hand: p (1 - lr wd) - lr sign(0.9 m + 0.1 g), then m = 0.99 m + 0.01 g.
TEST(Optimizers, Lion) {
  Tensor p = tensor({1.0, -2.0, 0.5}, TensorOptions(kFloat64).requires_grad());
  Lion opt({p}, {.lr = 0.1, .weight_decay = 0.5});
  p.set_grad(tensor({1.0, -1.0, 0.0}, kFloat64));
  opt.step();
  EXPECT_LE(distance(p, tensor({0.95 - 0.1, -1.9 + 0.1, 0.475}, kFloat64)), 1e-15);
  p.set_grad(tensor({-0.05, 2.0, -1.0}, kFloat64));  // 0.9 * 0.01 - 0.1 * 0.05 > 0
  opt.step();
  EXPECT_LE(distance(p, tensor({0.85 * 0.95 - 0.1, -1.8 * 0.95 - 0.1, 0.475 * 0.95 + 0.1}, kFloat64)), 1e-15);
  EXPECT_LE(distance(opt.state_dict().at("state.0.exp_avg"), tensor({0.0094, 0.0101, -0.01}, kFloat64)), 1e-15);
}

TEST(Optimizers, GroupsHaveOptionsOfTheirOwn) {
  Tensor a = ones({2}, requires_grad()), b = ones({2}, requires_grad()), c = ones({2}, requires_grad());
  SGD opt({{{a}, {.lr = 0.5}}, {{b}, {.lr = 0.25, .maximize = true}}});
  opt.add_param_group({{c}, {.lr = 0.125}});
  ASSERT_EQ(opt.num_groups(), 3u);
  EXPECT_TRUE(opt.params(1)[0].is_same(b));
  EXPECT_EQ(opt.lr(2), 0.125);
  for (const Tensor& p : {a, b, c}) p.set_grad(ones({2}));
  opt.options(2).lr = 1;
  opt.step();
  EXPECT_EQ(a[0].item<float>(), 0.5f);
  EXPECT_EQ(b[0].item<float>(), 1.25f);
  EXPECT_EQ(c[0].item<float>(), 0.f);
}

TEST(Optimizers, AParameterWithoutAGradientIsLeftAlone) {
  Tensor a = ones({2}, requires_grad()), b = ones({2}, requires_grad());
  AdamW opt({a, b});
  a.set_grad(ones({2}));
  opt.step();
  EXPECT_NE(a[0].item<float>(), 1.f);
  EXPECT_EQ(b[0].item<float>(), 1.f);
  EXPECT_FALSE(opt.state_dict().count("state.1.step"));
}

TEST(Optimizers, FrozenParametersAreLeftAloneUntilTheyRequireGrad) {
  nn::Linear first(3, 4), second(4, 2);
  for (const Tensor& p : first->parameters()) p.requires_grad_(false);
  std::vector<Tensor> all = first->parameters();
  for (const Tensor& p : second->parameters()) all.push_back(p);
  SGD opt(all, {.lr = 0.1, .momentum = 0.9});
  const Tensor x = randn({5, 3}), kept = first->weight.detach().clone();
  auto step = [&] {
    opt.zero_grad();
    second(first(x)).square().sum().backward();
    opt.step();
  };
  auto same = [&] { return eq(first->weight.detach(), kept).all().item<bool>(); };
  step();
  EXPECT_TRUE(same());
  EXPECT_FALSE(first->weight.grad().defined());
  for (const Tensor& p : first->parameters()) p.requires_grad_(true);
  step();
  EXPECT_FALSE(same());
}

TEST(Optimizers, ZeroGradRemovesOrFills) {
  Tensor a = ones({2}, requires_grad());
  SGD opt({a});
  a.set_grad(ones({2}));
  opt.zero_grad(false);
  EXPECT_EQ(a.grad()[0].item<float>(), 0.f);
  opt.zero_grad();
  EXPECT_FALSE(a.grad().defined());
}

TEST(Optimizers, AClosureIsCalledWithGradientsOn) {
  Tensor a = ones({2}, requires_grad());
  SGD opt({a}, {.lr = 1});
  const NoGradGuard no_grad;
  Tensor loss = opt.step([&] {
    EXPECT_TRUE(GradMode::is_enabled());
    a.set_grad(ones({2}));
    return tensor(3.f);
  });
  EXPECT_EQ(loss.item<float>(), 3.f);
  EXPECT_EQ(a[0].item<float>(), 0.f);
}

// The state of a run in the middle, taken over by another optimizer: the same bits from then on.
template <class O>
void continues(const OptionsOf<O>& options) {
  Tensor a = leaf(arange(5).to(kFloat32)), b = leaf(a);
  auto gradient = [](int step) { return (arange(5).to(kFloat32) - step).mul(0.3); };
  O first({a}, options);
  for (int step = 0; step < 3; ++step) a.set_grad(gradient(step)), first.step();
  {
    const NoGradGuard no_grad;
    b.copy_(a);
  }
  O second({b});
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(second.lr(), first.lr());
  for (int step = 3; step < 6; ++step) {
    a.set_grad(gradient(step)), first.step();
    b.set_grad(gradient(step)), second.step();
    EXPECT_TRUE(equal(a, b)) << first.name();
  }
}
TEST(Optimizers, StateGoesOnInAnother) {
  continues<SGD>({.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  continues<Adam>({.lr = 0.1, .amsgrad = true});
  continues<AdamW>({.betas = {0.5, 0.75}});
  continues<RMSprop>({.momentum = 0.5, .centered = true});
  continues<Adagrad>({.lr_decay = 0.5, .initial_accumulator_value = 1});
  continues<Lion>({.weight_decay = 0.1});
  continues<NAdam>({.momentum_decay = 0.1});
  continues<RAdam>({.betas = {0.5, 0.75}});
  continues<Adamax>({.lr = 0.1});
  continues<Adadelta>({.rho = 0.5});
  continues<ASGD>({.lr = 0.1, .lambd = 0.1, .t0 = 2});
  continues<Rprop>({.etas = {0.25, 2}});
}

// What PyTorch keeps of a parameter, under its names.
TEST(Optimizers, StateHasPyTorchsNames) {
  const std::map<std::string, std::vector<std::string>> names = {
      {"NAdam", {"exp_avg", "exp_avg_sq", "mu_product", "step"}},
      {"RAdam", {"exp_avg", "exp_avg_sq", "step"}},
      {"Adamax", {"exp_avg", "exp_inf", "step"}},
      {"Adadelta", {"acc_delta", "square_avg", "step"}},
      {"ASGD", {"ax", "eta", "mu", "step"}},
      {"Rprop", {"prev", "step", "step_size"}},
  };
  for (const auto& [name, expected] : names) {
    Tensor p = ones({2}, requires_grad());
    const std::unique_ptr<Optimizer> opt = make(name, {}, {{p}});
    p.set_grad(ones({2}));
    opt->step();
    std::vector<std::string> kept;
    for (const auto& [entry, t] : opt->state_dict())
      if (entry.starts_with("state.0.")) kept.push_back(entry.substr(8));
    EXPECT_EQ(kept, expected) << name;
  }
}

// ASGD's average begins after t0 steps; the rate of a step is that of the step before.
TEST(Optimizers, AveragesOfASGD) {
  Tensor p = tensor({1.0}, TensorOptions(kFloat64).requires_grad());
  ASGD opt({p}, {.lr = 1, .lambd = 0, .t0 = 2});
  std::vector<double> averages;
  for (int step = 0; step < 5; ++step) {
    p.set_grad(tensor({1.0}, kFloat64));
    opt.step();
    averages.push_back(opt.state_dict().at("state.0.ax").item<double>());
    if (step == 0) opt.set_lr(2);
  }
  // The parameter is 0, -1, -3, -5, -7: the rate set after the first step is followed from the third on.
  EXPECT_EQ(averages, (std::vector<double>{0, -1, -3, -5, -6}));
}

// What is no number stays with its element, and is seen there unless signs alone are followed: they are 0.
TEST(Optimizers, NaNStaysWithItsElement) {
  for_each_type(All(), []<class O>() {
    Tensor p = ones({3}, requires_grad());
    O opt(std::vector<Tensor>{p});
    for (int step = 0; step < 2; ++step) {
      p.set_grad(tensor({1.f, std::nanf(""), 0.f}));
      opt.step();
    }
    const bool signs = std::is_same_v<O, Lion> || std::is_same_v<O, Rprop>;
    EXPECT_EQ(std::isnan(p[1].item<float>()), !signs) << opt.name();
    EXPECT_FALSE(std::isnan(p[0].item<float>()) || std::isnan(p[2].item<float>())) << opt.name();
  });
}

TEST(Optimizers, ParametersOfNoDimsAndNoElements) {
  for_each_type(All(), []<class O>() {
    Tensor one = tensor(2.f).requires_grad_(), none = ones({0, 3}, requires_grad());
    O opt(std::vector<Tensor>{one, none});
    one.set_grad(tensor(1.f)), none.set_grad(ones({0, 3}));
    opt.step();
    EXPECT_LT(one.item<float>(), 2.f) << opt.name();
  });
}

TEST(Optimizers, TrainALayer) {
  manual_seed(1);
  nn::Linear model(2, 1);
  AdamW opt(model->parameters(), {.lr = 0.05, .weight_decay = 0});
  LinearLR rate(opt, 1, 0.1, 300);
  const Tensor x = randn({64, 2}), y = x.matmul(tensor({{2.f}, {-3.f}})) + 1;
  Tensor loss;
  for (int step = 0; step < 300; ++step) {
    opt.zero_grad();
    loss = (model(x) - y).square().mean();
    loss.backward();
    nn::utils::clip_grad_norm_(model->parameters(), 10);
    opt.step();
    rate.step();
  }
  EXPECT_LT(loss.item<float>(), 1e-4);
  const NoGradGuard no_grad;
  EXPECT_TRUE(allclose(model->weight, tensor({{2.f, -3.f}}), 0, 0.02));
}

TEST(Optimizers, AWrongStateChangesNothing) {
  Tensor a = ones({2}, requires_grad());
  AdamW opt({a});
  a.set_grad(ones({2}));
  opt.step();
  const Tensor moment = opt.state_dict().at("state.0.exp_avg").clone();
  auto refusal = [&](const char* name, const Tensor& instead) {
    StateDict state = opt.state_dict();
    state["param_groups.0.lr"] = tensor(7.0, kFloat64);
    if (instead.defined())
      state[name] = instead;
    else
      state.erase(name);
    const std::string said = test::message_of([&] { opt.load_state_dict(state); });
    EXPECT_EQ(opt.lr(), 1e-3);
    EXPECT_TRUE(equal(opt.state_dict().at("state.0.exp_avg"), moment));
    EXPECT_NE(said.find(name), std::string::npos) << said;
    EXPECT_NE(said.find("optimizers_test.cpp"), std::string::npos) << said;
    return said;
  };
  EXPECT_NE(refusal("state.0.exp_avg", {}).find("no tensor for"), std::string::npos);
  EXPECT_NE(refusal("state.0.exp_avg_sq", ones({3})).find("[3]"), std::string::npos);
  refusal("state.0.momentum_buffer", ones({2}));
  refusal("state.1.step", tensor(1));
  EXPECT_NE(refusal("state.0.step", tensor(-1)).find("state.0.step of -1, expected a whole number"), std::string::npos);
  for (double step : {std::nan(""), 1.5, HUGE_VAL}) refusal("state.0.step", tensor(step));
  refusal("param_groups.0.eps", {});
  refusal("param_groups.0.betas", tensor({0.1, 0.2, 0.3}));
  refusal("param_groups.0.params", tensor({0, 1}));
  EXPECT_NE(test::message_of([&] {
              StateDict state = opt.state_dict();
              state["param_groups.0.eps"] = tensor(-1.0, kFloat64);
              opt.load_state_dict(state);
            }).find("eps"),
            std::string::npos);
}

TEST(Optimizers, WhatIsRefusedIsNamed) {
  const Tensor p = ones({2}, requires_grad());
  auto expect = [](const std::string& said, const char* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("optimizers_test.cpp"), std::string::npos) << said;
  };
  expect(test::message_of([&] { SGD({p}, {.lr = -1}); }), "SGD: lr: got -1, expected no negative number");
  expect(test::message_of([&] { SGD({p}, {.nesterov = true}); }), "SGD: momentum: got 0");
  expect(test::message_of([&] { SGD({p}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); }),
         "SGD: dampening: got 0.1");
  expect(test::message_of([&] {
           AdamW({p}, {.betas = {0.9, 1}});
         }),
         "AdamW: betas: got 1, expected numbers from 0 to below 1");
  expect(test::message_of([&] { Adam({p}, {.lr = std::nan("")}); }), "Adam: lr: got nan");
  expect(test::message_of([&] { RMSprop({p}, {.alpha = -0.5}); }), "RMSprop: alpha: got -0.5");
  expect(test::message_of([&] { Adagrad({p}, {.lr_decay = -0.5}); }), "Adagrad: lr_decay: got -0.5");
  expect(test::message_of([&] { Lion({p}, {.betas = {-0.1, 0.9}}); }), "Lion: betas: got -0.1");
  expect(test::message_of([&] { NAdam({p}, {.momentum_decay = -1}); }), "NAdam: momentum_decay: got -1");
  expect(test::message_of([&] { NAdam({p}, {.betas = {0.9, 1}}); }), "NAdam: betas: got 1");
  expect(test::message_of([&] { RAdam({p}, {.weight_decay = -1}); }), "RAdam: weight_decay: got -1");
  expect(test::message_of([&] { Adamax({p}, {.eps = -1}); }), "Adamax: eps: got -1");
  expect(test::message_of([&] { Adadelta({p}, {.rho = 1.5}); }),
         "Adadelta: rho: got 1.5, expected a number from 0 to 1");
  expect(test::message_of([&] { ASGD({p}, {.lr = -1}); }), "ASGD: lr: got -1");
  expect(test::message_of([&] {
           Rprop({p}, {.etas = {1, 1.2}});
         }),
         "Rprop: etas: got 1, expected a number between 0 and 1");
  expect(test::message_of([&] { Rprop({p}, {.etas = {0.5, 1}}); }), "Rprop: etas: got 1, expected a number above 1");
  expect(test::message_of([&] { SGD({p}).step(Optimizer::Closure()); }), "SGD: closure: got an empty function");
  expect(test::message_of([&] { SGD(std::vector<Tensor>{}); }), "SGD: params: got none");
  expect(test::message_of([&] { SGD({p, p}); }), "at position 1 a tensor that is there already");
  expect(test::message_of([&] { SGD({{{p}, {}}, {{p}, {}}}); }), "a tensor that is there already");
  expect(test::message_of([&] { SGD({p * 2}); }), "a tensor that an op made");
  expect(test::message_of([&] { SGD({Tensor()}); }), "an undefined tensor");
}

TEST(Optimizers, GroupsThatThereAreNot) {
  optim::SGD opt({ones({2}).requires_grad_()}, {.lr = 0.5});
  EXPECT_THROW(opt.lr(1), Error);
  EXPECT_THROW(opt.set_lr(1, 7), Error);
  EXPECT_THROW(opt.options(7).lr = 4, Error);
  EXPECT_THROW(opt.params(1), Error);
  EXPECT_THROW(opt.initial_lr(1), Error);
  EXPECT_EQ(opt.lr(), 0.5);
}

}  // namespace
}  // namespace ingot::optim
