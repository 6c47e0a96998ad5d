// What is wrong with a backward pass is said with the tensor, the op and the lines of both: of the op and of
// backward().
#include "eager/autograd/function.h"
#include "support.h"

namespace ingot {
namespace {

using test::contains, test::error_of, test::leaf, test::line_text;

std::string at(int line) { return line_text(__FILE__, line); }

TEST(BackwardErrors, OfASavedTensorThatWasWritten) {
  Tensor x = leaf({1, 2}), w = ones({2}).to(kFloat64);
  const int forward = __LINE__ + 1;
  Tensor y = x * w;
  w.add_(1);
  const int backward = __LINE__ + 1;
  const std::string error = error_of([&] { y.sum().backward(); });
  EXPECT_TRUE(contains(error,
                       "backward: MulBackward: operand `other` f64[2] was modified by an in-place operation after "
                       "it was saved (version "))
      << error;
  EXPECT_TRUE(contains(error, at(forward) + "; backward() at ")) << error;
  EXPECT_TRUE(error.ends_with(at(backward) + ")")) << error;
}

TEST(BackwardErrors, OfAResultThatWasWritten) {
  Tensor x = leaf({1, 2, 3});
  const int forward = __LINE__ + 1;
  Tensor y = x.exp();
  y.add_(1);
  const int backward = __LINE__ + 1;
  const std::string error = error_of([&] { autograd::grad({y.sum()}, {x}); });
  EXPECT_TRUE(contains(error, "backward: ExpBackward: its result f32[3] was modified by an in-place operation"))
      << error;
  EXPECT_TRUE(contains(error, at(forward) + "; backward() at ")) << error;
  EXPECT_TRUE(error.ends_with(at(backward) + ")")) << error;
}

TEST(BackwardErrors, OfATapeThatIsUsedTwice) {
  Tensor x = leaf({1, 2});
  const int forward = __LINE__ + 1;
  Tensor y = x * x;
  const int first = __LINE__ + 1;
  y.backward(ones({2}));
  const int second = __LINE__ + 1;
  const std::string error = error_of([&] { y.backward(ones({2})); });
  EXPECT_TRUE(contains(error,
                       "backward: MulBackward of f32[2]: its saved tensors are gone: the tape was used by an "
                       "earlier backward(), at "))
      << error;
  EXPECT_TRUE(contains(error, at(first) + "; expected retain_graph = true there")) << error;
  EXPECT_TRUE(contains(error, at(forward) + "; backward() at ")) << error;
  EXPECT_TRUE(error.ends_with(at(second) + ")")) << error;
}

// A part of the tape that no gradient reached is let go of as well.
TEST(BackwardErrors, OfAPartThatAnEarlierBackwardWentThrough) {
  Tensor x = leaf({2}), shared = x.exp(), a = shared * 2, b = shared * 3;
  const int first = __LINE__ + 1;
  a.backward();
  const std::string error = error_of([&] { b.backward(); });
  EXPECT_TRUE(contains(error, "backward: ExpBackward of f32[1]: its saved tensors are gone")) << error;
  EXPECT_TRUE(contains(error, at(first) + "; expected retain_graph")) << error;
}

struct Square : autograd::Function<Square> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, double factor) {
    ctx->save_for_backward({x});
    return x * x * factor;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* ctx, const std::vector<Tensor>& gradients) {
    return {ctx->get_saved_variables()[0] * 2 * gradients[0], {}};
  }
};

TEST(BackwardErrors, OfAFunctionNameTheLineOfItsCall) {
  Tensor x = leaf({1, 2}), z = x * 1;
  const int forward = __LINE__ + 1;
  Tensor y = Square::apply(z, 2.0);
  y.sum().backward({}, true);
  z.add_(1);
  std::string error = error_of([&] { y.sum().backward(); });
  EXPECT_TRUE(contains(error, "SquareBackward: saved tensor 0 f32[2] was modified by an in-place operation")) << error;
  EXPECT_TRUE(contains(error, at(forward) + "; backward() at ")) << error;

  Tensor once = Square::apply(x, 2.0);
  const int first = __LINE__ + 1;
  once.sum().backward();
  error = error_of([&] { once.sum().backward(); });
  EXPECT_TRUE(contains(error, "SquareBackward of f32[2]: its saved tensors are gone")) << error;
  EXPECT_TRUE(contains(error, at(first) + "; expected retain_graph")) << error;
}

TEST(BackwardErrors, AnomalyModeNamesTheLineOfAFunctionsCall) {
  struct Root : autograd::Function<Root> {
    static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
      ctx->save_for_backward({x});
      return x.sqrt();
    }
    static std::vector<Tensor> backward(autograd::AutogradContext* ctx, const std::vector<Tensor>& gradients) {
      return {gradients[0] * ctx->get_saved_variables()[0].sqrt() / ctx->get_saved_variables()[0]};
    }
  };
  Tensor x = leaf({0, 1});
  const autograd::DetectAnomalyGuard guard;
  const int forward = __LINE__ + 1;
  Tensor y = Root::apply(x);
  const int backward = __LINE__ + 1;
  const std::string error = error_of([&] { y.sum().backward(); });
  EXPECT_TRUE(contains(error, "RootBackward: the gradient of its operand 0 has a NaN")) << error;
  EXPECT_TRUE(contains(error, at(forward) + "; backward() at ")) << error;
  EXPECT_TRUE(error.ends_with(at(backward) + ")")) << error;
}

// What a user's backward does wrong stands at its own line.
TEST(BackwardErrors, InsideOfAFunctionsBackward) {
  struct Wrong : autograd::Function<Wrong> {
    static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x * 2; }
    static std::vector<Tensor> backward(autograd::AutogradContext*, const std::vector<Tensor>& gradients) {
      line() = __LINE__ + 1;
      return {gradients[0] + ones({7})};
    }
    static int& line() {
      static int at;
      return at;
    }
  };
  Tensor x = leaf({1, 2});
  const std::string error = error_of([&] { Wrong::apply(x).sum().backward(); });
  EXPECT_TRUE(contains(error, "add: ")) << error;
  EXPECT_TRUE(contains(error, at(Wrong::line()))) << error;
}

TEST(BackwardErrors, OfAHookNameTheLineOfBackward) {
  Tensor x = leaf({1});
  x.register_hook([](const Tensor&) { return ones({5}); });
  const int backward = __LINE__ + 1;
  const std::string error = error_of([&] { (x * 2).backward(); });
  EXPECT_TRUE(contains(error, "hook: gradient: got f32[5], expected f32[1]")) << error;
  EXPECT_TRUE(contains(error, at(backward))) << error;
}

}  // namespace
}  // namespace ingot
