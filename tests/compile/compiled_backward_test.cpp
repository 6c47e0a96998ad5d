// The way back through functions that are compiled alone: what the engine computes of a call's tape is one program, and
// gradients are eager's in every respect.
#include <thread>

#include "small_net.h"

namespace ingot {
namespace {

using namespace test;
namespace F = nn::functional;

/// Of the way back through a function that went it.
template <class Function>
Explanation backward_of(const Function& f) {
  Explanation e = f.explain();
  EXPECT_EQ(e.backward.size(), 1u);
  return e.backward.empty() ? Explanation() : std::move(e.backward[0]);
}

void clear_gradients(const Net& net) {
  for (const Tensor& p : net->parameters()) p.set_grad({});
}

TEST(CompiledBackward, IsOneProgramForAllBatches) {
  Net eager = make_net(), compiled = make_net();
  auto fast = compile(compiled, {.name = "net"});
  for (int s = 0; s < 12; ++s) {
    const Tensor x = batch(s % 5 + 2, s);
    eager(x).square().mean().backward(), fast(x).square().mean().backward();
    expect_same(eager, compiled);
    if (s % 3 == 2) clear_gradients(eager), clear_gradients(compiled);  // added to what is there, or not
  }
  const Explanation back = backward_of(fast);
  EXPECT_EQ(back.name, "backward of net");
  EXPECT_LE(back.programs.size(), 2u);
  EXPECT_EQ(back.statistics.calls, 12);
  EXPECT_GE(back.statistics.hits, 10);
  EXPECT_EQ(back.statistics.fallbacks, 0);
  EXPECT_EQ(back.statistics.graph_breaks, 0);
  const std::string page = fast.explain().str();
  EXPECT_NE(page.find("backward of net: 12 calls"), std::string::npos) << page;
  EXPECT_NE(page.find("backward of linear"), std::string::npos);
  EXPECT_NE(fast.explain().html().find("<h1>backward of net</h1>"), std::string::npos);
}

// A function that is called several times on the way forward goes back once a call, however many there are.
TEST(CompiledBackward, CallsInARowGoBackOneByOne) {
  Net eager = make_net(), compiled = make_net();
  auto fast = compile(compiled);
  int64_t calls = 0;
  for (int s = 0; s < 8; ++s) {
    const Tensor x = batch(3, s);
    Tensor a = x, b = x;
    for (int i = 0; i <= s % 4; ++i, ++calls) a = eager(a), b = fast(b);
    a.square().mean().backward(), b.square().mean().backward();
    expect_same(eager, compiled);
    clear_gradients(eager), clear_gradients(compiled);
  }
  const Explanation back = backward_of(fast);
  EXPECT_EQ(back.statistics.calls, calls);
  EXPECT_EQ(back.programs.size(), 4u)
      << "with the gradient of the argument or without it, added to others or the first";
  EXPECT_EQ(back.statistics.fallbacks, 0);
}

TEST(CompiledBackward, GradientsOfSomeTensorsOnly) {
  Net eager = make_net(), compiled = make_net();
  auto fast = compile(compiled);
  for (int s = 0; s < 6; ++s) {
    const Tensor x = batch(3, s).requires_grad_();
    Tensor a = eager(x).square().mean(), b = fast(x).square().mean();
    const std::vector<std::vector<size_t>> asked = {{0}, {1, 3}, {2, 0}};
    std::vector<Tensor> of_eager{x}, of_compiled{x};
    for (size_t i : asked[static_cast<size_t>(s) % 3])
      of_eager.push_back(eager->parameters()[i]), of_compiled.push_back(compiled->parameters()[i]);
    const std::vector<Tensor> expected = autograd::grad({a}, of_eager), got = autograd::grad({b}, of_compiled);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << s << ", " << i;
  }
  for (const Tensor& p : compiled->parameters()) EXPECT_FALSE(p.grad().defined());
}

TEST(CompiledBackward, ASecondTimeAndAnError) {
  Net eager = make_net(), compiled = make_net();
  auto fast = compile(compiled);
  for (int s = 0; s < 3; ++s) {
    const Tensor x = batch(3, s);
    Tensor a = eager(x).square().mean(), b = fast(x).square().mean();
    for (const Tensor& loss : {a, b}) autograd::backward({loss}, {}, true), autograd::backward({loss});
    expect_same(eager, compiled);
    const std::string expected = error_of([&] { a.backward(); }), got = error_of([&] { b.backward(); });
    EXPECT_NE(expected.find("expected retain_graph = true"), std::string::npos);
    EXPECT_NE(got.find("expected retain_graph = true"), std::string::npos) << got;
    expect_same(eager, compiled);
  }
}

TEST(CompiledBackward, ASavedTensorThatWasWrittenIsAnError) {
  auto f = [](const Tensor& x, const Tensor& w) { return (x * w).exp().matmul(w); };
  auto fast = compile(f);
  for (int s = 0; s < 4; ++s) {
    Tensor w = batch(8, 1).requires_grad_();
    Tensor x = batch(3, s);
    Tensor loss = fast(x.sum(0), w).sum();
    if (s % 2) {
      const NoGradGuard no_grad;
      w.mul_(2);
      const std::string error = error_of([&] { loss.backward(); });
      EXPECT_NE(error.find("was modified by an in-place operation"), std::string::npos) << error;
      EXPECT_FALSE(w.grad().defined());
    } else {
      Tensor other = w.detach().clone().requires_grad_();
      f(x.sum(0), other).sum().backward();
      loss.backward();
      EXPECT_TRUE(same_bits(w.grad(), other.grad()));
    }
  }
}

// What arrived before an error is there, as in eager, and nothing else is.
TEST(CompiledBackward, AnErrorOfAHookInTheMiddle) {
  for (bool compiled : {false, true}) {
    bool fails = false;
    auto f = [&fails](const Tensor& x, const Tensor& early, const Tensor& late) {
      Tensor h = matmul(x, late).tanh();
      h.register_hook([&fails](const Tensor& g) -> Tensor {
        if (fails) throw Error("no");
        return g;
      });
      return matmul(h, early);
    };
    auto fast = compile(f);
    for (int s = 0; s < 6; ++s) {
      fails = s % 2;
      Tensor early = batch(8, 1).requires_grad_(), late = batch(8, 2).requires_grad_();
      const Tensor x = batch(3, s);
      const Tensor y = compiled ? fast(x, early, late) : f(x, early, late);
      const std::string error = error_of([&] { y.sum().backward(); });
      EXPECT_EQ(error, fails ? "no" : "");
      ASSERT_TRUE(early.grad().defined());
      EXPECT_TRUE(same_bits(early.grad(), matmul(matmul(x, late).tanh().detach().t(), ones({3, 8}))));
      EXPECT_EQ(late.grad().defined(), !fails);
    }
  }
}

// A hook inside sees the gradients of the leaves behind it; one of a leaf sees its own alone.
TEST(CompiledBackward, HooksSeeWhatEagersSee) {
  for (bool compiled : {false, true}) {
    std::vector<std::string> seen;
    Tensor early = batch(8, 1).requires_grad_(), late = batch(8, 2).requires_grad_();
    auto f = [&](const Tensor& x) {
      Tensor h = matmul(x, late).tanh();
      h.register_hook([&](const Tensor& g) {
        seen.push_back("inside " + std::to_string(early.grad().defined()) + std::to_string(late.grad().defined()));
        return g * 2;
      });
      return matmul(h, early);
    };
    early.register_post_accumulate_grad_hook([&](const Tensor&) { seen.push_back("early"); });
    late.register_post_accumulate_grad_hook([&](const Tensor&) { seen.push_back("late"); });
    auto fast = compile(f);
    for (int s = 0; s < 3; ++s) {
      seen.clear();
      early.set_grad({}), late.set_grad({});
      (compiled ? fast(batch(3, s)) : f(batch(3, s))).sum().backward();
      EXPECT_EQ(seen, (std::vector<std::string>{"early", "inside 10", "late"})) << compiled << ", " << s;
    }
  }
}

// A long way back is computed in parts, so that what was saved need not be kept until its end.
TEST(CompiledBackward, ALongWayGoesInParts) {
  constexpr int kLayers = 200;
  constexpr int64_t kElements = 64 << 10;
  std::vector<Tensor> weights;
  for (int i = 0; i < kLayers; ++i) weights.push_back(full({1}, 0.5 + 0.001 * i).requires_grad_());
  auto f = [&](const Tensor& x) {
    Tensor h = x;
    for (const Tensor& w : weights) h = (h * w).tanh();
    return h;
  };
  auto fast = compile(f);
  auto gradients = [&](const auto& g, int64_t n, int64_t* peak) {
    for (const Tensor& w : weights) w.set_grad({});
    manual_seed(3);
    const Tensor loss = g(randn({n})).sum();
    const int64_t before = memory_stats().allocated_bytes;
    reset_peak_memory_stats();
    loss.backward();
    *peak = memory_stats().peak_bytes - before;
    std::vector<Tensor> all;
    for (const Tensor& w : weights) all.push_back(w.grad());
    return all;
  };
  int64_t peak = 0;
  for (int64_t n : {kElements, kElements + 16, kElements, int64_t{1}, kElements + 32}) {
    const std::vector<Tensor> expected = gradients(f, n, &peak), got = gradients(fast, n, &peak);
    for (int i = 0; i < kLayers; ++i) EXPECT_TRUE(same_bits(expected[i], got[i])) << n << ", " << i;
  }
  EXPECT_LT(peak, kLayers * kElements * 4 / 4) << "of two tensors saved a layer";
  const Explanation back = backward_of(fast);
  EXPECT_GE(back.programs.size(), 6u);
  EXPECT_EQ(back.statistics.fallbacks, 0);
  EXPECT_EQ(back.statistics.recompile_limit_hits, 0);
}

TEST(CompiledBackward, OfADerivative) {
  Net eager = make_net(), compiled = make_net();
  auto fast = compile(compiled);
  auto penalty = [](const auto& f, const Tensor& from) {  // a gradient penalty, which is differentiated itself
    Tensor x = from.detach().clone().requires_grad_();
    Tensor g = autograd::grad({f(x).square().sum()}, {x}, {}, {}, true)[0];
    (g.square().sum() + f(x).mean()).backward();
  };
  for (int s = 0; s < 4; ++s) {
    penalty(eager, batch(3, s)), penalty(fast, batch(3, s));
    expect_same(eager, compiled);
  }
  EXPECT_EQ(backward_of(fast).statistics.fallbacks, 0);
}

TEST(CompiledBackward, ATapeOutlivesItsFunction) {
  Net eager = make_net(), compiled = make_net();
  Tensor loss;
  {
    auto fast = compile(compiled);
    loss = fast(batch(3, 0)).square().mean();
  }
  clear_caches();
  loss.backward();
  eager(batch(3, 0)).square().mean().backward();
  expect_same(eager, compiled);
}

TEST(CompiledBackward, BreaksErrorsAndWritesInTheCall) {
  auto f = [](const Tensor& x, const Tensor& w, const Tensor& buffer) {
    Tensor h = matmul(x, w);
    if (h.sum().item<float>() > 0) h = h * 2;  // a value is asked for
    try {
      (void)matmul(h, ones({3, 3}));
    } catch (const Error&) {
      h = h + 1;
    }
    buffer.add_(h.sum(0));
    Tensor v = h.slice(1, 0, 4);
    v.mul_(w.select(0, 0).slice(0, 0, 4));
    return h.tanh();
  };
  auto fast = compile(f);
  for (int s = 0; s < 8; ++s) {
    Tensor a = batch(8, 1).requires_grad_(), b = a.detach().clone().requires_grad_();
    Tensor one = zeros({8}), other = zeros({8});
    const Tensor x = batch(s % 2 + 2, s);
    (f(x, a, one).sum() + one.square().sum()).backward();
    (fast(x, b, other).sum() + other.square().sum()).backward();
    EXPECT_TRUE(same_bits(a.grad(), b.grad())) << s;
    EXPECT_TRUE(same_bits(one.detach(), other.detach())) << s;
  }
}

TEST(CompiledBackward, InsideOfAnotherFunctionItIsPartOfThat) {
  Net eager = make_net(), compiled = make_net();
  auto inner = compile(compiled);
  auto outer = compile([&](const Tensor& x) {
    Tensor loss = inner(x).square().mean();
    loss.backward();
    return loss.detach();
  });
  for (int s = 0; s < 4; ++s) {
    eager(batch(3, s)).square().mean().backward(), outer(batch(3, s));
    expect_same(eager, compiled);
    clear_gradients(eager), clear_gradients(compiled);
  }
  EXPECT_TRUE(inner.explain().backward.empty());
  EXPECT_TRUE(outer.explain().backward.empty());
}

// Sizes 0 and 1, views and aliases of parameters, and gradients that arrive along another path.
TEST(CompiledBackward, SmallSizesViewsAndAliases) {
  auto f = [](const Tensor& x, const Tensor& w, const Tensor& same) { return (x * w + same).tanh() * x; };
  auto fast = compile(f);
  for (int s = 0; s < 18; ++s) {
    const int64_t n = s % 3;
    std::vector<Tensor> grads[2];
    for (bool compiled : {false, true}) {
      Tensor x = batch(n, s).requires_grad_();
      Tensor w = batch(s % 2 ? 8 : 1, s + 1).requires_grad_();
      const Tensor row = s % 2 ? w.select(0, 3) : w;
      const Tensor other = s % 5 == 0 ? row : s % 5 == 1 ? x : row.detach();
      const Tensor y = compiled ? fast(x, row, other) : f(x, row, other);
      (y.sum() + (s % 4 ? row.exp().sum() : x.sum())).backward();
      grads[compiled] = {x.grad(), w.grad()};
    }
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(grads[0][i], grads[1][i])) << s << ", " << i;
  }
}

TEST(CompiledBackward, DrawsAreThoseOfTheCall) {
  auto f = [](const Tensor& x, const Tensor& w) { return F::dropout(matmul(x, w), 0.5).tanh(); };
  auto fast = compile(f);
  for (int s = 0; s < 5; ++s) {
    Tensor a = batch(8, 1).requires_grad_(), b = a.detach().clone().requires_grad_();
    const Tensor x = batch(4, s);
    manual_seed(5), f(x, a).sum().backward();
    manual_seed(5), fast(x, b).sum().backward();
    EXPECT_TRUE(same_bits(a.grad(), b.grad())) << s;
  }
}

// Gradients are of the level that holds where backward() is called, whatever the function's own is.
TEST(CompiledBackward, NumericsAreThoseOfTheCallOfBackward) {
  const RestoredSettings restored;
  nn::Conv2d conv(16, 16, 3, nn::ConvOptions{.padding = 1});
  auto f = [&](const Tensor& x) { return conv(x).relu(); };
  auto fast = compile(f, {.numerics = Numerics::fast});
  const Tensor x = randn({2, 16, 12, 12});
  for (Numerics level : {Numerics::default_, Numerics::fast, Numerics::default_}) {
    std::vector<Tensor> grads[2];
    for (bool compiled : {false, true}) {
      conv->weight.set_grad({});
      set_numerics(Numerics::fast);
      const Tensor y = compiled ? fast(x) : f(x);
      set_numerics(level);
      y.square().sum().backward();
      grads[compiled].push_back(conv->weight.grad());
    }
    EXPECT_TRUE(same_bits(grads[0][0], grads[1][0]));
  }
}

TEST(CompiledBackward, BehindAFunctionThatCompilesInTheBackground) {
  Net eager = make_net(), compiled = make_net();
  auto fast = compile(compiled, {.background = true});
  for (int s = 0; s < 40; ++s) {
    eager(batch(s % 3 + 1, s)).square().mean().backward(), fast(batch(s % 3 + 1, s)).square().mean().backward();
    expect_same(eager, compiled);
  }
}

// Scalars of several types, which belong to the call, and a captured view of a weight that is written between calls.
TEST(CompiledBackward, ScalarsAndCapturedViews) {
  Tensor weights[] = {batch(8, 1).requires_grad_(), batch(8, 1).requires_grad_()};
  auto make = [](const Tensor& w) {
    return
        [w, row = w.select(0, 2)](const Tensor& x, Scalar by) { return ((x * row + by).tanh().matmul(w) * by).sum(); };
  };
  auto eager = make(weights[0]);
  auto fast = compile(make(weights[1]));
  const Scalar scalars[] = {2, 0.5, true, 0, -1.5, 3};
  for (int s = 0; s < 12; ++s) {
    const Tensor x = batch(s % 4, s);
    const Scalar by = scalars[s % 6];
    eager(x, by).backward(), fast(x, by).backward();
    EXPECT_TRUE(same_bits(weights[0].grad(), weights[1].grad())) << s;
    const NoGradGuard no_grad;
    for (Tensor& w : weights) w.mul_(0.9);
  }
}

// Two threads go back through one function at once and add to the gradients of the same leaves: of whole numbers, so
// that the order of the sums does not show.
TEST(Threads, GoBackThroughOneFunctionAtOnce) {
  constexpr int kThreads = 4, kCalls = 12;
  Tensor w = ones({8, 8}).requires_grad_();
  auto fast = compile([&](const Tensor& x) { return matmul(matmul(x, w), w); });
  auto one = [&](int t, int s) { fast(full({t + 2, 8}, static_cast<double>(s % 3 + 1))).sum().backward(); };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int s = 0; s < kCalls; ++s) one(t, s);
    });
  for (std::thread& t : threads) t.join();
  double expected = 0;
  for (int t = 0; t < kThreads; ++t)
    for (int s = 0; s < kCalls; ++s) expected += 2.0 * 64 * (t + 2) * (s % 3 + 1);
  EXPECT_TRUE(same_bits(w.grad(), full({8, 8}, expected / 8)));
  EXPECT_EQ(backward_of(fast).statistics.calls, kThreads * kCalls);
}

// One tape, kept, on several threads at once.
TEST(Threads, GoBackOverOneTapeAtOnce) {
  constexpr int kThreads = 4, kTimes = 8;
  Tensor w = ones({8, 8}).requires_grad_();
  auto fast = compile([&](const Tensor& x) { return matmul(matmul(x, w), w); });
  const Tensor loss = fast(ones({3, 8})).sum();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int s = 0; s < kTimes; ++s) autograd::backward({loss}, {}, true);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_TRUE(same_bits(w.grad(), full({8, 8}, 2.0 * 3 * 8 * kThreads * kTimes)));
}

}  // namespace
}  // namespace ingot
