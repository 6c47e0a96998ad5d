#include "runtime/matrices/factorizations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "base/scratch_array.h"
#include "runtime/matrices/dense_matrix.h"
#include "runtime/thread_pool.h"

namespace ingot::runtime {
namespace {

// Toledo, Locality of Reference in LU Decomposition with Partial Pivoting, 1997: the left half of the columns is
// eliminated, its part of the right half is taken away as one product, then the right half is eliminated. So nearly all
// work is in products of blocks. Where matrices are halved follows from their sizes alone.
constexpr int64_t kColumns = kPlainSize;  // that are eliminated one by one
int64_t middle_of(int64_t first, int64_t last) {
  return first + ((last - first) / 2 + kColumns - 1) / kColumns * kColumns;
}

/// What solves by one triangle. Rows of T stand t_stride elements apart, those of B b_stride.
struct Triangle {
  const BlockProducts& products;
  const double* t;
  int64_t t_stride;
  bool upper, unit;

  /// The rows of B from `first` to `last`, what others have to do with them taken away.
  void solve(int64_t first, int64_t last, double* b, int64_t columns, int64_t b_stride) const {
    if (last - first <= kColumns) return solve_stretches(first, last, b, columns, b_stride);
    const int64_t middle = middle_of(first, last);
    const int64_t known = upper ? middle : first, rest = upper ? first : middle;
    const int64_t known_rows = upper ? last - middle : middle - first, rest_rows = last - first - known_rows;
    solve(known, known + known_rows, b, columns, b_stride);
    products.add(-1, {t + rest * t_stride + known, t_stride}, {b + known * b_stride, b_stride}, b + rest * b_stride,
                 b_stride, rest_rows, known_rows, columns);
    solve(rest, rest + rest_rows, b, columns, b_stride);
  }

  /// Stretches of columns on threads.
  void solve_stretches(int64_t first, int64_t last, double* b, int64_t columns, int64_t b_stride) const {
    constexpr int64_t kGrain = 64;
    parallel(static_cast<int>(std::min<int64_t>(columns / kGrain, num_threads())), [&](int thread, int threads) {
      const auto [begin, end] = share(columns, thread, threads, kGrain);
      solve_rows(first, last, b + begin, end - begin, b_stride);
    });
  }
  // Four rows at a time: a row of b that is worked on is read and written once for all of them.
  void solve_rows(int64_t first, int64_t last, double* b, int64_t columns, int64_t b_stride) const {
    for (int64_t i = first; i < last; ++i) {
      const int64_t r = upper ? first + last - 1 - i : i, end = upper ? last : r;
      double* __restrict to = b + r * b_stride;
      const double* factors = t + r * t_stride;
      int64_t k = upper ? r + 1 : first;
      for (; k + 4 <= end; k += 4) {
        const double *x0 = b + k * b_stride, *x1 = x0 + b_stride, *x2 = x1 + b_stride, *x3 = x2 + b_stride;
        for (int64_t c = 0; c < columns; ++c)
          to[c] -= (factors[k] * x0[c] + factors[k + 1] * x1[c]) + (factors[k + 2] * x2[c] + factors[k + 3] * x3[c]);
      }
      for (; k < end; ++k) add_to(to, -factors[k], b + k * b_stride, columns);
      if (!unit)
        for (int64_t c = 0; c < columns; ++c) to[c] /= factors[r];
    }
  }
};

/// Some columns of a matrix, one behind the other, from row `first` on: rows of a matrix stand where a cache may have
/// few places for them.
class Panel {
 public:
  Panel(double* a, int64_t rows, int64_t columns, int64_t first, int64_t last)
      : a_(a), rows_(rows), stride_(columns), first_(first), last_(last), lines_((last - first) * (rows - first)) {
    each([](double& there, double& here) { here = there; });
  }
  /// Its row 0 is that of the matrix.
  double* column(int64_t c) { return lines_.data() + (c - first_) * (rows_ - first_) - first_; }
  void write_back() {
    each([](double& there, double& here) { there = here; });
  }

 private:
  template <class Copy>
  void each(Copy copy) {
    for (int64_t r = first_; r < rows_; ++r)
      for (int64_t c = first_; c < last_; ++c) copy(a_[r * stride_ + c], column(c)[r]);
  }

  double* a_;
  int64_t rows_, stride_, first_, last_;
  ScratchArray<double, 256> lines_;
};

/// A matrix whose columns are eliminated, of rows that stand `columns` elements apart.
struct Elimination {
  const BlockProducts& products;
  double* a;
  int64_t rows, columns;
  Pivots pivots;

  double* at(int64_t r, int64_t c) const { return a + r * columns + c; }

  void halves(int64_t first, int64_t last) {
    if (last - first <= kColumns) return one_by_one(first, last);
    const int64_t middle = middle_of(first, last);
    halves(first, middle);
    follow(first, middle, last);
    halves(middle, last);
  }
  /// The columns from `middle` on, after those before it.
  void follow(int64_t first, int64_t middle, int64_t last) {
    Triangle{products, at(0, 0), columns, false, true}.solve(first, middle, at(0, middle), last - middle, columns);
    products.add(-1, {at(middle, first), columns}, {at(first, middle), columns}, at(middle, middle), columns,
                 rows - middle, middle - first, last - middle);
  }
  void one_by_one(int64_t first, int64_t last) {
    Panel panel(a, rows, columns, first, last);
    for (int64_t k = first; k < last; ++k) {
      double* column = panel.column(k);
      int64_t best = k;
      for (int64_t r = k + 1; r < rows; ++r)
        if (std::fabs(column[r]) > std::fabs(column[best])) best = r;
      pivots.swaps.push_back(best);
      if (best != k) {
        std::swap_ranges(at(k, 0), at(k + 1, 0), at(best, 0));
        for (int64_t c = first; c < last; ++c) std::swap(panel.column(c)[k], panel.column(c)[best]);
        std::swap(pivots.rows[k], pivots.rows[best]);
        pivots.sign = -pivots.sign;
      }
      const double pivot = column[k];
      if (pivot == 0) {
        if (pivots.zero < 0) pivots.zero = k;
        continue;
      }
      for (int64_t r = k + 1; r < rows; ++r) column[r] /= pivot;
      for (int64_t c = k + 1; c < last; ++c)
        add_to(panel.column(c) + k + 1, -panel.column(c)[k], column + k + 1, rows - k - 1);
    }
    panel.write_back();
  }
};

/// The order of the first minor of columns `first` to `last` that is not positive, or 0.
int64_t eliminate_symmetric(const BlockProducts& products, double* a, int64_t n, int64_t first, int64_t last) {
  if (last - first > kColumns) {
    const int64_t middle = middle_of(first, last);
    if (const int64_t order = eliminate_symmetric(products, a, n, first, middle)) return order;
    const Block left{a + middle * n + first, n};
    products.add(-1, left, left.turned(), a + middle * n + middle, n, n - middle, middle - first, last - middle);
    return eliminate_symmetric(products, a, n, middle, last);
  }
  Panel panel(a, n, n, first, last);
  int64_t order = 0;
  for (int64_t k = first; k < last && !order; ++k) {
    double* column = panel.column(k);
    if (!(column[k] > 0)) {
      order = k + 1;
      continue;
    }
    column[k] = std::sqrt(column[k]);
    for (int64_t r = k + 1; r < n; ++r) column[r] /= column[k];
    for (int64_t c = k + 1; c < last; ++c) add_to(panel.column(c) + c, -column[c], column + c, n - c);
  }
  panel.write_back();
  return order;
}

}  // namespace

Pivots factor_lu(const BlockProducts& products, double* a, int64_t rows, int64_t columns) {
  Elimination elimination{products, a, rows, columns, {}};
  elimination.pivots.rows.resize(rows);
  std::iota(elimination.pivots.rows.begin(), elimination.pivots.rows.end(), 0);
  const int64_t steps = std::min(rows, columns);
  elimination.halves(0, steps);
  if (columns > steps) elimination.follow(0, steps, columns);
  return std::move(elimination.pivots);
}

void solve_triangle(const BlockProducts& products, const double* t, int64_t n, bool upper, bool unit, double* b,
                    int64_t columns) {
  Triangle{products, t, n, upper, unit}.solve(0, n, b, columns, columns);
}

void solve_lu(const BlockProducts& products, const double* lu, const Pivots& pivots, int64_t n, double* b,
              int64_t columns) {
  const std::vector<double> given(b, b + n * columns);
  for (int64_t r = 0; r < n; ++r) std::copy_n(given.data() + pivots.rows[r] * columns, columns, b + r * columns);
  solve_triangle(products, lu, n, false, true, b, columns);
  solve_triangle(products, lu, n, true, false, b, columns);
}

int64_t factor_cholesky(const BlockProducts& products, double* a, int64_t n) {
  const int64_t order = eliminate_symmetric(products, a, n, 0, n);
  for (int64_t k = 0; k < n; ++k) std::fill(a + k * n + k + 1, a + (k + 1) * n, 0);
  return order;
}

// Moler and Van Loan, Nineteen Dubious Ways to Compute the Exponential of a Matrix, 2003: method 3, with a Taylor
// series.
void exponentiate(const BlockProducts& products, double* a, int64_t n) {
  constexpr int kMostHalvings = 1100;  // more than f64 has exponents: of a sum beyond it
  constexpr int kTerms = 16;           // of a norm of a half, the last one is below the last bit of 1
  double norm = 0;
  for (int64_t r = 0; r < n; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < n; ++c) sum += std::fabs(a[r * n + c]);
    norm = std::max(norm, sum);
  }
  int halvings = 0;
  while (halvings < kMostHalvings && std::ldexp(norm, -halvings) > 0.5) ++halvings;
  for (int64_t i = 0; i < n * n; ++i) a[i] = std::ldexp(a[i], -halvings);
  std::vector<double> sum(static_cast<size_t>(n * n)), product(sum);
  const auto multiply = [&](const double* x, const double* y) {
    std::fill(product.begin(), product.end(), 0);
    products.add(1, {x, n}, {y, n}, product.data(), n, n, n, n);
  };
  // Horner's scheme: 1 + a (1 + a / 2 (1 + a / 3 ..
  for (int64_t i = 0; i < n; ++i) sum[i * n + i] = 1;
  for (int term = kTerms; term > 0; --term) {
    multiply(a, sum.data());
    for (int64_t i = 0; i < n * n; ++i) sum[i] = product[i] / term;
    for (int64_t i = 0; i < n; ++i) sum[i * n + i] += 1;
  }
  for (int i = 0; i < halvings; ++i) {
    multiply(sum.data(), sum.data());
    sum.swap(product);
  }
  std::copy(sum.begin(), sum.end(), a);
}

}  // namespace ingot::runtime
