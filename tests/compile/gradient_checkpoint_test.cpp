// checkpoint() in compiled code: a whole step, a function compiled alone, one that is called inside of a region.
#include "eager/autograd/checkpoint.h"

#include "small_net.h"

namespace ingot {
namespace {

using namespace test;
using autograd::checkpoint;
namespace F = nn::functional;

struct DeepImpl : nn::Module {
  std::vector<Net> blocks{make_net(), make_net(), make_net()};
  bool checkpoints = false;
  Tensor forward(const Tensor& x) const {
    Tensor y = x;
    for (const Net& block : blocks) {
      auto run = [block](const Tensor& t) { return F::dropout(block(t), 0.25, true) * 1.5; };
      y = checkpoints ? checkpoint(run, y) : run(y);
    }
    return y;
  }
};
INGOT_MODULE(Deep, blocks);

Deep make_deep(bool checkpoints) {
  Deep net;
  net->checkpoints = checkpoints;
  return net;
}

auto step_of(const Deep& net, optim::Optimizer& opt) {
  return [net, &opt](const Tensor& x, const Tensor& y) {
    Tensor loss = F::mse_loss(net(x), y);
    loss.backward();
    opt.step();
    opt.zero_grad();
    return loss.detach();
  };
}

void expect_same_parameters(const Deep& a, const Deep& b) {
  for (size_t i = 0; i < a->parameters().size(); ++i)
    EXPECT_TRUE(same_bits(a->parameters()[i].detach(), b->parameters()[i].detach())) << i;
}

TEST(CompiledCheckpoint, OfAWholeStepHasEagersBits) {
  on_every_target({1, 2}, [] {
    const Deep plain = make_deep(false), eager = make_deep(true), compiled = make_deep(true);
    optim::AdamW plain_opt(plain->parameters(), {.lr = 1e-2}), eager_opt(eager->parameters(), {.lr = 1e-2}),
        compiled_opt(compiled->parameters(), {.lr = 1e-2});
    auto one = step_of(plain, plain_opt), two = step_of(eager, eager_opt);
    auto fast = compile(step_of(compiled, compiled_opt));
    for (int s = 0; s < 6; ++s) {
      const Tensor x = batch(s % 3 + 2, s), y = batch(s % 3 + 2, s + 50);
      manual_seed(static_cast<uint64_t>(s));
      const Tensor expected = one(x, y);
      manual_seed(static_cast<uint64_t>(s));
      EXPECT_TRUE(same_bits(two(x, y), expected)) << s;
      manual_seed(static_cast<uint64_t>(s));
      EXPECT_TRUE(same_bits(fast(x, y), expected)) << s;
      EXPECT_TRUE(rand({1}).item<float>() == [&] {
        manual_seed(static_cast<uint64_t>(s));
        F::mse_loss(plain(x), y);
        return rand({1}).item<float>();
      }());
    }
    expect_same_parameters(eager, plain);
    expect_same_parameters(compiled, plain);
    EXPECT_EQ(fast.stats().fallbacks, 0);
    EXPECT_EQ(fast.stats().graph_breaks, 0);
    EXPECT_LE(fast.stats().compilations, 3);
  });
}

// What it computes twice is one value in the program, so the compiler chooses what is stored.
TEST(CompiledCheckpoint, OfAWholeStepIsTheProgramWithoutIt) {
  const Tensor x = batch(4, 1);
  const Net net = make_net();
  auto program_of = [&](bool on) {
    auto run = [net](const Tensor& t) { return F::dropout((net(t) * 0.5).tanh(), 0.25, true); };
    auto fast = compile([&](const Tensor& t) {
      const Tensor y = on ? checkpoint(run, t) : run(t);
      return autograd::grad({y.sum()}, net->parameters());
    });
    fast(x);
    return fast.explain().programs.at(0).steps.size();
  };
  EXPECT_EQ(program_of(true), program_of(false));
}

TEST(CompiledCheckpoint, InAFunctionCompiledAlone) {
  const Deep plain = make_deep(false), compiled = make_deep(true);
  auto fast = compile(compiled);
  for (int s = 0; s < 6; ++s) {
    const Tensor x = batch(s % 3 + 2, s);
    manual_seed(static_cast<uint64_t>(s));
    plain(x).square().mean().backward();
    const Tensor next = rand({2});
    manual_seed(static_cast<uint64_t>(s));
    fast(x).square().mean().backward();
    EXPECT_TRUE(same_bits(rand({2}), next));
    for (size_t i = 0; i < plain->parameters().size(); ++i)
      EXPECT_TRUE(same_bits(compiled->parameters()[i].grad(), plain->parameters()[i].grad())) << s << ": " << i;
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(CompiledCheckpoint, OfACompiledFunction) {
  const Net plain = make_net(), compiled = make_net();
  auto fast = compile(compiled);
  for (int s = 0; s < 5; ++s) {
    const Tensor x = batch(s % 3 + 2, s);
    plain(plain(x)).square().mean().backward();
    checkpoint([&](const Tensor& t) { return fast(fast(t)); }, x).square().mean().backward();
    expect_same(compiled, plain);
  }
}

TEST(CompiledCheckpoint, WithABreakInside) {
  const Net plain = make_net(), compiled = make_net();
  auto run = [](const Net& net) {
    return [net](const Tensor& t) {
      const Tensor y = net(t);
      return y * (y.sum().item<float>() > 0 ? 2 : 3);
    };
  };
  auto whole = compile([&](const Tensor& x) {
    checkpoint(run(compiled), x).square().mean().backward();
    return x.sum();
  });
  auto alone = compile([&](const Tensor& x) { return checkpoint(run(compiled), x).square().mean(); });
  for (int s = 0; s < 4; ++s) {
    const Tensor x = batch(3, s);
    run(plain)(x).square().mean().backward();
    whole(x);
    expect_same(compiled, plain);
    run(plain)(x).square().mean().backward();
    alone(x).backward();
    expect_same(compiled, plain);
  }
}

/// Ops that are called otherwise where they are recorded (empty), and writes to views.
Tensor written(const Tensor& t) {
  Tensor y = empty_like(t), z = zeros({t.size(0), 8});
  y.copy_(t).narrow(0, 0, 1).mul_(3).add_(t.narrow(0, 1, 1));
  y.sin_().add_(t.exp(), 0.5);
  z.add_(y).select(1, 0).mul_(2);
  return z.masked_scatter(t > 0, y) * t.size(0);
}

// The first run recorded or not, the second recorded or not.
TEST(CompiledCheckpoint, RecordedOnceOnly) {
  const Net plain = make_net();
  auto region = [](const Net& net) {
    return [net](const Tensor& t) { return F::dropout(written(net(t)), 0.5, true); };
  };
  auto loss_of = [&](const Net& net, bool on, const Tensor& x) {
    const Tensor first = net(x);
    return (on ? checkpoint(region(net), first) : region(net)(first)).square().mean();
  };
  auto alone = compile([&](const Tensor& x) { return loss_of(plain, true, x); });
  auto inner = compile([&](const Tensor& t) { return written(plain(t)); });
  auto gradients = [](const Tensor& loss, const std::vector<Tensor>& p) { return autograd::grad({loss}, p); };
  auto back = compile(gradients);
  for (int s = 0; s < 5; ++s) {
    const Tensor x = batch(s % 3 + 2, s);
    auto expect = [&](const std::function<Tensor()>& loss, bool recorded, bool anomaly, const Tensor& expected_loss) {
      manual_seed(static_cast<uint64_t>(s));
      const Tensor got = loss();
      const std::vector<Tensor> parameters = plain->parameters();
      const std::vector<Tensor> expected = gradients(expected_loss, parameters);
      std::optional<autograd::DetectAnomalyGuard> guard;
      if (anomaly) guard.emplace();
      const std::vector<Tensor> result = recorded ? back(got, parameters) : gradients(got, parameters);
      for (size_t i = 0; i < result.size(); ++i) EXPECT_TRUE(same_bits(result[i], expected[i])) << s << ": " << i;
    };
    auto eager_loss = [&] {
      manual_seed(static_cast<uint64_t>(s));
      return loss_of(plain, false, x);
    };
    expect([&] { return loss_of(plain, true, x); }, true, false, eager_loss());
    expect([&] { return alone(x); }, false, true, eager_loss());
    expect([&] { return alone(x); }, true, false, eager_loss());
    auto mixed = [&](const Tensor& t) { return written(inner(written(t))); };
    expect([&] { return checkpoint(mixed, plain(x)).sum(); }, false, false,
           written(written(plain(written(plain(x))))).sum());
  }
}

TEST(CompiledCheckpoint, RefusesAnInputThatWasWrittenTo) {
  const Net net = make_net();
  auto body = [net](const Tensor& x) {
    const Tensor y = x * 2, z = checkpoint(net, y);
    y.add_(1);
    z.sum().backward();
    return x.sum();
  };
  auto fast = compile(body);
  const std::string expected = error_of([&] { body(batch(2, 1)); });
  EXPECT_NE(expected.find("checkpoint: inputs: got number 0"), std::string::npos) << expected;
  for (int s = 0; s < 3; ++s) EXPECT_EQ(error_of([&] { fast(batch(2, 1)); }), expected);
}

}  // namespace
}  // namespace ingot
