// Functions of matrices inside of compiled functions: steps of their programs, with eager's bits, errors and gradients.
#include <functional>

#include "eager/support.h"
#include "support.h"

namespace ingot {
namespace {

using std::get;
using test::message_of;
using test::same_bits;

/// A positive definite matrix, or a batch of them.
Tensor positive(const IntList& sizes, DType dtype = kFloat64) {
  const Tensor x = randn(sizes).to(dtype);
  return matmul(x, x.mT()) + eye(x.size(-1), {}, dtype);
}

/// The negative logarithm of a Gaussian process's likelihood.
Tensor likelihood(const Tensor& x, const Tensor& y, const Tensor& scale) {
  const Tensor apart = (x.unsqueeze(1) - x.unsqueeze(0)) / scale;
  const Tensor l = linalg::cholesky((apart.square() * -0.5).exp() + 0.1 * eye(x.size(0), {}, x.dtype()));
  const Tensor white = linalg::solve_triangular(l, y.unsqueeze(1), false);
  return 0.5 * white.square().sum() + l.diagonal().log().sum();
}

TEST(CompiledMatrices, AGaussianProcessIsOneProgram) {
  for (const DType dtype : {kFloat32, kFloat64}) {
    const auto gradient = [](const Tensor& x, const Tensor& y, const Tensor& scale) {
      const Tensor own = scale.detach().requires_grad_();
      const Tensor loss = likelihood(x, y, own);
      return std::pair(loss.detach(), autograd::grad({loss}, {own})[0]);
    };
    auto fast = compile(gradient);
    auto alone = compile(likelihood);
    for (const int64_t n : {5, 5, 7, 20}) {
      const Tensor x = linspace(0, 3, n).to(dtype), y = x.sin();
      const Tensor scale = tensor(0.7, dtype), own = scale.clone().requires_grad_();
      const auto expected = gradient(x, y, scale), got = fast(x, y, scale);
      EXPECT_TRUE(same_bits(got.first, expected.first));
      EXPECT_TRUE(same_bits(got.second, expected.second));
      alone(x, y, own).backward();
      EXPECT_TRUE(same_bits(own.grad(), expected.second));
    }
    EXPECT_EQ(fast.stats().graph_breaks + alone.stats().graph_breaks, 0);
    EXPECT_EQ(fast.stats().fallbacks + alone.stats().fallbacks, 0);
    EXPECT_NE(fast.explain().str().find("linalg_cholesky_ex"), std::string::npos);
  }
}

TEST(CompiledMatrices, AKalmanFilterIsOneProgram) {
  const NoGradGuard no_grad;
  const Tensor f = tensor({{1., .1}, {0., 1.}}), h = tensor({{1., 0.}}), noise = 0.1 * eye(2, {}, f.dtype());
  const auto filter = [&](const Tensor& seen) {
    Tensor mean = zeros({2, 1}, f.dtype()), covariance = eye(2, {}, f.dtype());
    for (int64_t t = 0; t < 4; ++t) {
      mean = matmul(f, mean), covariance = matmul(matmul(f, covariance), f.mT()) + noise;
      const Tensor s = matmul(matmul(h, covariance), h.mT()) + 0.5;
      const Tensor gain = linalg::solve(s, matmul(h, covariance)).mT();
      mean = mean + matmul(gain, seen.select(0, t).view({1, 1}) - matmul(h, mean));
      covariance = matmul(eye(2, {}, f.dtype()) - matmul(gain, h), covariance);
    }
    return std::pair(mean, covariance);
  };
  for (const CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(filter, {.mode = mode});
    for (int call = 0; call < 4; ++call) {
      const Tensor seen = randn({4}).to(f.dtype());
      EXPECT_TRUE(same_bits(fast(seen).first, filter(seen).first));
      EXPECT_TRUE(same_bits(fast(seen).second, filter(seen).second));
    }
    EXPECT_EQ(fast.stats().graph_breaks, 0);
  }
}

struct Case {
  const char* name;
  std::function<Tensor(const Tensor&)> f;  // of a positive matrix
};
const Case kCases[] = {
    {"inv", [](const Tensor& a) { return linalg::inv(a); }},
    {"det", [](const Tensor& a) { return linalg::det(a) + logdet(a); }},
    {"slogdet", [](const Tensor& a) { return get<0>(linalg::slogdet(a)) * get<1>(linalg::slogdet(a)); }},
    {"solve", [](const Tensor& a) { return linalg::solve(a, a.mT(), false); }},
    {"cholesky", [](const Tensor& a) { return linalg::cholesky(a, true); }},
    {"cholesky_solve", [](const Tensor& a) { return cholesky_solve(a, linalg::cholesky(a)); }},
    {"lu", [](const Tensor& a) { return get<1>(linalg::lu(a)) + get<2>(linalg::lu(a)); }},
    {"lu_solve",
     [](const Tensor& a) {
       const auto [packed, pivots] = linalg::lu_factor(a);
       return linalg::lu_solve(packed, pivots, a);
     }},
    {"qr", [](const Tensor& a) { return get<0>(linalg::qr(a)) + get<1>(linalg::qr(a)); }},
    {"eigh", [](const Tensor& a) { return get<1>(linalg::eigh(a)) * linalg::eigvalsh(a).unsqueeze(-2); }},
    {"svd", [](const Tensor& a) { return get<0>(linalg::svd(a)) + get<2>(linalg::svd(a)); }},
    {"svdvals", [](const Tensor& a) { return linalg::svdvals(a) + nuclear_norm(a).unsqueeze(-1); }},
    {"pinv", [](const Tensor& a) { return linalg::pinv(a); }},
    {"matrix_exp", [](const Tensor& a) { return linalg::matrix_exp(a * 0.1); }},
    {"matrix_sqrth", [](const Tensor& a) { return linalg::matrix_sqrth(a); }},
    {"cond", [](const Tensor& a) { return linalg::cond(a, 1); }},
};

TEST(CompiledMatrices, EveryFunctionHasEagersBits) {
  const NoGradGuard no_grad;
  manual_seed(3);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    auto fast = compile([&](const Tensor& a) { return c.f(a * 1) * 2; });
    for (const Tensor& a :
         {positive({3, 3}), positive({2, 3, 3}), positive({5, 4, 4}), positive({1, 1}), positive({2, 3, 3}, kFloat32),
          positive({2, 3, 3}).transpose(0, 1).contiguous().transpose(0, 1), positive({18, 18}), positive({0, 3, 3})})
      EXPECT_TRUE(same_bits(fast(a), c.f(a * 1) * 2)) << a.sizes();
    EXPECT_EQ(fast.stats().graph_breaks, 0);
    EXPECT_EQ(fast.stats().fallbacks, 0);
  }
}

TEST(CompiledMatrices, GradientsAreEagers) {
  manual_seed(3);
  const Tensor a = positive({2, 3, 3});
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto gradient = [&](const Tensor& x) {
      const Tensor own = x.detach().requires_grad_();
      return autograd::grad({c.f(own * 1).square().sum()}, {own})[0];
    };
    auto fast = compile(gradient);
    auto alone = compile([&](const Tensor& x) { return c.f(x * 1).square().sum(); });
    const Tensor own = a.clone().requires_grad_(), expected = gradient(a);
    EXPECT_TRUE(same_bits(fast(a), expected));
    alone(own).backward();
    EXPECT_TRUE(same_bits(own.grad(), expected));
    EXPECT_EQ(fast.stats().graph_breaks + alone.stats().graph_breaks, 0);
  }
}

TEST(CompiledMatrices, SlicesOfAVmapAreBatches) {
  const NoGradGuard no_grad;
  manual_seed(3);
  const Tensor a = positive({4, 3, 3});
  for (const Case& c : kCases) {
    const std::string name = c.name;
    if (name == "pinv" || name == "matrix_sqrth" || name == "svdvals") continue;  // a Function of its own
    SCOPED_TRACE(name);
    EXPECT_TRUE(allclose(func::vmap(c.f)(a), c.f(a), 1e-10, 1e-10));
  }
  EXPECT_EQ(
      message_of([&] {
        func::vmap([](const Tensor& x) { return linalg::inv(x - x); })(a);
      }).rfind("linalg::inv: A: got matrix 0 that is singular (pivot 1 is 0), expected one that has an inverse", 0),
      0u);
}

/// What is wrong of values is said in eager's words at the user's line, and what was done before it is as it is in
/// eager.
TEST(CompiledMatrices, ErrorsAreEagers) {
  const NoGradGuard no_grad;
  const Tensor right = eye(2, {}, kFloat64), zero = zeros({2, 2}, kFloat64);
  const auto check = [&](const char* words, const std::function<Tensor(const Tensor&)>& f) {
    SCOPED_TRACE(words);
    const auto step = [&](const Tensor& a, const Tensor& before, const Tensor& behind) {
      before.add_(1);
      const Tensor result = f(a * 1);
      behind.add_(1);
      return result.sum();
    };
    for (const CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
      auto fast = compile(step, {.mode = mode});
      const Tensor before = zeros({3}), behind = zeros({3});
      for (int call = 0; call < 3; ++call) {
        fast(right, before, behind);
        const std::string text = message_of([&] { fast(zero, before, behind); });
        EXPECT_EQ(text.rfind(words, 0), 0u) << text;
        EXPECT_NE(text.find("matrices_test.cpp"), std::string::npos) << text;
        EXPECT_TRUE(same_bits(before, full({3}, 2.f * static_cast<float>(call + 1))));
        EXPECT_TRUE(same_bits(behind, full({3}, static_cast<float>(call + 1))));
      }
      EXPECT_EQ(fast.stats().graph_breaks, 0);
    }
  };
  check(
      "linalg::cholesky: A: got a matrix whose leading minor of order 1 is not positive, expected positive definite "
      "ones",
      [](const Tensor& a) { return linalg::cholesky(a); });
  check("linalg::inv: A: got a matrix that is singular (pivot 1 is 0), expected one that has an inverse",
        [](const Tensor& a) { return linalg::inv(a); });
  check("linalg::solve: A: got matrix 1 that is singular (pivot 2 is 0)", [](const Tensor& a) {
    return linalg::solve(stack({eye(2, {}, kFloat64), a + 1 - a * 0.5}), a);
  });
  check("linalg::svd: A: got elements that are not finite",
        [](const Tensor& a) { return get<1>(linalg::svd((a.sum() * 1e300) / a.sum() + a)); });
}

TEST(CompiledMatrices, ASingularDeterminantHasAGradient) {
  const auto gradient = [](const Tensor& x) {
    const Tensor own = x.detach().requires_grad_();
    return autograd::grad({linalg::det(own * 1).sum()}, {own})[0];
  };
  const Tensor a = tensor({{{1., 2.}, {2., 4.}}, {{2., 0.}, {0., 2.}}}, kFloat64);
  auto fast = compile(gradient);
  EXPECT_TRUE(allclose(fast(a), tensor({{{4., -2.}, {-2., 1.}}, {{2., 0.}, {0., 2.}}}, kFloat64)));
  EXPECT_TRUE(same_bits(fast(a), gradient(a)));
  EXPECT_EQ(fast.stats().graph_breaks, 0);
}

/// They take memory as they run, which there may be none of: nothing is written over an input by then.
TEST(CompiledMatrices, WhatIsWrittenIsWrittenBehindThem) {
  const NoGradGuard no_grad;
  auto fast = compile([](const Tensor& a, const Tensor& sum) { sum.add_(linalg::det(a * 2)); });
  const Tensor a = positive({3, 3}), sum = zeros({}, kFloat64), expected = 2 * linalg::det(a * 2);
  fast(a, sum), fast(a, sum);
  EXPECT_TRUE(same_bits(sum, expected));
  EXPECT_NE(fast.explain().str().find("a function of matrices may find no memory"), std::string::npos);
}

/// Larger matrices are made of products of blocks, whatever the number of threads and the instruction set.
TEST(CompiledMatrices, BlocksHaveTheSameBitsEverywhere) {
  const NoGradGuard no_grad;
  manual_seed(3);
  const Tensor a = positive({40, 40}), b = randn({40, 3}).to(kFloat64);
  const auto f = [](const Tensor& a, const Tensor& b) {
    return std::pair(linalg::solve(a, b) + linalg::cholesky(a).sum(), linalg::eigvalsh(a) + linalg::svdvals(a));
  };
  const auto expected = f(a, b);
  test::on_every_target({1, 2}, [&] {
    auto fast = compile(f);
    EXPECT_TRUE(same_bits(fast(a, b).first, expected.first));
    EXPECT_TRUE(same_bits(fast(a, b).second, expected.second));
  });
}

}  // namespace
}  // namespace ingot
