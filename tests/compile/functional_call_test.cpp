// Calls of modules with other parameters, and derivatives as functions, in compiled code: eager's bits.
#include "compile/support.h"

namespace ingot {
namespace {

using test::same_bits;

TEST(FunctionalCall, IsRecordedWithWhatItIsGiven) {
  const NoGradGuard no_grad;
  const nn::Sequential net(nn::Linear(3, 4), nn::GELU(), nn::Linear(4, 2));
  const auto call = [&](const Tensor& w, const Tensor& x) {
    return func::functional_call(net, {{"0.weight", w}}, x) + net(x);
  };
  for (const CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(call, {.mode = mode});
    for (int64_t n : {1, 4, 7, 7}) {
      const Tensor w = randn({4, 3}), x = randn({n, 3});
      EXPECT_TRUE(same_bits(fast(w, x), call(w, x)));
    }
    EXPECT_LE(fast.stats().compilations, 2);
    EXPECT_EQ(fast.stats().graph_breaks, 0);
    EXPECT_EQ(fast.stats().fallbacks, 0);
  }
}

TEST(FunctionalCall, GradientsAreEagers) {
  const nn::Linear net(3, 2);
  const auto step = [&](const Tensor& w, const Tensor& x) {
    const auto loss = [&](const StateDict& p) { return func::functional_call(net, p, x).square().mean(); };
    return func::grad(loss)({{"weight", w}}).at("weight");
  };
  auto fast = compile(step);
  for (int64_t n : {2, 5, 6}) {
    const Tensor w = randn({2, 3}), x = randn({n, 3});
    EXPECT_TRUE(same_bits(fast(w, x), step(w, x)));
  }
  EXPECT_EQ(fast.stats().graph_breaks, 0);
}

// vmap is recorded as the ops of whole batches.
TEST(FunctionalCall, GradientsOfEachSampleAreEagers) {
  const auto loss = [](const Tensor& w, const Tensor& v) { return matmul(w, v).tanh().square().mean(); };
  const auto slopes = func::vmap(func::grad(loss), {std::nullopt, 0});
  const auto values = func::vmap(loss, {std::nullopt, 0});
  const auto expect_eagers = [](auto fast, const auto& step) {
    for (int64_t n : {2, 5, 6, 6, 2}) {
      const Tensor w = randn({2, 3}), x = randn({n, 3});
      EXPECT_TRUE(same_bits(fast(w, x), step(w, x)));
    }
    EXPECT_LE(fast.stats().compilations, 3);
    EXPECT_EQ(fast.stats().graph_breaks, 0);
    EXPECT_EQ(fast.stats().fallbacks, 0);
  };
  expect_eagers(compile([&](const Tensor& w, const Tensor& x) { return slopes(w, x); }), slopes);
  expect_eagers(compile([&](const Tensor& w, const Tensor& x) { return values(w, x); }, {.mode = CompileMode::frozen}),
                values);
  // A compiled function inside of a vmap is called as what it holds.
  auto inner = compile([](const Tensor& v) { return v.exp().sum(); });
  const Tensor x = randn({4, 3});
  EXPECT_TRUE(same_bits(func::vmap(inner)(x), x.exp().sum(1)));
}

}  // namespace
}  // namespace ingot
