// Factorizations of one dense row-major matrix of f64: what the steps of functions of matrices do
// (steps/matrix_step.cpp).
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/matrices/dense_matrix.h"

namespace ingot::runtime {

/// P A = L U in place, by elimination with partial pivoting: L has ones on its diagonal, which are not stored. A:
/// [rows, columns].
struct Pivots {
  std::vector<int64_t> rows;   // row i of P A is this row of A
  std::vector<int64_t> swaps;  // the row that row i was exchanged with at step i
  int sign = 1;                // the determinant of P
  int64_t zero = -1;           // the first pivot that is 0, or -1
};
Pivots factor_lu(const BlockProducts& products, double* a, int64_t rows, int64_t columns);
/// Solves T X = B for an [n, columns] of right sides, in place. Of T one triangle alone is read, and with `unit` its
/// diagonal counts as 1. X is infinite or NaN where a diagonal element is 0.
void solve_triangle(const BlockProducts& products, const double* t, int64_t n, bool upper, bool unit, double* b,
                    int64_t columns);
/// Solves A X = B in the same way.
void solve_lu(const BlockProducts& products, const double* lu, const Pivots& pivots, int64_t n, double* b,
              int64_t columns);

/// A = L L^T: L in place of the lower triangle, which alone is read; zeros above. Gives the order of the first leading
/// minor that is not positive, or 0.
int64_t factor_cholesky(const BlockProducts& products, double* a, int64_t n);

/// A = Q R by Householder's reflections: R in place of A [rows, columns], zeros below; q: [rows, q_columns].
void factor_qr(const BlockProducts& products, double* a, int64_t rows, int64_t columns, double* q, int64_t q_columns);

/// The eigenvalues, in ascending order, of the symmetric tridiagonal matrix of `d` on its diagonal and n - 1 elements
/// `e` beside it; `e` has room for n, and is overwritten. `lines`, unless null, [n, n]: its eigenvectors, one a row.
void factor_tridiagonal(const BlockProducts& products, int64_t n, double* d, double* e, double* lines);
/// A V = V diag(values) of a symmetric matrix, which is overwritten: values in ascending order, V's columns
/// orthonormal. With no v: the values alone.
void factor_symmetric(const BlockProducts& products, double* a, int64_t n, double* values, double* v);

/// A = U diag(values) V^T: values in descending order, k = min(rows, columns) of them; U: [rows, u_columns], vt:
/// [vt_rows, columns], both at least k, orthonormal however many values are 0. With no U and V: the values alone, the
/// same ones.
void factor_singular(const BlockProducts& products, const double* a, int64_t rows, int64_t columns, double* u,
                     int64_t u_columns, double* values, double* vt, int64_t vt_rows);

/// The exponential of A [n, n] in its place: the series of what is halved until it is small, then squared as often.
void exponentiate(const BlockProducts& products, double* a, int64_t n);

}  // namespace ingot::runtime
