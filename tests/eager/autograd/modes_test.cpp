// Whether gradients are recorded, and what a tensor says of its tape.
#include "support.h"

namespace ingot {
namespace {

using test::contains, test::error_of, test::Floats, test::leaf, test::numbers;

bool records() { return (leaf({1}) * 2).requires_grad(); }

TEST(GradModes, SetGradEnabledLastsUntilItIsSetAgain) {
  ASSERT_TRUE(is_grad_enabled());
  set_grad_enabled(false);
  EXPECT_FALSE(is_grad_enabled());
  EXPECT_FALSE(records());
  set_grad_enabled(true);
  EXPECT_TRUE(is_grad_enabled());
  EXPECT_TRUE(records());
}

TEST(GradModes, GuardsGoBackToWhatWas) {
  {
    const no_grad off;
    EXPECT_FALSE(records());
    {
      const enable_grad on;
      EXPECT_TRUE(records());
      const no_grad again;
      EXPECT_FALSE(records());
    }
    EXPECT_FALSE(records());
  }
  EXPECT_TRUE(records());
}

TEST(GradModes, InferenceModeThatIsOffRecordsAgain) {
  const InferenceMode outer;
  EXPECT_FALSE(records());
  {
    const InferenceMode inner(false);
    EXPECT_TRUE(is_grad_enabled());
    EXPECT_TRUE(records());
    {
      const InferenceMode innermost(true);
      EXPECT_FALSE(records());
    }
    EXPECT_TRUE(records());
  }
  EXPECT_FALSE(records());
}

TEST(GradModes, InferenceModeThatIsOffInsideOfNoGrad) {
  const NoGradGuard outer;
  const InferenceMode inner(false);
  EXPECT_TRUE(records());
}

TEST(DetachInPlace, LeavesTheTape) {
  Tensor x = leaf({1, 2}), y = x * 2, z = y * y;
  y.detach_();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(y.is_leaf());
  EXPECT_FALSE(y.grad_fn());
  EXPECT_FALSE((y * 2).requires_grad());
  // What was made of it before goes on.
  z.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{8, 16}));
  y.requires_grad_();
  (y * 3).sum().backward();
  EXPECT_EQ(numbers(y.grad()), (Floats{3, 3}));
  EXPECT_EQ(numbers(x.grad()), (Floats{8, 16}));
}

// Some results are views of what the op made, which no user sees.
TEST(DetachInPlace, OfAView) {
  const Tensor x = tensor({1.f, 2.f, 3.f, 4.f}).reshape({2, 2}).detach().requires_grad_();
  for (const Tensor& t : {x.index({x.detach() > 1}), x.index({tensor({1, 0})}), x.repeat({2, 1}), x.tile({2, 1}),
                          x.take(tensor({0, 3})), x.t().reshape({4}), (x * 2)[0]}) {
    const Tensor part = t[0];
    t.detach_();
    EXPECT_FALSE(t.requires_grad());
    EXPECT_TRUE(t.is_leaf());
    EXPECT_TRUE(part.requires_grad());
    t.requires_grad_();
    (t * 3).sum().backward();
    EXPECT_EQ(t.grad().sum().item<float>(), 3.f * static_cast<float>(t.numel()));
    EXPECT_FALSE(x.grad().defined());
  }
  // What is then written to it is not on the tape of the tensor behind it, nor the other way round.
  Tensor base = x * 2, view = base[0];
  base.mul_(2);
  view.detach_();
  base.mul_(x);
  EXPECT_FALSE(view.requires_grad());
  base.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{8, 16, 24, 32}));
}

TEST(DetachInPlace, ViewsStayOnTheTape) {
  Tensor x = leaf({1, 2}), y = x * 2, view = y.unsqueeze(0);
  y.detach_();
  EXPECT_TRUE(view.requires_grad());
  // A write would have no tensor whose tape it goes on.
  const std::string error = error_of([&] { view.mul_(3); });
  EXPECT_TRUE(contains(error, "mul: self: got a view of a tensor that detach_() took off the tape since")) << error;
  view.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{2, 2}));
  // Those of a leaf lead to it, but it takes no gradient any more.
  Tensor leaf_before = leaf({1, 2}), part = leaf_before.slice(0, 1);
  leaf_before.detach_();
  part.sum().backward();
  EXPECT_FALSE(leaf_before.grad().defined());
}

TEST(GradFn, KnowsWhatComesBeforeIt) {
  Tensor x = leaf({1, 2}), w = leaf({3, 4}), c = ones({2});
  Tensor y = (x * w).exp() + c;
  const autograd::GradFn add = y.grad_fn();
  ASSERT_TRUE(add);
  EXPECT_EQ(add.name(), "AddBackward");
  ASSERT_EQ(add.next_functions().size(), 1u) << "a constant has no gradient";
  const autograd::GradFn exp = add.next_functions()[0];
  EXPECT_EQ(exp.name(), "ExpBackward");
  const autograd::GradFn mul = exp.next_functions().at(0);
  EXPECT_EQ(mul.name(), "MulBackward");
  // Leaves: an entry each, without a function.
  ASSERT_EQ(mul.next_functions().size(), 2u);
  EXPECT_FALSE(mul.next_functions()[0]);
  EXPECT_FALSE(mul.next_functions()[1]);
  EXPECT_FALSE(x.grad_fn());
  EXPECT_FALSE(c.grad_fn());
}

}  // namespace
}  // namespace ingot
