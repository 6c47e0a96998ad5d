// L-BFGS against PyTorch's steps in double on Rosenbrock's function (tests/data/optimizers.safetensors).
#include "eager/optim/lbfgs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "eager/autograd/autograd.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/optim/schedulers.h"
#include "eager/serialization.h"
#include "eager/support.h"

namespace ingot::optim {
namespace {

/// The loss of a vector's chain of valleys, over two parameters.
struct Valley {
  std::vector<Tensor> params;
  LBFGS opt;
  int64_t calls = 0;

  explicit Valley(const LBFGSOptions& options, DType dtype = kFloat64)
      : params{tensor({-1.2, 1.0, 0.5}, kFloat64).to(dtype).requires_grad_(),
               tensor({{1.5, -0.5}}, kFloat64).to(dtype).requires_grad_()},
        opt(params, options) {}
  Tensor step() {
    return opt.step([&] {
      ++calls;
      opt.zero_grad();
      const Tensor x = values(), from = x.slice(0, 0, 4), to = x.slice(0, 1, 5);
      Tensor loss = (100 * (to - from.square()).square() + (1 - from).square()).sum();
      loss.backward();
      return loss;
    });
  }
  Tensor values() const { return cat({params[0].flatten(), params[1].flatten()}); }
  std::vector<double> numbers() const {
    const Tensor x = values().detach().to(kFloat64);
    return {x.data_ptr<double>(), x.data_ptr<double>() + 5};
  }
};

LBFGSOptions options_from(const nlohmann::json& given) {
  LBFGSOptions o;
  o.lr = given.value("lr", o.lr);
  o.max_iter = given.value("max_iter", o.max_iter);
  if (given.contains("max_eval")) o.max_eval = given.at("max_eval").get<int64_t>();
  o.history_size = given.value("history_size", o.history_size);
  o.tolerance_grad = given.value("tolerance_grad", o.tolerance_grad);
  o.tolerance_change = given.value("tolerance_change", o.tolerance_change);
  if (given.contains("line_search_fn")) o.line_search_fn = given.at("line_search_fn").get<std::string>();
  return o;
}
/// All configurations of the file.
template <class Check>
void for_each_configuration(Check check) {
  const std::string path = INGOT_SOURCE_DIR "/tests/data/optimizers.safetensors";
  StateDict file = load(path);
  const auto configurations = nlohmann::json::parse(load_metadata(path).at("lbfgs"));
  EXPECT_EQ(configurations.size(), 4u);
  for (const auto& [name, options] : configurations.items())
    check(name, options_from(options), file.at("lbfgs/" + name));
}

TEST(LBFGS, StepsArePyTorchs) {
  for_each_configuration([](const std::string& name, const LBFGSOptions& options, const Tensor& expected) {
    Valley run(options);
    for (int64_t step = 0; step < expected.sizes()[0]; ++step) {
      const double* row = expected.data_ptr<double>() + 7 * step;
      EXPECT_NEAR(run.step().item<double>() / row[0], 1, 1e-9) << name << ", step " << step;
      for (int i = 0; i < 5; ++i) EXPECT_NEAR(run.numbers()[i], row[1 + i], 1e-9) << name << ", step " << step;
      EXPECT_EQ(static_cast<double>(run.calls), row[6]) << name << ", step " << step;
      EXPECT_EQ(run.opt.state_dict().at("state.0.func_evals").item<int64_t>(), run.calls);
    }
  });
}

TEST(LBFGS, FindsTheValleysEnd) {
  for (DType dtype : {kFloat32, kFloat64}) {
    Valley run({.line_search_fn = "strong_wolfe"}, dtype);
    for (int i = 0; i < 10; ++i) run.step();
    // The lowest place on this side of 0; beyond it all are 1.
    const std::vector<double> lowest = {-0.96205109, 0.93573939, 0.88071368, 0.77787776, 0.60509366};
    for (int i = 0; i < 5; ++i) EXPECT_NEAR(run.numbers()[i], lowest[i], dtype == kFloat32 ? 1e-3 : 1e-5);
    const Tensor slope = run.params[0].grad().abs().max();
    EXPECT_LT(slope.item<double>(), dtype == kFloat32 ? 1e-2 : 1e-4);
    // There, nothing is left to do.
    run.opt.options().tolerance_grad = 1;
    const std::vector<double> before = run.numbers();
    const int64_t calls = run.calls;
    run.step();
    EXPECT_EQ(run.calls, calls + 1);
    EXPECT_EQ(run.numbers(), before);
  }
}

TEST(LBFGS, StateGoesOnInAnother) {
  for_each_configuration([](const std::string& name, const LBFGSOptions& options, const Tensor&) {
    Valley first(options), second({});
    for (int i = 0; i < 2; ++i) first.step();
    {
      const NoGradGuard no_grad;
      for (int i = 0; i < 2; ++i) second.params[i].copy_(first.params[i]);
    }
    const StateDict state = first.opt.state_dict();
    EXPECT_TRUE(state.contains("state.0.old_dirs.1") && state.contains("state.0.prev_flat_grad"));
    second.opt.load_state_dict(state);
    EXPECT_EQ(second.opt.options().line_search_fn, options.line_search_fn);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(first.step().item<double>(), second.step().item<double>()) << name;
      EXPECT_EQ(first.numbers(), second.numbers()) << name;
    }
  });
}

TEST(LBFGS, ASchedulerSetsItsRate) {
  Valley run({.lr = 0.5});
  StepLR rate(run.opt, 1, 0.1);
  rate.step();
  EXPECT_EQ(run.opt.options().lr, 0.05);
}

TEST(LBFGS, AParameterWithoutAGradientStays) {
  Tensor a = tensor({3.f}).requires_grad_(), b = tensor({2.f}).requires_grad_();
  LBFGS opt({a, b}, {.line_search_fn = "strong_wolfe"});
  opt.step([&] {
    opt.zero_grad();
    Tensor loss = (a - 1).square().sum();
    loss.backward();
    return loss;
  });
  EXPECT_NEAR(a.item<float>(), 1, 1e-5);
  EXPECT_EQ(b.item<float>(), 2);
}

TEST(LBFGS, NoElements) {
  Tensor none = ones({0}).requires_grad_();
  LBFGS opt({none});
  EXPECT_EQ(opt.step([] { return tensor(2.f); }).item<float>(), 2);
}

TEST(LBFGS, ALossThatIsNoNumberEndsAStep) {
  for (std::optional<std::string> search : {std::optional<std::string>(), std::optional<std::string>("strong_wolfe")}) {
    Tensor a = tensor({1.f}).requires_grad_();
    LBFGS opt({a}, {.line_search_fn = search});
    const Tensor loss = opt.step([&] {
      opt.zero_grad();
      Tensor loss = (a * std::nan("")).sum();
      loss.backward();
      return loss;
    });
    EXPECT_TRUE(std::isnan(loss.item<float>()));
  }
}

TEST(LBFGS, WhatIsRefusedIsNamed) {
  const Tensor p = ones({2}, requires_grad());
  auto expect = [](const std::string& said, const char* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("lbfgs_test.cpp"), std::string::npos) << said;
  };
  expect(test::message_of([&] { LBFGS({p}, {.lr = -1}); }), "LBFGS: lr: got -1");
  expect(test::message_of([&] { LBFGS({p}, {.max_iter = 0}); }), "LBFGS: max_iter: got 0");
  expect(test::message_of([&] { LBFGS({p}, {.max_eval = 0}); }), "LBFGS: max_eval: got 0");
  expect(test::message_of([&] { LBFGS({p}, {.history_size = 0}); }), "LBFGS: history_size: got 0");
  expect(test::message_of([&] { LBFGS({p}, {.tolerance_grad = -1}); }), "LBFGS: tolerance_grad: got -1");
  expect(test::message_of([&] { LBFGS({p}, {.line_search_fn = "armijo"}); }), "LBFGS: line_search_fn: got \"armijo\"");
  expect(test::message_of([&] { LBFGS(std::vector<Tensor>{}); }), "LBFGS: params: got none");
  LBFGS opt({p});
  expect(test::message_of([&] { opt.step(); }), "LBFGS: closure: got none");
  expect(test::message_of([&] { opt.step(Optimizer::Closure()); }), "LBFGS: closure: got an empty function");
  expect(test::message_of([&] { opt.step([&] { return ones({2}); }); }), "2 elements");
  expect(test::message_of([&] { opt.step([&] { return Tensor(); }); }), "undefined");
  StateDict state = opt.state_dict();
  state["state.0.d"] = ones({2});
  expect(test::message_of([&] { opt.load_state_dict(state); }), "state.0.n_iter");
}

}  // namespace
}  // namespace ingot::optim
