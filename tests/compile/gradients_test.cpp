// Gradients and compiled functions: whole steps, a function compiled alone, what is saved, threads.
#include <deque>
#include <fstream>
#include <functional>
#include <thread>

#include "small_net.h"

namespace ingot {
namespace {

using namespace test;
namespace F = nn::functional;

/// Trains two copies of a network, one eager and one through `wrap`, and compares all losses and parameters.
template <class Optimizer, class Wrap>
void train_both(int steps, Wrap wrap, int64_t* programs = nullptr) {
  Net eager = make_net(), compiled = make_net();
  Optimizer eager_opt(eager->parameters()), compiled_opt(compiled->parameters());
  auto step_of = [](Net net, Optimizer& opt) {
    return [net, &opt](const Tensor& x, const Tensor& y) {
      Tensor loss = F::mse_loss(net(x), y);
      loss.backward();
      opt.step();
      opt.zero_grad();
      return loss.detach();
    };
  };
  auto one = step_of(eager, eager_opt);
  auto other = wrap(step_of(compiled, compiled_opt));
  for (int s = 0; s < steps; ++s) {
    const int64_t n = s % 5 == 4 ? 3 : 4;
    const Tensor x = batch(n, s), y = batch(n, s + 50);
    const double rate = 0.1 / (s + 1);
    eager_opt.set_lr(rate), compiled_opt.set_lr(rate);
    EXPECT_TRUE(same_bits(one(x, y), other(x, y))) << "step " << s;
  }
  expect_same(eager, compiled);
  if (programs) *programs = static_cast<int64_t>(other.explain().programs.size());
}

TEST(WholeStep, IsOneProgramAndHasEagersBits) {
  int64_t programs = 0;
  train_both<optim::AdamW>(
      20, [](auto step) { return compile(step); }, &programs);
  // The first step makes the state; a batch of another size is a second, then sizes are symbols.
  EXPECT_LE(programs, 4);
}

TEST(WholeStep, OfOtherOptimizers) {
  train_both<optim::SGD>(8, [](auto step) { return compile(step); });
  train_both<optim::RMSprop>(8, [](auto step) { return compile(step); });
}

TEST(WholeStep, HasNoBreaksNorFallbacks) {
  Net net = make_net();
  optim::AdamW opt(net->parameters(), {.lr = 1e-2});
  auto step = compile([&](const Tensor& x) {
    Tensor loss = net(x).square().mean();
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    opt.step();
    opt.zero_grad();
    return loss.detach();
  });
  for (int s = 0; s < 6; ++s) step(batch(4, s));
  EXPECT_EQ(step.stats().graph_breaks, 0);
  EXPECT_EQ(step.stats().fallbacks, 0);
  EXPECT_LE(step.explain().programs.size(), 2u);
  for (const Tensor& p : net->parameters()) EXPECT_FALSE(p.grad().defined());
}

TEST(WholeStep, SaysWhatIsSavedForItsBackwardPass) {
  Net net = make_net();
  auto step = compile([&](const Tensor& x) {
    Tensor loss = net(x).square().mean();
    loss.backward();
    for (const Tensor& p : net->parameters()) p.set_grad({});
    return loss.detach();
  });
  step(batch(4, 0));
  auto inference = compile([&](const Tensor& x) {
    NoGradGuard guard;
    return net(x);
  });
  inference(batch(4, 0));
  const auto forward_only = inference.explain();
  EXPECT_TRUE(forward_only.programs[0].saved.empty() && forward_only.programs[0].recomputed.empty());

  Net kept = make_net();
  auto whole = compile([&](const Tensor& x) { kept(x).square().mean().backward(); });
  whole(batch(4, 0));
  const auto explanation = whole.explain();
  const auto& program = explanation.programs[0];
  ASSERT_FALSE(program.saved.empty());
  int64_t bytes = 0;
  for (const auto& saved : program.saved) bytes += saved.bytes;
  EXPECT_EQ(program.bytes_saved_for_backward(), bytes);
  EXPECT_TRUE(std::any_of(program.traced_ops.begin(), program.traced_ops.end(),
                          [](const auto& op) { return op.op == "backward of linear" && op.module == "second"; }));
  EXPECT_NE(explanation.str().find("are saved for it"), std::string::npos);
}

// What an optimizer makes of its state is fused with what reads it, once: nothing that the backward pass computes
// again.
TEST(WholeStep, AnOptimizersMomentsAreNotComputedAgain) {
  Net net = make_net();
  optim::AdamW opt(net->parameters());
  int line = 0;
  auto step = compile([&](const Tensor& x) {
    net(x).square().mean().backward();
    line = __LINE__ + 1;
    opt.step();
    opt.zero_grad();
  });
  for (int call = 0; call < 3; ++call) step(batch(4, call));
  const auto explanation = step.explain();
  const auto& program = explanation.programs.back();
  const std::string place = "gradients_test.cpp:" + std::to_string(line);
  EXPECT_TRUE(std::ranges::any_of(program.decisions, [&](const auto& d) { return d.location == place; }));
  EXPECT_FALSE(std::ranges::any_of(program.recomputed, [&](const auto& d) { return d.location == place; }));
}

/// A block whose backward pass can compute much again.
struct BlockImpl : nn::Module {
  nn::LayerNorm norm{64};
  nn::Linear up{64, 256}, down{256, 64};
  Tensor table = randn({70}), offset = zeros({256});
  Tensor forward(const Tensor& x) {
    const Tensor scale = table.narrow(0, 3, 64);
    const Tensor inner = up(norm(x)) + offset;
    const Tensor kept = F::dropout(gelu(inner), 0.25);
    {
      NoGradGuard guard;
      offset.add_(0.5);  // what is computed again reads what stood here before
    }
    return x + down(kept) * scale;
  }
};
INGOT_MODULE(Block, norm, up, down);

TEST(WholeStep, WhatIsComputedAgainHasEagersBits) {
  auto make = [] {
    manual_seed(3);
    return Block();
  };
  auto step_of = [](Block block) {
    return [block](Tensor x) {
      const Tensor loss = block(x).square().mean();
      loss.backward();
      x.mul_(-0.5);
      std::vector<Tensor> results{loss.detach()};
      for (const Tensor& p : block->parameters()) results.push_back(p.grad());
      block->zero_grad();
      return results;
    };
  };
  // Values of 64 KiB and more are computed again, by the size that a program is compiled with.
  const std::vector<std::vector<int64_t>> orders = {{300, 1, 16, 300, 63, 64, 65}, {1, 300, 16, 64, 1}, {16, 17, 300}};
  test::on_every_target({1, 2}, [&] {
    size_t again = 0, by_fusion = 0;
    int64_t cheap = 0;
    for (const std::vector<int64_t>& sizes : orders)
      for (const std::vector<std::string>& disabled : {std::vector<std::string>{}, {"recompute"}}) {
        Block eager = make(), compiled = make();
        auto one = step_of(eager);
        auto other = compile(step_of(compiled), {.disable = disabled});
        for (size_t s = 0; s < sizes.size(); ++s) {
          manual_seed(s);
          const Tensor x = randn({sizes[s], 64}), y = x.clone();
          const std::vector<Tensor> expected = one(x);
          manual_seed(s);
          randn({sizes[s], 64});  // as for x
          const std::vector<Tensor> got = other(y);
          ASSERT_EQ(got.size(), expected.size());
          for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << s << ", " << i;
          EXPECT_TRUE(same_bits(x, y));
          EXPECT_TRUE(same_bits(eager->offset, compiled->offset));
        }
        EXPECT_EQ(other.stats().fallbacks, 0);
        for (const auto& program : other.explain().programs) {
          (disabled.empty() ? again : by_fusion) += program.recomputed.size();
          cheap += std::ranges::count(program.recomputed, "cheap to compute from what is kept anyway",
                                      &Explanation::Decision::reason);
        }
      }
    EXPECT_GT(again, by_fusion);
    EXPECT_GT(cheap, 0);
  });
}

// What the tape keeps is the same with and without elements: sizes that are 0 in turns, each at its place, are one
// path.
TEST(WholeStep, SizesThatAreZeroInTurns) {
  const Tensor vector = randn({3}).requires_grad_();
  struct Case {
    std::function<Tensor(const Tensor&, int64_t)> function;
    std::vector<std::pair<IntList, int64_t>> calls;
  };
  const Case cases[] = {
      {[](const Tensor& x, int64_t n) { return embedding(x, arange(n) * 0); }, {{{1, 0}, 2}, {{1, 7}, 0}, {{1, 5}, 3}}},
      {[&](const Tensor& x, int64_t) { return x.matmul(vector); }, {{{2, 0, 3}, 0}, {{1, 0, 3}, 0}, {{0, 1, 3}, 0}}},
      {[](const Tensor& x, int64_t n) { return F::layer_norm(x.narrow(-1, 0, n), {n}); },
       {{{5, 4}, 2}, {{0, 4}, 2}, {{1, 4}, 0}, {{3, 4}, 3}}},
  };
  for (const Case& c : cases) {
    auto step = [&](const Tensor& x, int64_t n) {
      const Tensor leaf = x.detach().requires_grad_();
      const Tensor result = c.function(leaf, n);
      const Tensor gradient = autograd::grad({result}, {leaf}, {ones_like(result) * 0.5})[0];
      return std::vector{result.detach(), gradient};
    };
    auto fast = compile(step, {.recompile_limit = 20});
    for (const auto& [sizes, n] : c.calls) {
      const Tensor x = randn(sizes);
      const std::vector<Tensor> expected = step(x, n), got = fast(x, n);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << n << ", " << i;
    }
    EXPECT_EQ(fast.stats().fallbacks, 0) << fast.explain().str();
  }
}

TEST(WholeStep, GradientsThatAreKeptAreResults) {
  Net eager = make_net(), compiled = make_net();
  auto backward = [](Net net) { return [net](const Tensor& x) { net(x).square().mean().backward(); }; };
  auto one = backward(eager);
  auto other = compile(backward(compiled));
  for (int s = 0; s < 4; ++s) one(batch(4, s)), other(batch(4, s));
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(same_bits(eager->parameters()[i].grad(), compiled->parameters()[i].grad())) << i;
}

TEST(CompiledAlone, ItsTapeGoesOnOutside) {
  Net eager = make_net(), compiled = make_net();
  auto fast = compile(compiled);
  optim::SGD eager_opt(eager->parameters(), {.lr = 0.1}), compiled_opt(compiled->parameters(), {.lr = 0.1});
  for (int s = 0; s < 8; ++s) {
    const Tensor x = batch(s % 3 + 2, s);
    Tensor a = eager(x).square().mean(), b = fast(x).square().mean();
    EXPECT_TRUE(same_bits(a.detach(), b.detach()));
    a.backward(), b.backward();
    eager_opt.step(), compiled_opt.step();
    eager_opt.zero_grad(), compiled_opt.zero_grad();
  }
  expect_same(eager, compiled);
}

// A weight that is used before a compiled function, twice inside and after it: contributions are added in one order.
TEST(CompiledAlone, TiedWeightsBeforeInsideAndAfter) {
  Tensor eager = batch(8, 1).requires_grad_(), compiled = eager.detach().clone().requires_grad_();
  auto inside = [](const Tensor& x, const Tensor& w) { return tanh(matmul(tanh(matmul(x, w)), w)); };
  auto fast = compile(inside);
  for (int s = 0; s < 4; ++s) {
    const Tensor x = batch(5, s);
    auto loss = [&](const Tensor& w, auto f) { return matmul(f(matmul(x, w), w), w).exp().sum(); };
    loss(eager, inside).backward();
    loss(compiled, fast).backward();
    EXPECT_TRUE(same_bits(eager.grad(), compiled.grad())) << "call " << s;
  }
}

TEST(CompiledAlone, GradientsOfItsArguments) {
  auto fast = compile([](const Tensor& x) { return x.softmax(-1).cumsum(1); });
  for (int s = 0; s < 4; ++s) {
    Tensor a = batch(4, s).requires_grad_(), b = a.detach().clone().requires_grad_();
    const Tensor g = batch(4, s + 9);
    a.softmax(-1).cumsum(1).backward(g);
    fast(b).backward(g);
    EXPECT_TRUE(same_bits(a.grad(), b.grad()));
  }
}

TEST(CompiledAlone, OfHigherOrder) {
  auto f = [](const Tensor& x) { return (x * x * x).tanh(); };
  auto fast = compile(f);
  auto second = [](auto g, const Tensor& from) {
    Tensor x = from.detach().clone().requires_grad_();
    Tensor first = autograd::grad({g(x).sum()}, {x}, {}, {}, true)[0];
    return autograd::grad({first.sum()}, {x})[0];
  };
  for (int s = 0; s < 3; ++s) EXPECT_TRUE(same_bits(second(f, batch(4, s)), second(fast, batch(4, s))));
}

TEST(FrozenGradients, AreRefused) {
  Net net = make_net();
  auto fast = compile(net, {.mode = CompileMode::frozen});
  const Tensor x = batch(4, 0);
  const std::string error = error_of([&] { fast(x); });
  EXPECT_NE(error.find("NoGradGuard"), std::string::npos) << error;
  Tensor expected;
  {
    NoGradGuard guard;
    expected = net(x);
    for (int s = 0; s < 4; ++s) EXPECT_TRUE(same_bits(fast(x), expected));
    EXPECT_GT(fast.stats().frozen_calls, 0);
  }
  // Known, but now with a tape to write.
  EXPECT_NE(error_of([&] { fast(x); }).find("NoGradGuard"), std::string::npos);
  Tensor w = ones({8});
  auto product = compile([&](const Tensor& a) { return a * w; }, {.mode = CompileMode::frozen});
  for (int s = 0; s < 4; ++s) product(x);
  EXPECT_GT(product.stats().frozen_calls, 0);
  w.requires_grad_();
  EXPECT_NE(error_of([&] { product(x); }).find("requires grad"), std::string::npos);
  w.requires_grad_(false);
  product(x);
  EXPECT_NE(error_of([&] { product(batch(4, 0).requires_grad_()); }).find("requires grad"), std::string::npos);
}

/// Trains two models by eager one after the other, and copies of them at once on two threads. `trainer(nets, wrap)`
/// gives what is called with a model's number and a batch; `wrap` compiles what it is given, or not.
void train_on_two_threads(auto trainer) {
  constexpr int64_t kModels = 2, kSteps = 12;
  auto made = [] {
    std::vector<Net> nets;
    for (int64_t m = 0; m < kModels; ++m) {
      manual_seed(static_cast<uint64_t>(m));
      nets.emplace_back();
    }
    return nets;
  };
  std::vector<std::vector<Tensor>> batches(kModels), expected(kModels), losses(kModels);
  for (int64_t m = 0; m < kModels; ++m)
    for (int64_t s = 0; s < kSteps; ++s) batches[m].push_back(batch(s % 4 == 3 ? 6 : 4, kSteps * m + s));
  std::vector<Net> eager = made(), compiled = made();
  auto one = trainer(eager, [](auto step) { return step; });
  for (int64_t m = 0; m < kModels; ++m)
    for (const Tensor& x : batches[m]) expected[m].push_back(one(m, x));

  std::function<Statistics()> statistics;
  auto other = trainer(compiled, [&](auto step) {
    auto fast = compile(step);
    statistics = [fast] { return fast.stats(); };
    return fast;
  });
  std::vector<std::thread> threads;
  for (int64_t m = 0; m < kModels; ++m)
    threads.emplace_back([&, m] {
      for (const Tensor& x : batches[m]) losses[m].push_back(other(m, x));
    });
  for (std::thread& t : threads) t.join();
  for (int64_t m = 0; m < kModels; ++m) {
    for (int64_t s = 0; s < kSteps; ++s)
      EXPECT_TRUE(same_bits(losses[m][s], expected[m][s])) << "model " << m << ", step " << s;
    expect_same(compiled[m], eager[m]);
  }
  EXPECT_EQ(statistics().calls, kModels * kSteps);
  EXPECT_EQ(statistics().graph_breaks, 0);
  EXPECT_EQ(statistics().fallbacks, 0);
}

TEST(Threads, TrainTheParametersThatOneFunctionIsGiven) {
  train_on_two_threads([](const std::vector<Net>& nets, auto wrap) {
    auto step = wrap([](const std::vector<Tensor>& p, const Tensor& x) {
      Tensor loss = (F::linear(gelu(F::linear(x, p[0], p[1])), p[2], p[3]) + x).square().mean();
      loss.backward();
      NoGradGuard guard;
      for (const Tensor& t : p) {
        t.sub_(t.grad(), 0.1);
        t.set_grad({});
      }
      return loss.detach();
    });
    return [&nets, step](int64_t which, const Tensor& x) { return step(nets[which]->parameters(), x); };
  });
}

TEST(Threads, TrainTheModelThatOneFunctionIsTold) {
  train_on_two_threads([](const std::vector<Net>& nets, auto wrap) {
    auto optimizers = std::make_shared<std::deque<optim::AdamW>>();
    for (const Net& net : nets) optimizers->emplace_back(net->parameters());
    return wrap([&nets, optimizers](int64_t which, const Tensor& x) {
      Tensor loss = nets[which](x).square().mean();
      loss.backward();
      (*optimizers)[which].step();
      (*optimizers)[which].zero_grad();
      return loss.detach();
    });
  });
}

}  // namespace
}  // namespace ingot
