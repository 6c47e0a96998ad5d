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

TEST(DetachInPlace, OfAViewIsRefused) {
  Tensor x = leaf({1, 2}), view = (x * 2).slice(0, 1);
  const std::string error = error_of([&] { view.detach_(); });
  EXPECT_TRUE(contains(error, "detach_: self: got a view, expected a tensor of its own; detach() gives one")) << error;
  EXPECT_TRUE(contains(error, "modes_test.cpp")) << error;
  EXPECT_TRUE(view.requires_grad());
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
