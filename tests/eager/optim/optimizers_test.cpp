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

namespace ingot::optim {
namespace {

const std::string kFile = INGOT_SOURCE_DIR "/tests/data/optimizers.safetensors";
constexpr int kParams = 3, kSteps = 5;

template <class O>
std::unique_ptr<Optimizer> made(const std::vector<Tensor>& params) {
  return std::make_unique<O>(params);
}
std::unique_ptr<Optimizer> make(const std::string& configuration, const nlohmann::json& options,
                                const std::vector<Tensor>& params) {
  const std::map<std::string, std::unique_ptr<Optimizer> (*)(const std::vector<Tensor>&)> makers = {
      {"SGD", made<SGD>},         {"Adam", made<Adam>},       {"AdamW", made<AdamW>},
      {"RMSprop", made<RMSprop>}, {"Adagrad", made<Adagrad>},
  };
  std::unique_ptr<Optimizer> opt = makers.at(configuration.substr(0, configuration.find(' ')))(params);
  for (const auto& [name, value] : options.items()) {
    if (value.is_boolean())
      *opt->option<bool>(name, 0) = value;
    else if (value.is_array())
      *opt->option<Betas>(name, 0) = {value[0], value[1]};
    else
      *opt->option<double>(name, 0) = value;
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

class AgainstPyTorch : public testing::TestWithParam<DType> {};

TEST_P(AgainstPyTorch, EveryConfiguration) {
  const DType dtype = GetParam();
  const double tolerance = dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-6 : 3e-2;
  StateDict file = load(kFile);
  const auto configurations = nlohmann::json::parse(load_metadata(kFile).at("configurations"));
  ASSERT_EQ(configurations.size(), 12u);
  for (const auto& [configuration, options] : configurations.items()) {
    std::vector<Tensor> params;
    for (int i = 0; i < kParams; ++i) params.push_back(leaf(file.at("start/" + std::to_string(i)).to(dtype)));
    const std::unique_ptr<Optimizer> opt = make(configuration, options, params);
    for (int step = 0; step < kSteps; ++step) {
      const std::string at = std::to_string(step) + "/";
      for (int i = 0; i < kParams; ++i) params[i].set_grad(file.at("grad/" + at + std::to_string(i)).to(dtype));
      opt->step();
      for (int i = 0; i < kParams; ++i) {
        EXPECT_LE(distance(params[i], file.at("after/" + configuration + "/" + at + std::to_string(i))), tolerance)
            << configuration << ", step " << step << ", parameter " << i;
        EXPECT_TRUE(params[i].is_leaf() && params[i].requires_grad());
      }
    }
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
void continues(decltype(std::declval<O&>().options()) options) {
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
  SGDOptions sgd{.lr = 0.1, .momentum = 0.9, .dampening = 0.5};
  continues<SGD>(sgd);
  AdamOptions adam{.lr = 0.1, .amsgrad = true};
  continues<Adam>(adam);
  AdamWOptions adamw{.betas = {0.5, 0.75}};
  continues<AdamW>(adamw);
  RMSpropOptions rmsprop{.momentum = 0.5, .centered = true};
  continues<RMSprop>(rmsprop);
  AdagradOptions adagrad{.lr_decay = 0.5, .initial_accumulator_value = 1};
  continues<Adagrad>(adagrad);
  LionOptions lion{.weight_decay = 0.1};
  continues<Lion>(lion);
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

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
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
    const std::string said = error_of([&] { opt.load_state_dict(state); });
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
  refusal("param_groups.0.eps", {});
  refusal("param_groups.0.betas", tensor({0.1, 0.2, 0.3}));
  refusal("param_groups.0.params", tensor({0, 1}));
  EXPECT_NE(error_of([&] {
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
  expect(error_of([&] { SGD({p}, {.lr = -1}); }), "SGD: lr: got -1, expected no negative number");
  expect(error_of([&] { SGD({p}, {.nesterov = true}); }), "SGD: momentum: got 0");
  expect(error_of([&] { SGD({p}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); }), "SGD: dampening: got 0.1");
  expect(error_of([&] { AdamW({p}, {.betas = {0.9, 1}}); }), "AdamW: betas: got 1, expected numbers from 0 to below 1");
  expect(error_of([&] { Adam({p}, {.lr = std::nan("")}); }), "Adam: lr: got nan");
  expect(error_of([&] { RMSprop({p}, {.alpha = -0.5}); }), "RMSprop: alpha: got -0.5");
  expect(error_of([&] { Adagrad({p}, {.lr_decay = -0.5}); }), "Adagrad: lr_decay: got -0.5");
  expect(error_of([&] { Lion({p}, {.betas = {-0.1, 0.9}}); }), "Lion: betas: got -0.1");
  expect(error_of([&] { SGD(std::vector<Tensor>{}); }), "SGD: params: got none");
  expect(error_of([&] { SGD({p, p}); }), "at position 1 a tensor that is there already");
  expect(error_of([&] { SGD({{{p}, {}}, {{p}, {}}}); }), "a tensor that is there already");
  expect(error_of([&] { SGD({p * 2}); }), "a tensor that an op made");
  expect(error_of([&] { SGD({Tensor()}); }), "an undefined tensor");
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
