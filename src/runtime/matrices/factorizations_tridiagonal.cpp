// Eigenvalues and eigenvectors of symmetric tridiagonal matrices.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/matrices/dense_matrix.h"
#include "runtime/matrices/factorizations.h"
#include "runtime/matrices/reflections.h"
#include "runtime/thread_pool.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kSmallest = 32;  // that is divided

// Golub and Van Loan, Matrix Computations, 8.3: the off-diagonal goes to 0 by implicit QR steps with Wilkinson's shift,
// from the last row up. `lines`, unless null: n of n elements, which turn along.
void step_by_step(int64_t n, double* d, double* e, double* lines) {
  constexpr int64_t kMostSteps = 60;  // a value that is found: two or three are usual
  Rotations rotations(lines, n);
  int64_t last = n - 1;
  for (int64_t steps = kMostSteps * n; last > 0 && steps > 0; --steps) {
    const auto nothing = [&](int64_t k) {
      return !(std::fabs(e[k]) > kEpsilon * (std::fabs(d[k]) + std::fabs(d[k + 1])));
    };
    if (nothing(last - 1)) {
      --last;
      continue;
    }
    int64_t first = last - 1;
    while (first > 0 && !nothing(first - 1)) --first;
    const double half = (d[last - 1] - d[last]) / 2, off = e[last - 1];
    const double shift = d[last] - off / (half + std::copysign(std::hypot(half, off), half)) * off;
    double x = d[first] - shift, y = e[first];
    for (int64_t k = first; k < last; ++k) {
      const Rotation rotation(x, y);
      const auto [cosine, sine, length] = rotation;
      if (k > first) e[k - 1] = length;
      const double move = sine * (d[k + 1] - d[k]) + 2 * cosine * e[k];
      d[k] += sine * move, d[k + 1] -= sine * move;
      e[k] = x = cosine * move - e[k];
      if (k + 1 < last) y = sine * e[k + 1], e[k + 1] *= cosine;
      rotations.add(k, rotation);
    }
  }
  rotations.finish();
}

/// The eigenvalues of D + rho z z^T for a diagonal D in ascending order, all z far from 0 and rho above 0: they lie
/// between the elements of D, the last one beyond them all.
struct Secular {
  const std::vector<double>&d, &z;
  double rho;

  int64_t size() const { return static_cast<int64_t>(d.size()); }

  /// What f(x) = 1 + rho sum z_i^2 / (d_i - x) is made of, at x = d_origin + shift.
  struct Value {
    double f, left_slope = 0, right_slope = 0, size = 1;  // the sum of the terms' sizes
  };
  Value at(int64_t k, int64_t origin, double shift) const {
    double left = 0, right = 0;
    Value value;
    for (int64_t i = 0; i <= k; ++i) {
      const double quotient = z[i] / (d[i] - d[origin] - shift);
      left += z[i] * quotient, value.left_slope += quotient * quotient;
    }
    for (int64_t i = k + 1; i < size(); ++i) {
      const double quotient = z[i] / (d[i] - d[origin] - shift);
      right += z[i] * quotient, value.right_slope += quotient * quotient;
    }
    value.f = 1 + rho * (left + right);
    value.left_slope *= rho, value.right_slope *= rho;
    value.size += rho * (std::fabs(left) + std::fabs(right));
    return value;
  }

  /// The root after d_k: differences[i] = d_i - root, which are exact where the root itself is rounded. R. Li, Solving
  /// Secular Equations Stably and Efficiently, 1993: a step goes to the root of c + s / (d_k - x) + t / (d_k+1 - x),
  /// whose two parts have the values and slopes of those of f.
  double root(int64_t k, double* differences) const {
    const bool is_last = k + 1 == size();
    double length = 0;
    for (int64_t i = 0; is_last && i < size(); ++i) length += rho * z[i] * z[i];
    if (!is_last) length = d[k + 1] - d[k];
    int64_t origin = k;  // the nearer end
    double shift = length / 2, low = 0, high = length;
    if (!is_last && at(k, k, shift).f < 0) {
      origin = k + 1;
      low = -length / 2, high = 0, shift = low;
    } else if (!is_last) {
      high = shift;
    }
    constexpr int kMostSteps = 100;
    for (int step = 0; step < kMostSteps; ++step) {
      const Value value = at(k, origin, shift);
      if (std::fabs(value.f) <= kEpsilon * value.size * 8) break;
      (value.f < 0 ? low : high) = shift;
      if (high - low <= kEpsilon * std::max(std::fabs(low), std::fabs(high))) break;
      const double near = d[k] - d[origin] - shift;
      double move;
      if (is_last) {
        move = near + value.left_slope * near * near / (value.f - value.left_slope * near);
      } else {
        const double far = d[k + 1] - d[origin] - shift;
        const double c = value.f - near * value.left_slope - far * value.right_slope;
        const double a = (near + far) * value.f - near * far * (value.left_slope + value.right_slope);
        const double b = near * far * value.f, root = std::sqrt(std::max(a * a - 4 * b * c, 0.0));
        move = a <= 0 ? (a - root) / (2 * c) : 2 * b / (a + root);
      }
      const double next = shift + move;
      shift = next > low && next < high ? next : low + (high - low) / 2;
    }
    for (int64_t i = 0; i < size(); ++i) differences[i] = d[i] - d[origin] - shift;
    return d[origin] + shift;
  }
};

/// Divide and conquer: J. Cuppen, 1981; M. Gu and S. Eisenstat, A Divide-and-Conquer Algorithm for the Symmetric
/// Tridiagonal Eigenproblem, 1995. Lines are eigenvectors, as far as they reach, of blocks along the diagonal.
class Division {
 public:
  Division(const BlockProducts& products, int64_t n, double* d, double* e, double* lines)
      : products_(products), n_(n), d_(d), e_(e), lines_(lines) {}

  void solve(int64_t first, int64_t last) {
    const int64_t size = last - first;
    if (size <= kSmallest) {
      std::vector<double> own(static_cast<size_t>(size * size));
      for (int64_t i = 0; i < size; ++i) own[i * size + i] = 1;
      step_by_step(size, d_ + first, e_ + first, own.data());
      for (int64_t i = 0; i < size; ++i) std::copy_n(&own[i * size], size, line(first + i) + first);
      return;
    }
    // T is two blocks and a matrix of rank 1: b (u u^T) for u = (.., 0, 1, +-1, 0, ..).
    const int64_t middle = first + size / 2;
    const double beside = e_[middle - 1], b = std::fabs(beside);
    d_[middle - 1] -= b, d_[middle] -= b;
    solve(first, middle);
    solve(middle, last);
    if (b != 0) join(first, middle, last, b, beside < 0 ? -1 : 1);
  }

 private:
  double* line(int64_t i) const { return lines_ + i * n_; }

  /// Those eigenvectors that u has a part in, each beside its eigenvalue; the others stay as they are.
  std::vector<int64_t> parted(int64_t first, int64_t last, double rho, std::vector<double>& z) const {
    std::vector<int64_t> order(static_cast<size_t>(last - first)), kept;
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return d_[i] < d_[j]; });
    double largest = 0;
    for (int64_t i : order) largest = std::max({largest, std::fabs(d_[i]), std::fabs(z[i - first])});
    const double nothing = 8 * kEpsilon * largest;
    int64_t before = -1;
    for (int64_t i : order) {
      if (rho * std::fabs(z[i - first]) <= nothing) continue;
      if (before >= 0) {
        // Of two values that are as good as equal, one vector may be turned until u has no part in it.
        double &x = z[before - first], &y = z[i - first];
        const Rotation rotation(y, x);
        const double c = rotation.cosine, s = rotation.sine;
        if (std::fabs((d_[i] - d_[before]) * c * s) <= nothing) {
          y = rotation.length, x = 0;
          double *p = line(before), *q = line(i);
          for (int64_t k = first; k < last; ++k) {
            const double was = p[k];
            p[k] = c * was - s * q[k];
            q[k] = c * q[k] + s * was;
          }
          const double was = d_[before];
          d_[before] = was * c * c + d_[i] * s * s;
          d_[i] = was * s * s + d_[i] * c * c;
        } else {
          kept.push_back(before);
        }
      }
      before = i;
    }
    if (before >= 0) kept.push_back(before);
    return kept;
  }

  void join(int64_t first, int64_t middle, int64_t last, double b, double sign) {
    const double root_of_half = std::sqrt(0.5), rho = 2 * b;  // of u of length 1
    std::vector<double> u(static_cast<size_t>(last - first));
    for (int64_t i = first; i < last; ++i)
      u[i - first] = root_of_half * (i < middle ? line(i)[middle - 1] : sign * line(i)[middle]);
    const std::vector<int64_t> kept = parted(first, last, rho, u);
    const auto count = static_cast<int64_t>(kept.size());
    if (count == 0) return;
    std::vector<double> values, z;
    for (int64_t i : kept) values.push_back(d_[i]), z.push_back(u[i - first]);
    const Secular secular{values, z, rho};
    std::vector<double> differences(static_cast<size_t>(count * count));
    parallel(static_cast<int>(std::min<int64_t>(num_threads(), count / kSmallest)), [&](int thread, int threads) {
      const auto [begin, end] = share(count, thread, threads);
      for (int64_t k = begin; k < end; ++k) d_[kept[k]] = secular.root(k, &differences[k * count]);
    });
    // Of the z that has exactly these roots, all vectors are orthogonal, whatever was rounded.
    std::vector<double> exact(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) exact[i] = -differences[i * count + i];
    for (int64_t k = 0; k < count; ++k)
      for (int64_t i = 0; i < count; ++i)
        if (i != k) exact[i] *= differences[k * count + i] / (values[i] - values[k]);
    for (int64_t i = 0; i < count; ++i) exact[i] = std::copysign(std::sqrt(exact[i]), z[i]);
    for (int64_t k = 0; k < count; ++k) {
      double* vector = &differences[k * count];
      for (int64_t i = 0; i < count; ++i) vector[i] = exact[i] / vector[i];
      const double length = std::sqrt(dot(vector, vector, count));
      for (int64_t i = 0; i < count; ++i) vector[i] /= length;
    }
    const int64_t size = last - first;
    std::vector<double> old(static_cast<size_t>(count * size)), vectors(old);
    for (int64_t i = 0; i < count; ++i) std::copy_n(line(kept[i]) + first, size, &old[i * size]);
    products_.add(1, {differences.data(), count}, {old.data(), size}, vectors.data(), size, count, count, size);
    for (int64_t i = 0; i < count; ++i) std::copy_n(&vectors[i * size], size, line(kept[i]) + first);
  }

  const BlockProducts& products_;
  int64_t n_;
  double *d_, *e_, *lines_;
};

}  // namespace

void factor_tridiagonal(const BlockProducts& products, int64_t n, double* d, double* e, double* lines) {
  std::vector<double> values(d, d + n);
  if (lines && n > kSmallest) {
    std::vector<double> beside(e, e + n);
    std::fill_n(lines, n * n, 0);
    Division(products, n, values.data(), beside.data(), lines).solve(0, n);
    step_by_step(n, d, e, nullptr);
  } else {
    if (lines) std::fill_n(lines, n * n, 0);
    for (int64_t i = 0; lines && i < n; ++i) lines[i * n + i] = 1;
    step_by_step(n, d, e, lines);
    values.assign(d, d + n);
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return values[i] < values[j]; });
  std::sort(d, d + n);
  if (!lines) return;
  const std::vector<double> given(lines, lines + n * n);
  for (int64_t i = 0; i < n; ++i) std::copy_n(&given[order[i] * n], n, lines + i * n);
}

}  // namespace ingot::runtime
