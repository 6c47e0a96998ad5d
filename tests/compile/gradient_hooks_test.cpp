// Hooks, retained gradients and anomaly mode where a step is compiled: whole, and the model alone.
#include "small_net.h"

namespace ingot {
namespace {

using namespace test;
namespace F = nn::functional;

/// The same twice: `make(net)` gives a step, eager with one network and with another as `wrap` makes it.
enum class Compiled { whole, alone };
template <class Step>
void run_both(Step step, void (*prepare)(const Net&) = nullptr) {
  for (const Compiled how : {Compiled::whole, Compiled::alone}) {
    SCOPED_TRACE(how == Compiled::whole ? "the whole step" : "the model alone");
    Net eager = make_net(), compiled = make_net();
    if (prepare) prepare(eager), prepare(compiled);
    auto model = compile(compiled);
    std::function<Tensor(const Tensor&)> forward = [&](const Tensor& x) { return compiled(x); };
    if (how == Compiled::alone) forward = [&](const Tensor& x) { return model(x); };
    std::function<std::vector<Tensor>(const Tensor&)> other = [&](const Tensor& x) {
      return step(forward, compiled, x);
    };
    auto whole = compile(other);
    for (int s = 0; s < 5; ++s) {
      const Tensor x = batch(s % 3 + 2, s);
      const std::vector<Tensor> expected = step([&](const Tensor& t) { return eager(t); }, eager, x);
      const std::vector<Tensor> got = how == Compiled::whole ? whole(x) : other(x);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << "step " << s << ", " << i;
      expect_same(eager, compiled);
    }
    EXPECT_EQ((how == Compiled::whole ? whole.stats() : model.stats()).fallbacks, 0);
  }
}
using Forward = std::function<Tensor(const Tensor&)>;

void descend(const Net& net) {
  const NoGradGuard no_grad;
  for (const Tensor& p : net->parameters()) {
    p.sub_(p.grad(), 0.1);
    p.set_grad({});
  }
}

TEST(CompiledHooks, OfParametersReplaceGradients) {
  static int calls = 0;
  calls = 0;
  run_both(
      [](const Forward& forward, const Net& net, const Tensor& x) {
        Tensor loss = forward(x).square().mean();
        loss.backward();
        descend(net);
        return std::vector{loss.detach()};
      },
      [](const Net& net) {
        for (const Tensor& p : net->parameters())
          p.register_hook([](const Tensor& g) {
            ++calls;
            return g.clamp(-0.01, 0.01) * 3;
          });
      });
  EXPECT_EQ(calls, 2 * 2 * 5 * 4) << "once a parameter and step, in checked mode as in eager";
}

TEST(CompiledHooks, OfTensorsInTheMiddle) {
  run_both([](const Forward& forward, const Net& net, const Tensor& from) {
    const Tensor x = from.detach().requires_grad_();
    Tensor y = forward(x), seen;
    y.register_hook([&](const Tensor& g) { return seen = g * g.abs().sum(); });
    y.square().mean().backward();
    descend(net);
    return std::vector{seen, x.grad()};
  });
}

TEST(CompiledHooks, OfATensorInsideOfTheModel) {
  auto make = [](auto& calls) {
    return [&calls](const Tensor& x, const Tensor& w) {
      Tensor h = x.matmul(w).tanh();
      h.register_hook([&calls](const Tensor& g) {
        ++calls;
        return g * 2;
      });
      return h.matmul(w);
    };
  };
  int eager_calls = 0, compiled_calls = 0;
  auto eager = make(eager_calls), inner = make(compiled_calls);
  auto alone = compile(inner);
  for (int s = 0; s < 4; ++s) {
    const Tensor x = batch(3, s), a = batch(8, 40).requires_grad_(), b = a.detach().clone().requires_grad_();
    eager(x, a).sum().backward();
    alone(x, b).sum().backward();
    EXPECT_TRUE(same_bits(a.grad(), b.grad())) << s;
  }
  EXPECT_EQ(eager_calls, 4);
  EXPECT_EQ(compiled_calls, 4);
}

// The update of each parameter as soon as its gradient is there.
TEST(CompiledHooks, AfterAccumulationUpdateParameters) {
  run_both(
      [](const Forward& forward, const Net&, const Tensor& x) {
        Tensor loss = forward(x).square().mean();
        loss.backward();
        return std::vector{loss.detach()};
      },
      [](const Net& net) {
        for (const Tensor& p : net->parameters())
          p.register_post_accumulate_grad_hook([](const Tensor& t) {
            const NoGradGuard no_grad;
            t.sub_(t.grad(), 0.05);
            t.set_grad({});
          });
      });
}

TEST(RetainedGradients, OfTensorsInTheMiddle) {
  run_both([](const Forward& forward, const Net& net, const Tensor& from) {
    const Tensor x = from.detach().requires_grad_();
    Tensor doubled = x * 2, y = forward(doubled);
    doubled.retain_grad(), y.retain_grad();
    y.square().mean().backward();
    descend(net);
    return std::vector{doubled.grad(), y.grad()};
  });
}

TEST(RetainedGradients, OfTensorsThatAreWritten) {
  run_both([](const Forward& forward, const Net& net, const Tensor& from) {
    const Tensor x = from.detach().requires_grad_();
    Tensor doubled = x * 2;
    doubled.retain_grad();
    doubled.mul_(3), doubled[0].mul_(x[0]);
    Tensor y = forward(doubled);
    y.square().mean().backward();
    descend(net);
    return std::vector{doubled.grad(), y.detach()};
  });
}

TEST(Anomalies, AreLookedForInCompiledSteps) {
  run_both([](const Forward& forward, const Net& net, const Tensor& x) {
    const autograd::DetectAnomalyGuard guard;
    Tensor loss = forward(x).square().mean();
    loss.backward();
    descend(net);
    return std::vector{loss.detach()};
  });
}

TEST(Anomalies, AreSaidInEagersWords) {
  auto inner = [](const Tensor& x, const Tensor& w) { return (x * w).sqrt() * w; };
  auto step = [](const auto& f, const Tensor& x, const Tensor& w) {
    const autograd::DetectAnomalyGuard guard;
    f(x, w).sum().backward();
  };
  auto alone = compile(inner);
  auto whole = compile([&](const Tensor& x, const Tensor& w) { step(inner, x, w); });
  for (int s = 0; s < 3; ++s) {
    const Tensor x = zeros({2, 3}), w = zeros({3}).requires_grad_();
    const std::string eager = error_of([&] { step(inner, x, w); });
    EXPECT_NE(eager.find("SqrtBackward: the gradient of its operand 0 has a NaN (anomaly mode)"), std::string::npos)
        << eager;
    EXPECT_NE(eager.find("; backward() at "), std::string::npos) << eager;
    EXPECT_EQ(error_of([&] { step(alone, x, w); }), eager);
    EXPECT_EQ(error_of([&] { whole(x, w); }), eager);
    EXPECT_FALSE(w.grad().defined());
  }
}

}  // namespace
}  // namespace ingot
