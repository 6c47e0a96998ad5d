#include "eager/ops/factorizations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace ingot::eager {
namespace {

constexpr int kMostSweeps = 60;

/// The tangent of the angle by which a plane is turned so that the form [alpha gamma; gamma beta] becomes diagonal.
double tangent(double alpha, double beta, double gamma) {
  const double zeta = (beta - alpha) / (2 * gamma);
  return std::copysign(1 / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta)), zeta);
}

/// Turns two lines of n elements, which stand `stride` apart.
void turn(double* x, double* y, int64_t n, int64_t stride, double cosine, double sine) {
  for (int64_t i = 0; i < n; ++i) {
    double &a = x[i * stride], &b = y[i * stride];
    const double before = a;
    a = cosine * before - sine * b;
    b = sine * before + cosine * b;
  }
}

double dot(const double* x, const double* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

std::vector<double> transposed(const double* a, int64_t rows, int64_t columns) {
  std::vector<double> t(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) t[c * rows + r] = a[r * columns + c];
  return t;
}

/// Fills up orthonormal rows, `known` of them, to `count`, by the columns of Q that theirs leave.
void complete(double* rows, int64_t known, int64_t count, int64_t length) {
  if (known == count) return;
  std::vector<double> columns = transposed(rows, known, length), q(static_cast<size_t>(length * count));
  factor_qr(columns.data(), length, known, q.data(), count);
  for (int64_t r = known; r < count; ++r)
    for (int64_t c = 0; c < length; ++c) rows[r * length + c] = q[c * count + r];
}

}  // namespace

Pivots factor_lu(double* a, int64_t rows, int64_t columns) {
  Pivots pivots;
  pivots.rows.resize(rows);
  std::iota(pivots.rows.begin(), pivots.rows.end(), 0);
  for (int64_t k = 0; k < std::min(rows, columns); ++k) {
    int64_t best = k;
    for (int64_t r = k + 1; r < rows; ++r)
      if (std::fabs(a[r * columns + k]) > std::fabs(a[best * columns + k])) best = r;
    pivots.swaps.push_back(best);
    if (best != k) {
      std::swap_ranges(a + k * columns, a + (k + 1) * columns, a + best * columns);
      std::swap(pivots.rows[k], pivots.rows[best]);
      pivots.sign = -pivots.sign;
    }
    const double pivot = a[k * columns + k];
    if (pivot == 0) {
      if (pivots.zero < 0) pivots.zero = k;
      continue;
    }
    for (int64_t r = k + 1; r < rows; ++r) {
      const double factor = a[r * columns + k] /= pivot;
      if (factor == 0) continue;
      for (int64_t c = k + 1; c < columns; ++c) a[r * columns + c] -= factor * a[k * columns + c];
    }
  }
  return pivots;
}

void solve_lu(const double* lu, const Pivots& pivots, int64_t n, double* b, int64_t columns) {
  const std::vector<double> given(b, b + n * columns);
  const auto subtract = [&](int64_t from, int64_t row, double factor) {
    for (int64_t c = 0; c < columns; ++c) b[row * columns + c] -= factor * b[from * columns + c];
  };
  for (int64_t r = 0; r < n; ++r) {
    std::copy_n(given.data() + pivots.rows[r] * columns, columns, b + r * columns);
    for (int64_t k = 0; k < r; ++k) subtract(k, r, lu[r * n + k]);
  }
  for (int64_t r = n - 1; r >= 0; --r) {
    for (int64_t k = r + 1; k < n; ++k) subtract(k, r, lu[r * n + k]);
    for (int64_t c = 0; c < columns; ++c) b[r * columns + c] /= lu[r * n + r];
  }
}

int64_t factor_cholesky(double* a, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t r = k; r < n; ++r) a[r * n + k] -= dot(a + r * n, a + k * n, k);
    if (!(a[k * n + k] > 0)) return k + 1;
    const double root = a[k * n + k] = std::sqrt(a[k * n + k]);
    for (int64_t r = k + 1; r < n; ++r) a[r * n + k] /= root;
    std::fill(a + k * n + k + 1, a + (k + 1) * n, 0);
  }
  return 0;
}

// Golub and Van Loan, Matrix Computations, 5.2; signs as LAPACK has them: a column becomes minus the sign of its first
// element, unless all below it is 0 already.
void factor_qr(double* a, int64_t rows, int64_t columns, double* q, int64_t q_columns) {
  const int64_t steps = std::min(rows, columns);
  std::vector<double> reflections(static_cast<size_t>(rows * steps)), weights(static_cast<size_t>(steps));
  std::vector<double> sums(static_cast<size_t>(std::max(columns, q_columns)));
  // Of the columns from the k-th on, row by row, as they lie in memory.
  const auto reflect = [&](int64_t k, double* matrix, int64_t width) {
    const double* v = &reflections[k * rows];
    std::fill(sums.begin(), sums.end(), 0);
    for (int64_t r = k; r < rows; ++r)
      for (int64_t c = k; c < width; ++c) sums[c] += v[r] * matrix[r * width + c];
    for (int64_t r = k; r < rows; ++r)
      for (int64_t c = k; c < width; ++c) matrix[r * width + c] -= weights[k] * sums[c] * v[r];
  };
  for (int64_t k = 0; k < steps; ++k) {
    double* v = &reflections[k * rows];
    double below = 0;
    for (int64_t r = k + 1; r < rows; ++r) below = std::hypot(below, v[r] = a[r * columns + k]);
    if (below == 0) continue;
    const double first = a[k * columns + k], head = -std::copysign(std::hypot(first, below), first);
    weights[k] = (head - first) / head;
    for (int64_t r = k + 1; r < rows; ++r) v[r] /= first - head;
    v[k] = 1;
    reflect(k, a, columns);
    a[k * columns + k] = head;
    for (int64_t r = k + 1; r < rows; ++r) a[r * columns + k] = 0;
  }
  std::fill_n(q, rows * q_columns, 0);
  for (int64_t i = 0; i < std::min(rows, q_columns); ++i) q[i * q_columns + i] = 1;
  for (int64_t k = steps - 1; k >= 0; --k) reflect(k, q, q_columns);
}

// Cyclic Jacobi rotations (Golub and Van Loan, Matrix Computations, 8.5).
void factor_symmetric(double* a, int64_t n, double* values, double* v) {
  std::vector<double> rows(static_cast<size_t>(n * n));  // V^T
  for (int64_t i = 0; i < n; ++i) rows[i * n + i] = 1;
  bool turned = true;
  for (int sweep = 0; turned && sweep < kMostSweeps; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const double alpha = a[p * n + p], beta = a[q * n + q], gamma = a[p * n + q];
        if (!(std::fabs(gamma) > 1e-17 * (std::fabs(alpha) + std::fabs(beta)))) continue;
        turned = true;
        const double t = tangent(alpha, beta, gamma), cosine = 1 / std::sqrt(1 + t * t), sine = cosine * t;
        turn(a + p * n, a + q * n, n, 1, cosine, sine);
        turn(a + p, a + q, n, n, cosine, sine);
        a[p * n + q] = a[q * n + p] = 0;
        turn(&rows[p * n], &rows[q * n], n, 1, cosine, sine);
      }
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return a[i * n + i] < a[j * n + j]; });
  for (int64_t i = 0; i < n; ++i) {
    values[i] = a[order[i] * n + order[i]];
    for (int64_t r = 0; r < n; ++r) v[r * n + i] = rows[order[i] * n + r];
  }
}

// One-sided Jacobi rotations (Hestenes 1958): the lines of the shorter side are turned in pairs until all are
// orthogonal. Then their lengths are the singular values, their directions are the vectors of the longer side, and what
// turned them those of the shorter one.
void factor_singular(const double* a, int64_t rows, int64_t columns, double* u, int64_t u_columns, double* values,
                     double* vt, int64_t vt_rows) {
  const bool tall = rows >= columns;
  const int64_t k = std::min(rows, columns), length = std::max(rows, columns);
  const int64_t long_count = tall ? u_columns : vt_rows, short_count = tall ? vt_rows : u_columns;
  std::vector<double> lines = tall ? transposed(a, rows, columns) : std::vector<double>(a, a + rows * columns);
  // Of a size whose square is a number: by a power of two, which rounds nothing.
  double largest = 0;
  for (double element : lines) largest = std::max(largest, std::fabs(element));
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  for (double& element : lines) element = std::ldexp(element, -exponent);
  std::vector<double> turns(static_cast<size_t>(k * k));
  for (int64_t i = 0; i < k; ++i) turns[i * k + i] = 1;
  bool turned = true;
  for (int sweep = 0; turned && sweep < kMostSweeps; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < k; ++p)
      for (int64_t q = p + 1; q < k; ++q) {
        double *x = &lines[p * length], *y = &lines[q * length];
        const double alpha = dot(x, x, length), beta = dot(y, y, length), gamma = dot(x, y, length);
        if (!(std::fabs(gamma) > 1e-15 * std::sqrt(alpha * beta))) continue;
        turned = true;
        const double t = tangent(alpha, beta, gamma), cosine = 1 / std::sqrt(1 + t * t), sine = cosine * t;
        turn(x, y, length, 1, cosine, sine);
        turn(&turns[p * k], &turns[q * k], k, 1, cosine, sine);
      }
  }
  std::vector<double> norms(static_cast<size_t>(k));
  std::vector<int64_t> order(static_cast<size_t>(k));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = 0; i < k; ++i) norms[i] = std::sqrt(dot(&lines[i * length], &lines[i * length], length));
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return norms[i] > norms[j]; });
  const double rounding =
      k ? norms[order[0]] * std::numeric_limits<double>::epsilon() * static_cast<double>(length) : 0;
  std::vector<double> directions(static_cast<size_t>(long_count * length)),
      others(static_cast<size_t>(short_count * k));
  int64_t known = 0;  // directions of lines that are not 0 to rounding
  for (int64_t i = 0; i < k; ++i) {
    const double norm = norms[order[i]];
    values[i] = std::ldexp(norm, exponent);
    std::copy_n(&turns[order[i] * k], k, &others[i * k]);
    if (!(norm > rounding) || known < i) continue;
    for (int64_t c = 0; c < length; ++c) directions[i * length + c] = lines[order[i] * length + c] / norm;
    ++known;
  }
  complete(directions.data(), known, long_count, length);
  // The vectors of the shorter side are k, all there are.
  const std::vector<double>&left = tall ? directions : others, &right = tall ? others : directions;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < u_columns; ++c) u[r * u_columns + c] = left[c * rows + r];
  std::copy(right.begin(), right.end(), vt);
}

}  // namespace ingot::eager
