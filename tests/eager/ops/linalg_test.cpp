// Functions of matrices beside PyTorch's numbers, and by what defines them.
#include "eager/ops/linalg.h"

#include <algorithm>
#include <limits>

#include "eager/autograd/autograd.h"
#include "eager/ops/near.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::counting;
using test::message_of;
using test::near;
using Sizes = std::vector<int64_t>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

Tensor square() { return tensor({{2., -1., .5}, {1., 1., -2.}, {0., 3., 2.}}, kFloat64); }
Tensor positive() { return matmul(square(), square().t()); }
Tensor singular() { return tensor({{1., 2.}, {2., 4.}}, kFloat64); }
Tensor tall() { return tensor({{1., 2.}, {-1., .5}, {3., 0.}}, kFloat64); }
Tensor right() { return tensor({{1., -2.}, {.5, 3.}, {4., 1.}}, kFloat64); }

/// A function of a list of tensors, as gradcheck takes it.
template <class F>
auto listed(F f) {
  return [f](const std::vector<Tensor>& v) { return std::vector<Tensor>{f(v)}; };
}
template <class F>
void check_gradients(F f, const std::vector<Tensor>& at) {
  std::vector<Tensor> inputs;
  for (const Tensor& t : at) inputs.push_back(t.clone().requires_grad_());
  EXPECT_TRUE(autograd::gradcheck(listed(f), inputs));
  EXPECT_TRUE(autograd::gradgradcheck(listed(f), inputs, {}, 1e-6, 1e-4));
}

TEST(Determinant, BySignAndLogarithm) {
  EXPECT_TRUE(near(det(square()), tensor(19.5, kFloat64), 1e-10));
  EXPECT_TRUE(near(linalg::det(stack({square(), positive()})), tensor({19.5, 380.25}, kFloat64), 1e-10));
  EXPECT_TRUE(near(det(square().to(kFloat32)), tensor(19.5f)));
  EXPECT_TRUE(near(det(tensor({{2.f, 0.f}, {0.f, 3.f}})), tensor(6.f), 0));
  EXPECT_TRUE(near(det(singular()), tensor(0., kFloat64)));
  EXPECT_TRUE(near(det(zeros({2, 0, 0})), ones({2})));
  auto [sign, logarithm] = slogdet(-square());
  EXPECT_TRUE(near(sign, tensor(-1., kFloat64)));
  EXPECT_TRUE(near(logarithm, tensor(2.97041446557, kFloat64), 1e-10));
  EXPECT_TRUE(near(std::get<1>(linalg::slogdet(singular())), tensor(-kInf, kFloat64)));
  EXPECT_TRUE(near(logdet(stack({singular(), -singular() * tensor({{1., 1.}, {1., 2.}}, kFloat64)})),
                   tensor({-kInf, 1.38629436112}, kFloat64), 1e-10));
  EXPECT_TRUE(near(logdet(-square()), tensor(kNan, kFloat64)));
  check_gradients([](const std::vector<Tensor>& v) { return linalg::det(v[0]); }, {square()});
  check_gradients([](const std::vector<Tensor>& v) { return std::get<1>(linalg::slogdet(v[0])); }, {square()});
  // Of a singular matrix: its cofactors.
  const Tensor x = singular().requires_grad_();
  det(x).backward();
  EXPECT_TRUE(near(x.grad(), tensor({{4., -2.}, {-2., 1.}}, kFloat64), 1e-10));
  // Its logarithm has no finite one, the other matrices of the batch have theirs.
  const Tensor both = stack({singular(), eye(2, 2, kFloat64) * 2.}).requires_grad_();
  logdet(both).sum().backward();
  EXPECT_TRUE(near(both.grad(), tensor({-kInf, kInf, kInf, -kInf, .5, 0., 0., .5}, kFloat64).view({2, 2, 2})));
  const Tensor nothing = zeros({2, 2}).requires_grad_();
  std::get<1>(slogdet(nothing)).backward();
  EXPECT_FALSE(nothing.grad().isfinite().any().item<bool>());
  EXPECT_NE(message_of([] {
              logdet(ones({2, 3}));
            }).find("logdet, in linalg::slogdet: A: got shape [2, 3]"),
            std::string::npos);
}

TEST(Solve, ErrorsOfGradientsNameFunctionAndLine) {
  const Tensor a = ones({3, 2}, kFloat64).requires_grad_();
  const Tensor q = std::get<0>(linalg::qr(a, "complete"));
  const std::string line = std::to_string(__LINE__ - 1), text = message_of([&] { q.sum().backward(); });
  EXPECT_EQ(text.rfind("linalg::qr: gradients: got those of a complete Q", 0), 0u) << text;
  EXPECT_NE(text.find("linalg_test.cpp:" + line), std::string::npos) << text;
  const Tensor norm = nuclear_norm(a);
  const std::string norms = std::to_string(__LINE__ - 1),
                    refused = message_of([&] {
                      const Tensor slope = autograd::grad({norm}, {a}, {}, true, true)[0];
                      slope.sum().backward();
                    });
  EXPECT_NE(refused.find("NuclearNormBackward"), std::string::npos) << refused;
  EXPECT_NE(refused.find("linalg_test.cpp:" + norms), std::string::npos) << refused;
}

TEST(Solve, MatricesAndVectors) {
  EXPECT_TRUE(near(
      linalg::solve(square(), right()),
      tensor({{0.807692307692, -0.205128205128}, {0.923076923077, 1.05128205128}, {0.615384615385, -1.07692307692}},
             kFloat64),
      1e-10));
  EXPECT_TRUE(near(linalg::solve(square(), right().select(1, 0)),
                   tensor({0.807692307692, 0.923076923077, 0.615384615385}, kFloat64), 1e-10));
  EXPECT_TRUE(near(
      linalg::solve(square(), right().t(), false),
      tensor({{0.974358974359, -0.948717948718, 0.807692307692}, {-0.974358974359, -0.0512820512821, 0.692307692308}},
             kFloat64),
      1e-10));
  EXPECT_EQ(linalg::solve(stack({square(), positive()}), right()).sizes(), (Sizes{2, 3, 2}));
  EXPECT_EQ(linalg::solve(stack({square(), positive()}), right().t()).sizes(), (Sizes{2, 3}));
  EXPECT_TRUE(near(linalg::solve_triangular(square(), right(), true),
                   tensor({{2.25, 0.875}, {4.5, 4.}, {2., 0.5}}, kFloat64), 1e-10));
  EXPECT_TRUE(near(linalg::solve_triangular(square(), right(), false, true, true),
                   tensor({{1., -2.}, {-0.5, 5.}, {5.5, -14.}}, kFloat64), 1e-10));
  // The other triangle is not read, nor with ones a diagonal of zeros.
  const Tensor holes = where(eye(3, {}, kBool), 0., full({3, 3}, kNan, kFloat64).tril(-1) + square().triu(1));
  EXPECT_TRUE(near(linalg::solve_triangular(holes, right(), true, true, true),
                   linalg::solve_triangular(square(), right(), true, true, true), 1e-12));
  manual_seed(5);
  const Tensor large = randn({23, 23}, kFloat64) + 8. * eye(23, {}, kFloat64);
  for (const bool upper : {true, false})
    for (const int64_t columns : {1, 6}) {
      const Tensor triangle = upper ? large.triu() : large.tril(), b = randn({23, columns}, kFloat64);
      EXPECT_TRUE(near(matmul(triangle, linalg::solve_triangular(large, b, upper)), b, 1e-12));
      EXPECT_TRUE(near(matmul(linalg::solve_triangular(large, b.t(), upper, false), triangle), b.t(), 1e-12));
    }
  EXPECT_EQ(linalg::solve_triangular(zeros({0, 0}), zeros({0, 2}), true).sizes(), (Sizes{0, 2}));
  EXPECT_NE(message_of([] {
              linalg::solve_triangular(tensor({{1., 5.}, {2., 0.}}, kFloat64), ones({2, 1}, kFloat64), false);
            }).find("linalg::solve_triangular: A: got a matrix that is singular (pivot 2 is 0)"),
            std::string::npos);
  // Matrices, though their sizes are those of a batch of vectors.
  const Tensor batch = stack({square(), positive(), square()}), sides = cat({right(), right()}, 1).narrow(1, 0, 3);
  for (const bool left : {true, false}) {
    const Tensor all = linalg::solve_triangular(batch, sides, true, left);
    ASSERT_EQ(all.sizes(), (Sizes{3, 3, 3}));
    EXPECT_TRUE(near(all[1], linalg::solve_triangular(positive(), sides, true, left), 1e-10));
  }
  const Tensor solved = cholesky_solve(sides, batch);
  ASSERT_EQ(solved.sizes(), (Sizes{3, 3, 3}));
  EXPECT_TRUE(near(solved[1], cholesky_solve(sides, positive()), 1e-10));
  EXPECT_TRUE(near(linalg::inv(square()),
                   tensor({{0.410256410256, 0.179487179487, 0.0769230769231},
                           {-0.102564102564, 0.205128205128, 0.230769230769},
                           {0.153846153846, -0.307692307692, 0.153846153846}},
                          kFloat64),
                   1e-10));
  EXPECT_TRUE(near(inverse(square().to(kFloat32)), tensor({{0.41025639f, 0.1794872f, 0.076923087f},
                                                           {-0.10256411f, 0.20512822f, 0.23076925f},
                                                           {0.15384616f, -0.30769232f, 0.15384616f}})));
  check_gradients([](const std::vector<Tensor>& v) { return linalg::solve(v[0], v[1]); }, {square(), right()});
  check_gradients([](const std::vector<Tensor>& v) { return linalg::solve(v[0], v[1], false); },
                  {square(), right().t()});
  check_gradients([](const std::vector<Tensor>& v) { return linalg::solve_triangular(v[0], v[1], true); },
                  {square(), right()});
  check_gradients([](const std::vector<Tensor>& v) { return linalg::inv(v[0]); }, {square()});
}

TEST(Solve, RefusesWhatHasNoSolution) {
  EXPECT_NE(
      message_of([] { linalg::inv(singular()); }).find("linalg::inv: A: got a matrix that is singular (pivot 2 is 0)"),
      std::string::npos);
  EXPECT_NE(message_of([] {
              linalg::solve(stack({eye(2, 2, kFloat64), singular()}), ones({2}, kFloat64));
            }).find("linalg::solve: A: got matrix 1 that is singular"),
            std::string::npos);
  EXPECT_NE(message_of([] { linalg::inv(tall()); }).find("linalg::inv: A: got shape [3, 2], expected square matrices"),
            std::string::npos);
  EXPECT_THROW(linalg::inv(tensor({{1}})), Error);
  EXPECT_THROW(linalg::inv(tensor({1.f})), Error);
  EXPECT_THROW(linalg::solve(square(), right().t()), Error);
  EXPECT_THROW(linalg::solve(square(), right().to(kFloat32)), Error);
  EXPECT_THROW(linalg::solve(stack({square(), square()}), ones({3, 3, 1}, kFloat64)), Error);
}

TEST(Cholesky, OfOneTriangle) {
  EXPECT_TRUE(
      near(linalg::cholesky(positive()),
           tensor({{2.29128784748, 0., 0.}, {0., 2.44948974278, 0.}, {-0.872871560944, -0.408248290464, 3.47439614486}},
                  kFloat64),
           1e-10));
  EXPECT_TRUE(
      near(linalg::cholesky(positive(), true),
           tensor({{2.29128784748, 0., -0.872871560944}, {0., 2.44948974278, -0.408248290464}, {0., 0., 3.47439614486}},
                  kFloat64),
           1e-10));
  EXPECT_TRUE(near(linalg::cholesky(positive().tril()), linalg::cholesky(positive())));
  EXPECT_NE(message_of([] {
              linalg::cholesky(singular());
            }).find("linalg::cholesky: A: got a matrix whose leading minor of order 2 is not positive"),
            std::string::npos);
  const auto of_symmetric = [](const std::vector<Tensor>& v) { return linalg::cholesky(matmul(v[0], v[0].mT())); };
  check_gradients(of_symmetric, {square()});
  const Tensor x = positive().requires_grad_();
  linalg::cholesky(x).sum().backward();
  EXPECT_TRUE(near(x.grad(),
                   tensor({{0.322233398461, 0.305116605848, 0.27304070909},
                           {0.305116605848, 0.242142333312, 0.22810912848},
                           {0.27304070909, 0.22810912848, 0.143909899491}},
                          kFloat64),
                   1e-10));
}

TEST(Cholesky, SolvesAndInverts) {
  const Tensor l = linalg::cholesky(positive());
  EXPECT_TRUE(near(cholesky_solve(right(), l), linalg::solve(positive(), right()), 1e-10));
  EXPECT_TRUE(near(cholesky_solve(right(), l.mT(), true), linalg::solve(positive(), right()), 1e-10));
  EXPECT_TRUE(near(cholesky_inverse(l), linalg::inv(positive()), 1e-10));
  check_gradients([](const std::vector<Tensor>& v) { return cholesky_solve(v[1], v[0]); }, {square(), right()});
  EXPECT_THROW(cholesky_inverse(right()), Error);
}

TEST(MatrixExp, OfSmallAndLargeNorms) {
  EXPECT_TRUE(near(matrix_exp(square()),
                   tensor({{6.87651334988, 1.29231502853, 4.51697498507},
                           {1.09066920194, -3.74609277391, -1.38701032705},
                           {4.76596846092, 3.27200760581, -1.06676741833}},
                          kFloat64),
                   1e-10));
  EXPECT_TRUE(near(linalg::matrix_exp(stack({square() * 1e-3, -4 * positive()})),
                   tensor({{{1.00200150075, -0.00100074874831, 0.000502002083843},
                            {0.00100149999894, 1.00099699575, -0.002002749581},
                            {1.50250124986e-06, 0.00300449999681, 1.00199899658}},
                           {{5.74229357463e-09, 1.18126408765e-09, 1.52900118436e-09},
                            {1.18126408765e-09, 2.9620376895e-10, 3.21526559309e-10},
                            {1.52900118436e-09, 3.21526559309e-10, 4.08046029081e-10}}},
                          kFloat64),
                   1e-10));
  EXPECT_TRUE(near(matrix_exp(zeros({2, 2})), tensor({{1.f, 0.f}, {0.f, 1.f}})));
  EXPECT_EQ(matrix_exp(zeros({3, 0, 0})).sizes(), (Sizes{3, 0, 0}));
  EXPECT_THROW(matrix_exp(right()), Error);
  check_gradients([](const std::vector<Tensor>& v) { return matrix_exp(v[0]); }, {square()});
}

TEST(Qr, OfAllShapes) {
  for (const Tensor& a : {square(), tall(), tall().t(), stack({right(), tall()}), zeros({2, 3}, kFloat64)})
    for (const char* mode : {"reduced", "complete"}) {
      auto [q, r] = linalg::qr(a, mode);
      EXPECT_TRUE(near(matmul(q, r), a, 1e-10));
      EXPECT_TRUE(near(matmul(q.mT(), q), eye(q.size(-1), {}, kFloat64).expand_as(matmul(q.mT(), q)), 1e-10));
      EXPECT_TRUE(equal(r, r.triu()));
    }
  auto [q, r] = linalg::qr(tall());
  EXPECT_TRUE(near(
      q,
      tensor({{-0.301511344578, -0.926568460146}, {0.301511344578, -0.316389230294}, {-0.904534033733, 0.203393076618}},
             kFloat64),
      1e-10));
  EXPECT_TRUE(near(r, tensor({{-3.31662479036, -0.452267016867}, {0., -2.01133153544}}, kFloat64), 1e-10));
  EXPECT_EQ(std::get<0>(linalg::qr(tall(), "complete")).sizes(), (Sizes{3, 3}));
  EXPECT_EQ(std::get<0>(linalg::qr(tall(), "r")).sizes(), (Sizes{0}));
  // Columns whose squares are no numbers, and what is none.
  for (const double scale : {1e-200, 1e200}) {
    const auto [q, r] = linalg::qr(tall() * tensor({1., scale}, kFloat64));
    EXPECT_TRUE(near(r / tensor({1., scale}, kFloat64), std::get<1>(linalg::qr(tall())), 1e-12));
    EXPECT_TRUE(near(q, std::get<0>(linalg::qr(tall())), 1e-12));
  }
  EXPECT_TRUE(std::get<1>(linalg::qr(tensor({{1., 2.}, {kNan, 0.}}, kFloat64))).isnan().any().item<bool>());
  EXPECT_THROW(linalg::qr(tall(), "full"), Error);
  for (const Tensor& a : {square(), tall(), tall().t().contiguous()}) {
    check_gradients([](const std::vector<Tensor>& v) { return std::get<0>(linalg::qr(v[0])); }, {a});
    check_gradients([](const std::vector<Tensor>& v) { return std::get<1>(linalg::qr(v[0])); }, {a});
  }
}

TEST(Eigh, OfOneTriangle) {
  EXPECT_TRUE(
      near(linalg::eigvalsh(positive()), tensor({4.71692900162, 5.9231873833, 13.6098836151}, kFloat64), 1e-10));
  EXPECT_TRUE(
      near(linalg::eigvalsh(square(), "U"), tensor({-0.657132971341, 1.5903016654, 4.06683130594}, kFloat64), 1e-10));
  for (const Tensor& a : {positive(), singular(), zeros({2, 2}, kFloat64), stack({positive(), eye(3, 3, kFloat64)})}) {
    auto [values, vectors] = linalg::eigh(a);
    EXPECT_TRUE(near(matmul(vectors * values.unsqueeze(-2), vectors.mT()), a, 1e-10));
    EXPECT_TRUE(equal(values, std::get<0>(values.sort(-1))));
  }
  EXPECT_NE(message_of([] { linalg::eigh(singular(), "X"); }).find("linalg::eigh: UPLO: got \"X\""), std::string::npos);
  EXPECT_THROW(linalg::eigh(singular() / 0.), Error);
  const auto symmetric = [](const Tensor& x) { return x + x.mT(); };
  check_gradients([&](const std::vector<Tensor>& v) { return linalg::eigvalsh(symmetric(v[0])); }, {square()});
  check_gradients([&](const std::vector<Tensor>& v) { return std::get<1>(linalg::eigh(symmetric(v[0]))).square(); },
                  {square()});
}

/// Matrices that stop or divide the steps of an iteration: of one element, of zeros, of equal values, tridiagonal, of
/// few ranks, of values far apart.
std::vector<Tensor> hard_matrices(int64_t n) {
  const Tensor x = randn({n, n}, kFloat64), thin = randn({n, std::max<int64_t>(n / 4, 1)}, kFloat64);
  const Tensor band = x * ((arange(n).unsqueeze(1) - arange(n)).abs() < 2), graded = pow(10., -arange(n)).to(kFloat64);
  const Tensor shifted = diag(ones({n - 1}, kFloat64), 1);  // its singular values are one 0, and 1
  return {x,
          zeros({n, n}, kFloat64),
          eye(n, {}, kFloat64) * -3.,
          ones({n, n}, kFloat64),
          matmul(thin, thin.t()),
          band,
          diag(graded),
          x * graded,
          shifted,
          x * 1e300,
          x * 1e-300};
}

TEST(Eigh, OfHardMatrices) {
  manual_seed(3);
  for (const int64_t n : {1, 2, 3, 5, 12, 41})
    for (const Tensor& x : hard_matrices(n)) {
      const Tensor a = x + x.t(), scale = a.abs().amax() + 1e-307;
      const auto [values, v] = linalg::eigh(a);
      EXPECT_TRUE(near(matmul(v * (values / scale), v.t()), a / scale, 1e-13 * static_cast<double>(n)));
      EXPECT_TRUE(near(matmul(v.t(), v), eye(n, {}, kFloat64), 1e-13));
      EXPECT_TRUE(equal(values, std::get<0>(values.sort())));
      EXPECT_TRUE(equal(linalg::eigvalsh(a), values));
    }
  EXPECT_EQ(linalg::eigvalsh(zeros({2, 0, 0})).sizes(), (Sizes{2, 0}));
  EXPECT_TRUE(near(linalg::eigvalsh(tensor({{-2.f}})), tensor({-2.f}), 0));
}

TEST(Svd, OfHardMatrices) {
  manual_seed(4);
  for (const int64_t n : {1, 2, 3, 5, 12, 41})
    for (const Tensor& square : hard_matrices(n))
      for (const Tensor& a : {square, square.narrow(1, 0, (n + 1) / 2), square.narrow(0, 0, (n + 1) / 2)}) {
        const Tensor scale = a.abs().amax() + 1e-307;
        const auto [u, s, vt] = linalg::svd(a);
        const Size k = s.size(0);
        EXPECT_TRUE(near(matmul(u.narrow(1, 0, k) * (s / scale), vt.narrow(0, 0, k)), a / scale,
                         1e-13 * static_cast<double>(n)));
        EXPECT_TRUE(near(matmul(u.t(), u), eye(u.size(0), {}, kFloat64), 1e-13));
        EXPECT_TRUE(near(matmul(vt, vt.t()), eye(vt.size(0), {}, kFloat64), 1e-13));
        EXPECT_TRUE((s >= 0).all().item<bool>());
        EXPECT_TRUE(equal(s, std::get<0>(s.sort(-1, true))));
        EXPECT_TRUE(equal(linalg::svdvals(a), s));
      }
  EXPECT_TRUE(
      near(linalg::svdvals(diag(ones({6}, kFloat64), 1)), tensor({1., 1., 1., 1., 1., 1., 0.}, kFloat64), 1e-15));
  EXPECT_TRUE(near(linalg::matrix_rank(matmul(randn({30, 4}), randn({4, 20}))), tensor(4)));
}

TEST(Svd, OfAllShapes) {
  const Tensor rank_one = matmul(tall(), tensor({{1., 2.}, {2., 4.}}, kFloat64));
  for (const Tensor& a : {square(), tall(), tall().t(), rank_one, stack({right(), tall()}), zeros({3, 2}, kFloat64)})
    for (bool full : {false, true}) {
      auto [u, s, vt] = linalg::svd(a, full);
      const int64_t k = s.size(-1);
      EXPECT_TRUE(near(matmul(u.narrow(-1, 0, k) * s.unsqueeze(-2), vt.narrow(-2, 0, k)), a, 1e-10));
      EXPECT_TRUE(near(matmul(u.mT(), u), eye(u.size(-1), {}, kFloat64).expand_as(matmul(u.mT(), u)), 1e-10));
      EXPECT_TRUE(near(matmul(vt, vt.mT()), eye(vt.size(-2), {}, kFloat64).expand_as(matmul(vt, vt.mT())), 1e-10));
    }
  EXPECT_TRUE(near(linalg::svdvals(square()), tensor({3.68915757526, 2.43375992721, 2.17184921245}, kFloat64), 1e-10));
  for (double scale : {1e200, 1e-200})
    EXPECT_TRUE(near(linalg::svdvals(square() * scale) / scale, linalg::svdvals(square()), 1e-10));
  EXPECT_EQ(std::get<0>(linalg::svd(tall())).sizes(), (Sizes{3, 3}));
  // Long lines are filled up in a time that grows with their square.
  const Tensor u = std::get<0>(linalg::svd(randn({1500, 3}, kFloat64)));
  EXPECT_TRUE(near(matmul(u.mT(), u), eye(1500, {}, kFloat64), 1e-10));
  EXPECT_EQ(std::get<2>(linalg::svd(zeros({0, 3}))).sizes(), (Sizes{3, 3}));
  EXPECT_THROW(linalg::svd(singular() / 0.), Error);
  for (const Tensor& a : {square(), tall(), tall().t().contiguous()}) {
    check_gradients([](const std::vector<Tensor>& v) { return linalg::svdvals(v[0]); }, {a});
    // Of what no sign changes.
    check_gradients(
        [](const std::vector<Tensor>& v) {
          auto [u, s, vt] = linalg::svd(v[0], false);
          return matmul(u, vt) + matmul(u * s.exp().unsqueeze(-2), vt);
        },
        {a});
  }
}

TEST(PseudoInverse, AndWhatFollowsFromIt) {
  EXPECT_TRUE(near(
      linalg::pinv(tall()),
      tensor({{0.0280898876404, -0.112359550562, 0.286516853933}, {0.460674157303, 0.157303370787, -0.101123595506}},
             kFloat64),
      1e-10));
  EXPECT_TRUE(near(pinverse(singular()), tensor({{0.04, 0.08}, {0.08, 0.16}}, kFloat64), 1e-10));
  EXPECT_TRUE(near(linalg::pinv(zeros({2, 3})), zeros({3, 2})));
  EXPECT_TRUE(near(linalg::matrix_rank(stack({singular(), eye(2, 2, kFloat64)})), tensor({1, 2})));
  EXPECT_TRUE(near(linalg::matrix_rank(tall(), 2.5), tensor(1)));
  auto [x, residuals, rank, values] = linalg::lstsq(tall(), right());
  EXPECT_TRUE(near(x, tensor({{1.11797752809, -0.106741573034}, {0.134831460674, -0.550561797753}}, kFloat64), 1e-10));
  EXPECT_TRUE(near(residuals, tensor({2.97191011236, 12.4101123596}, kFloat64), 1e-10));
  EXPECT_TRUE(near(rank, tensor(2)));
  EXPECT_TRUE(near(values, linalg::svdvals(tall())));
  EXPECT_EQ(std::get<0>(linalg::lstsq(tall().t(), tensor({1., 2.}, kFloat64))).sizes(), (Sizes{3}));
  EXPECT_EQ(std::get<1>(linalg::lstsq(singular(), right().narrow(0, 0, 2))).numel(), 0);
  for (const Tensor& a : {tall(), tall().t().contiguous()})
    check_gradients([](const std::vector<Tensor>& v) { return linalg::pinv(v[0]); }, {a});
  check_gradients([](const std::vector<Tensor>& v) { return std::get<0>(linalg::lstsq(v[0], v[1])); },
                  {tall(), right()});
}

TEST(MatrixNorm, OfAllOrders) {
  const Tensor a = right();
  EXPECT_TRUE(near(linalg::matrix_norm(a), tensor(5.59016994375, kFloat64), 1e-10));
  EXPECT_TRUE(near(linalg::matrix_norm(a, "nuc"), tensor(7.8442340518, kFloat64), 1e-10));
  EXPECT_TRUE(near(linalg::matrix_norm(a, 1), tensor(6., kFloat64), 1e-10));
  EXPECT_TRUE(near(linalg::matrix_norm(a, -1), tensor(5.5, kFloat64), 1e-10));
  EXPECT_TRUE(near(linalg::matrix_norm(a, 2), tensor(4.41404998387, kFloat64), 1e-10));
  EXPECT_TRUE(near(linalg::matrix_norm(a, -2), tensor(3.43018406793, kFloat64), 1e-10));
  EXPECT_TRUE(near(linalg::matrix_norm(a, kInf), tensor(5., kFloat64), 1e-10));
  EXPECT_TRUE(near(linalg::matrix_norm(a, -kInf), tensor(3., kFloat64), 1e-10));
  EXPECT_EQ(linalg::matrix_norm(counting({2, 3, 4}), 2, {0, -1}, true).sizes(), (Sizes{1, 3, 1}));
  EXPECT_TRUE(near(linalg::matrix_norm(zeros({2, 0, 3}), kInf), zeros({2})));
  EXPECT_THROW(linalg::matrix_norm(a, 3), Error);
  EXPECT_THROW(linalg::matrix_norm(a, "max"), Error);
  EXPECT_THROW(linalg::matrix_norm(a, 1, {0, 0}), Error);
  EXPECT_THROW(linalg::matrix_norm(tensor({1.f})), Error);
}

TEST(Linalg, FailuresByNumber) {
  const Tensor both = stack({singular(), tensor({{2., 1.}, {1., 1.}}, kFloat64)});
  auto [inverses, pivots] = linalg::inv_ex(both);
  EXPECT_TRUE(near(pivots, tensor({2, 0}).to(kInt32), 0));
  EXPECT_TRUE(near(inverses[1], tensor({{1., -1.}, {-1., 2.}}, kFloat64), 1e-12));
  auto [x, stopped] = linalg::solve_ex(both, ones({2, 2, 1}, kFloat64));
  EXPECT_TRUE(near(stopped, pivots, 0));
  EXPECT_TRUE(near(x[1], tensor({{0.}, {1.}}, kFloat64), 1e-12));
  auto [factors, minors] = linalg::cholesky_ex(stack({tensor({{1., 2.}, {2., 1.}}, kFloat64), both[1]}));
  EXPECT_TRUE(near(minors, tensor({2, 0}).to(kInt32), 0));
  EXPECT_TRUE(near(factors[1], linalg::cholesky(both[1]), 0));
  EXPECT_TRUE(near(std::get<0>(linalg::cholesky_ex(positive(), true)), linalg::cholesky(positive(), true), 0));
  EXPECT_EQ(std::get<1>(linalg::inv_ex(zeros({0, 3, 3}))).sizes(), (Sizes{0}));
  const auto expect = [](const std::string& words, const std::function<void()>& f) {
    EXPECT_EQ(message_of(f).rfind(words, 0), 0u) << message_of(f);
  };
  expect("linalg::inv_ex: A: got a matrix that is singular (pivot 2 is 0)", [] { linalg::inv_ex(singular(), true); });
  expect("linalg::solve_ex: A: got a matrix that is singular", [] {
    linalg::solve_ex(singular(), ones({2, 1}, kFloat64), true, true);
  });
  expect("linalg::cholesky_ex: A: got a matrix whose leading minor of order 2",
         [] { linalg::cholesky_ex(singular(), false, true); });
  check_gradients([](const std::vector<Tensor>& v) { return std::get<0>(linalg::inv_ex(v[0])); }, {square()});
}

TEST(Linalg, TriangularSolve) {
  const Tensor a = tensor({{4., 1., .5}, {1., 3., .2}, {.5, .2, 2.}}, kFloat64);
  const Tensor b = tensor({{1., 2.}, {3., 4.}, {5., 6.}}, kFloat64);
  auto [x, copy] = triangular_solve(b, a);
  EXPECT_TRUE(near(
      x, tensor({{-0.270833333333, -0.158333333333}, {0.833333333333, 1.133333333333}, {2.5, 3.}}, kFloat64), 1e-11));
  EXPECT_TRUE(equal(copy, a) && !copy.shares_storage(a));
  EXPECT_TRUE(near(std::get<0>(triangular_solve(b, a, true, true, true)),
                   tensor({{1., 2.}, {2., 2.}, {4.1, 4.6}}, kFloat64), 1e-11));
}

TEST(Linalg, SquareRootOfASymmetricMatrix) {
  const Tensor a = tensor({{4., 1., .5}, {1., 3., .2}, {.5, .2, 2.}}, kFloat64).requires_grad_();
  const Tensor root = linalg::matrix_sqrth(a);
  EXPECT_TRUE(near(root.detach(),
                   tensor({{1.976580656375757, 0.26922044932486017, 0.14369849862298262},
                           {0.26922044932486017, 1.7102165217242127, 0.051766770102559784},
                           {0.14369849862298262, 0.051766770102559784, 1.4059413014086497}},
                          kFloat64),
                   1e-12));
  root[0].sum().backward();
  EXPECT_TRUE(near(a.grad(),
                   tensor({{0.2266845433537798, 0.11911529480852306, 0.1382856710971559},
                           {0.11911529480852306, -0.018239071356736657, -0.016912625857887453},
                           {0.1382856710971559, -0.016912625857887453, -0.013511183777078443}},
                          kFloat64),
                   1e-12));
  EXPECT_TRUE(near(linalg::matrix_sqrth(eye(3, {}, kFloat32) * 4), eye(3, {}, kFloat32) * 2));
  const auto of_symmetric = [](const std::vector<Tensor>& v) { return linalg::matrix_sqrth(matmul(v[0], v[0].mT())); };
  check_gradients(of_symmetric, {square()});
}

TEST(Linalg, WhatIsSaidToBeSymmetric) {
  const Tensor h = tensor({{2., 9.}, {1., 3.}}, kFloat64), ones_below = tensor({{1., 7.}, {1., 1.}}, kFloat64);
  EXPECT_TRUE(near(linalg::pinv(h, {}, {}, true), tensor({{.6, -.2}, {-.2, .4}}, kFloat64), 1e-12));
  EXPECT_EQ(linalg::matrix_rank(ones_below, {}, {}, true).item<int64_t>(), 1);
  EXPECT_EQ(linalg::matrix_rank(ones_below).item<int64_t>(), 2);
  // A tolerance for each matrix.
  const Tensor two = stack({ones_below, ones_below}), atol = tensor({0.1, 5.}, kFloat64);
  EXPECT_TRUE(equal(linalg::matrix_rank(two, atol), tensor({2, 1})));
  EXPECT_TRUE(equal(linalg::matrix_rank(two, {}, tensor(0.9, kFloat64)), tensor({1, 1})));
  EXPECT_TRUE(near(linalg::pinv(two, atol)[1], linalg::pinv(ones_below, 5.), 0));
  EXPECT_EQ(message_of([] { linalg::pinv(tall(), {}, {}, true); }).rfind("linalg::pinv: A: got shape [3, 2]", 0), 0u);
}

TEST(MatrixExponential, Of16BitFloats) {
  for (DType dtype : {kFloat16, kBFloat16})
    EXPECT_TRUE(near(matrix_exp(square().to(dtype)), matrix_exp(square()).to(dtype), 0));
}

}  // namespace
}  // namespace ingot
