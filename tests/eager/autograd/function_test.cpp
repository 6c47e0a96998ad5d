// Functions with a derivative of their own: what forward marks and leaves, what backward is given and must give.
#include "eager/autograd/function.h"

#include "eager/ops/selection.h"
#include "support.h"

namespace ingot {
namespace {

using autograd::AutogradContext, autograd::tensor_list;
using test::contains, test::error_of, test::Floats, test::leaf, test::line_text, test::numbers;

TEST(CustomFunction, GivesItsOwnGradient) {
  struct Tripled : autograd::Function<Tripled> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t factor) {
      ctx->saved_data["factor"] = factor;
      EXPECT_FALSE(is_grad_enabled()) << "what forward does is not on the tape";
      return x * static_cast<double>(factor);
    }
    static tensor_list backward(AutogradContext* ctx, const tensor_list& gradients) {
      return {gradients[0] * 1000 * static_cast<double>(std::any_cast<int64_t>(ctx->saved_data.at("factor"))), {}};
    }
  };
  Tensor x = leaf({1, 2}), y = Tripled::apply(x, int64_t{3});
  EXPECT_EQ(y.grad_fn().name(), "TripledBackward");
  EXPECT_EQ(numbers(y), (Floats{3, 6}));
  y.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{3000, 3000}));
  // A constant stays one.
  EXPECT_FALSE(Tripled::apply(ones({2}), int64_t{3}).requires_grad());
  NoGradGuard guard;
  EXPECT_FALSE(Tripled::apply(x, int64_t{3}).requires_grad());
}

struct AddOneInPlace : autograd::Function<AddOneInPlace> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    x.add_(1);
    ctx->mark_dirty({x});
    return x;
  }
  static tensor_list backward(AutogradContext*, const tensor_list& gradients) { return {gradients[0] * 10}; }
};

TEST(CustomFunction, MarksWhatItWroteTo) {
  Tensor x = leaf({1, 2}), y = x * 2;
  Tensor z = AddOneInPlace::apply(y);
  EXPECT_TRUE(z.is_same(y));
  EXPECT_EQ(y.grad_fn().name(), "AddOneInPlaceBackward");
  EXPECT_EQ(numbers(y), (Floats{3, 5}));
  y.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{20, 20}));
  // Who saved it before knows.
  Tensor w = x * 1, product = w * w;
  AddOneInPlace::apply(w);
  EXPECT_TRUE(contains(error_of([&] { product.sum().backward(); }), "was modified by an in-place operation"));
  Tensor base = x * 1, part = base.slice(0, 1);
  EXPECT_TRUE(contains(error_of([&] { AddOneInPlace::apply(part); }), "a view that forward writes to"));
}

// An argument that comes back unmarked is another tensor, and stays what it was.
TEST(CustomFunction, AnArgumentThatIsGivenBack) {
  struct Same : autograd::Function<Same> {
    static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
    static tensor_list backward(AutogradContext*, const tensor_list& gradients) { return {gradients[0] * 7}; }
  };
  Tensor x = leaf({1, 2}), y = Same::apply(x);
  EXPECT_FALSE(y.is_same(x));
  EXPECT_TRUE(y.shares_storage(x));
  EXPECT_TRUE(x.is_leaf());
  y.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{7, 7}));
}

struct MinAndPlace : autograd::Function<MinAndPlace> {
  static tensor_list forward(AutogradContext* ctx, const Tensor& x, bool zeros_for_none) {
    Tensor twice = x * 2, marked = x * 3;
    ctx->mark_non_differentiable({marked});
    ctx->set_materialize_grads(zeros_for_none);
    return {twice, marked, x * 4, x.argmax()};
  }
  static tensor_list backward(AutogradContext*, const tensor_list& gradients) {
    EXPECT_EQ(gradients.size(), 4u);
    defined().clear();
    for (const Tensor& g : gradients) defined().push_back(g.defined());
    if (gradients[2].defined()) {
      EXPECT_EQ(numbers(gradients[2]), (Floats{0, 0}));
    }
    return {gradients[0] * 2, {}};
  }
  static std::vector<bool>& defined() {
    static std::vector<bool> list;
    return list;
  }
};

TEST(CustomFunction, ResultsThatHaveNoGradient) {
  Tensor x = leaf({1, 2});
  const tensor_list results = MinAndPlace::apply(x, true);
  EXPECT_TRUE(results[0].requires_grad());
  EXPECT_FALSE(results[1].requires_grad());
  EXPECT_TRUE(results[2].requires_grad());
  EXPECT_FALSE(results[3].requires_grad()) << "an integer";
  EXPECT_EQ(numbers(results[1]), (Floats{3, 6}));
  EXPECT_TRUE(contains(error_of([&] { results[1].sum().backward(); }), "does not require grad"));
}

TEST(CustomFunction, ZerosOrNothingWhereNoGradientArrives) {
  Tensor x = leaf({1, 2});
  MinAndPlace::apply(x, true)[0].sum().backward();
  EXPECT_EQ(MinAndPlace::defined(), (std::vector<bool>{true, true, true, true}));
  MinAndPlace::apply(x, false)[0].sum().backward();
  EXPECT_EQ(MinAndPlace::defined(), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(numbers(x.grad()), (Floats{4, 4}));
}

TEST(CustomFunction, KnowsWhichGradientsAreWanted) {
  struct Product : autograd::Function<Product> {
    static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b, double) {
      seen() = {ctx->needs_input_grad(0), ctx->needs_input_grad(1), ctx->needs_input_grad(2), ctx->needs_input_grad(9)};
      ctx->save_for_backward({a, b});
      return a * b;
    }
    static tensor_list backward(AutogradContext* ctx, const tensor_list& gradients) {
      const tensor_list saved = ctx->get_saved_variables();
      return {ctx->needs_input_grad(0) ? gradients[0] * saved[1] : Tensor(),
              ctx->needs_input_grad(1) ? gradients[0] * saved[0] : Tensor(), Tensor()};
    }
    static std::vector<bool>& seen() {
      static std::vector<bool> list;
      return list;
    }
  };
  Tensor a = leaf({1, 2}), b = leaf({3, 4}), constant = ones({2});
  Product::apply(a, b, 1.0).sum().backward();
  EXPECT_EQ(Product::seen(), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(numbers(a.grad()), (Floats{3, 4}));
  EXPECT_EQ(numbers(b.grad()), (Floats{1, 2}));
  Product::apply(constant, b, 1.0).sum().backward();
  EXPECT_EQ(Product::seen(), (std::vector<bool>{false, true, false, false}));
  EXPECT_FALSE(constant.grad().defined());
  Product::apply(a.detach(), constant, 1.0);
  EXPECT_EQ(Product::seen(), (std::vector<bool>{false, false, false, false}));
}

template <int kGradients>
struct Gives : autograd::Function<Gives<kGradients>> {
  static Tensor forward(AutogradContext*, const Tensor& a, const Tensor& b) { return a * b; }
  static tensor_list backward(AutogradContext*, const tensor_list& gradients) {
    return tensor_list(kGradients, gradients[0]);
  }
};

TEST(CustomFunction, TheNumberOfGradientsIsThatOfArguments) {
  Tensor a = leaf({1, 2}), b = leaf({3, 4});
  Gives<2>::apply(a, b).sum().backward();
  const int line = __LINE__ + 1;
  const std::string few = error_of([&] { Gives<1>::apply(a, b).sum().backward(); });
  EXPECT_TRUE(contains(few, "Gives<1>: got 1 gradients, expected 2, one for each argument of its forward")) << few;
  EXPECT_TRUE(contains(few, line_text(__FILE__, line) + "; backward() at ")) << few;
  const std::string many = error_of([&] { Gives<3>::apply(a, b).sum().backward(); });
  EXPECT_TRUE(contains(many, "Gives<3>: got 3 gradients, expected 2")) << many;
}

TEST(CustomFunction, AGradientHasTheTypeOfItsArgument) {
  struct Long : autograd::Function<Long> {
    static Tensor forward(AutogradContext*, const Tensor& x) { return x.sum(); }
    static tensor_list backward(AutogradContext*, const tensor_list& gradients) { return {gradients[0].expand({5})}; }
  };
  Tensor x = leaf({1, 2});
  const int line = __LINE__ + 1;
  const std::string error = error_of([&] { Long::apply(x).backward(); });
  EXPECT_TRUE(contains(error, "Long: gradient: got f32[5], expected f32[2], that of the tensor whose gradient it is"))
      << error;
  EXPECT_TRUE(contains(error, line_text(__FILE__, line))) << error;
}

TEST(CustomFunction, WithoutBackwardIsRefusedWhereAGradientArrives) {
  struct Forward : autograd::Function<Forward> {
    static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  };
  Tensor x = leaf({1, 2});
  const int line = __LINE__ + 1;
  Tensor y = Forward::apply(x);
  EXPECT_EQ(numbers(y), (Floats{2, 4}));
  const std::string error = error_of([&] { y.sum().backward(); });
  EXPECT_TRUE(contains(error, "Forward: a gradient reaches its result, and it has no backward")) << error;
  EXPECT_TRUE(contains(error, line_text(__FILE__, line) + "; backward() at ")) << error;
}

TEST(CustomFunction, TakesAnyNumberOfArguments) {
  struct Sum : autograd::Function<Sum> {
    static Tensor forward(AutogradContext*, const Tensor& a, const Tensor& b, const Tensor& c, double s, int64_t i,
                          bool on, const Tensor& d) {
      return on ? a + b + c * s + d * static_cast<double>(i) : a;
    }
    static tensor_list backward(AutogradContext*, const tensor_list& g) {
      return {g[0], g[0], g[0] * 2, {}, {}, {}, g[0] * 3};
    }
  };
  Tensor a = leaf({1}), b = leaf({2}), c = leaf({3}), d = leaf({4});
  Sum::apply(a, b, c, 2.0, int64_t{3}, true, d).backward();
  EXPECT_EQ(numbers(cat({a.grad(), b.grad(), c.grad(), d.grad()})), (Floats{1, 1, 2, 3}));
}

TEST(CustomFunction, TensorsInOptionalsAndLists) {
  struct Sum : autograd::Function<Sum> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, std::optional<Tensor> bias, const tensor_list& more,
                          double scale) {
      EXPECT_TRUE(ctx->needs_input_grad(0));
      Tensor sum = bias ? x + *bias : x * 1;
      for (const Tensor& t : more) sum = sum + t * scale;
      return sum;
    }
    static tensor_list backward(AutogradContext* ctx, const tensor_list& g) {
      tensor_list gradients{g[0], ctx->needs_input_grad(1) ? g[0] : Tensor()};
      for (size_t i = 2; i < 4; ++i) gradients.push_back(g[0] * static_cast<double>(i));
      gradients.emplace_back();
      return gradients;
    }
  };
  Tensor a = leaf({1, 2}), b = leaf({3, 4}), c = leaf({5, 6}), d = leaf({7, 8});
  Sum::apply(a, std::optional<Tensor>(b), tensor_list{c, d}, 2.0).sum().backward();
  EXPECT_EQ(numbers(cat({a.grad(), b.grad(), c.grad(), d.grad()})), (Floats{1, 1, 1, 1, 2, 2, 3, 3}));
  Sum::apply(a, std::nullopt, tensor_list{c, d}, 2.0).sum().backward();
  Sum::apply(a, std::optional<Tensor>(), tensor_list{c, d}, 2.0).sum().backward();
  EXPECT_EQ(numbers(cat({a.grad(), b.grad(), c.grad(), d.grad()})), (Floats{3, 3, 1, 1, 6, 6, 9, 9}));
}

TEST(CustomFunction, AGradientIsSummedToItsArgumentAndCast) {
  struct Sum : autograd::Function<Sum> {
    static Tensor forward(AutogradContext*, const Tensor& a, const Tensor& b) { return a + b; }
    static tensor_list backward(AutogradContext*, const tensor_list& g) { return {g[0], g[0].to(kFloat64)}; }
  };
  Tensor a = ones({2, 6, 4}).requires_grad_();
  for (const auto& sizes : {std::vector<int64_t>{4}, {6, 1}, {1, 1, 1}, {}, {2, 6, 4}}) {
    Tensor b = ones(sizes).requires_grad_();
    Sum::apply(a, b).sum().backward();
    ASSERT_EQ(b.grad().sizes(), b.sizes());
    EXPECT_EQ(b.grad().dtype(), kFloat32);
    EXPECT_EQ(b.grad().sum().item<float>(), 48);
    EXPECT_EQ(b.grad().reshape({-1})[0].item<float>(), 48 / static_cast<float>(b.numel()));
  }
}

TEST(CustomFunction, OfHigherOrder) {
  struct Cube : autograd::Function<Cube> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x) {
      Tensor y = x * x * x;
      ctx->save_for_backward({x, y});
      return y;
    }
    static tensor_list backward(AutogradContext* ctx, const tensor_list& gradients) {
      const tensor_list saved = ctx->get_saved_variables();
      return {3 * saved[1] / saved[0] * gradients[0]};
    }
  };
  Tensor x = leaf({1, 2}, kFloat64);
  Tensor first = autograd::grad({Cube::apply(x).sum()}, {x}, {}, {}, true)[0];
  EXPECT_EQ(numbers(first), (Floats{3, 12}));
  EXPECT_EQ(numbers(autograd::grad({first.sum()}, {x})[0]), (Floats{6, 12}));
}

TEST(CustomFunction, UndefinedGradientsOfArgumentsThatWereLeftOut) {
  struct Linear : autograd::Function<Linear> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w, const Tensor& bias = Tensor()) {
      ctx->save_for_backward({x, w});
      return bias.defined() ? x * w + bias : x * w;
    }
    static tensor_list backward(AutogradContext* ctx, const tensor_list& gradients) {
      const tensor_list saved = ctx->get_saved_variables();
      return {gradients[0] * saved[1], gradients[0] * saved[0], Tensor()};
    }
  };
  Tensor x = leaf({1, 2}), w = leaf({3, 4});
  Linear::apply(x, w).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{3, 4}));
  EXPECT_EQ(numbers(w.grad()), (Floats{1, 2}));
}

TEST(CustomFunction, SavedDataIsReadByLibTorchsNames) {
  struct Affine : autograd::Function<Affine> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, double factor, bool negative) {
      ctx->saved_data["factor"] = factor;
      ctx->saved_data["negative"] = negative;
      ctx->saved_data["power"] = 2;
      ctx->saved_data["x"] = x;
      return x * factor;
    }
    static tensor_list backward(AutogradContext* ctx, const tensor_list& gradients) {
      const autograd::SavedValue factor = ctx->saved_data["factor"];
      EXPECT_EQ(std::any_cast<double>(factor), 2.5);
      EXPECT_EQ(factor.toInt(), 2);
      EXPECT_EQ(ctx->saved_data["power"].toInt(), 2);
      EXPECT_TRUE(ctx->saved_data["negative"].toBool());
      EXPECT_TRUE(contains(error_of([&] { ctx->saved_data["x"].toDouble(); }), "expected a number"));
      EXPECT_TRUE(contains(error_of([&] { ctx->saved_data["none"].toTensor(); }), "expected a tensor"));
      return {gradients[0] * factor.toDouble() * ctx->saved_data["x"].toTensor(), {}, {}};
    }
  };
  Tensor x = leaf({1, 2});
  Affine::apply(x, 2.5, true).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{2.5, 5}));
}

}  // namespace
}  // namespace ingot
