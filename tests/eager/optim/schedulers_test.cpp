#include "eager/optim/schedulers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/optim/optimizers.h"
#include "eager/optim/swa_utils.h"
#include "eager/serialization.h"
#include "eager/support.h"

namespace ingot::optim {
namespace {

struct Training {
  Tensor p = ones({1}, requires_grad());
  SGD opt{{p}, {.lr = 0.5, .momentum = 0.9}};
};

constexpr int kEpochs = 60;

template <class S, class... Args>
auto makes(Args... args) {
  return [=](SGD& o) -> std::shared_ptr<LRScheduler> { return std::make_shared<S>(o, args...); };
}
using Maker = std::function<std::shared_ptr<LRScheduler>(SGD&)>;
std::vector<std::shared_ptr<LRScheduler>> all(SGD& o, const std::vector<Maker>& makers) {
  std::vector<std::shared_ptr<LRScheduler>> made;
  for (const Maker& make : makers) made.push_back(make(o));
  return made;
}
Maker sequence(const std::vector<Maker>& makers, const std::vector<int64_t>& milestones) {
  return [=](SGD& o) { return std::make_shared<SequentialLR>(o, all(o, makers), milestones); };
}
using Lambda = LambdaLR::Lambda;
double number(int64_t epoch) { return static_cast<double>(epoch); }

/// As in tools/optimizer_cases.py.
const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> makers = {
      {"StepLR", makes<StepLR>(3, 0.7)},
      {"MultiStepLR", makes<MultiStepLR>(std::vector<int64_t>{2, 5, 5, 40}, 0.5)},
      {"ExponentialLR", makes<ExponentialLR>(0.9)},
      {"CosineAnnealingLR", makes<CosineAnnealingLR>(10, 0.01)},
      {"LinearLR", makes<LinearLR>(0.1, 1, 5)},
      {"ConstantLR", makes<ConstantLR>(0.25, 7)},
      {"ConstantLR default", makes<ConstantLR>()},
      {"PolynomialLR", makes<PolynomialLR>(50, 2.5)},
      {"PolynomialLR default", makes<PolynomialLR>()},
      {"LambdaLR", makes<LambdaLR>(std::vector<Lambda>{[](int64_t e) { return std::pow(0.9, number(e)); },
                                                       [](int64_t e) { return 1 / (1 + number(e)); }})},
      {"MultiplicativeLR", makes<MultiplicativeLR>([](int64_t e) { return 1 - 1 / (number(e) + 3); })},
      {"CosineAnnealingWarmRestarts", makes<CosineAnnealingWarmRestarts>(7, 1, 0.01)},
      {"CosineAnnealingWarmRestarts longer", makes<CosineAnnealingWarmRestarts>(4, 2)},
      {"CyclicLR triangular",
       makes<CyclicLR>(
           CyclicOptions{.base_lr = {0.01, 0.02}, .max_lr = 0.3, .step_size_up = 5, .step_size_down = 9})},
      {"CyclicLR triangular2", makes<CyclicLR>(CyclicOptions{.base_lr = 0.01,
                                                             .max_lr = {0.3, 0.2},
                                                             .step_size_up = 6,
                                                             .mode = "triangular2",
                                                             .base_momentum = 0.6})},
      {"CyclicLR exp_range", makes<CyclicLR>(CyclicOptions{.base_lr = 0.01,
                                                           .max_lr = 0.3,
                                                           .step_size_up = 6,
                                                           .mode = "exp_range",
                                                           .gamma = 0.97,
                                                           .cycle_momentum = false})},
      {"CyclicLR scale_fn", makes<CyclicLR>(CyclicOptions{.base_lr = 0.01,
                                                          .max_lr = 0.3,
                                                          .step_size_up = 6,
                                                          .scale_fn = [](double x) { return 1 / (1 + x); },
                                                          .scale_mode = "iterations"})},
      {"OneCycleLR", makes<OneCycleLR>(OneCycleOptions{.max_lr = {1, 0.5}, .total_steps = kEpochs})},
      {"OneCycleLR three phases",
       makes<OneCycleLR>(OneCycleOptions{.max_lr = 1, .total_steps = kEpochs, .linear = true, .three_phase = true})},
      {"ReduceLROnPlateau",
       makes<ReduceLROnPlateau>(ReduceLROnPlateauOptions{.factor = 0.5, .patience = 2, .min_lr = {0.01, 0.001}})},
      {"SequentialLR",
       sequence({makes<LinearLR>(0.1, 1, 5), makes<CosineAnnealingLR>(20), makes<StepLR>(7, 0.5)}, {5, 25})},
      {"SequentialLR multiplicative",
       sequence({makes<ConstantLR>(0.5, 20), makes<MultiplicativeLR>([](int64_t) { return 0.95; })}, {10})},
      {"SequentialLR cyclic",
       sequence({makes<LinearLR>(0.1, 1, 5),
                 makes<CyclicLR>(CyclicOptions{.base_lr = 0.01, .max_lr = 0.3, .step_size_up = 6}),
                 makes<CosineAnnealingWarmRestarts>(5)},
                {5, 30})},
      {"ChainedScheduler",
       [](SGD& o) {
         return std::make_shared<ChainedScheduler>(
             all(o, {makes<ConstantLR>(0.1, 4), makes<ExponentialLR>(0.95), makes<StepLR>(20, 0.5)}));
       }},
      {"SWALR", makes<swa_utils::SWALR>(PerGroup{0.05, 0.2})},
      {"SWALR linear", makes<swa_utils::SWALR>(0.05, 7, "linear")},
      {"SWALR at once", makes<swa_utils::SWALR>(0.05, 0)},
      {"SequentialLR averaging", sequence({makes<ExponentialLR>(0.9), makes<swa_utils::SWALR>(0.05, 5)}, {20})},
  };
  return makers;
}
void step(LRScheduler& scheduler, int epoch) {
  if (auto* plateau = dynamic_cast<ReduceLROnPlateau*>(&scheduler))
    plateau->step(epoch < 4 ? 1 - 0.1 * epoch : 1);
  else
    scheduler.step();
}
/// Two groups, of one parameter each.
struct TwoGroups {
  SGD opt{{{{ones({1}, requires_grad())}, {.lr = 0.5, .momentum = 0.9}},
           {{ones({1}, requires_grad())}, {.lr = 0.25, .momentum = 0.9}}}};
  std::vector<double> now() { return {opt.lr(0), opt.lr(1), opt.options().momentum}; }
};

TEST(Schedulers, RatesArePyTorchs) {
  StateDict file = load(INGOT_SOURCE_DIR "/tests/data/optimizers.safetensors");
  size_t known = 0;
  for (const auto& [name, t] : file) known += name.starts_with("rates/");
  EXPECT_EQ(known, makers().size());
  for (const auto& [name, make] : makers()) {
    TwoGroups run;
    const std::shared_ptr<LRScheduler> scheduler = make(run.opt);
    const double* expected = file.at("rates/" + name).data_ptr<double>();
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      for (double rate : run.now()) EXPECT_NEAR(rate, *expected++, 1e-12) << name << ", epoch " << epoch;
      EXPECT_EQ(scheduler->get_last_lr()[1], run.opt.lr(1));
      if (epoch + 1 < kEpochs) step(*scheduler, epoch);
    }
  }
}

TEST(Schedulers, OneCycleEnds) {
  Training run;
  OneCycleLR s(run.opt, {.max_lr = 1, .total_steps = 12});
  for (int i = 0; i < 12; ++i) s.step();
  EXPECT_THROW(s.step(), Error);
}

TEST(Schedulers, WarmRestartsWithinAnEpoch) {
  Training run;
  CosineAnnealingWarmRestarts s(run.opt, 2, 3);
  auto rate = [](double share) { return 0.25 * (1 + std::cos(M_PI * share)); };
  s.step(1.5);
  EXPECT_NEAR(run.opt.lr(), rate(0.75), 1e-15);
  EXPECT_EQ(s.last_epoch(), 1);
  s.step(2.0);
  EXPECT_NEAR(run.opt.lr(), rate(0), 1e-15);
  s.step(9.5);  // the second cycle has six epochs, the third, from the eighth on, eighteen
  EXPECT_NEAR(run.opt.lr(), rate(1.5 / 18), 1e-15);
  s.step();
  EXPECT_NEAR(run.opt.lr(), rate(2.5 / 18), 1e-15);
  EXPECT_EQ(s.last_epoch(), 10);
  EXPECT_THROW(s.step(-1.0), Error);
}

TEST(Schedulers, FromZeroAConstantFactorLeadsToTheFirstRate) {
  Training run;
  ConstantLR s(run.opt, 0, 2);
  std::vector<double> rates;
  for (int i = 0; i < 4; ++i, s.step()) rates.push_back(run.opt.lr());
  EXPECT_EQ(rates, (std::vector<double>{0, 0, 0.5, 0.5}));
}

TEST(Schedulers, AChainBeginsAgain) {
  Training run;
  ChainedScheduler s({std::make_shared<ConstantLR>(run.opt, 0.5, 2), std::make_shared<ExponentialLR>(run.opt, 0.1)});
  for (int i = 0; i < 3; ++i) s.step();
  EXPECT_NEAR(run.opt.lr(), 0.5e-3, 1e-15);
  s.restart();
  EXPECT_EQ(run.opt.lr(), 0.25);
  EXPECT_EQ(s.last_epoch(), 0);
  s.step();
  EXPECT_NEAR(run.opt.lr(), 0.025, 1e-15);
}

TEST(Schedulers, AFirstBetaIsCycledAsMomentumIs) {
  Tensor p = ones({1}, requires_grad());
  Adam opt({p});
  CyclicLR s(opt, {.base_lr = 0.1, .max_lr = 0.2, .step_size_up = 2});
  EXPECT_EQ(opt.options().betas[0], 0.9);
  s.step(), s.step();
  EXPECT_NEAR(opt.options().betas[0], 0.8, 1e-15);
  EXPECT_EQ(opt.options().betas[1], 0.999);
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
TEST(Schedulers, StateGoesOnInAnother) {
  for (const auto& [name, make] : makers()) {
    TwoGroups a, b;
    const std::shared_ptr<LRScheduler> first = make(a.opt), second = make(b.opt);
    for (int i = 0; i < 8; ++i) step(*first, i);
    b.opt.load_state_dict(a.opt.state_dict());
    second->load_state_dict(first->state_dict());
    EXPECT_EQ(second->last_epoch(), first->last_epoch());
    for (int i = 8; i < 30; ++i) {
      step(*first, i), step(*second, i);
      EXPECT_EQ(a.now(), b.now()) << name << ", epoch " << i;
    }
  }
}

TEST(Schedulers, WhatIsRefusedIsNamed) {
  Training run;
  struct Unchanged {
    Training& run;
    ~Unchanged() { EXPECT_TRUE(run.opt.lr() == 0.5 && run.opt.options().momentum == 0.9); }
  } unchanged{run};
  auto expect = [](const std::string& said, const char* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("schedulers_test.cpp"), std::string::npos) << said;
  };
  expect(test::message_of([&] { StepLR(run.opt, 0); }), "StepLR: step_size: got 0");
  expect(test::message_of([&] { CosineAnnealingLR(run.opt, 0); }), "CosineAnnealingLR: T_max: got 0");
  expect(test::message_of([&] { LinearLR(run.opt, 0); }), "LinearLR: start_factor: got 0");
  expect(test::message_of([&] { OneCycleLR(run.opt, {.total_steps = 5}); }), "OneCycleLR: max_lr: got 0");
  expect(test::message_of([&] { ReduceLROnPlateau(run.opt, {.factor = 1}); }), "ReduceLROnPlateau: factor: got 1");
  expect(test::message_of([&] { LambdaLR(run.opt, std::vector<LambdaLR::Lambda>{}); }), "LambdaLR: lr_lambdas: got 0");
  expect(test::message_of([&] { LambdaLR(run.opt, {}); }), "LambdaLR: lr_lambdas: got 0");
  expect(test::message_of([&] { MultiplicativeLR(run.opt, {}); }), "MultiplicativeLR: lr_lambdas: got 0");
  Tensor q = ones({1}, requires_grad());
  Adagrad other({q});
  expect(test::message_of([&] { OneCycleLR(other, {.max_lr = 1, .total_steps = 5}); }),
         "OneCycleLR: cycle_momentum: got Adagrad");
  expect(test::message_of([&] { CyclicLR(other, {.base_lr = 1, .max_lr = 5}); }),
         "CyclicLR: cycle_momentum: got Adagrad");
  expect(test::message_of([&] { CyclicLR(run.opt, {.step_size_up = 0}); }), "CyclicLR: step_size_up: got 0");
  expect(test::message_of([&] { CyclicLR(run.opt, {.step_size_down = -1}); }), "CyclicLR: step_size_down: got -1");
  expect(test::message_of([&] { CyclicLR(run.opt, {.mode = "square"}); }), "CyclicLR: mode: got \"square\", expected");
  expect(test::message_of([&] { CyclicLR(run.opt, {.scale_fn = [](double) { return 1; }, .scale_mode = "epoch"}); }),
         "CyclicLR: scale_mode: got \"epoch\"");
  expect(test::message_of([&] {
           CyclicLR(run.opt, {.max_lr = {1, 2}});
         }),
         "CyclicLR: max_lr: got 2 numbers, expected one, or one for each group");
  expect(test::message_of([&] { CyclicLR(run.opt, {.base_momentum = std::vector<double>()}); }),
         "base_momentum: got 0 numbers");
  expect(test::message_of([&] { ConstantLR(run.opt, 1.5); }), "ConstantLR: factor: got 1.5");
  expect(test::message_of([&] { CosineAnnealingWarmRestarts(run.opt, 0); }), "CosineAnnealingWarmRestarts: T_0: got 0");
  expect(test::message_of([&] { CosineAnnealingWarmRestarts(run.opt, 1, 0); }),
         "CosineAnnealingWarmRestarts: T_mult: got 0");
  expect(test::message_of([&] { LambdaLR(run.opt, LambdaLR::Lambda()); }),
         "LambdaLR: lr_lambda: got an empty function");
  expect(test::message_of([&] { LambdaLR(run.opt, {LambdaLR::Lambda()}); }),
         "LambdaLR: lr_lambda: got an empty function");
  expect(test::message_of([&] { MultiplicativeLR(run.opt, nullptr); }),
         "MultiplicativeLR: lr_lambda: got an empty function");
  expect(test::message_of([&] { SequentialLR(run.opt, {std::make_shared<StepLR>(other, 1)}, {}); }),
         "SequentialLR: schedulers: got one of another optimizer");
  expect(test::message_of([&] { SequentialLR(run.opt, {nullptr}, {}); }),
         "SequentialLR: schedulers: got a null pointer");
  expect(test::message_of([&] { SequentialLR(run.opt, {}, {}); }), "SequentialLR: schedulers: got 0");
  expect(test::message_of([&] { ChainedScheduler({nullptr}); }), "ChainedScheduler: schedulers: got a null pointer");
  expect(test::message_of([&] { ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>>()); }),
         "ChainedScheduler: schedulers: got 0");
  expect(test::message_of([&] {
           ChainedScheduler({std::make_shared<StepLR>(run.opt, 1), std::make_shared<StepLR>(other, 1)});
         }),
         "ChainedScheduler: schedulers: got one of another optimizer");
  expect(test::message_of([&] { swa_utils::SWALR(run.opt, 0.1, -1); }), "SWALR: anneal_epochs: got -1");
  expect(test::message_of([&] { swa_utils::SWALR(run.opt, 0.1, 1, "cosine"); }),
         "SWALR: anneal_strategy: got \"cosine\"");
  StepLR s(run.opt, 3);
  expect(test::message_of([&] { s.load_state_dict({}); }), "no tensor for last_epoch");
  expect(test::message_of([&] { s.load_state_dict({{"last_epoch", tensor(1)}, {"best", tensor(1)}}); }), "got best");
}

}  // namespace
}  // namespace ingot::optim
