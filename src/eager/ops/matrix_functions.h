// Functions of matrices of f64, each a row of the op table or made of some: what eager/ops/linalg.h is made of. Not in
// the API. `op`: whom errors name.
#pragma once
#include <cstdint>
#include <vector>

#include "eager/tensor.h"

namespace ingot::eager {

/// What the matrices of a system are known to be; of a triangle the rest is not read.
enum class Form : uint8_t { general, lower, upper };
Form transposed(Form form);

/// What a row gives of each matrix, and where it failed (i32, counted from 1), or 0.
struct Made {
  Tensor result, info;
};
/// Without an op singular matrices are no error: theirs is infinite or NaN.
Made inverse_of(const char* op, const Tensor& a);
/// X of A X = B, which have the same batch.
Tensor solution_of(const char* op, const Tensor& a, Form form, const Tensor& b);
/// Determinants, their signs, and the logarithms of their absolute values.
std::vector<Tensor> determinants_of(const Tensor& a);
/// L of A = L L^T. Without an op: of a matrix that is not positive definite, whatever the elimination leaves.
Made cholesky_of(const char* op, const Tensor& a);

/// Q, square if `complete`, and as many rows of R, of no more columns than rows.
std::vector<Tensor> qr_of(const Tensor& a, bool complete);

/// Of what one triangle of A says: eigenvalues in ascending order, and eigenvectors; or the values alone.
std::vector<Tensor> eigenvectors_of(const Tensor& a, bool lower);
Tensor eigenvalues_of(const Tensor& a, bool lower);
/// X of X X = A, of a symmetric positive A.
Tensor square_root_of(const Tensor& a);

/// U, singular values in descending order, and V^T, square if `full`; or the values alone.
std::vector<Tensor> singular_vectors_of(const Tensor& a, bool full);
Tensor singular_values_of(const Tensor& a);
/// Of A and its singular vectors. `tolerance`: which singular values count as 0, one number a matrix.
Tensor pseudo_inverse_of(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vt, const Tensor& tolerance);

}  // namespace ingot::eager
