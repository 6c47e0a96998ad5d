// Muon beside PyTorch's numbers, which are made in bf16 as these are.
#include <gtest/gtest.h>

#include "eager/autograd/autograd.h"
#include "eager/ops/functions.h"
#include "eager/optim/optimizers.h"
#include "eager/support.h"

namespace ingot::optim {
namespace {

Tensor start(const IntList& sizes) {
  return (((arange(12) * 5).remainder(7)).to(kFloat32).view(sizes) / 4 - 0.7).requires_grad_();
}
Tensor after_three_steps(const MuonOptions& options) {
  const Tensor p = start({4, 3});
  Muon opt({p}, options);
  for (int step = 0; step < 3; ++step) {
    opt.zero_grad();
    (p * p * (arange(12).view({4, 3}).remainder(5) + 1)).sum().backward();
    opt.step();
  }
  return p.detach();
}

// A step moves by 0.02 times a number of eight bits.
TEST(Muon, IsPyTorchs) {
  constexpr double kStep = 0.02 * 0x1p-7;
  EXPECT_TRUE(allclose(after_three_steps({.lr = 0.02}),
                       tensor({-0.677441061f, 0.537095785f, 0.046999775f, -0.420565665f, 0.74875325f, 0.28420338f,
                               -0.168955982f, -0.665332377f, 0.510063946f, 0.022015555f, -0.455498397f, 0.75217396f})
                           .view({4, 3}),
                       0, 3 * kStep));
  EXPECT_TRUE(allclose(after_three_steps({.lr = 0.02, .weight_decay = 0, .nesterov = false, .match_rms_adamw = true}),
                       tensor({-0.693593681f, 0.54627347f, 0.048896499f, -0.440265626f, 0.782562494f, 0.29489845f,
                               -0.189703122f, -0.688906252f, 0.536249995f, 0.04071876f, -0.452613235f, 0.78481251f})
                           .view({4, 3}),
                       0, 3 * kStep));
}

TEST(Muon, MakesSingularValuesAboutEqual) {
  for (const IntList& sizes : {IntList{3, 4}, IntList{4, 3}}) {
    const Tensor p = start(sizes), before = p.detach().clone();
    Muon opt({p}, {.lr = 1, .weight_decay = 0});
    (p * tensor({1., 2., 3.}, kFloat32).view({sizes.items()[0] == 3 ? 3 : 1, -1})).square().sum().backward();
    opt.step();
    const Tensor step = p.detach() - before, wide = step.size(0) > step.size(1) ? step.t() : step;
    const Tensor gram =
        wide.matmul(wide.t()) / std::max(1.0, static_cast<double>(step.size(0)) / static_cast<double>(step.size(1)));
    EXPECT_TRUE(allclose(gram.diagonal(), ones({3}), 0, 0.6)) << gram;
  }
}

TEST(Muon, SavesAndLoadsItsState) {
  const Tensor p = start({4, 3}), q = start({4, 3});
  Muon a({p}, {.lr = 0.1}), b({q}, {.lr = 0.3, .ns_steps = 2});
  const auto step = [](Muon& opt, const Tensor& of) {
    opt.zero_grad();
    of.square().sum().backward();
    opt.step();
  };
  step(a, p);
  b.load_state_dict(a.state_dict());
  EXPECT_EQ(b.options().ns_steps, 5);
  {
    const NoGradGuard no_grad;
    q.copy_(p);
  }
  step(a, p), step(b, q);
  EXPECT_TRUE(equal(p, q));
}

TEST(Muon, Errors) {
  const auto says = [](const std::function<void()>& f, const char* text) {
    const std::string message = test::message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_NE(message.find("muon_test.cpp"), std::string::npos) << message;
  };
  says([] { Muon({zeros({3}).requires_grad_()}); }, "Muon: params: got 1 dims, expected 2");
  says([] { Muon({start({4, 3})}, {.momentum = -1}); }, "Muon: momentum: got -1");
  says([] { Muon({start({4, 3})}, {.ns_steps = 100}); }, "Muon: ns_steps: got 100, expected 0 to 99");
  const Tensor none = zeros({0, 3}).requires_grad_();
  Muon opt({none});
  none.sum().backward();
  EXPECT_NO_THROW(opt.step());
}

}  // namespace
}  // namespace ingot::optim
