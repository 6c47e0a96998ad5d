// Factorizations by reflections and rotations.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/matrices/dense_matrix.h"
#include "runtime/matrices/factorizations.h"
#include "runtime/matrices/reflections.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kMostSteps = 60;  // a value that is found: two or three are usual

std::vector<double> identity_of(int64_t n) {
  std::vector<double> one(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) one[i * n + i] = 1;
  return one;
}

/// By a power of two, which rounds nothing, of a size whose square is a number: gives the exponent.
int scale_down(double* x, int64_t n) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  const int exponent = largest > 0 && std::isfinite(largest) ? std::ilogb(largest) : 0;
  for (int64_t i = 0; i < n; ++i) x[i] = std::ldexp(x[i], -exponent);
  return exponent;
}

/// Positions in the order of their values.
template <class Before>
std::vector<int64_t> order_of(int64_t n, Before before) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

/// To [columns, rows], some rows and columns at a time: few lines of either one have a place in the cache.
void transpose_into(const double* a, int64_t rows, int64_t columns, double* to) {
  constexpr int64_t kSide = 16;
  for (int64_t first = 0; first < rows; first += kSide)
    for (int64_t left = 0; left < columns; left += kSide)
      for (int64_t r = first; r < std::min(first + kSide, rows); ++r)
        for (int64_t c = left; c < std::min(left + kSide, columns); ++c) to[c * rows + r] = a[r * columns + c];
}
std::vector<double> transposed(const double* a, int64_t rows, int64_t columns) {
  std::vector<double> t(static_cast<size_t>(rows * columns));
  transpose_into(a, rows, columns, t.data());
  return t;
}

}  // namespace

// Golub and Van Loan, Matrix Computations, 5.2.
void factor_qr(const BlockProducts& products, double* a, int64_t rows, int64_t columns, double* q, int64_t q_columns) {
  constexpr int64_t kBlock = Reflections::kBlock;
  const int64_t steps = std::min(rows, columns);
  std::vector<double> lines = transposed(a, rows, columns);  // columns of A, in which reflections take R's place
  std::vector<double> heads(static_cast<size_t>(steps)), weights(heads);
  const auto block_from = [&](int64_t first) {
    return Reflections{
        products, &lines[first * rows + first], &weights[first], std::min(kBlock, steps - first), rows - first, rows};
  };
  for (int64_t first = 0; first < steps; first += kBlock) {
    const int64_t last = std::min(first + kBlock, steps);
    for (int64_t k = first; k < last; ++k) {
      double* v = &lines[k * rows + k];
      const auto [head, weight] = reflection_of(v, rows - k);
      heads[k] = head, weights[k] = weight;
      reflect(v, weight, rows - k, v + rows, last - k - 1, rows);
    }
    block_from(first).apply(lines.data() + last * rows + first, columns - last, rows);
  }
  std::vector<double> qt(static_cast<size_t>(q_columns * rows));
  for (int64_t i = 0; i < std::min(rows, q_columns); ++i) qt[i * rows + i] = 1;
  for (int64_t first = (steps - 1) / kBlock * kBlock; first >= 0; first -= kBlock)
    block_from(first).apply_reversed(qt.data() + first * rows + first, q_columns - first, rows);
  transpose_into(qt.data(), q_columns, rows, q);
  for (int64_t k = 0; k < steps; ++k) {
    lines[k * rows + k] = heads[k];
    std::fill(&lines[k * rows + k] + 1, lines.data() + (k + 1) * rows, 0);
  }
  transpose_into(lines.data(), columns, rows, a);
}

// Golub and Van Loan, Matrix Computations, 8.3: reflections to a tridiagonal matrix, whose vectors are reflected back.
void factor_symmetric(const BlockProducts& products, double* a, int64_t n, double* values, double* v) {
  const int exponent = scale_down(a, n * n);
  std::vector<double> d(static_cast<size_t>(n)), e(static_cast<size_t>(n)), weights(static_cast<size_t>(n));
  std::vector<double> product(static_cast<size_t>(n)), last_product(product);
  // Of the upper triangle, whose rows are what is left of the columns; a row keeps its reflection. What a reflection
  // takes away is taken from a row when the next one reads it, so that a step goes through memory once.
  const double* last_x = nullptr;
  const auto settle = [&](int64_t r) {
    if (!last_x) return;
    const double *x = last_x, *p = last_product.data();
    double* __restrict row = a + r * n;
    for (int64_t c = r; c < n; ++c) row[c] -= x[r] * p[c] + p[r] * x[c];
  };
  for (int64_t k = 0; k + 1 < n; ++k) {
    settle(k);
    double *x = a + k * n, *p = product.data();
    d[k] = x[k];
    const auto [head, weight] = reflection_of(x + k + 1, n - k - 1);
    e[k] = head, weights[k] = weight;
    std::fill(p + k + 1, p + n, 0);
    for (int64_t r = k + 1; r < n; ++r) {
      settle(r);
      if (weight == 0) continue;
      const double* row = a + r * n;
      p[r] += dot(row + r, x + r, n - r);
      add_to(p + r + 1, x[r], row + r + 1, n - r - 1);
    }
    last_x = weight == 0 ? nullptr : x;
    if (weight == 0) continue;
    const double half = weight / 2 * weight * dot(p + k + 1, x + k + 1, n - k - 1);
    for (int64_t r = k + 1; r < n; ++r) p[r] = weight * p[r] - half * x[r];
    std::swap(product, last_product);
  }
  if (n > 0) settle(n - 1), d[n - 1] = a[n * n - 1];

  std::vector<double> lines(static_cast<size_t>(v ? n * n : 0));  // the transposed vectors of the tridiagonal matrix
  factor_tridiagonal(products, n, d.data(), e.data(), v ? lines.data() : nullptr);
  for (int64_t i = 0; i < n; ++i) values[i] = std::ldexp(d[i], exponent);
  if (!v) return;
  Reflections{products, a + 1, weights.data(), n - 1, n - 1, n}.apply_reversed(lines.data() + 1, n, n);
  transpose_into(lines.data(), n, n, v);
}

namespace {

/// U^T B V = diag(d) of an upper bidiagonal matrix: d on its diagonal, e above it. Lines of `left` and `right` (U^T and
/// V^T, n by n), unless they are null, turn along. Golub and Van Loan, Matrix Computations, 8.6; where a diagonal
/// element is 0, without a shift as Demmel and Kahan, Accurate Singular Values of Bidiagonal Matrices, 1990, have it:
/// the last one is 0 then.
void diagonalize(std::vector<double>& d, std::vector<double>& e, int64_t n, double* left, double* right) {
  double largest = 0;
  for (double element : d) largest = std::max(largest, std::fabs(element));
  for (double element : e) largest = std::max(largest, std::fabs(element));
  const auto nothing = [&](double x) { return !(std::fabs(x) > kEpsilon * largest); };
  Rotations lefts(left, n), rights(right, n);
  const auto turn = [&](const Rotation& rows, const Rotation& columns, int64_t k) {
    lefts.add(k, rows), rights.add(k, columns);
  };
  int64_t last = n - 1;
  for (int64_t steps = kMostSteps * n; last > 0 && steps > 0; --steps) {
    if (nothing(e[last - 1])) {
      --last;
      continue;
    }
    int64_t first = last - 1;
    while (first > 0 && !nothing(e[first - 1])) --first;
    bool singular = false;
    for (int64_t k = first; k <= last; ++k)
      if (nothing(d[k])) d[k] = 0, singular = true;
    if (singular) {
      double cosine = 1, from_cosine = 1, from_sine = 0;
      for (int64_t k = first; k < last; ++k) {
        const Rotation columns(d[k] * cosine, e[k]);
        if (k > first) e[k - 1] = from_sine * columns.length;
        const Rotation rows(from_cosine * columns.length, d[k + 1] * columns.sine);
        d[k] = rows.length;
        cosine = columns.cosine, from_cosine = rows.cosine, from_sine = rows.sine;
        turn(rows, columns, k);
      }
      const double end = d[last] * cosine;
      d[last] = end * from_cosine, e[last - 1] = end * from_sine;
      continue;
    }
    // The eigenvalue of the last two columns' products that is nearer to the last one.
    const double above = last - 1 > first ? e[last - 2] : 0, off = d[last - 1] * e[last - 1];
    const double alpha = d[last - 1] * d[last - 1] + above * above;
    const double beta = d[last] * d[last] + e[last - 1] * e[last - 1];
    const double half = (alpha - beta) / 2;
    const double shift = beta - off / (half + std::copysign(std::hypot(half, off), half)) * off;
    double x = d[first] - shift / d[first], y = e[first];
    for (int64_t k = first; k < last; ++k) {
      const Rotation columns(x, y);
      if (k > first) e[k - 1] = columns.length;
      x = columns.cosine * d[k] + columns.sine * e[k];
      e[k] = columns.cosine * e[k] - columns.sine * d[k];
      y = columns.sine * d[k + 1];
      d[k + 1] *= columns.cosine;
      const Rotation rows(x, y);
      d[k] = rows.length;
      x = rows.cosine * e[k] + rows.sine * d[k + 1];
      d[k + 1] = rows.cosine * d[k + 1] - rows.sine * e[k];
      if (k + 1 < last) y = rows.sine * e[k + 1], e[k + 1] *= rows.cosine;
      turn(rows, columns, k);
    }
    e[last - 1] = x;
  }
  lefts.finish(), rights.finish();
}

}  // namespace

// Golub and Van Loan, Matrix Computations, 5.4.8: reflections from both sides to a bidiagonal matrix of the shorter
// side; the vectors of that one are reflected back.
void factor_singular(const BlockProducts& products, const double* a, int64_t rows, int64_t columns, double* u,
                     int64_t u_columns, double* values, double* vt, int64_t vt_rows) {
  const bool tall = rows >= columns;
  const int64_t k = std::min(rows, columns), length = std::max(rows, columns);
  const int64_t long_count = tall ? u_columns : vt_rows;
  // Lines of the longer side: reflections of their elements take their places, those of what stands across are kept
  // beside them.
  std::vector<double> lines = tall ? transposed(a, rows, columns) : std::vector<double>(a, a + rows * columns);
  const int exponent = scale_down(lines.data(), k * length);
  std::vector<double> across(static_cast<size_t>(k * k)), sums(static_cast<size_t>(length));
  std::vector<double> d(static_cast<size_t>(k)), e(static_cast<size_t>(k)), d_weights(d), e_weights(d);
  for (int64_t i = 0; i < k; ++i) {
    double* v = &lines[i * length + i];
    const auto [head, weight] = reflection_of(v, length - i);
    d[i] = head, d_weights[i] = weight;
    reflect(v, weight, length - i, v + length, k - i - 1, length);
    if (i + 1 == k) break;
    double* w = &across[i * k + i + 1];
    const int64_t left = k - i - 1, rest = length - i - 1;
    double* block = v + length;  // its first column becomes (e, 0, ...)
    for (int64_t r = 0; r < left; ++r) w[r] = block[r * length];
    const auto [off, off_weight] = reflection_of(w, left);
    e[i] = off, e_weights[i] = off_weight;
    if (off_weight == 0) continue;
    std::fill_n(sums.data(), rest, 0);
    for (int64_t r = 0; r < left; ++r) add_to(sums.data(), w[r], block + r * length + 1, rest);
    for (int64_t r = 0; r < left; ++r) add_to(block + r * length + 1, -off_weight * w[r], sums.data(), rest);
  }
  std::vector<double> turns, across_turns;
  if (u) turns = across_turns = identity_of(k);
  diagonalize(d, e, k, turns.data(), across_turns.data());
  const std::vector<int64_t> order =
      order_of(k, [&](int64_t i, int64_t j) { return std::fabs(d[i]) > std::fabs(d[j]); });
  for (int64_t i = 0; i < k; ++i) values[i] = std::ldexp(std::fabs(d[order[i]]), exponent);
  if (!u) return;
  std::vector<double> directions(static_cast<size_t>(long_count * length)), others(static_cast<size_t>(k * k));
  for (int64_t i = 0; i < k; ++i) {
    std::copy_n(&turns[order[i] * k], k, &directions[i * length]);
    const double sign = std::copysign(1, d[order[i]]);
    for (int64_t c = 0; c < k; ++c) others[i * k + c] = sign * across_turns[order[i] * k + c];
  }
  for (int64_t i = k; i < long_count; ++i) directions[i * length + i] = 1;
  Reflections{products, lines.data(), d_weights.data(), k, length, length}.apply_reversed(directions.data(), long_count,
                                                                                          length);
  if (k > 1)
    Reflections{products, across.data() + 1, e_weights.data(), k - 1, k - 1, k}.apply_reversed(others.data() + 1, k, k);
  const std::vector<double>&left = tall ? directions : others, &right = tall ? others : directions;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < u_columns; ++c) u[r * u_columns + c] = left[c * rows + r];
  std::copy(right.begin(), right.end(), vt);
}

}  // namespace ingot::runtime
