// Compiled training steps of which a call is refused: what followed from it outside of tensors is undone, as eager
// never came to it.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

const std::vector<int64_t> kGood{0, 1, 2, 0, 1, 2}, kBad{0, 1, 2, 0, 1, 3};

struct Trial {
  nn::Linear first{4, 5}, second{5, 3};
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all = first->parameters();
    for (const Tensor& p : second->parameters()) all.push_back(p);
    return all;
  }
  Tensor loss(const Tensor& x, const Tensor& y) const { return F::cross_entropy(second(relu(first(x))), y); }
};

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

/// Calls with these labels, of which some are refused; the parameters afterwards, their gradients and the optimizer's
/// state.
std::vector<Tensor> run(const MakeOptimizer& make, const std::vector<std::vector<int64_t>>& calls, bool compiled,
                        const std::function<void(int call, const Trial&)>& before = {}) {
  manual_seed(5);
  const Trial trial;
  const std::unique_ptr<optim::Optimizer> opt = make(trial.parameters());
  const auto step = [&](const Tensor& x, const Tensor& y) {
    opt->zero_grad();
    const Tensor loss = trial.loss(x, y);
    loss.backward();
    opt->step();
    return loss.detach();
  };
  auto fast = compile(step);
  int refused = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (before) before(static_cast<int>(i), trial);
    const Tensor x = randn({6, 4}), y = tensor(calls[i]);
    try {
      compiled ? fast(x, y) : step(x, y);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_EQ(refused, std::count(calls.begin(), calls.end(), kBad));
  std::vector<Tensor> result = trial.parameters();
  for (const Tensor& p : trial.parameters()) result.push_back(p.grad().defined() ? p.grad() : Tensor());
  for (auto& [name, value] : opt->state_dict()) result.push_back(value);
  return result;
}

void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), expected[i].defined()) << i;
    if (got[i].defined()) {
      EXPECT_TRUE(same_bits(got[i].detach(), expected[i].detach())) << i;
    }
  }
}

TEST(RefusedStep, LeavesOptimizersAsEagerDoes) {
  const auto of = [](auto make) { return MakeOptimizer(make); };
  const MakeOptimizer makers[] = {
      of([](const auto& p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions{.lr = .1, .momentum = .9}); }),
      of([](const auto& p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = .1}); }),
      of([](const auto& p) {
        return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = .1, .amsgrad = true});
      }),
      of([](const auto& p) { return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions{.lr = .1}); }),
      of([](const auto& p) { return std::make_unique<optim::Adagrad>(p); }),
      of([](const auto& p) { return std::make_unique<optim::Lion>(p); }),
      of([](const auto& p) { return std::make_unique<optim::NAdam>(p); }),
      of([](const auto& p) { return std::make_unique<optim::RAdam>(p); }),
      of([](const auto& p) { return std::make_unique<optim::Adamax>(p); }),
      of([](const auto& p) { return std::make_unique<optim::Adadelta>(p); }),
      of([](const auto& p) { return std::make_unique<optim::ASGD>(p, optim::ASGDOptions{.lambd = .1, .t0 = 2}); }),
      of([](const auto& p) { return std::make_unique<optim::Rprop>(p); })};
  for (const MakeOptimizer& make : makers)
    for (const std::vector<std::vector<int64_t>>& calls : {std::vector<std::vector<int64_t>>{kBad, kGood, kGood},
                                                           {kGood, kGood, kBad, kBad, kGood, kBad},
                                                           {kGood, kBad, kGood, kGood, kGood}})
      expect_same(run(make, calls, true), run(make, calls, false));
}

/// State that begins in the middle of a run, in a call that is refused.
TEST(RefusedStep, OfParametersThatJoinLater) {
  const MakeOptimizer make = [](const std::vector<Tensor>& p) {
    return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = .1});
  };
  const auto before = [](int call, const Trial& trial) {
    for (const Tensor& p : trial.first->parameters()) p.requires_grad_(call >= 2);
  };
  const std::vector<std::vector<int64_t>> calls{kGood, kGood, kBad, kGood, kGood};
  expect_same(run(make, calls, true, before), run(make, calls, false, before));
}

/// Gradients that stay, where there were none, and where there were some.
TEST(RefusedStep, LeavesGradientsAsTheyWere) {
  for (bool some : {false, true})
    for (bool graph : {false, true}) {
      std::vector<std::vector<Tensor>> results;
      for (bool compiled : {false, true}) {
        manual_seed(6);
        const Trial trial;
        const auto backward = [&](const Tensor& x, const Tensor& y) {
          const Tensor loss = trial.loss(x, y);
          loss.backward({}, std::nullopt, graph);
          return loss.detach();
        };
        auto fast = compile(backward);
        for (const auto& labels : {kGood, kBad, kGood, kBad}) {
          if (!some)
            for (const Tensor& p : trial.parameters()) p.set_grad(Tensor());
          const Tensor x = randn({6, 4}), y = tensor(labels);
          try {
            compiled ? fast(x, y) : backward(x, y);
          } catch (const Error&) {
            EXPECT_EQ(trial.first->weight.grad().defined(), some);
          }
        }
        results.emplace_back();
        for (const Tensor& p : trial.parameters()) results.back().push_back(p.grad());
      }
      expect_same(results[1], results[0]);
    }
}

/// Of two stretches the first is done, and so is what followed from it.
TEST(RefusedStep, KeepsWhatFollowedFromOpsThatWereDone) {
  std::vector<std::vector<Tensor>> results;
  for (bool compiled : {false, true})
    for (bool cut : {false, true}) {
      manual_seed(7);
      const Trial trial;
      optim::Adam opt(trial.parameters(), {.lr = .1});
      const auto step = [&](const Tensor& x, const Tensor& first, const Tensor& second) {
        for (const Tensor& y : {first, second}) {
          opt.zero_grad();
          const Tensor loss = trial.loss(x, y);
          loss.backward();
          opt.step();
          if (cut) loss.item<float>();
        }
      };
      auto fast = compile(step);
      for (int call = 0; call < 3; ++call) {
        const Tensor x = randn({6, 4}), good = tensor(kGood), second = tensor(call == 1 ? kBad : kGood);
        try {
          compiled ? fast(x, good, second) : step(x, good, second);
        } catch (const Error&) {
          EXPECT_EQ(call, 1);
        }
      }
      results.push_back(trial.parameters());
      for (auto& [name, value] : opt.state_dict()) results.back().push_back(value);
    }
  for (size_t i = 1; i < results.size(); ++i) expect_same(results[i], results[0]);
}

/// An optimizer that ends before the call whose ops are refused.
TEST(RefusedStep, OfAnOptimizerThatIsGone) {
  const Trial trial;
  auto fast = compile([&](const Tensor& x, const Tensor& y) {
    optim::Adam opt(trial.parameters(), {.lr = .1});
    trial.loss(x, y).backward();
    opt.step();
  });
  const Tensor x = randn({6, 4});
  EXPECT_THROW(fast(x, tensor(kBad)), Error);
  fast(x, tensor(kGood));
  EXPECT_THROW(fast(x, tensor(kBad)), Error);
  EXPECT_TRUE(trial.first->weight.grad().defined());
}

TEST(RefusedStep, WithoutMemory) {
  const Trial trial;
  optim::Adam opt(trial.parameters(), {.lr = .1});
  const auto step = [&](const Tensor& x, const Tensor& y, int64_t size) {
    const Tensor loss = trial.loss(x, y) + (x.sum() * ones({size})).cumsum(0).sum() * 0;
    loss.backward();
    opt.step();
    opt.zero_grad();
    return loss.detach();
  };
  auto fast = compile(step);
  const Tensor x = randn({6, 4}), y = tensor(kGood);
  EXPECT_THROW(fast(x, y, int64_t{1} << 46), Error);
  EXPECT_FALSE(trial.first->weight.grad().defined());
  EXPECT_EQ(opt.state_dict().count("state.0.exp_avg"), 0u);
  for (int call = 0; call < 2; ++call) EXPECT_NO_THROW(fast(x, y, 3).item<float>());
}

}  // namespace
}  // namespace ingot
