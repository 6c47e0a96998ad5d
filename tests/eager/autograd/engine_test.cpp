// backward() and grad(): values, what is kept and let go of, the order of contributions, errors.
#include <pthread.h>

#include <cstdlib>
#include <thread>

#include "eager/ops/selection.h"
#include "support.h"

namespace ingot {
namespace {

using test::contains, test::error_of, test::Floats, test::leaf, test::line_text, test::numbers;

TEST(Backward, GoesThroughAGraphWhereTensorsAreUsedAgain) {
  Tensor x = leaf({1, 2, 3}), w = leaf({4, 5, 6});
  Tensor y = (x * w + x) * x;
  EXPECT_EQ(y.grad_fn().name(), "MulBackward");
  EXPECT_FALSE(y.is_leaf());
  EXPECT_TRUE(x.is_leaf());
  y.backward(ones({3}));
  EXPECT_EQ(numbers(x.grad()), (Floats{10, 24, 42}));
  EXPECT_EQ(numbers(w.grad()), (Floats{1, 4, 9}));
}

TEST(Backward, AddsToWhatIsThere) {
  Tensor x = leaf({1, 2});
  for (int i = 0; i < 3; ++i) (x * x).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{6, 12}));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, OneGradientIsNotTwoTensors) {
  // Both gradients are the cotangent itself: what is then added to one must not be seen by the other.
  Tensor a = leaf({1}), b = leaf({2});
  (a + b).sum().backward();
  a.mutable_grad().add_(5);
  EXPECT_EQ(numbers(b.grad()), Floats{1});
  Tensor given = tensor({3.f});
  (a * 1).backward(given);
  EXPECT_EQ(numbers(given), Floats{3});
}

TEST(Backward, AGradientWithATapeIsTheTensorsOwn) {
  Tensor a = ones({3}).requires_grad_(), b = ones({3}).requires_grad_();
  (a + b).square().sum().backward({}, true, true);
  EXPECT_FALSE(a.grad().shares_storage(b.grad()));
  EXPECT_TRUE(a.grad().requires_grad());
  (a * 1).sum().backward();
  EXPECT_EQ(numbers(a.grad()), (Floats{5, 5, 5}));
  EXPECT_EQ(numbers(b.grad()), (Floats{4, 4, 4}));
  // Nor is it the caller's, in the layout of that.
  Tensor given = full({1}, 1.0).expand({3}), c = leaf({1, 2, 3});
  (c + 1).backward(given, true, true);
  EXPECT_TRUE(c.grad().is_contiguous());
  {
    const NoGradGuard guard;
    c.mutable_grad().mul_(10);
  }
  EXPECT_EQ(numbers(given), (Floats{1, 1, 1}));
  // Of tensors that are no leaves, too.
  Tensor inner = a * 2, kept = a * 2, gradient = ones({3});
  kept.retain_grad();
  inner.backward(gradient, true, false, {inner});
  kept.backward(gradient);
  inner.mutable_grad().add_(1), kept.grad().add_(1);
  EXPECT_EQ(numbers(gradient), (Floats{1, 1, 1}));
}

TEST(Backward, OfHigherOrder) {
  Tensor x = leaf({1, 2, 3}, kFloat64);
  Tensor g = autograd::grad({(x * x * x).sum()}, {x}, {}, {}, true)[0];
  Tensor gg = autograd::grad({g.sum()}, {x}, {}, {}, true)[0];
  Tensor ggg = autograd::grad({gg.sum()}, {x})[0];
  EXPECT_EQ(numbers(g), (Floats{3, 12, 27}));
  EXPECT_EQ(numbers(gg), (Floats{6, 12, 18}));
  EXPECT_EQ(numbers(ggg), (Floats{6, 6, 6}));
  EXPECT_FALSE(ggg.requires_grad());
  // Through a result that was kept.
  Tensor t = tanh(x), first = autograd::grad({t.sum()}, {x}, {}, {}, true)[0];
  Tensor second = autograd::grad({first.sum()}, {x})[0];
  const Tensor value = tanh(x.detach());
  EXPECT_TRUE(allclose(second, -2 * value * (1 - value * value)));
}

TEST(Backward, GradientsOfInnerTensors) {
  Tensor x = leaf({1, 2}), y = x * 3;
  y.retain_grad();
  Tensor z = (y * y).sum();
  EXPECT_EQ(numbers(autograd::grad({z}, {y}, {}, true)[0]), (Floats{6, 12}));
  EXPECT_FALSE(x.grad().defined());
  z.backward();
  EXPECT_TRUE(y.retains_grad());
  EXPECT_EQ(numbers(y.grad()), (Floats{6, 12}));
  EXPECT_EQ(numbers(x.grad()), (Floats{18, 36}));
}

TEST(Backward, OnlyToTheInputsThatAreAskedFor) {
  Tensor x = leaf({1}), w = leaf({2}), unused = leaf({3});
  Tensor y = x * w;
  y.backward({}, true, false, {x});
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
  EXPECT_NE(error_of([&] { autograd::grad({y}, {unused}, {}, true); }).find("not made from"), std::string::npos);
  EXPECT_FALSE(autograd::grad({y}, {unused}, {}, true, false, true)[0].defined());
}

TEST(Backward, OpsOfSeveralResults) {
  Tensor x = leaf({3, 1, 2});
  auto [values, positions] = sort(x);
  EXPECT_TRUE(values.requires_grad());
  EXPECT_FALSE(positions.requires_grad());
  (values * tensor({1.f, 10.f, 100.f})).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{100, 1, 10}));
}

TEST(Backward, ListsOfTensorsMoreThanADozen) {
  std::vector<Tensor> parts;
  for (int i = 0; i < 70; ++i) parts.push_back(i % 3 ? leaf({1.0 * i}) : tensor({1.f * i}));
  (cat(parts) * arange(70, kFloat32)).sum().backward();
  for (int i = 0; i < 70; ++i) {
    if (i % 3)
      EXPECT_EQ(numbers(parts[i].grad()), Floats{1.f * i});
    else
      EXPECT_FALSE(parts[i].grad().defined());
  }
}

TEST(Backward, NothingIsRecordedWithoutGradMode) {
  Tensor x = leaf({1});
  {
    NoGradGuard guard;
    EXPECT_FALSE(is_grad_enabled());
    EXPECT_FALSE((x * 2).requires_grad());
    {
      AutoGradMode on(true);
      EXPECT_TRUE((x * 2).requires_grad());
    }
    EXPECT_TRUE(x.requires_grad());
  }
  InferenceMode mode;
  EXPECT_FALSE((x * 2).requires_grad());
}

TEST(Backward, DetachIsAnotherTensorOfTheSameMemory) {
  Tensor x = leaf({1, 2}), y = x * 2, d = y.detach();
  EXPECT_FALSE(d.requires_grad());
  EXPECT_TRUE(y.requires_grad());
  EXPECT_TRUE(d.shares_storage(y));
  (y + d).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{2, 2}));
}

TEST(Backward, DtypesOfOperandsAreThoseOfTheirGradients) {
  Tensor x = leaf({1, 2}, kBFloat16), w = leaf({3, 4}, kFloat64);
  (x * w).sum().backward();
  EXPECT_EQ(x.grad().dtype(), kBFloat16);
  EXPECT_EQ(w.grad().dtype(), kFloat64);
  EXPECT_EQ(numbers(x.grad()), (Floats{3, 4}));
}

TEST(Backward, WrongUseIsSaid) {
  Tensor x = leaf({1, 2}), y = x * x;
  EXPECT_NE(error_of([&] { y.backward(); }).find("none for a tensor of 2 elements"), std::string::npos);
  EXPECT_NE(error_of([&] { y.backward(ones({3})); }).find("f32[3]"), std::string::npos);
  EXPECT_NE(error_of([&] { y.backward(ones({2}, kFloat64)); }).find("f64[2]"), std::string::npos);
  EXPECT_FALSE(x.grad().defined());
  y.backward(ones({2}));
  EXPECT_NE(error_of([&] { y.backward(ones({2})); }).find("retain_graph"), std::string::npos);
  EXPECT_NE(error_of([&] {
              autograd::grad({x * 2}, {x}, {ones({2}), ones({2})});
            }).find("grad_outputs: got 2, expected 1"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              autograd::backward({x.sum(), x.sum()}, {ones({})});
            }).find("gradients: got 1, expected 2"),
            std::string::npos);
  EXPECT_NE(error_of([&] { tensor({1.f}).backward(); }).find("does not require grad"), std::string::npos);
  EXPECT_NE(error_of([&] { tensor({1}).requires_grad_(); }).find("floating-point"), std::string::npos);
  EXPECT_NE(error_of([&] { (x * 2).requires_grad_(false); }).find("leaf"), std::string::npos);
  EXPECT_NE(error_of([&] { x.set_grad(ones({3})); }).find("f32[3]"), std::string::npos);
  EXPECT_NE(error_of([&] { Tensor().backward(); }).find("undefined"), std::string::npos);
}

TEST(Backward, ATapeMayBeUsedAgainIfItIsKept) {
  Tensor x = leaf({2}), y = x * x;
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(numbers(x.grad()), Floats{8});
}

TEST(Backward, AnomalyModeNamesTheLine) {
  Tensor x = leaf({0});
  autograd::DetectAnomalyGuard guard;
  Tensor y = (x / x).sum();
  const std::string error = error_of([&] { y.backward(); });
  EXPECT_NE(error.find("NaN"), std::string::npos) << error;
  EXPECT_NE(error.find("engine_test.cpp"), std::string::npos) << error;
}

TEST(Hooks, SeeAndReplaceGradients) {
  Tensor x = leaf({1, 2}), y = x * 2;
  int seen = 0;
  const int64_t first = x.register_hook([&](const Tensor& g) {
    ++seen;
    EXPECT_EQ(numbers(g), (Floats{20, 20}));
  });
  y.register_hook([](const Tensor& g) { return g * 10; });
  y.sum().backward({}, true);
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(numbers(x.grad()), (Floats{20, 20}));
  x.remove_hook(first);
  y.sum().backward();
  EXPECT_EQ(seen, 1);
  Tensor z = leaf({1});
  z.register_hook([](const Tensor&) { return ones({5}); });
  EXPECT_NE(error_of([&] { (z * 2).backward(); }).find("f32[5]"), std::string::npos);
}

TEST(Hooks, AfterAccumulation) {
  Tensor x = leaf({1, 2});
  int calls = 0;
  x.register_post_accumulate_grad_hook([&](const Tensor& t) {
    ++calls;
    EXPECT_TRUE(t.grad().defined());
    NoGradGuard guard;
    t.sub_(t.grad());
    t.set_grad({});
  });
  (x * 3).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(numbers(x), (Floats{-2, -1}));
  EXPECT_FALSE(x.grad().defined());
}

// The order of contributions is that in which they arise, from the last use to the first.
TEST(Backward, ContributionsAreAddedInOrder) {
  Tensor x = leaf({1});
  const float big = 1e8f;
  // Uses in the order a, b, c arrive as c, b, a: ((c + b) + a).
  Tensor a = x * big, b = x * -big, c = x * 1;
  (a + b + c).sum().backward();
  EXPECT_EQ(numbers(x.grad()), Floats{(1.f + -big) + big});
}

// A tape as long as a program ran: neither walking nor freeing it recurses.
TEST(Backward, AMillionOpsOnASmallStack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  auto body = [](void*) -> void* {
    // With guarded pages around each tensor the system has no room for as many.
    const int ops = std::getenv("INGOT_CHECK_MEMORY") ? 5'000 : 1'000'000;
    Tensor x = leaf({1}), y = x;
    for (int i = 0; i < ops; ++i) y = y + x;
    y.backward();
    EXPECT_EQ(numbers(x.grad()), Floats{static_cast<float>(ops + 1)});
    Tensor unused = x;
    for (int i = 0; i < ops / 5; ++i) unused = unused.view({1}) * x;
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Backward, ThreadsThatShareALeaf) {
  Tensor w = leaf({1, 1, 1, 1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) (w * 2).sum().backward();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(numbers(w.grad()), (Floats{400, 400, 400, 400}));
}

// Whether the gradient of a view is the cotangent as it is hangs on which sizes are equal. One order of calls must not
// leave the next one what it found out.
TEST(Backward, OfViewsWithEqualAndUnequalSizes) {
  auto gradient = [](const Tensor& x, auto view) {
    x.set_grad({});
    Tensor y = view(x), weight = arange(y.numel(), kFloat32).view(y.sizes());
    (y * weight).sum().backward();
    return x.grad();
  };
  for (const int64_t first : {40, 60}) {
    Tensor x = randn({40, 60}).requires_grad_();
    for (int64_t n : {first, 100 - first, first})
      for (auto view : {+[](const Tensor&t, int64_t size) {
                          return t.view({size, 2400 / size});
                        },
                        +[](const Tensor&t, int64_t size) {
                          return t.reshape({size, 2400 / size});
                        }}) {
        const Tensor g = gradient(x, [&](const Tensor& t) { return view(t, n); });
        EXPECT_EQ(numbers(g), numbers(arange(2400, kFloat32)));
        EXPECT_EQ(g.sizes(), x.sizes());
      }
    for (int64_t n : {first, 100 - first, first}) {
      const Tensor g = gradient(x, [&](const Tensor& t) { return t.slice(1, 0, n); });
      ASSERT_EQ(g.sizes(), x.sizes());
      EXPECT_EQ(numbers(g.slice(1, 0, n)), numbers(arange(40 * std::min<int64_t>(n, 60), kFloat32)));
      EXPECT_EQ(numbers(g.slice(1, n, 60).sum()), Floats{0});
    }
  }
}

// What is kept is what the hooks leave, in whatever order they were asked for.
TEST(Hooks, KeptGradientsAreThoseAfterHooks) {
  for (bool first : {true, false}) {
    Tensor x = tensor({1.f, 2.f}).requires_grad_(), h = x * 2;
    if (first) h.retain_grad();
    h.register_hook([](const Tensor& g) { return g * 3; });
    if (!first) h.retain_grad();
    h.register_hook([](const Tensor& g) { return g + 1; });
    h.sum().backward();
    EXPECT_EQ(h.grad().str(), tensor({4.f, 4.f}).str());
    EXPECT_EQ(x.grad().str(), tensor({8.f, 8.f}).str());
  }
}

TEST(Backward, ALeafHasNoGradFnToAsk) {
  const Tensor x = ones({2}).requires_grad_();
  EXPECT_FALSE(x.grad_fn());
  EXPECT_THROW(x.grad_fn().name(), Error);
  EXPECT_THROW(x.grad_fn().next_functions(), Error);
}

}  // namespace
}  // namespace ingot
