// Scaling of losses: which steps are made, and what becomes of the scale.
#include "eager/optim/grad_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "eager/autocast.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/optim/optimizers.h"
#include "eager/support.h"

namespace ingot::amp {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Trained {
  Tensor w = tensor({1.0f, 2.0f}).requires_grad_();
  optim::SGD opt{{w}, {.lr = 0.5}};
  /// The gradient of w is `slope` and 2.
  void backward(const GradScaler& scaler, double slope) {
    opt.zero_grad();
    scaler.scale((w * tensor({static_cast<float>(slope), 2.0f})).sum()).backward();
  }
  void step(GradScaler& scaler, double slope) {
    backward(scaler, slope);
    scaler.step(opt);
    scaler.update();
  }
};

TEST(GradScaler, StepsAreThoseOfTheLossItself) {
  Trained t;
  GradScaler scaler({.init_scale = 1024});
  t.backward(scaler, 1);
  EXPECT_TRUE(equal(t.w.grad(), tensor({1024.0f, 2048.0f})));
  scaler.unscale_(t.opt);
  EXPECT_TRUE(equal(t.w.grad(), tensor({1.0f, 2.0f})));
  scaler.step(t.opt);
  EXPECT_TRUE(equal(t.w, tensor({0.5f, 1.0f})));
  scaler.update();
  t.step(scaler, 1);
  EXPECT_TRUE(equal(t.w, tensor({0.0f, 0.0f})));
  EXPECT_EQ(scaler.get_scale(), 1024);
}

TEST(GradScaler, GradientsThatAreNotFiniteMakeNoStep) {
  for (double slope : {kInfinity, -kInfinity, std::nan("")}) {
    Trained t;
    GradScaler scaler({.init_scale = 8, .growth_interval = 2});
    t.step(scaler, 1);
    t.step(scaler, slope);
    EXPECT_TRUE(equal(t.w, tensor({0.5f, 1.0f}))) << slope;
    EXPECT_EQ(scaler.get_scale(), 4);
    t.step(scaler, 1);  // the first in a row
    EXPECT_EQ(scaler.get_scale(), 4);
    t.step(scaler, 1);
    EXPECT_EQ(scaler.get_scale(), 8);
  }
}

TEST(GradScaler, OneOptimizerOfSeveralIsSkipped) {
  Trained a, b;
  GradScaler scaler({.init_scale = 2});
  a.backward(scaler, 1), b.backward(scaler, kInfinity);
  scaler.step(a.opt), scaler.step(b.opt);
  scaler.update();
  EXPECT_TRUE(equal(a.w, tensor({0.5f, 1.0f})));
  EXPECT_TRUE(equal(b.w, tensor({1.0f, 2.0f})));
  EXPECT_EQ(scaler.get_scale(), 1);
}

TEST(GradScaler, TheScaleStaysFinite) {
  Trained t;
  GradScaler scaler({.init_scale = 0x1p127, .growth_interval = 1});
  t.backward(scaler, 0x1p-100);
  t.w.grad().fill_(1);
  scaler.step(t.opt);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 0x1p127);
  scaler.update(3.0);
  EXPECT_EQ(scaler.get_scale(), 3);
}

TEST(GradScaler, F16NeedsIt) {
  Tensor w = tensor({1.0f}).requires_grad_();
  optim::SGD opt({w}, {.lr = 1});
  GradScaler scaler;
  auto loss = [&] {
    const AutocastGuard autocast(kFloat16);
    return matmul(w.view({1, 1}), full({1, 1}, 1e-4f)).to(kFloat32).mean() * 1e-4f;
  };
  loss().backward();
  EXPECT_EQ(w.grad().item<float>(), 0);  // 1e-4 * 1e-4 is no f16
  opt.zero_grad();
  scaler.scale(loss()).backward();
  scaler.unscale_(opt);
  EXPECT_NEAR(w.grad().item<float>(), 1e-8f, 1e-10f);
}

TEST(GradScaler, WhatIsNotEnabledDoesNothing) {
  Trained t;
  GradScaler scaler({.enabled = false});
  t.step(scaler, 1);
  EXPECT_TRUE(equal(t.w, tensor({0.5f, 1.0f})));
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_TRUE(scaler.state_dict().empty());
}

TEST(GradScaler, ItsStateIsSavedAndLoaded) {
  Trained t;
  GradScaler scaler({.init_scale = 8, .growth_interval = 3}), other;
  t.step(scaler, 1);
  other.load_state_dict(scaler.state_dict());
  EXPECT_EQ(other.get_growth_interval(), 3);
  for (const auto& [name, value] : scaler.state_dict()) EXPECT_TRUE(equal(other.state_dict().at(name), value)) << name;
  t.step(other, 1), t.step(other, 1);
  EXPECT_EQ(other.get_scale(), 16);
  StateDict state = scaler.state_dict();
  state["scale"] = tensor(-1.0);
  EXPECT_NE(test::message_of([&] { other.load_state_dict(state); }).find("init_scale: got -1"), std::string::npos);
  state = scaler.state_dict();
  state.erase("_growth_tracker");
  EXPECT_NE(test::message_of([&] { other.load_state_dict(state); }).find("_growth_tracker"), std::string::npos);
  state = scaler.state_dict();
  state["more"] = tensor(1);
  EXPECT_NE(test::message_of([&] { other.load_state_dict(state); }).find("more"), std::string::npos);
  EXPECT_EQ(other.get_scale(), 16);
}

TEST(GradScaler, WhatIsOutOfOrderIsAnError) {
  auto expect = [](const char* text, const std::function<void()>& f) {
    const std::string message = test::message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  Trained t;
  GradScaler scaler;
  expect("no step since the last one", [&] { scaler.update(); });
  expect("no gradients", [&] { scaler.step(t.opt); });
  t.backward(scaler, 1);
  scaler.unscale_(t.opt);
  expect("unscaled already", [&] { scaler.unscale_(t.opt); });
  scaler.step(t.opt);
  expect("has made its step", [&] { scaler.step(t.opt); });
  expect("has made its step", [&] { scaler.unscale_(t.opt); });
  expect("new_scale: got 0", [&] { scaler.update(0.0); });
  expect("init_scale", [] { GradScaler s({.init_scale = 0}); });
  expect("growth_factor", [] { GradScaler s({.growth_factor = 1}); });
  expect("backoff_factor", [] { GradScaler s({.backoff_factor = 1}); });
  expect("growth_interval", [] { GradScaler s({.growth_interval = 0}); });
  Tensor low = ones({2}, kFloat16).requires_grad_();
  optim::SGD opt({low}, {.lr = 1});
  low.sum().backward();
  GradScaler another;
  expect("gradients of f16", [&] { another.step(opt); });
}

}  // namespace
}  // namespace ingot::amp
