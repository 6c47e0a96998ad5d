// Elimination and what is solved with it, beside PyTorch's numbers.
#include <limits>

#include "eager/autograd/autograd.h"
#include "eager/ops/linalg.h"
#include "eager/ops/near.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;
using test::near;

constexpr double kTolerance = 1e-11;

Tensor tall() { return tensor({{1., 2., 3.}, {4., 5., 6.}, {7., 8., 10.}, {2., -1., 4.}}, kFloat64); }
Tensor square_one() { return tall().narrow(0, 0, 3); }
bool has(const std::function<void()>& f, const char* text) { return message_of(f).find(text) != std::string::npos; }

TEST(Lu, OfAllShapes) {
  {
    const auto [p, l, u] = linalg::lu(tall());
    EXPECT_TRUE(near(p, tensor({{0., 0., 1., 0.}, {0., 0., 0., 1.}, {1., 0., 0., 0.}, {0., 1., 0., 0.}}, kFloat64)));
    EXPECT_TRUE(near(l,
                     tensor({{1.0, 0.0, 0.0},
                             {0.285714285714, 1.0, 0.0},
                             {0.142857142857, -0.260869565217, 1.0},
                             {0.571428571429, -0.130434782609, 0.232558139535}},
                            kFloat64),
                     kTolerance));
    EXPECT_TRUE(
        near(u, tensor({{7.0, 8.0, 10.0}, {0.0, -3.28571428571, 1.14285714286}, {0.0, 0.0, 1.86956521739}}, kFloat64),
             kTolerance));
  }
  {
    const auto [p, l, u] = linalg::lu(tall().t());
    EXPECT_TRUE(near(p, tensor({{0., 1., 0.}, {0., 0., 1.}, {1., 0., 0.}}, kFloat64)));
    EXPECT_TRUE(near(l, tensor({{1., 0., 0.}, {1 / 3., 1., 0.}, {2 / 3., .5, 1.}}, kFloat64), kTolerance));
    EXPECT_TRUE(
        near(u, tensor({{3., 6., 10., 4.}, {0., 2., 11 / 3., 2 / 3.}, {0., 0., -.5, -4.}}, kFloat64), kTolerance));
  }
  for (const Ints& shape : {Ints{2, 3, 3}, Ints{0, 3, 2}, Ints{3, 0}, Ints{1, 1}, Ints{2, 5, 3}}) {
    const Tensor a = randn(shape);
    const auto [p, l, u] = linalg::lu(a);
    EXPECT_TRUE(near(matmul(p, matmul(l, u)), a, 1e-5));
    const auto [packed, pivots] = linalg::lu_factor(a);
    const auto [p2, l2, u2] = lu_unpack(packed, pivots);
    EXPECT_TRUE(equal(p, p2) && equal(l, l2) && equal(u, u2));
  }
  // A column of zeros has nothing to eliminate with.
  const Tensor singular = tensor({{0., 1.}, {0., 2.}}, kFloat64);
  EXPECT_TRUE(near(std::get<2>(linalg::lu(singular)), tensor({{0., 1.}, {0., 2.}}, kFloat64)));
}

TEST(Lu, FactorsSolveInAllWays) {
  const Tensor a = square_one(), b = tensor({{1., 2.}, {3., 4.}, {5., 7.}}, kFloat64);
  const auto [packed, pivots] = linalg::lu_factor(a);
  EXPECT_TRUE(
      near(packed,
           tensor({{7.0, 8.0, 10.0}, {0.142857142857, 0.857142857143, 1.57142857143}, {0.571428571429, 0.5, -0.5}},
                  kFloat64),
           kTolerance));
  EXPECT_TRUE(equal(pivots, tensor({3, 3, 3}, kInt32)));
  const Tensor x = tensor({{1 / 3., 1 / 3.}, {1 / 3., -2 / 3.}, {0., 1.}}, kFloat64),
               y = tensor({{7 / 3., 3.}, {-1 / 3., -2.}, {0., 1.}}, kFloat64);
  EXPECT_TRUE(near(linalg::lu_solve(packed, pivots, b), x, kTolerance));
  EXPECT_TRUE(near(linalg::lu_solve(packed, pivots, b, true, true), y, kTolerance));
  EXPECT_TRUE(near(linalg::lu_solve(packed, pivots, b.t(), false), y.t(), kTolerance));
  EXPECT_TRUE(near(linalg::lu_solve(packed, pivots, b.t(), false, true), x.t(), kTolerance));
  EXPECT_TRUE(near(b.lu_solve(packed, pivots), x, kTolerance));
  // Matrices for each of a batch, not vectors.
  const Tensor batch = stack({a, a, a + eye(3, {}, kFloat64)}), square_b = randn({3, 3}, kFloat64);
  const auto [all, all_pivots] = linalg::lu_factor(batch);
  EXPECT_TRUE(near(matmul(batch, linalg::lu_solve(all, all_pivots, square_b)), square_b.expand({3, 3, 3}), 1e-9));
}

TEST(Lu, HasGradients) {
  const auto factors = [](const std::vector<Tensor>& v) {
    const auto [p, l, u] = linalg::lu(v[0]);
    return std::vector<Tensor>{l, u, std::get<0>(linalg::lu_factor(v[0]))};
  };
  for (const Tensor& a : {square_one(), tall(), tall().t().contiguous()}) {
    const Tensor x = a.clone().requires_grad_();
    EXPECT_TRUE(autograd::gradcheck(factors, {x}));
    EXPECT_TRUE(autograd::gradgradcheck(factors, {x}, {}, 1e-6, 1e-4));
  }
  const Tensor a = square_one().requires_grad_(), b = randn({3, 2}, kFloat64).requires_grad_();
  EXPECT_TRUE(autograd::gradcheck(
      [](const std::vector<Tensor>& v) {
        const auto [packed, pivots] = linalg::lu_factor(v[0]);
        return std::vector<Tensor>{linalg::lu_solve(packed, pivots, v[1])};
      },
      {a, b}));
}

TEST(Lu, RefusesWhatIsNoFactor) {
  const auto [packed, pivots] = linalg::lu_factor(square_one());
  const Tensor lu = packed, p = pivots, b = ones({3, 1}, kFloat64);
  EXPECT_TRUE(
      has([&] { linalg::lu_solve(lu, p + 1, b); }, "linalg::lu_solve: pivots: got 4, expected numbers from 1 to 3"));
  EXPECT_TRUE(has([&] { linalg::lu_solve(lu, p.to(kInt64), b); }, "pivots: got a tensor of i64, expected i32"));
  EXPECT_TRUE(has([&] { linalg::lu_solve(lu, p.narrow(0, 0, 2), b); }, "pivots: got shape [2], expected [3]"));
  EXPECT_TRUE(has([&] { linalg::lu_solve(lu, p, b.to(kFloat32)); }, "B: got a tensor of f32, expected f64"));
  EXPECT_TRUE(has(
      [&] {
        linalg::lu_solve(lu, p, ones({2, 3}, kFloat64));
      },
      "linalg::lu_solve: B: got shape [2, 3], expected as many rows as LU has, 3"));
  EXPECT_TRUE(has([&] { b.lu_solve(lu * 0, p); }, "linalg::lu_solve: LU: got a zero on the diagonal"));
  EXPECT_TRUE(has([&] { linalg::cond(ones({2, 2}, kInt64)); }, "linalg::cond: A: got a tensor of i64"));
  EXPECT_TRUE(has([&] { linalg::lu(ones({3})); }, "linalg::lu: A: got shape [3], expected matrices"));
}

TEST(Condition, OfAllOrders) {
  const Tensor a = tensor({{2., 1.}, {.5, 3.}}, kFloat64);
  const double inf = std::numeric_limits<double>::infinity();
  const auto of = [](double value) { return tensor(value, kFloat64); };
  EXPECT_TRUE(near(linalg::cond(a), of(2.11898504236), kTolerance));
  EXPECT_TRUE(near(linalg::cond(a, 1), of(2.54545454545), kTolerance));
  EXPECT_TRUE(near(linalg::cond(a, -1), of(1.36363636364), kTolerance));
  EXPECT_TRUE(near(linalg::cond(a, -2), of(0.471924048546), kTolerance));
  EXPECT_TRUE(near(linalg::cond(a, inf), of(2.54545454545), kTolerance));
  EXPECT_TRUE(near(linalg::cond(a, "fro"), of(2.59090909091), kTolerance));
  EXPECT_TRUE(near(linalg::cond(a, "nuc"), of(4.59090909091), kTolerance));
  EXPECT_TRUE(near(linalg::cond(stack({a, a * 0}), 1), tensor({2.54545454545, inf}, kFloat64), kTolerance));
  EXPECT_TRUE(has(
      [] {
        linalg::cond(ones({2, 3}), 1);
      },
      "linalg::cond: A: got shape [2, 3], expected square matrices"));
  const Tensor x = a.clone().requires_grad_();
  EXPECT_TRUE(autograd::gradcheck(
      [](const std::vector<Tensor>& v) {
        return std::vector<Tensor>{linalg::cond(v[0]), linalg::cond(v[0], 1), linalg::cond(v[0], "fro")};
      },
      {x}));
}

TEST(Norm, OfVectorsAndMatrices) {
  const Tensor a = tensor({{2., 1.}, {.5, 3.}}, kFloat64);
  const auto of = [](double value) { return tensor(value, kFloat64); };
  EXPECT_TRUE(near(linalg::norm(a), of(3.77491721764), kTolerance));
  EXPECT_TRUE(near(linalg::norm(a, 1), of(4), kTolerance));
  EXPECT_TRUE(near(linalg::norm(a, 2), of(3.41385672415), kTolerance));
  EXPECT_TRUE(near(linalg::norm(a, "nuc"), of(5.02493781056), kTolerance));
  EXPECT_TRUE(near(linalg::norm(a[0], 3), of(2.08008382305), kTolerance));
  EXPECT_TRUE(near(linalg::norm(a, 1, 0), tensor({2.5, 4.}, kFloat64), kTolerance));
  EXPECT_TRUE(near(linalg::norm(a, "fro", {0, 1}, true), tensor({{3.77491721764}}, kFloat64), kTolerance));
  EXPECT_TRUE(has([] { linalg::norm(ones({2, 2, 2}), 1); }, "linalg::norm: A: got 3 dims, expected one or two"));
  EXPECT_TRUE(has([] { linalg::norm(ones({2}), "fro"); }, "linalg::norm: A: got shape [2], expected two dims"));
}

TEST(HouseholderProduct, OfReflections) {
  const Tensor a = tensor({{-8.36660026534, -9.08373743094, -12.549900398},
                           {0.427049290744, -3.38905802336, 0.59013448168},
                           {0.747336258803, -0.0774884537018, 1.77531442103},
                           {0.213524645372, -0.920917937358, 0.129928241074}},
                          kFloat64),
               tau = tensor({1.11952286093, 1.07869378142, 1.96679780219}, kFloat64);
  EXPECT_TRUE(near(linalg::householder_product(a, tau),
                   tensor({{-0.119522860933, -0.269775763054, 0.934597252431},
                           {-0.478091443734, -0.193901329695, 0.0644549829263},
                           {-0.836660026534, -0.118026896336, -0.242406783614},
                           {-0.239045721867, 0.935784678092, 0.252215150581}},
                          kFloat64),
                   1e-10));
  EXPECT_TRUE(near(linalg::householder_product(a, tau.narrow(0, 0, 0)), eye(4, 3, kFloat64)));
  const Tensor x = a.clone().requires_grad_(), t = tau.clone().requires_grad_();
  EXPECT_TRUE(autograd::gradcheck(
      [](const std::vector<Tensor>& v) { return std::vector<Tensor>{linalg::householder_product(v[0], v[1])}; },
      {x, t}));
  EXPECT_TRUE(has([&] { linalg::householder_product(a, ones({4}, kFloat64)); },
                  "linalg::householder_product: tau: got shape [4], expected the batch of A and at most 3 numbers"));
}

TEST(TensorInverse, UndoesTensordot) {
  const Tensor a = randn({4, 6, 8, 3}, kFloat64), b = randn({4, 6}, kFloat64);
  const Tensor inverse = linalg::tensorinv(a);
  EXPECT_EQ(inverse.sizes(), IntArrayRef(Ints{8, 3, 4, 6}));
  const Tensor x = linalg::tensorsolve(a, b);
  EXPECT_TRUE(near((inverse * b).sum({2, 3}), x, 1e-6));
  EXPECT_TRUE(near((a * x).sum({2, 3}), b, 1e-6));
  EXPECT_TRUE(near(linalg::tensorsolve(a.movedim({0}, {3}), b, {3, 0}),
                   linalg::tensorsolve(a.movedim({0, 1}, {2, 3}), b), 1e-6));
  EXPECT_TRUE(has([&] { linalg::tensorinv(a, 1); }, "linalg::tensorinv: A: got shape [4, 6, 8, 3], expected as many"));
  EXPECT_TRUE(has([&] { linalg::tensorsolve(a, b[0]); }, "linalg::tensorsolve: B: got shape [6], expected"));
}

TEST(OldNames, HaveLibTorchsOrder) {
  const Tensor a = tall();
  const auto [u, s, v] = a.svd();
  EXPECT_TRUE(near(matmul(u * s, v.t()), a, 1e-10));
  EXPECT_EQ(std::get<0>(a.svd(false)).sizes(), IntArrayRef(Ints{4, 4}));
  const auto [no_u, values, no_v] = a.svd(true, false);
  EXPECT_TRUE(near(values, s, 1e-10));
  EXPECT_TRUE(equal(no_u, zeros({4, 4}, kFloat64)) && equal(no_v, zeros({3, 3}, kFloat64)));
  EXPECT_EQ(std::get<0>(a.qr(false)).sizes(), IntArrayRef(Ints{4, 4}));
  EXPECT_TRUE(equal(std::get<1>(qr(a)), std::get<1>(linalg::qr(a))));
  const Tensor spd = matmul(a.t(), a);
  EXPECT_TRUE(equal(spd.cholesky(true), linalg::cholesky(spd, true)));
  EXPECT_TRUE(equal(spd.cholesky().cholesky_inverse(), cholesky_inverse(cholesky(spd))));
  EXPECT_TRUE(equal(a.t().cholesky_solve(spd.cholesky()), cholesky_solve(a.t(), cholesky(spd))));
}

}  // namespace
}  // namespace ingot
