// Finite differences, for functions of the user's.
#include "eager/autograd/function.h"
#include "support.h"

namespace ingot {
namespace {

using autograd::AutogradContext, autograd::gradcheck, autograd::gradgradcheck;
using test::contains, test::error_of, test::leaf;
using Tensors = std::vector<Tensor>;

/// x^3, whose gradient is wrong by a factor.
struct Cube : autograd::Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double factor) {
    ctx->save_for_backward({x});
    ctx->saved_data["factor"] = factor;
    return x * x * x;
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& gradients) {
    const Tensor x = ctx->get_saved_variables()[0];
    const double factor = std::any_cast<double>(ctx->saved_data.at("factor"));
    return {3 * x * x * gradients[0] * factor, {}};
  }
};
Tensors right(const Tensors& in) { return {Cube::apply(in[0], 1.0)}; }
Tensors wrong(const Tensors& in) { return {Cube::apply(in[0], 1.01)}; }

TEST(GradCheck, TakesAGradientThatIsRight) {
  EXPECT_TRUE(gradcheck(right, {leaf({0.5, -1, 2}, kFloat64)}));
  // Several inputs and results, constants among them, a view as input.
  const Tensor base = randn({4, 3}, kFloat64), x = base.t().requires_grad_(), w = randn({4}, kFloat64).requires_grad_();
  const auto f = [](const Tensors& in) {
    return Tensors{in[0].matmul(in[1]).tanh() * in[2], in[1].exp().sum(), in[2] * 2};
  };
  const Tensor constant = randn({3}, kFloat64);
  EXPECT_TRUE(gradcheck(f, {x, w, constant}));
  EXPECT_TRUE(gradgradcheck(f, {x, w, constant}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
}

TEST(GradCheck, SaysWhichNumberIsWrong) {
  const Tensor x = leaf({0.5, -1, 2}, kFloat64);
  const std::string error = error_of([&] { gradcheck(wrong, {x}); });
  EXPECT_TRUE(contains(error,
                       "gradcheck: element 0 of output 0 by element 0 of input 0: got 0.7575 from backward, "
                       "expected 0.75"))
      << error;
  EXPECT_TRUE(contains(error, "gradcheck_test.cpp")) << error;
  EXPECT_FALSE(gradcheck(wrong, {x}, 1e-6, 1e-5, 1e-3, false));
  EXPECT_TRUE(gradcheck(wrong, {x}, 1e-6, 1e-5, 0.02)) << "a part in a hundred";
}

TEST(GradCheck, OfSecondOrder) {
  struct OnlyOnce : autograd::Function<OnlyOnce> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x) {
      ctx->save_for_backward({x});
      return x * x * x;
    }
    static Tensors backward(AutogradContext* ctx, const Tensors& gradients) {
      return {3 * ctx->get_saved_variables()[0].detach().square() * gradients[0]};  // hides x from the second order
    }
  };
  const Tensors x{leaf({0.5, -1, 2}, kFloat64)};
  EXPECT_TRUE(gradgradcheck(right, x));
  EXPECT_TRUE(gradgradcheck(right, x, {leaf({1, -2, 0.5}, kFloat64)}));
  const auto once = [](const Tensors& in) { return Tensors{OnlyOnce::apply(in[0])}; };
  EXPECT_TRUE(gradcheck(once, x));
  const std::string error = error_of([&] { gradgradcheck(once, x); });
  EXPECT_TRUE(contains(error, "gradgradcheck: element 0 of output 0 by element 0 of input 0: got 0 from backward"))
      << error;
}

TEST(GradCheck, ProductsWithZerosOfSecondOrder) {
  const auto prod = [](const Tensors& in) { return Tensors{in[0].prod(), in[0].prod(0)}; };
  const auto cumprod = [](const Tensors& in) { return Tensors{in[0].cumprod(0)}; };
  for (const Tensor& x : {leaf({2, 3, 4}, kFloat64), leaf({0, 2, 3}, kFloat64), leaf({2, 0, 3, 4}, kFloat64),
                          leaf({2, 3, 0}, kFloat64)}) {
    EXPECT_TRUE(gradgradcheck(prod, {x}));
    EXPECT_TRUE(gradgradcheck(cumprod, {x}));
  }
  for (const Tensor& x : {leaf({0, 0, 3}, kFloat64), leaf({2, 0, 3, 0}, kFloat64), leaf({0, 2, 0, 0}, kFloat64)})
    EXPECT_TRUE(gradgradcheck(prod, {x}));
  const Tensor rows = tensor({0., 2., 3., 4., 0., 5.}, kFloat64).reshape({2, 3}).detach().requires_grad_();
  for (int64_t dim : {0, 1})
    EXPECT_TRUE(gradgradcheck([&](const Tensors& in) { return Tensors{in[0].cumprod(dim), in[0].prod(dim)}; }, {rows}));
  EXPECT_TRUE(gradgradcheck(cumprod, {tensor(0.0, kFloat64).requires_grad_()}));
}

TEST(GradCheck, AResultWithoutAGradientMustNotHangOnTheInputs) {
  const Tensors x{leaf({0.5, 2}, kFloat64)};
  EXPECT_TRUE(gradcheck([](const Tensors& in) { return Tensors{in[0].detach() * 0 + 3}; }, x));
  const std::string error = error_of([&] { gradcheck([](const Tensors& in) { return Tensors{in[0].detach()}; }, x); });
  EXPECT_TRUE(contains(error, "(it does not require grad) from backward, expected 1")) << error;
}

TEST(GradCheck, SaysWhatItCannotJudge) {
  const auto f = [](const Tensors& in) { return Tensors{in[0] * 2}; };
  EXPECT_TRUE(contains(error_of([&] {
                         gradcheck(f, {leaf({1, 2})});
                       }),
                       "gradcheck: inputs: got number 0, f32[2], which requires grad, expected f64"));
  EXPECT_TRUE(contains(error_of([&] { gradcheck(f, {ones({2}, kFloat64)}); }),
                       "gradcheck: inputs: got none that requires grad, expected at least one"));
  EXPECT_TRUE(
      contains(error_of([&] {
                 gradcheck([](const Tensors& in) { return Tensors{in[0].to(kFloat32)}; }, {leaf({1, 2}, kFloat64)});
               }),
               "gradcheck: function: got f32[2] as output 0, expected f64"));
  EXPECT_TRUE(contains(error_of([&] {
                         gradgradcheck([](const Tensors& in) { return Tensors{in[0].detach()}; },
                                       {leaf({1}, kFloat64)});
                       }),
                       "gradgradcheck: function: got no output that requires grad"));
}

}  // namespace
}  // namespace ingot
