// Functions of matrices in extended precision: elimination of whole rows, reflections one by one, rotations (Jacobi).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/reference/context.h"

namespace ingot::ir::reference {
namespace {

using Real = long double;

struct Matrix {
  int64_t rows, columns;
  std::vector<Real> elements;
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), elements(rows * columns) {}
  static Matrix identity(int64_t n) {
    Matrix one(n, n);
    for (int64_t i = 0; i < n; ++i) one(i, i) = 1;
    return one;
  }
  Real& operator()(int64_t r, int64_t c) { return elements[r * columns + c]; }
  Real operator()(int64_t r, int64_t c) const { return elements[r * columns + c]; }
  Matrix turned() const {
    Matrix t(columns, rows);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) t(c, r) = (*this)(r, c);
    return t;
  }
};
Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix product(a.rows, b.columns);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t c = 0; c < b.columns; ++c)
      for (int64_t k = 0; k < a.columns; ++k) product(r, c) += a(r, k) * b(k, c);
  return product;
}

int64_t rows_of(const ReferenceTensor& t) { return t.shape[t.shape.size() - 2]; }
int64_t columns_of(const ReferenceTensor& t) { return t.shape.back(); }
Matrix matrix(const ReferenceTensor& t, int64_t number) {
  Matrix m(rows_of(t), columns_of(t));
  std::copy_n(t.real.begin() + number * m.rows * m.columns, m.rows * m.columns, m.elements.begin());
  return m;
}
void put_matrix(ReferenceTensor& t, int64_t number, const Matrix& m) {
  for (size_t i = 0; i < m.elements.size(); ++i)
    t.real[number * m.elements.size() + i] = static_cast<double>(m.elements[i]);
}
/// Calls f(number, matrix) for each matrix A.
template <class F>
void each_matrix(ReferenceContext& c, F f) {
  const ReferenceTensor& a = c.tensor("A");
  int64_t count = 1;
  for (size_t d = 0; d + 2 < a.shape.size(); ++d) count *= a.shape[d];
  for (int64_t i = 0; i < count; ++i) f(i, matrix(a, i));
}

/// [A B] with row after row exchanged and taken off those below (`all`: and above).
struct Eliminated {
  Matrix a, b;
  std::vector<int64_t> swaps;
  int64_t zero = -1;
  int sign = 1;
  Matrix factors;  // of the rows that were taken off
};
Eliminated eliminate(Matrix a, Matrix b, bool all) {
  Eliminated e{std::move(a), std::move(b), {}, -1, 1, {0, 0}};
  e.factors = Matrix(e.a.rows, std::min(e.a.rows, e.a.columns));
  auto exchange = [](Matrix& m, int64_t r, int64_t s) {
    for (int64_t c = 0; c < m.columns; ++c) std::swap(m(r, c), m(s, c));
  };
  for (int64_t k = 0; k < std::min(e.a.rows, e.a.columns); ++k) {
    int64_t best = k;
    for (int64_t r = k + 1; r < e.a.rows; ++r)
      if (std::fabs(e.a(r, k)) > std::fabs(e.a(best, k))) best = r;
    e.swaps.push_back(best + 1);
    if (best != k) {
      exchange(e.a, k, best), exchange(e.b, k, best), exchange(e.factors, k, best);
      e.sign = -e.sign;
    }
    if (e.a(k, k) == 0) {
      if (e.zero < 0) e.zero = k;
      continue;
    }
    for (int64_t r = all ? 0 : k + 1; r < e.a.rows; ++r) {
      if (r == k) continue;
      const Real factor = e.a(r, k) / e.a(k, k);
      if (r > k) e.factors(r, k) = factor;
      for (int64_t c = 0; c < e.a.columns; ++c) e.a(r, c) -= factor * e.a(k, c);
      for (int64_t c = 0; c < e.b.columns; ++c) e.b(r, c) -= factor * e.b(k, c);
    }
  }
  return e;
}
/// X of A X = B where A is regular, and the first pivot that is 0.
std::pair<Matrix, int64_t> solved(const Matrix& a, const Matrix& b) {
  Eliminated e = eliminate(a, b, true);
  for (int64_t r = 0; r < e.a.rows; ++r)
    for (int64_t c = 0; c < e.b.columns; ++c) e.b(r, c) /= e.a(r, r);
  return {e.b, e.zero + 1};
}

/// Eigenvalues and vectors (columns) of a symmetric matrix, by rotations until nothing is left beside the diagonal; the
/// values in ascending order.
std::pair<std::vector<Real>, Matrix> eigen(Matrix a) {
  const int64_t n = a.rows;
  Matrix v = Matrix::identity(n);
  for (int sweep = 0; sweep < 60; ++sweep)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        if (std::fabs(a(p, q)) <= 1e-22L * (std::fabs(a(p, p)) + std::fabs(a(q, q)))) continue;
        const Real angle = std::atan2(2 * a(p, q), a(q, q) - a(p, p)) / 2, c = std::cos(angle), s = std::sin(angle);
        for (Matrix* m : {&a, &v})
          for (int64_t r = 0; r < n; ++r) {
            const Real x = (*m)(r, p), y = (*m)(r, q);
            (*m)(r, p) = c * x - s * y, (*m)(r, q) = s * x + c * y;
          }
        for (int64_t r = 0; r < n; ++r) {
          const Real x = a(p, r), y = a(q, r);
          a(p, r) = c * x - s * y, a(q, r) = s * x + c * y;
        }
      }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return a(i, i) < a(j, j); });
  std::vector<Real> values;
  Matrix sorted(n, n);
  for (int64_t c = 0; c < n; ++c) {
    values.push_back(a(order[c], order[c]));
    for (int64_t r = 0; r < n; ++r) sorted(r, c) = v(r, order[c]);
  }
  return {values, sorted};
}
/// Column c, its largest element positive.
void turn_sign(Matrix& m, int64_t c) {
  Real largest = 0;
  for (int64_t r = 0; r < m.rows; ++r)
    if (std::fabs(m(r, c)) > std::fabs(largest)) largest = m(r, c);
  for (int64_t r = 0; largest < 0 && r < m.rows; ++r) m(r, c) = -m(r, c);
}

}  // namespace

void linalg_cholesky_ex(ReferenceContext& c) {
  each_matrix(c, [&](int64_t i, const Matrix& a) {
    Matrix l(a.rows, a.rows);
    for (int64_t r = 0; r < a.rows; ++r)
      for (int64_t k = 0; k <= r; ++k) {
        Real sum = a(r, k);
        for (int64_t j = 0; j < k; ++j) sum -= l(r, j) * l(k, j);
        if (k < r)
          l(r, k) = sum / l(k, k);
        else if (l(r, r) = std::sqrt(sum); !(sum > 0) && c.outputs[1].integer[i] == 0)
          c.outputs[1].integer[i] = r + 1;
      }
    put_matrix(c.outputs[0], i, l);
  });
}
void linalg_inv_ex(ReferenceContext& c) {
  each_matrix(c, [&](int64_t i, const Matrix& a) {
    const auto [x, info] = solved(a, Matrix::identity(a.rows));
    put_matrix(c.outputs[0], i, x);
    c.outputs[1].integer[i] = info;
  });
}
void linalg_solve_ex(ReferenceContext& c) {
  const std::string_view form = c.mode("form");
  each_matrix(c, [&](int64_t i, Matrix a) {
    for (int64_t r = 0; r < a.rows; ++r)
      for (int64_t k = 0; k < a.rows; ++k)
        if ((form == "lower" && k > r) || (form == "upper" && k < r)) a(r, k) = 0;
    const auto [x, info] = solved(a, matrix(c.tensor("B"), i));
    put_matrix(c.outputs[0], i, x);
    c.outputs[1].integer[i] = info;
  });
}
void linalg_det(ReferenceContext& c) {
  each_matrix(c, [&](int64_t i, const Matrix& a) {
    const Eliminated e = eliminate(a, Matrix(a.rows, 0), false);
    Real product = e.sign, logarithm = 0;
    for (int64_t k = 0; k < a.rows; ++k) product *= e.a(k, k), logarithm += std::log(std::fabs(e.a(k, k)));
    c.outputs[0].real[i] = static_cast<double>(product);
    c.outputs[1].real[i] = product > 0 ? 1 : product < 0 ? -1 : static_cast<double>(product);
    c.outputs[2].real[i] = static_cast<double>(logarithm);
  });
}
// Of regular matrices: the determinant times the inverse, turned.
void linalg_cofactors(ReferenceContext& c) {
  each_matrix(c, [&](int64_t i, const Matrix& a) {
    Matrix cofactors = solved(a, Matrix::identity(a.rows)).first.turned();
    const Eliminated e = eliminate(a, Matrix(a.rows, 0), false);
    Real product = e.sign;
    for (int64_t k = 0; k < a.rows; ++k) product *= e.a(k, k);
    for (Real& x : cofactors.elements) x *= product;
    put_matrix(c.out(), i, cofactors);
  });
}
void linalg_lu_factor_ex(ReferenceContext& c) {
  each_matrix(c, [&](int64_t i, const Matrix& a) {
    Eliminated e = eliminate(a, Matrix(a.rows, 0), false);
    for (int64_t r = 0; r < a.rows; ++r)
      for (int64_t k = 0; k < std::min(r, a.columns); ++k) e.a(r, k) = e.factors(r, k);
    put_matrix(c.outputs[0], i, e.a);
    std::copy(e.swaps.begin(), e.swaps.end(), c.outputs[1].integer.begin() + i * static_cast<int64_t>(e.swaps.size()));
    c.outputs[2].integer[i] = e.zero + 1;
  });
}
void linalg_pivot_order(ReferenceContext& c) {
  const ReferenceTensor& pivots = c.tensor("pivots");
  const int64_t k = pivots.shape.back(), rows = c.out().shape.back();
  for (int64_t i = 0; i < c.out().size(); i += std::max<int64_t>(rows, 1)) {
    const auto order = c.out().integer.begin() + i;
    std::iota(order, order + rows, 0);
    for (int64_t j = 0; j < k; ++j)
      if (const int64_t other = pivots.integer[i / rows * k + j] - 1; other >= 0 && other < rows)
        std::swap(order[j], order[other]);
  }
}
// The signs are LAPACK's: each reflection takes a column to the other side of 0.
void linalg_qr(ReferenceContext& c) {
  auto reflect = [](const std::vector<Real>& v, Matrix& m) {
    Real square = 0;
    for (Real x : v) square += x * x;
    for (int64_t k = 0; k < m.columns && square > 0; ++k) {
      Real sum = 0;
      for (int64_t r = 0; r < m.rows; ++r) sum += v[r] * m(r, k);
      for (int64_t r = 0; r < m.rows; ++r) m(r, k) -= 2 * sum / square * v[r];
    }
  };
  each_matrix(c, [&](int64_t i, Matrix r) {
    std::vector<std::vector<Real>> reflections;
    for (int64_t k = 0; k < r.columns; ++k) {
      std::vector<Real> v(r.rows);
      Real behind = 0;
      for (int64_t j = k; j < r.rows; ++j) v[j] = r(j, k), behind += j > k ? v[j] * v[j] : 0;
      if (behind == 0) continue;
      v[k] += std::copysign(std::sqrt(v[k] * v[k] + behind), v[k]);
      reflect(v, r);
      reflections.push_back(v);
    }
    Matrix q(r.rows, columns_of(c.outputs[0])), triangle(q.columns, r.columns);
    for (int64_t j = 0; j < q.columns; ++j) {
      q(j, j) = 1;
      for (int64_t k = j; k < r.columns; ++k) triangle(j, k) = r(j, k);
    }
    for (size_t k = reflections.size(); k-- > 0;) reflect(reflections[k], q);
    put_matrix(c.outputs[0], i, q);
    put_matrix(c.outputs[1], i, triangle);
  });
}
void linalg_eigh(ReferenceContext& c) {
  each_matrix(c, [&](int64_t i, Matrix a) {
    for (int64_t r = 0; r < a.rows; ++r)
      for (int64_t k = 0; k < r; ++k) (c.flag("upper") ? a(r, k) : a(k, r)) = c.flag("upper") ? a(k, r) : a(r, k);
    auto [values, v] = eigen(a);
    for (int64_t k = 0; k < a.rows; ++k) {
      c.outputs[0].real[i * a.rows + k] = static_cast<double>(values[k]);
      turn_sign(v, k);
    }
    if (c.flag("vectors")) put_matrix(c.outputs[1], i, v);
  });
}
// By the eigenvectors of A A^T and of A^T A. Vectors beyond the shorter side, and those of 0, are not determined:
// zeros.
void linalg_svd(ReferenceContext& c) {
  each_matrix(c, [&](int64_t i, const Matrix& a) {
    const bool tall = a.rows >= a.columns;
    const Matrix longer = tall ? a : a.turned();
    const int64_t k = longer.columns;
    const auto [squares, vectors] = eigen(longer.turned() * longer);
    Matrix u(a.rows, k), v(a.columns, k);
    for (int64_t j = 0; j < k; ++j) {
      const Real value = std::sqrt(std::max<Real>(squares[k - 1 - j], 0));
      c.outputs[1].real[i * k + j] = static_cast<double>(value);
      for (int64_t r = 0; r < k; ++r) (tall ? v : u)(r, j) = vectors(r, k - 1 - j);
      for (int64_t r = 0; r < longer.rows; ++r) {
        Real sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += longer(r, l) * vectors(l, k - 1 - j);
        if (value > 0) (tall ? u : v)(r, j) = sum / value;
      }
      const Real before = u(0, j);
      turn_sign(u, j);
      for (int64_t r = 0; u(0, j) != before && r < v.rows; ++r) v(r, j) = -v(r, j);
    }
    if (!c.flag("vectors")) return;
    put_matrix(c.outputs[0], i, u);
    put_matrix(c.outputs[2], i, v.turned());
  });
}
// The series of A / 2^10, squared ten times.
void linalg_matrix_exp(ReferenceContext& c) {
  constexpr int kHalvings = 10, kTerms = 30;
  each_matrix(c, [&](int64_t i, Matrix a) {
    for (Real& x : a.elements) x = std::ldexp(x, -kHalvings);
    Matrix sum = Matrix::identity(a.rows), term = sum;
    for (int k = 1; k < kTerms; ++k) {
      term = term * a;
      for (size_t e = 0; e < sum.elements.size(); ++e) sum.elements[e] += term.elements[e] /= k;
    }
    for (int k = 0; k < kHalvings; ++k) sum = sum * sum;
    put_matrix(c.out(), i, sum);
  });
}
void linalg_failed(ReferenceContext& c) {
  const ReferenceTensor& info = c.tensor("info");
  for (int64_t i = 0; i < info.size(); ++i) {
    if (info.at(i) != 0) c.refuse("info", std::to_string(info.at(i)), "0");
    c.out().integer[i] = 0;
  }
}

}  // namespace ingot::ir::reference
