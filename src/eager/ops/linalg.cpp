#include "eager/ops/linalg.h"

#include <cmath>
#include <vector>

#include "eager/call/call.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot {
namespace {

/// Singular values by one-sided Jacobi rotations (Hestenes 1958): columns are turned in pairs until all are orthogonal;
/// then their lengths are the singular values. The matrix is row-major.
double sum_of_singular_values(std::vector<double> a, int64_t rows, int64_t columns) {
  auto dot = [&](int64_t p, int64_t q) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += a[r * columns + p] * a[r * columns + q];
    return sum;
  };
  constexpr int kMostSweeps = 60;
  bool turned = true;
  for (int sweep = 0; turned && sweep < kMostSweeps; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < columns; ++p)
      for (int64_t q = p + 1; q < columns; ++q) {
        double alpha = dot(p, p), beta = dot(q, q), gamma = dot(p, q);
        if (!(std::fabs(gamma) > 1e-15 * std::sqrt(alpha * beta))) continue;
        turned = true;
        double zeta = (beta - alpha) / (2 * gamma);
        double t = std::copysign(1 / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta)), zeta);
        double cosine = 1 / std::sqrt(1 + t * t), sine = cosine * t;
        for (int64_t r = 0; r < rows; ++r) {
          double &x = a[r * columns + p], &y = a[r * columns + q], before = x;
          x = cosine * before - sine * y;
          y = sine * before + cosine * y;
        }
      }
  }
  double sum = 0;
  for (int64_t p = 0; p < columns; ++p) sum += std::sqrt(dot(p, p));
  return sum;
}

}  // namespace

Tensor nuclear_norm(const TensorArg& self, const IntList& dim, bool keepdim) {
  Location location = self.location;
  if (dim.items().size() != 2)
    eager::fail("nuclear_norm", "dim", std::to_string(dim.items().size()) + " dims", "two", location);
  const Tensor& x = *self.tensor;
  if (!x.is_floating_point(location))
    eager::fail("nuclear_norm", "self", std::string(name_of(x.dtype())), "a floating dtype", location);
  Tensor matrices = x.movedim(dim.items(), {-2, -1}, location).to(kFloat64, location).contiguous(location);
  int64_t rank = matrices.dim(), rows = matrices.size(rank - 2), columns = matrices.size(rank - 1);
  Ints batch(matrices.sizes().begin(), matrices.sizes().end() - 2);
  const double* data = matrices.data_ptr<double>(location);
  std::vector<double> sums(rows > 0 && columns > 0 ? matrices.numel() / (rows * columns) : 0);
  for (double& sum : sums) {
    sum = sum_of_singular_values({data, data + rows * columns}, rows, columns);
    data += rows * columns;
  }
  Tensor result = sums.empty() ? full(batch, 0.0, kFloat64) : tensor(sums, kFloat64, location).view(batch, location);
  result = result.to(x.dtype(), location);
  if (!keepdim) return result;
  int64_t a = dim.items()[0], b = dim.items()[1];
  a = a < 0 ? a + rank : a;
  b = b < 0 ? b + rank : b;
  return result.unsqueeze(std::min(a, b), location).unsqueeze(std::max(a, b), location);
}

}  // namespace ingot
