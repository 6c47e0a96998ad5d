#include "eager/ops/linalg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "eager/autograd/function.h"
#include "eager/call/call.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot {
namespace {

/// The sum of the singular values of a row-major matrix, and what it rises along: U V^T of its singular vectors, where
/// a singular value that is 0 to rounding has no part.
///
/// One-sided Jacobi rotations (Hestenes 1958): columns are turned in pairs until all are orthogonal. Then their lengths
/// are the singular values, their directions are U, and what turned them is V.
double sum_of_singular_values(std::vector<double> a, int64_t rows, int64_t columns, double* polar) {
  std::vector<double> v(static_cast<size_t>(columns * columns));
  for (int64_t p = 0; p < columns; ++p) v[p * columns + p] = 1;
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
        auto turn = [&](std::vector<double>& matrix, int64_t height) {
          for (int64_t r = 0; r < height; ++r) {
            double &x = matrix[r * columns + p], &y = matrix[r * columns + q], before = x;
            x = cosine * before - sine * y;
            y = sine * before + cosine * y;
          }
        };
        turn(a, rows);
        turn(v, columns);
      }
  }
  std::vector<double> values(static_cast<size_t>(columns));
  double sum = 0, largest = 0;
  for (int64_t p = 0; p < columns; ++p) {
    values[p] = std::sqrt(dot(p, p));
    sum += values[p];
    largest = std::fmax(largest, values[p]);
  }
  const double rounding =
      largest * std::numeric_limits<double>::epsilon() * static_cast<double>(std::max(rows, columns));
  for (int64_t p = 0; p < columns; ++p) {
    if (values[p] <= rounding) continue;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        polar[r * columns + c] += a[r * columns + p] / values[p] * v[c * columns + p];
  }
  return sum;
}

/// It has no derivative itself: one that is asked for is an Error.
struct NuclearNormBackward : autograd::Function<NuclearNormBackward> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& /*matrices*/, const Tensor& polar,
                        const Tensor& gradient) {
    return gradient.unsqueeze(-1).unsqueeze(-1) * polar;
  }
};

struct NuclearNorm : autograd::Function<NuclearNorm> {
  /// Of dense matrices of f64.
  static Tensor forward(autograd::AutogradContext* context, const Tensor& matrices) {
    const int64_t rank = matrices.dim(), rows = matrices.size(rank - 2), columns = matrices.size(rank - 1);
    Tensor sums = zeros(Ints(matrices.sizes().begin(), matrices.sizes().end() - 2), kFloat64);
    Tensor polar = zeros_like(matrices);
    const double* data = matrices.data_ptr<double>();
    double *sum = sums.mutable_data_ptr<double>(), *factor = polar.mutable_data_ptr<double>();
    for (int64_t i = 0, size = rows * columns; size > 0 && i < sums.numel(); ++i, data += size, factor += size)
      sum[i] = sum_of_singular_values({data, data + size}, rows, columns, factor);
    context->save_for_backward({matrices, polar});
    return sums;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* context, const std::vector<Tensor>& gradients) {
    const std::vector<Tensor> saved = context->get_saved_variables();
    return {NuclearNormBackward::apply(saved[0], saved[1], gradients[0])};
  }
};

}  // namespace

Tensor nuclear_norm(const TensorArg& self, const IntList& dim, bool keepdim) {
  Location location = self.location;
  if (dim.items().size() != 2)
    eager::fail("nuclear_norm", "dim", std::to_string(dim.items().size()) + " dims", "two", location);
  const Tensor& x = *self.tensor;
  if (!x.is_floating_point(location))
    eager::fail("nuclear_norm", "self", std::string(name_of(x.dtype())), "a floating dtype", location);
  Tensor matrices = x.movedim(dim.items(), {-2, -1}, location).to(kFloat64, location).contiguous(location);
  const int64_t rank = matrices.dim();
  const CallerLine line(location);
  Tensor result = NuclearNorm::apply(matrices);
  result = result.to(x.dtype(), location);
  if (!keepdim) return result;
  int64_t a = dim.items()[0], b = dim.items()[1];
  a = a < 0 ? a + rank : a;
  b = b < 0 ? b + rank : b;
  return result.unsqueeze(std::min(a, b), location).unsqueeze(std::max(a, b), location);
}

}  // namespace ingot
