// Functions of matrices that are computed in blocks, and of many small ones that threads share.
#include "eager/ops/matrix_functions.h"

#include <cmath>
#include <limits>

#include "eager/ops/linalg.h"
#include "eager/ops/near.h"
#include "eager/ops/random.h"
#include "eager/support.h"
#include "runtime/thread_pool.h"

namespace ingot {
namespace {

using test::message_of;
using test::near;

Tensor noise(const IntList& sizes) {
  Generator generator(7);
  return randn(sizes, kFloat64, generator);
}
Tensor one(int64_t n) { return eye(n, {}, kFloat64); }

/// By what defines them, with as many rows and columns.
void check_factors(int64_t rows, int64_t columns) {
  SCOPED_TRACE(std::to_string(rows) + " by " + std::to_string(columns));
  const Tensor a = noise({rows, columns});
  const auto [p, l, u] = linalg::lu(a);
  EXPECT_TRUE(near(matmul(p, matmul(l, u)), a, 1e-11));
  EXPECT_LE(l.abs().max().item<double>(), 1.);  // of partial pivoting
  for (const char* mode : {"reduced", "complete"}) {
    const auto [q, r] = linalg::qr(a, mode);
    EXPECT_TRUE(near(matmul(q, r), a, 1e-11));
    EXPECT_TRUE(near(matmul(q.mT(), q), one(q.size(-1)), 1e-12));
    EXPECT_TRUE(near(r, r.triu(), 0));
  }
  const auto [left, s, right] = linalg::svd(a);
  EXPECT_TRUE(near(matmul(left.narrow(1, 0, s.size(0)) * s, right.narrow(0, 0, s.size(0))), a, 1e-11));
  EXPECT_TRUE(near(matmul(left.mT(), left), one(rows), 1e-12));
  EXPECT_TRUE(near(matmul(right, right.mT()), one(columns), 1e-12));
  EXPECT_TRUE(near(linalg::svdvals(a), s, 1e-12));
}

TEST(MatrixBlocks, FactorsOfAllShapes) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {16, 17}, {17, 16}, {33, 33}, {48, 48}, {70, 20}, {20, 70}, {65, 67}, {100, 1}, {1, 100}})
    check_factors(rows, columns);
}

TEST(MatrixBlocks, SymmetricMatrices) {
  for (int64_t n : {17, 32, 47, 70}) {
    const Tensor a = noise({n, n}), positive = matmul(a, a.mT()) + one(n);
    const Tensor l = linalg::cholesky(positive);
    EXPECT_TRUE(near(matmul(l, l.mT()), positive, 1e-11)) << n;
    EXPECT_TRUE(near(l, l.tril(), 0)) << n;
    const auto [values, vectors] = linalg::eigh(positive);
    EXPECT_TRUE(near(matmul(vectors * values, vectors.mT()), positive, 1e-10)) << n;
    EXPECT_TRUE(near(matmul(vectors.mT(), vectors), one(n), 1e-12)) << n;
    EXPECT_TRUE(near(linalg::eigvalsh(positive), values, 1e-12)) << n;
  }
}

// Divided into blocks that have equal eigenvalues, or nearly equal ones, or are not joined at all.
TEST(MatrixBlocks, EigenvaluesThatMeet) {
  constexpr int64_t n = 90;
  const Tensor a = noise({n, n}), beside = ones({n - 1}, kFloat64), q = std::get<0>(linalg::qr(a));
  const Tensor counted = arange(n, kFloat64), groups = floor(counted / 20) + counted * 1e-14;
  const Tensor glue = where(arange(n - 1).remainder(21) == 20, 1e-8, beside);
  const Tensor clusters = matmul(q * groups, q.mT()), from_centre = (counted.remainder(21) - 10).abs();
  for (const Tensor& hard : {(clusters + clusters.mT()) / 2, diag(from_centre) + diag(glue, 1) + diag(glue, -1),
                             diag(-beside, 1) + diag(-beside, -1), one(n) + (a + a.mT()) * 1e-12,
                             diag(counted.remainder(3)), (a + a.mT()) * 1e250}) {
    const auto [values, vectors] = linalg::eigh(hard);
    const Tensor scale = hard.abs().max();
    EXPECT_TRUE(near(matmul(vectors * (values / scale), vectors.mT()), hard / scale, 1e-12));
    EXPECT_TRUE(near(matmul(vectors.mT(), vectors), one(n), 1e-13));
    EXPECT_TRUE(equal(linalg::eigvalsh(hard), values));
  }
}

TEST(MatrixBlocks, Solutions) {
  for (int64_t n : {17, 40, 70})
    for (int64_t columns : {1, 5, 150}) {
      const Tensor a = noise({n, n}) + 3 * one(n), b = noise({n, columns});
      EXPECT_TRUE(near(matmul(a, linalg::solve(a, b)), b, 1e-10)) << n;
      EXPECT_TRUE(near(matmul(linalg::solve(a, b.mT(), false), a), b.mT(), 1e-10)) << n;
      for (bool upper : {false, true}) {
        const Tensor t = (upper ? a.triu() : a.tril()) / 8 + 2 * one(n);
        EXPECT_TRUE(near(matmul(t, linalg::solve_triangular(t, b, upper)), b, 1e-10)) << n;
      }
    }
  const Tensor a = noise({64, 64}) + 3 * one(64);
  EXPECT_TRUE(near(matmul(linalg::inv(a), a), one(64), 1e-10));
  EXPECT_NEAR(det(a).item<double>() * det(linalg::inv(a)).item<double>(), 1, 1e-10);
}

TEST(MatrixBlocks, FailWhereTheyFailed) {
  // The pivot of a column that is a sum of others is only nearly 0; one that is 0 stays so.
  Tensor a = noise({40, 40}), no_definite = one(40);
  a.select(1, 30).zero_();
  no_definite.select(0, 35).select(0, 35).fill_(-1);
  EXPECT_EQ(
      message_of([&] {
        linalg::inv(a);
      }).rfind("linalg::inv: A: got a matrix that is singular (pivot 31 is 0), expected one that has an inverse", 0),
      0u);
  EXPECT_EQ(message_of([&] {
              linalg::cholesky(no_definite);
            }).rfind("linalg::cholesky: A: got a matrix whose leading minor of order 36", 0),
            0u);
  EXPECT_EQ(std::get<1>(linalg::cholesky_ex(no_definite)).item<int32_t>(), 36);
  a.select(0, 3).fill_(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(det(a).item<double>()));
}

std::vector<Tensor> all_of(const Tensor& a) {
  const Tensor positive = matmul(a, a.mT()) + one(a.size(-1));
  const auto [q, r] = linalg::qr(a);
  const auto [values, vectors] = linalg::eigh(positive);
  const auto [u, s, vt] = linalg::svd(a);
  return {det(a), linalg::inv(a), linalg::cholesky(positive), q, r, values, vectors, u, s, vt};
}

TEST(MatrixBlocks, ThreadsAndBatchesChangeNoBit) {
  const int threads = num_threads();
  for (int64_t n : {1, 3, 16, 40, 100}) {
    const Tensor a = noise({n < 40 ? 12 : 2, n, n});
    set_num_threads(1);
    const std::vector<Tensor> alone = all_of(a), last = all_of(a[-1]);
    set_num_threads(3);
    const std::vector<Tensor> together = all_of(a);
    set_num_threads(threads);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(equal(alone[i], together[i])) << n << ", result " << i;
      EXPECT_TRUE(equal(alone[i][-1], last[i])) << n << ", result " << i;
    }
  }
}

TEST(MatrixBlocks, SmallOnesOfABatchFailByNumber) {
  Tensor a = noise({500, 3, 3});
  a[321].zero_(), a[400].zero_();
  EXPECT_NE(message_of([&] { linalg::inv(a); }).find("got matrix 321 that is singular (pivot 1 is 0)"),
            std::string::npos);
  EXPECT_TRUE(equal(std::get<1>(linalg::inv_ex(a)).nonzero().flatten(), tensor({321, 400})));
}

}  // namespace
}  // namespace ingot
