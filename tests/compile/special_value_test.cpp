// Scalars for which an op has code of its own: they fork the trace, and give eager's bits.
#include <cmath>
#include <functional>

#include "ir.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

TEST(SpecialValue, ExponentsOfTheRowHaveProgramsOfTheirOwn) {
  auto f = [](const Tensor& x, double exponent) { return (x + 1).pow(exponent) * 2; };
  auto fast = compile(f, {.recompile_limit = 20});
  Tensor x = rand({1000}) + 0.5;
  for (int round = 0; round < 2; ++round)
    for (double e : {-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0}) EXPECT_TRUE(same_bits(fast(x, e), f(x, e))) << e;
  EXPECT_EQ(fast.stats().compilations, 8);
  // All others share one.
  for (double e : {1.5, -3.0, 7.25}) EXPECT_TRUE(same_bits(fast(x, e), f(x, e))) << e;
  EXPECT_EQ(fast.stats().compilations, 9);
}

TEST(SpecialValue, IntegersAndFloatsAreDifferentExponents) {
  auto by_integer = [](const Tensor& x, int64_t e) { return x.pow(e); };
  auto by_float = [](const Tensor& x, double e) { return x.pow(e); };
  auto fast_integer = compile(by_integer);
  auto fast_float = compile(by_float);
  Tensor x = tensor({-3, 0, 5});
  for (int64_t e : {0, 1, 2, 3, 5}) {
    EXPECT_TRUE(same_bits(fast_integer(x, e), by_integer(x, e))) << e;
    EXPECT_EQ(fast_integer(x, e).dtype(), kInt64);
    EXPECT_TRUE(same_bits(fast_float(x, static_cast<double>(e)), by_float(x, static_cast<double>(e)))) << e;
    EXPECT_EQ(fast_float(x, static_cast<double>(e)).dtype(), kFloat32);
  }
}

TEST(SpecialValue, AreProductsQuotientsAndRoots) {
  Tensor x = randn({1000}).abs();
  EXPECT_TRUE(same_bits(x.pow(2), x * x));
  EXPECT_TRUE(same_bits(x.pow(3), x * x * x));
  EXPECT_TRUE(same_bits(x.pow(0.5), x.sqrt()));
  EXPECT_TRUE(same_bits(x.pow(-1), x.reciprocal()));
  EXPECT_TRUE(same_bits(x.pow(1), x));
  Tensor y = x.clone();
  y.pow_(2);
  EXPECT_TRUE(same_bits(y, x * x));
}

TEST(SpecialValue, AreKeptWhereACallRunsOpByOp) {
  auto f = [](const Tensor& x, double e) -> Tensor {
    Tensor y = x.pow(e).pow(2);
    if (y.dim() == 1) throw std::runtime_error("stop");
    return y;
  };
  auto fast = compile(f);
  for (double e : {3.0, 2.5}) EXPECT_THROW(fast(ones({2}), e), std::runtime_error);
}

TEST(SpecialValue, AnAlphaOfOneIsNoFactor) {
  const std::function<Tensor(const Tensor&, const Tensor&, double)> functions[] = {
      [](const Tensor& x, const Tensor& y, double a) { return x.add(y, a) + x; },
      [](const Tensor& x, const Tensor& y, double a) { return x.sub(y, a).exp(); },
      [](const Tensor& x, const Tensor& y, double a) { return rsub(x, y, a).clone(); },
      [](const Tensor& x, const Tensor& y, double a) { return x.clone().add_(y, a); }};
  const Tensor x = randn({40}), y = randn({40});
  for (const auto& f : functions) {
    auto fast = compile(f, {.recompile_limit = 20});
    for (int round = 0; round < 2; ++round)
      for (double a : {1.0, 2.0, -0.0, 1.0, 0.5}) EXPECT_TRUE(same_bits(fast(x, y, a), f(x, y, a))) << a;
    EXPECT_EQ(fast.stats().compilations, 2);
    auto gradients = [&](double a) {
      const Tensor u = x.clone().requires_grad_(), v = y.clone().requires_grad_();
      f(u, v, a).sum().backward();
      return stack({u.grad(), v.grad()});
    };
    auto fast_gradients = compile(gradients, {.recompile_limit = 20});
    for (double a : {1.0, 2.0, 1.0, 0.5}) EXPECT_TRUE(same_bits(fast_gradients(a), gradients(a))) << a;

    NoGradGuard guard;
    auto frozen = compile(f, {.mode = CompileMode::frozen, .recompile_limit = 20});
    for (int round = 0; round < 4; ++round)
      for (double a : {1.0, 2.0, 1.0, 0.5}) EXPECT_TRUE(same_bits(frozen(x, y, a), f(x, y, a))) << a << " frozen";
  }
  // Of any category, and of integers.
  const Tensor i = tensor({1, 2, 3});
  auto by_integer = [](const Tensor& t, int64_t a) { return t.add(t, a); };
  auto fast = compile(by_integer);
  for (int64_t a : {1, 3, 1, -2}) EXPECT_TRUE(same_bits(fast(i, a), by_integer(i, a))) << a;
  EXPECT_TRUE(same_bits(tensor({true}).add(tensor({false}), true), tensor({true})));
}

// Written by hand, a graph has them as scalars or sizes of a call.
TEST(SpecialValue, AreThoseOfEagerInGraphs) {
  int judged = 0;
  for (DType dtype : {kFloat32, kFloat64, kBFloat16, kFloat16, kInt64})
    for (Category category : {Category::floating, Category::integer}) {
      ir::Graph graph;
      const Dim n = graph.dims.symbol(4);
      const ir::ValueId x = graph.add_input(dtype, {n});
      const uint32_t e = graph.add_scalar(category);
      const ir::ValueId power = graph.add(OpId::pow, {ir::Operand::value(x), ir::Operand::scalar(e, category)}, {});
      graph.outputs.push_back(graph.add(OpId::mul, {ir::Operand::value(power), ir::Operand::constant(2.0)}));
      graph.outputs.push_back(graph.add(OpId::pow, {ir::Operand::value(x), ir::Operand::size(n)}));
      const auto f = compile(std::move(graph));
      for (int64_t size : {1, 2, 3, 7}) {
        const Tensor in = (rand({size}) * 9 + 0.5).to(dtype);
        for (double v : {-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5, 4.0}) {
          const bool whole = category == Category::integer;
          if (whole && (v != std::trunc(v) || (v < 0 && dtype == kInt64))) continue;
          const Scalar exponent = whole ? Scalar(static_cast<int64_t>(v)) : Scalar(v);
          const auto out = f({&in, 1}, {&exponent, 1});
          EXPECT_TRUE(same_bits(out[0], in.pow(exponent) * 2.0)) << name_of(dtype) << " " << v;
          EXPECT_TRUE(same_bits(out[1], in.pow(size))) << name_of(dtype) << " to the " << size;
          ++judged;
        }
      }
    }
  EXPECT_EQ(judged, 4 * (4 * (11 + 8) + 11 + 6));
}

TEST(SpecialValue, AnAlphaOfOneInAGraph) {
  ir::Graph graph;
  const ir::Operand x = ir::Operand::value(graph.add_input(kFloat32, {5})),
                    y = ir::Operand::value(graph.add_input(kFloat32, {5}));
  const ir::Operand given = ir::Operand::scalar(graph.add_scalar(Category::floating), Category::floating);
  for (const ir::Operand& alpha : {ir::Operand::constant(1.0), ir::Operand::constant(int64_t{1}), given})
    for (OpId op : {OpId::add, OpId::sub, OpId::rsub}) graph.outputs.push_back(graph.add(op, {x, y, alpha}));
  const auto f = compile(std::move(graph));
  const std::vector<Tensor> in{randn({5}), randn({5})};
  for (double v : {1.0, 2.0, -0.0, 1.0}) {
    const Scalar alpha = v;
    const auto out = f(in, {&alpha, 1});
    for (size_t i = 0; i < out.size(); ++i) {
      const double a = i < 6 ? 1 : v;
      const Tensor expected = i % 3 == 0   ? in[0].add(in[1], a)
                              : i % 3 == 1 ? in[0].sub(in[1], a)
                                           : rsub(in[0], in[1], a);
      EXPECT_TRUE(same_bits(out[i], expected)) << i << " by " << v;
    }
  }
}

// No kernel runs for it, and no memory is taken.
TEST(SpecialValue, EagersGradientOfASumIsTheCotangent) {
  const Tensor x = randn({4096}).requires_grad_(), y = randn({4096}).requires_grad_(), g = randn({4096});
  for (const auto& [sum, same] :
       {std::pair(x + y, true), std::pair(x.add(y, 1), true), std::pair(x.add(y, 2), false)}) {
    const std::vector<Tensor> found = autograd::grad({sum}, {x, y}, {g});
    EXPECT_TRUE(found[0].shares_storage(g));
    EXPECT_EQ(found[1].shares_storage(g), same);
    EXPECT_TRUE(same_bits(found[1], same ? g : g * 2));
  }
}

// Rounded to f32, the second and third are 3: only the first is a product.
TEST(SpecialValue, AreToldBeforeTheyAreRounded) {
  const Tensor x = rand({4096}) * 9 + 0.5;
  int differ = 0;
  for (double exponent : {3.0, 3.00000000001, 2.9999999999}) {
    ir::Graph graph;
    const ir::ValueId in = graph.add_input(kFloat32, {graph.dims.symbol(4096)});
    graph.outputs.push_back(graph.add(OpId::pow, {ir::Operand::value(in), ir::Operand::constant(exponent)}, {}));
    const Tensor out = compile(std::move(graph))({&x, 1}, {})[0];
    EXPECT_TRUE(same_bits(out, x.pow(exponent))) << exponent;
    EXPECT_TRUE(same_bits(compile([&](const Tensor& y) { return y.pow(exponent); })(x), out)) << exponent;
    differ += !same_bits(out, x * x * x);
  }
  EXPECT_EQ(differ, 2);
  // A tensor of threes is no literal either.
  auto f = [](const Tensor& y) { return y.pow(ones({1}) + 2); };
  EXPECT_TRUE(same_bits(compile(f)(x), f(x)));
}

}  // namespace
}  // namespace ingot
