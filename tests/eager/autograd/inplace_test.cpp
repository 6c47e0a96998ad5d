// Writes in place and the tape: versions, leaves, views of what is written.
#include "eager/ops/contractions.h"
#include "eager/ops/selection.h"
#include "support.h"

namespace ingot {
namespace {

using test::contains, test::error_of, test::Floats, test::line_text, test::numbers;

Tensor leaf(int64_t n) { return arange(1, n + 1, 1, kFloat32).requires_grad_(); }

TEST(InPlace, ATensorThatIsNoLeafGoesOn) {
  Tensor x = leaf(3), y = x * 2;
  y.add_(1);
  y.mul_(tensor({1.f, 2.f, 3.f}));
  EXPECT_EQ(y.grad_fn().name(), "MulBackward");
  y.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{2, 4, 6}));
}

TEST(InPlace, AGradientThatIsRetainedIsThatOfTheNewValue) {
  Tensor x = leaf(2), y = x * 2;
  y.retain_grad();
  y.mul_(3);
  y.sum().backward();
  EXPECT_EQ(numbers(y.grad()), (Floats{1, 1}));
  EXPECT_EQ(numbers(x.grad()), (Floats{6, 6}));
  // Written through a view of it.
  Tensor z = x * 2;
  z.retain_grad();
  z[0].mul_(3);
  z.sum().backward();
  EXPECT_EQ(numbers(z.grad()), (Floats{1, 1}));
  // A view, of which the tensor behind it is written.
  Tensor base = x * 2, view = base.slice(0, 0, 1);
  view.retain_grad();
  base.mul_(3);
  (view * 4).sum().backward();
  EXPECT_EQ(numbers(view.grad()), Floats{4});
  EXPECT_EQ(numbers(x.grad()), (Floats{6 + 6 + 24, 6 + 2}));
}

TEST(InPlace, AConstantBecomesPartOfTheTape) {
  Tensor x = leaf(2), y = zeros({2});
  y.add_(x).mul_(3);
  EXPECT_TRUE(y.requires_grad());
  y.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{3, 3}));
}

TEST(InPlace, WhatIsWrittenOverHasNoGradient) {
  Tensor x = leaf(3), y = x * 2;
  y.zero_();
  y.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{0, 0, 0}));
}

TEST(InPlace, ALeafIsRefused) {
  Tensor x = leaf(2);
  const std::string error = error_of([&] { x.add_(1); });
  EXPECT_NE(error.find("a leaf that requires grad"), std::string::npos) << error;
  EXPECT_NE(error.find("inplace_test.cpp"), std::string::npos) << error;
  EXPECT_NE(error_of([&] { x[0].add_(1); }).find("a view of a leaf"), std::string::npos);
  EXPECT_EQ(numbers(x), (Floats{1, 2}));
  NoGradGuard guard;
  x.add_(1);
  EXPECT_EQ(numbers(x), (Floats{2, 3}));
}

TEST(InPlace, ALeafThatIsAViewIsRefused) {
  Tensor base = zeros({4}), x = base.slice(0, 2).requires_grad_(), w = leaf(2);
  EXPECT_NE(error_of([&] { x.mul_(w); }).find("a leaf that requires grad"), std::string::npos);
  EXPECT_NE(error_of([&] { x[0].mul_(2); }).find("a view of a leaf"), std::string::npos);
  EXPECT_TRUE(x.is_leaf());
  (x * w).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{1, 2}));
}

// It looks at memory: at elements of the tensor behind the view.
TEST(InPlace, AsStridedOfAView) {
  Tensor x = leaf(6), part = x.slice(0, 2), pair = part.as_strided({2}, {2}, 1);
  EXPECT_EQ(numbers(pair), (Floats{2, 4}));
  (pair * tensor({10.f, 20.f})).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{0, 10, 0, 20, 0, 0}));
  Tensor y = x.detach().clone(), strip = y.slice(0, 1).as_strided({3}, {1}, 0);
  y.add_(x);
  strip.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{1, 11, 1, 20, 0, 0}));
  Tensor turned = arange(6, kFloat32).view({2, 3}).t().requires_grad_();
  const std::string error = error_of([&] { turned.as_strided({2}, {1}, 0); });
  EXPECT_NE(error.find("as_strided: self"), std::string::npos) << error;
}

// As scores that are divided by a temperature that is learnt, and masked in place.
TEST(InPlace, AQuotientIsNotSaved) {
  Tensor x = leaf(2), y = tensor({2.f, 4.f}).requires_grad_(), scores = x / y;
  scores.masked_fill_(tensor({false, true}), -1);
  scores.mul_(8).sum().backward();
  EXPECT_EQ(numbers(scores), (Floats{4, -8}));
  EXPECT_EQ(numbers(x.grad()), (Floats{4, 0}));
  EXPECT_EQ(numbers(y.grad()), (Floats{-2, 0}));
}

TEST(InPlace, ASavedTensorThatWasWrittenIsAnError) {
  Tensor x = leaf(2);
  {
    Tensor y = x.exp();  // keeps its result
    y.add_(1);
    const std::string error = error_of([&] { y.sum().backward(); });
    EXPECT_NE(error.find("ExpBackward: its result f32[2] was modified by an in-place operation"), std::string::npos)
        << error;
    EXPECT_NE(error.find("inplace_test.cpp"), std::string::npos) << error;
  }
  {
    Tensor w = ones({2}), y = x * w;  // keeps w
    w.add_(1);
    EXPECT_NE(error_of([&] { y.sum().backward(); }).find("operand `other`"), std::string::npos);
  }
  {
    Tensor w = ones({2}), y = x * w;  // also where nothing records it
    {
      NoGradGuard guard;
      w[0].add_(1);
    }
    EXPECT_NE(error_of([&] { y.sum().backward(); }).find("in-place"), std::string::npos);
  }
  {
    Tensor w = ones({2}), y = x + w;  // keeps nothing
    w.add_(1);
    y.sum().backward();
  }
  EXPECT_EQ(numbers(x.grad()), (Floats{1, 1}));
}

TEST(InPlace, ThroughAView) {
  Tensor x = leaf(4), y = x * 1;
  Tensor part = y.narrow(0, 1, 2);
  part.mul_(10);
  EXPECT_EQ(numbers(y), (Floats{1, 20, 30, 4}));
  (y * y).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{2, 400, 600, 8}));
}

// What a derivative reads of the result leads back through the write, whose node goes the way once.
TEST(InPlace, ThroughAViewWithAResultThatIsSaved) {
  using Made = Tensor (*)(const Tensor&);
  auto second = [](const std::function<Tensor(const Tensor&)>& f) {
    const Tensor x = test::leaf({0.5, 1, 2, -1}, kFloat64);
    const Tensor first = autograd::grad({f(x).sin().sum()}, {x}, {}, {}, true)[0];
    return autograd::grad({first.square().sum()}, {x})[0];
  };
  const std::pair<Made, Made> writes[] = {
      {[](const Tensor& t) { return t.exp_(); }, [](const Tensor& t) { return t.exp(); }},
      {[](const Tensor& t) { return t.tanh_(); }, [](const Tensor& t) { return t.tanh(); }},
      {[](const Tensor& t) { return t.sigmoid_(); }, [](const Tensor& t) { return t.sigmoid(); }},
      {[](const Tensor& t) { return t.relu_(); }, [](const Tensor& t) { return t.relu(); }}};
  for (const auto& [write, make] : writes) {
    auto written = [write = write](const Tensor& x) {
      const Tensor y = x.clone();
      write(y.slice(0, 0, 3).unsqueeze(0)[0].slice(0, 1));
      return y;
    };
    auto made = [make = make](const Tensor& x) {
      return cat({x.slice(0, 0, 1), make(x.slice(0, 1, 3)), x.slice(0, 3)});
    };
    EXPECT_TRUE(allclose(second(written), second(made)));
  }
  // Results that are views inside.
  const Made views[] = {[](const Tensor& t) {
                          return t.reshape({2, 2}).t().reshape({4});
                        },
                        [](const Tensor& t) {
                          return t.index({tensor({2, 0, 2})});
                        },
                        [](const Tensor& t) {
                          return t.repeat({2, 1});
                        },
                        [](const Tensor& t) {
                          return einsum("i,j->ij", {t, t});
                        }};
  for (const Made view : views)
    EXPECT_TRUE(allclose(second([view](const Tensor& x) { return view(x).exp_(); }),
                         second([view](const Tensor& x) { return view(x).exp(); })));
}

TEST(InPlace, OtherViewsFollow) {
  Tensor x = leaf(4), y = x * 1;
  Tensor all = y.view({2, 2}), row = all[1], before = y.slice(0, 0, 2);
  y.mul_(3);  // the tensor behind them
  (row * row).sum().backward({}, true);
  EXPECT_EQ(numbers(x.grad()), (Floats{0, 0, 54, 72}));
  x.set_grad({});
  all[0].mul_(2);  // a view of a view
  before.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{6, 6, 0, 0}));
}

TEST(InPlace, AConstantBehindAView) {
  Tensor x = leaf(2), buffer = zeros({3, 2});
  buffer[1].copy_(x);
  EXPECT_TRUE(buffer.requires_grad());
  Tensor row = buffer[1];
  (buffer * arange(6, kFloat32).view({3, 2})).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{2, 3}));
}

TEST(InPlace, ThroughIndices) {
  Tensor x = leaf(4), w = tensor({10.f, 20.f}).requires_grad_();
  Tensor y = x * 1;
  y.index_put_({tensor({0, 2})}, w);
  (y * y).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{0, 4, 0, 8}));
  EXPECT_EQ(numbers(w.grad()), (Floats{20, 40}));
  x.set_grad({});
  Tensor picked = x.index({tensor({0, 0, 3})});
  picked.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{2, 0, 0, 1}));
}

TEST(InPlace, IntoAnInteger) {
  Tensor x = leaf(2), counts = zeros({2}, kInt64);
  EXPECT_NE(error_of([&] { counts.copy_(x); }), "");
}

TEST(InPlace, DetachedTensorsShareVersions) {
  Tensor x = leaf(2), w = ones({2}), y = x * w;
  w.detach().add_(1);
  EXPECT_NE(error_of([&] { y.sum().backward(); }).find("in-place"), std::string::npos);
}

}  // namespace
}  // namespace ingot
