// Functions written over ops inside of compiled functions: eager's bits without a break where no shape depends on
// values, and eager's bits behind a break where one does.
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

template <class F, class... Args>
void check(const char* name, F f, const Args&... args) {
  SCOPED_TRACE(name);
  auto fast = compile(f);
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(fast(args...), f(args...)));
  EXPECT_EQ(fast.stats().graph_breaks, 0);
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(ComposedFunctions, AreCapturedWhole) {
  const Tensor x = randn({5, 6}), q = tensor({.1f, .7f}), row = randn({6}), i = randint(0, 5, {3});
  check(
      "median", [](const Tensor& x) { return std::get<0>(median(x * 2, 1)) + median(x); }, x);
  check(
      "quantile", [](const Tensor& x, const Tensor& q) { return quantile(x + 1, q, 1).exp(); }, x, q);
  check(
      "nanquantile", [](const Tensor& x) { return nanquantile(x / x.round(), 0.3, 0); }, x);
  check(
      "histc", [](const Tensor& x) { return histc(x.tanh(), 4) + histc(x, 4, -1, 1); }, x);
  check(
      "histogram", [](const Tensor& x) { return std::get<0>(histogram(x * 3, 5, {}, x.abs(), true)); }, x);
  check(
      "cov", [](const Tensor& x) { return cov(x) + corrcoef(x.relu()); }, x);
  check(
      "isin", [](const Tensor& x, const Tensor& i) { return isin(x.round(), i * 2); }, x, i);
  check(
      "trapezoid", [](const Tensor& x, const Tensor& row) { return trapezoid(x, row.cumsum(0)) + trapezoid(x); }, x,
      row);
  check(
      "cumulative_trapezoid", [](const Tensor& x) { return cumulative_trapezoid(x, 0.5, 0); }, x);
  check(
      "gradient", [](const Tensor& x) { return gradient(x)[0] * gradient(x, 0.5, 1, 2)[0]; }, x);
  check(
      "kron", [](const Tensor& x, const Tensor& row) { return kron(x, row + 1); }, x, row);
  check(
      "cross", [](const Tensor& x) { return linalg::cross(x.narrow(1, 0, 3), x.narrow(1, 3, 3)); }, x);
  check(
      "multi_dot",
      [](const Tensor& x) {
        return linalg::multi_dot({x, x.t(), x});
      },
      x);
  check(
      "matrix_power", [](const Tensor& x) { return matrix_power(x.narrow(1, 0, 5), 5); }, x);
  check(
      "vander", [](const Tensor& row) { return vander(row, 4); }, row);
  check(
      "renorm", [](const Tensor& x) { return renorm(x, 2, 0, 1) + dist(x, x.relu()); }, x);
  check(
      "block_diag",
      [](const Tensor& x, const Tensor& row) {
        return block_diag({x, row, x.t()});
      },
      x, row);
  check(
      "cartesian_prod",
      [](const Tensor& row) {
        return cartesian_prod({row, row * 2});
      },
      row);
  check(
      "combinations", [](const Tensor& row) { return combinations(row + 1, 3); }, row);
  check(
      "atleast_3d", [](const Tensor& x) { return atleast_3d(ravel(x.t()) * 2); }, x);
  check(
      "replacements",
      [](const Tensor& x, const Tensor& row) {
        return select_scatter(x, row * 2, 0, 1) + slice_scatter(x, row.unsqueeze(0), 0, 2, 3) +
               diagonal_scatter(x, row.narrow(0, 0, 5), 1);
      },
      x, row);
  check(
      "put", [](const Tensor& x, const Tensor& i) { return put(x + 1, i, i.to(kFloat32), true); }, x, i);
  check(
      "index_reduce", [](const Tensor& x, const Tensor& i) { return index_reduce(x, 0, i, x.narrow(0, 1, 3), "amax"); },
      x, i);
  check(
      "special",
      [](const Tensor& x) {
        return special::ndtr(x) + special::log_ndtr(x * 3) + special::entr(x.abs()) + special::xlog1py(x, x.relu());
      },
      x);
}

// Eager sums their polynomials in registers, and only those of which there are numbers.
TEST(ComposedFunctions, BesselFunctionsOfNearAndFarNumbers) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor ends = tensor({0., -0., 8., 2., -4., inf, -inf, nan}, kFloat64);
  const Tensor near = rand({77}, kFloat64) * 2 - 1, far = randn({5, 9}, kFloat64).abs() + 9;
  for (const Tensor& x : {near, far, -far, ends, cat({near, far.flatten(), ends}), zeros({0}, kFloat64), far.t()})
    check(
        "bessel",
        [](const Tensor& x) {
          return stack({special::i0(x), special::i1e(x), special::bessel_j0(x), special::bessel_j1(x),
                        special::bessel_y0(x), special::modified_bessel_k0(x), special::modified_bessel_k1(x),
                        special::airy_ai(x)});
        },
        x);
}

// Eager computes the tail for its own numbers alone.
TEST(ComposedFunctions, NormalQuantilesOfTailAndCentre) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor ends = tensor({0., 1., -1., 2., 0.1, 1e-300, 0.09, nan}, kFloat64), tail = rand({3, 5}, kFloat64) * 0.1;
  for (const Tensor& p : {ends, tail, tail.t() + 0.5, zeros({0, 2}, kFloat64), scalar_tensor(0.01, kFloat64)})
    check(
        "ndtri", [](const Tensor& p) { return special::ndtri(p); }, p);
}

TEST(ComposedFunctions, SpecialOnesAndWindows) {
  const Tensor x = randn({5, 6}), wide = randn({7}, kFloat64) * 10;
  check(
      "bessel",
      [](const Tensor& x) {
        return special::i0(x) + special::i1(x) + special::i0e(x) * special::i1e(x) + special::bessel_j0(x) +
               special::bessel_j1(x) + special::bessel_y0(x.abs()) - special::bessel_y1(x.abs());
      },
      wide);
  check(
      "ndtri", [](const Tensor& x) { return special::ndtri(x.sigmoid()); }, x);
  check(
      "zeta", [](const Tensor& x) { return special::zeta(x.abs() + 1, x * 3); }, x);
  check(
      "windows",
      [](const Tensor& x) {
        return x * (hann_window(6) + hamming_window(6, false) + blackman_window(6) * bartlett_window(6) +
                    kaiser_window(6, true, 5));
      },
      x);
  check(
      "shapes in place",
      [](const Tensor& x) {
        Tensor y = x * 2;
        y.t_().unsqueeze_(1);
        return y.sum_to_size({1, 1, 5}) + y;
      },
      x);
  check(
      "fill_diagonal_", [](const Tensor& x) { return (x + 1).fill_diagonal_(3); }, x);
  check(
      "householder_product", [](const Tensor& x) { return linalg::householder_product(x.t(), x.select(1, 0) / 4); }, x);
}

TEST(ComposedFunctions, RandomNumbersAreEagers) {
  const Tensor rate = rand({40}) * 9;
  const auto f = [](const Tensor& rate) {
    const Tensor own = empty_like(rate);
    return normal(rate, rate) + normal(1, rate) + poisson(rate) + binomial(rate.round(), rate / 9) + own.log_normal_() +
           own.cauchy_() + own.geometric_(0.3) + own.random_(5);
  };
  auto fast = compile(f);
  for (int call = 0; call < 3; ++call) {
    manual_seed(call);
    const Tensor expected = f(rate);
    manual_seed(call);
    EXPECT_TRUE(same_bits(fast(rate), expected));
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(ComposedFunctions, OtherSizesAreComputedToo) {
  const auto f = [](const Tensor& x) { return quantile(x, 0.4, 1).sum() + cov(x).sum() + kron(x, x).mean(); };
  auto fast = compile(f);
  for (int64_t n : {3, 4, 7, 5}) {
    const Tensor x = randn({n, n + 2});
    EXPECT_TRUE(same_bits(fast(x), f(x))) << n;
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(ComposedFunctions, ValuesThatAreReadBreakTheGraph) {
  const auto f = [](const Tensor& x, const Tensor& i) {
    const Tensor counts = bincount(i + 1, x.select(1, 0).exp());
    const Tensor slices = std::get<0>(unique_dim((x > 0).to(kFloat32), 0)) + std::get<0>(unique_consecutive(i)).sum();
    const Tensor a = matmul(x, x.t()) + eye(x.size(0));
    return counts.sum() + slices.sum() + linalg::solve(a, x).sum() + std::get<1>(slogdet(a)) +
           linalg::svdvals(x).sum() + std::get<2>(linalg::lu(a)).sum() + igamma(x.abs(), x.abs() + 1).sum() +
           linalg::cond(a, 1);
  };
  auto fast = compile(f);
  for (int call = 0; call < 3; ++call) {
    const Tensor x = randn({4, 6}), i = randint(0, 9, {4});
    EXPECT_TRUE(same_bits(fast(x, i), f(x, i)));
  }
  EXPECT_GT(fast.stats().graph_breaks, 0);
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

// Their products are no part of what is recorded.
TEST(ComposedFunctions, MatricesThatAreComputedInBlocks) {
  const auto f = [](const Tensor& x) {
    const Tensor a = matmul(x, x.t()) + eye(x.size(0));
    return linalg::solve(a, x * 2) + std::get<0>(linalg::qr(a)) * linalg::cholesky(a) + std::get<1>(linalg::eigh(a));
  };
  auto fast = compile(f);
  for (int call = 0; call < 3; ++call) {
    const Tensor x = randn({40, 40}), a = x.clone().requires_grad_(), b = x.clone().requires_grad_();
    f(a).sum().backward();
    fast(b).sum().backward();
    EXPECT_TRUE(same_bits(fast(x), f(x)) && same_bits(a.grad(), b.grad()));
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(ComposedFunctions, VectorsOfAnotherType) {
  const std::vector<float> factors{1, 2, 0.5};
  const auto f = [&](const Tensor& x) { return (x + 1) * tensor(factors, kFloat64); };
  auto fast = compile(f);
  for (int call = 0; call < 3; ++call) {
    const Tensor x = randn({4, 3});
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(ComposedFunctions, GradientsAreEagers) {
  const auto f = [](const Tensor& x) {
    return quantile(x, 0.3, 1).sum() + std::get<0>(nanmedian(x, 0)).sum() + corrcoef(x).square().sum() +
           linalg::inv(matmul(x, x.t()) + eye(x.size(0))).sum() + gradient(x, 1, 1)[0].exp().sum() +
           special::i1(x).sum() + special::ndtri(x.sigmoid()).sum() + special::zeta(2.5, x.abs() + 1).sum();
  };
  auto fast = compile(f);
  for (int call = 0; call < 2; ++call) {
    const Tensor x = randn({3, 6}), a = x.clone().requires_grad_(), b = x.clone().requires_grad_();
    f(a).backward();
    fast(b).backward();
    EXPECT_TRUE(same_bits(a.grad(), b.grad()));
  }
}

}  // namespace
}  // namespace ingot
