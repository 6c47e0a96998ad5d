#include "eager/optim/schedulers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/optim/optimizers.h"

namespace ingot::optim {
namespace {

struct Training {
  Tensor p = ones({1}, requires_grad());
  SGD opt{{p}, {.lr = 0.5, .momentum = 0.9}};
};

/// The rates of 12 steps, as PyTorch gives them.
std::vector<double> expected(const std::string& name) {
  const std::string file = INGOT_SOURCE_DIR "/tests/data/optimizers.safetensors";
  static const auto all = nlohmann::json::parse(load_metadata(file).at("learning_rates_from_0.5"));
  return all.at(name);
}
template <class S>
void follows(Training& run, S& scheduler, const std::vector<double>& rates) {
  for (size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(run.opt.lr(), rates[i], 1e-14) << i;
    EXPECT_EQ(scheduler.get_last_lr()[0], run.opt.lr());
    if (i + 1 < rates.size()) scheduler.step();
  }
}

TEST(Schedulers, RatesArePyTorchs) {
  {
    Training run;
    StepLR s(run.opt, 3, 0.1);
    follows(run, s, expected("StepLR(3, 0.1)"));
  }
  {
    Training run;
    MultiStepLR s(run.opt, {2, 5}, 0.5);
    follows(run, s, expected("MultiStepLR([2, 5], 0.5)"));
  }
  {
    Training run;
    ExponentialLR s(run.opt, 0.9);
    follows(run, s, expected("ExponentialLR(0.9)"));
  }
  {
    Training run;
    CosineAnnealingLR s(run.opt, 10, 0.01);
    follows(run, s, expected("CosineAnnealingLR(10, 0.01)"));
  }
  {
    Training run;
    LinearLR s(run.opt, 0.1, 1, 5);
    follows(run, s, expected("LinearLR(0.1, 1, 5)"));
  }
  {
    Training run;
    OneCycleLR s(run.opt, {.max_lr = 1, .total_steps = 12});
    follows(run, s, expected("OneCycleLR(max 1.0, 12 steps)"));
    EXPECT_NEAR(run.opt.options().momentum, 0.95, 1e-12);
    EXPECT_NO_THROW(s.step());
    EXPECT_THROW(s.step(), Error);
  }
  {
    Training run;
    ReduceLROnPlateau s(run.opt, {.factor = 0.5, .patience = 2});
    const std::vector<double> rates = expected("ReduceLROnPlateau(0.5, patience 2), metric 1, .9, .8, .7, then 1");
    for (size_t i = 0; i < rates.size(); ++i) {
      EXPECT_NEAR(run.opt.lr(), rates[i], 1e-14) << i;
      s.step(i < 4 ? 1 - 0.1 * static_cast<double>(i) : 1);
    }
  }
  {
    Training run;
    LambdaLR s(run.opt, [](int64_t epoch) { return std::pow(0.9, static_cast<double>(epoch)); });
    follows(run, s, expected("ExponentialLR(0.9)"));
  }
}

TEST(Schedulers, SeveralOfOneOptimizerMultiply) {
  Training run;
  ExponentialLR first(run.opt, 0.5);
  StepLR second(run.opt, 2, 0.1);
  for (int i = 0; i < 4; ++i) first.step(), second.step();
  EXPECT_NEAR(run.opt.lr(), 0.5 * 0.0625 * 0.01, 1e-15);
}

TEST(Schedulers, OneAfterTheOther) {
  Training run;
  SequentialLR s(
      run.opt, {std::make_shared<LinearLR>(run.opt, 0.1, 1, 4), std::make_shared<CosineAnnealingLR>(run.opt, 8)}, {4});
  for (int i = 0; i < 12; ++i) {
    const double warm = 0.5 * (0.1 + 0.9 * i / 4), down = 0.25 * (1 + std::cos(M_PI * (i - 4) / 8));
    EXPECT_NEAR(run.opt.lr(), i < 4 ? warm : down, 1e-14) << i;
    s.step();
  }
}

TEST(Schedulers, AGroupHasItsOwnRate) {
  Training run;
  Tensor q = ones({1}, requires_grad());
  run.opt.add_param_group({{q}, {.lr = 8}});
  LambdaLR s(run.opt, {[](int64_t) { return 0.5; }, [](int64_t e) { return 1.0 / static_cast<double>(1 + e); }});
  s.step();
  EXPECT_EQ(s.get_last_lr(), (std::vector<double>{0.25, 4}));
}

/// Halfway through, another optimizer and scheduler take over.
template <class Make, class Step>
void continues(Make&& make, Step&& step) {
  Training a, b;
  auto first = make(a.opt), second = make(b.opt);
  for (int i = 0; i < 5; ++i) step(*first, i);
  b.opt.load_state_dict(a.opt.state_dict());
  second->load_state_dict(first->state_dict());
  EXPECT_EQ(second->last_epoch(), first->last_epoch());
  for (int i = 5; i < 12; ++i) {
    step(*first, i), step(*second, i);
    EXPECT_EQ(a.opt.lr(), b.opt.lr()) << i;
  }
}
TEST(Schedulers, StateGoesOnInAnother) {
  auto plain = [](LRScheduler& s, int) { s.step(); };
  continues([](SGD& o) { return std::make_unique<CosineAnnealingLR>(o, 7); }, plain);
  continues([](SGD& o) { return std::make_unique<OneCycleLR>(o, OneCycleOptions{.max_lr = 1, .total_steps = 20}); },
            plain);
  continues([](SGD& o) { return std::make_unique<ReduceLROnPlateau>(o, ReduceLROnPlateauOptions{.patience = 2}); },
            [](ReduceLROnPlateau& s, int) { s.step(1.0); });
  continues(
      [](SGD& o) {
        std::vector<std::shared_ptr<LRScheduler>> parts{std::make_shared<LinearLR>(o, 0.1, 1, 7),
                                                        std::make_shared<ExponentialLR>(o, 0.5)};
        return std::make_unique<SequentialLR>(o, parts, std::vector<int64_t>{7});
      },
      plain);
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

TEST(Schedulers, WhatIsRefusedIsNamed) {
  Training run;
  auto expect = [](const std::string& said, const char* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("schedulers_test.cpp"), std::string::npos) << said;
  };
  expect(error_of([&] { StepLR(run.opt, 0); }), "StepLR: step_size: got 0");
  expect(error_of([&] { CosineAnnealingLR(run.opt, 0); }), "CosineAnnealingLR: T_max: got 0");
  expect(error_of([&] { LinearLR(run.opt, 0); }), "LinearLR: start_factor: got 0");
  expect(error_of([&] { OneCycleLR(run.opt, {.total_steps = 5}); }), "OneCycleLR: max_lr: got 0");
  expect(error_of([&] { ReduceLROnPlateau(run.opt, {.factor = 1}); }), "ReduceLROnPlateau: factor: got 1");
  expect(error_of([&] { LambdaLR(run.opt, std::vector<LambdaLR::Lambda>{}); }), "LambdaLR: lr_lambdas: got 0");
  Tensor q = ones({1}, requires_grad());
  Adagrad other({q});
  expect(error_of([&] { OneCycleLR(other, {.max_lr = 1, .total_steps = 5}); }),
         "OneCycleLR: cycle_momentum: got Adagrad");
  expect(error_of([&] { SequentialLR(run.opt, {std::make_shared<StepLR>(other, 1)}, {}); }),
         "SequentialLR: schedulers: got one of another optimizer");
  StepLR s(run.opt, 3);
  expect(error_of([&] { s.load_state_dict({}); }), "no tensor for last_epoch");
  expect(error_of([&] { s.load_state_dict({{"last_epoch", tensor(1)}, {"best", tensor(1)}}); }), "got best");
}

}  // namespace
}  // namespace ingot::optim
