// Functions of whole matrices, which stand in the last two dims (f32 or f64; others are the batch). All is computed in
// f64 and rounded once. In compiled code they are steps of the program, but that lstsq of more rows than columns reads
// ranks: a graph break.
#pragma once
#include <optional>
#include <tuple>

#include "eager/tensor.h"

namespace ingot {

/// The sum of the singular values of the matrices in two dims (PyTorch's norm with p = "nuc"). Has a gradient, but no
/// second one.
INGOT_API Tensor nuclear_norm(const TensorArg& self, const IntList& dim = {-2, -1}, bool keepdim = false);

/// As the functions of namespace linalg; pinverse and inverse are pinv and inv there.
INGOT_API Tensor det(const TensorArg& self);
INGOT_API std::tuple<Tensor, Tensor> slogdet(const TensorArg& self);
INGOT_API Tensor inverse(const TensorArg& self);
INGOT_API Tensor matrix_exp(const TensorArg& self);
INGOT_API Tensor pinverse(const TensorArg& self, double rcond = 1e-15);
/// X of A X = B, and the inverse of A, from the Cholesky factor of A: lower, or `upper`.
INGOT_API Tensor cholesky_solve(const TensorArg& B, const TensorArg& L, bool upper = false);
INGOT_API Tensor cholesky_inverse(const TensorArg& L, bool upper = false);
/// As linalg::cholesky and lu_solve, in LibTorch's older order.
INGOT_API Tensor cholesky(const TensorArg& self, bool upper = false);
INGOT_API Tensor lu_solve(const TensorArg& self, const TensorArg& LU, const TensorArg& pivots);
/// X of A X = self as linalg::solve_triangular, with `transpose` of the transpose of A; and a copy of A.
INGOT_API std::tuple<Tensor, Tensor> triangular_solve(const TensorArg& self, const TensorArg& A, bool upper = true,
                                                      bool transpose = false, bool unitriangular = false);
/// As linalg::qr: reduced, or with `some` false complete.
INGOT_API std::tuple<Tensor, Tensor> qr(const TensorArg& self, bool some = true);
/// U, S and V (not its transpose) of linalg::svd; with `some` false U and V are square. Without compute_uv they are
/// square and zero.
INGOT_API std::tuple<Tensor, Tensor, Tensor> svd(const TensorArg& self, bool some = true, bool compute_uv = true);
/// P, L and U of what linalg::lu_factor gives.
INGOT_API std::tuple<Tensor, Tensor, Tensor> lu_unpack(const TensorArg& LU, const TensorArg& pivots);
/// The logarithm of the determinant; NaN where that is negative, -inf where it is 0.
INGOT_API Tensor logdet(const TensorArg& self);

namespace linalg {

/// Determinants, by elimination (LU). Where one is 0, it has a first gradient alone.
INGOT_API Tensor det(const TensorArg& A);
/// Their signs (0 for a singular matrix) and the logarithms of their absolute values, whose gradient is infinite or NaN
/// where a matrix is singular.
INGOT_API std::tuple<Tensor, Tensor> slogdet(const TensorArg& A);
/// A singular matrix is an Error.
INGOT_API Tensor inv(const TensorArg& A);
/// X of A X = B, with `left` false of X A = B. B: matrices, whose batch broadcasts with A's, or vectors: one dim, or
/// A's batch and one more dim. A singular A is an Error.
INGOT_API Tensor solve(const TensorArg& A, const TensorArg& B, bool left = true);
/// The same of what lies on and above (`upper`), or on and below the diagonal of A, with ones there if unitriangular.
/// B: matrices, or one vector.
INGOT_API Tensor solve_triangular(const TensorArg& A, const TensorArg& B, bool upper, bool left = true,
                                  bool unitriangular = false);
/// L of A = L L^T, or `upper` its transpose. The lower triangle alone is read, or the upper one; the gradient is
/// symmetric. What is not positive definite is an Error.
INGOT_API Tensor cholesky(const TensorArg& A, bool upper = false);
/// cholesky, inv and solve, and for each matrix (i32) 0, or where it failed: the order of the leading minor that is not
/// positive, or the pivot that is 0, from 1 on. What stands in the first result of such a matrix has no meaning;
/// with check_errors it is an Error.
INGOT_API std::tuple<Tensor, Tensor> cholesky_ex(const TensorArg& A, bool upper = false, bool check_errors = false);
INGOT_API std::tuple<Tensor, Tensor> inv_ex(const TensorArg& A, bool check_errors = false);
INGOT_API std::tuple<Tensor, Tensor> solve_ex(const TensorArg& A, const TensorArg& B, bool left = true,
                                              bool check_errors = false);
/// The symmetric X of X X = A of symmetric matrices, of which the lower triangle is read; NaN where an eigenvalue is
/// negative. The gradient is symmetric.
INGOT_API Tensor matrix_sqrth(const TensorArg& A);
/// Q and R of A = Q R, with LAPACK's signs. Modes: "reduced" (Q has min(rows, columns) columns), "complete" (Q is
/// square; no gradient for more rows than columns), "r" (Q is empty; no gradient).
INGOT_API std::tuple<Tensor, Tensor> qr(const TensorArg& A, Word mode = "reduced");
/// Eigenvalues in ascending order, and eigenvectors as columns, of symmetric matrices, of which the lower ("L") or
/// upper ("U") triangle is read. Vectors of equal values have no gradient, and a sign of no meaning. By rotations
/// (Jacobi).
INGOT_API std::tuple<Tensor, Tensor> eigh(const TensorArg& A, Word UPLO = "L");
INGOT_API Tensor eigvalsh(const TensorArg& A, Word UPLO = "L");
/// U, S and V^T of A = U diag(S) V^T, S in descending order. With full_matrices U and V are square, and have no
/// gradient beyond the first min(rows, columns) of their vectors; nor have vectors of equal values, whose sign has no
/// meaning. Filling them up takes a time of the cube of the larger size: leave full_matrices out where it is not used.
/// By Jacobi's rotations.
INGOT_API std::tuple<Tensor, Tensor, Tensor> svd(const TensorArg& A, bool full_matrices = true);
INGOT_API Tensor svdvals(const TensorArg& A);
/// The pseudoinverse of Moore and Penrose: singular values up to max(atol, rtol * the largest) count as 0. rtol: unless
/// given, the larger size times the dtype's epsilon; 0 where an atol is given. Both are numbers, or tensors of one for
/// each matrix. `hermitian`: A is symmetric, and its lower triangle alone is read.
INGOT_API Tensor pinv(const TensorArg& A, const OperandArg& atol = {}, const OperandArg& rtol = {},
                      bool hermitian = false);
/// How many singular values count (i64), as in pinv.
INGOT_API Tensor matrix_rank(const TensorArg& A, const OperandArg& atol = {}, const OperandArg& rtol = {},
                             bool hermitian = false);
/// The shortest X among those for which |A X - B| is smallest; squared residuals (empty, unless there are more rows
/// than columns and every rank is full); the ranks; the singular values. `rcond` is pinv's rtol. B as in solve.
INGOT_API std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const TensorArg& A, const TensorArg& B,
                                                           std::optional<double> rcond = {});
/// The exponential series of square matrices (of 16-bit floats, too), summed for what is halved until it is small and
/// then squared as often.
INGOT_API Tensor matrix_exp(const TensorArg& A);
/// Norms of the matrices in two dims: "fro", "nuc", or 1, -1, inf, -inf (the largest or smallest sum of a column or
/// row) or 2, -2 (the largest or smallest singular value).
INGOT_API Tensor matrix_norm(const TensorArg& A, Word ord = "fro", const IntList& dim = {-2, -1}, bool keepdim = false);
INGOT_API Tensor matrix_norm(const TensorArg& A, double ord, const IntList& dim = {-2, -1}, bool keepdim = false);
/// vector_norm along one dim, matrix_norm over two; without dims over those of a vector or matrix. Without `ord` the
/// root of the sum of squares, over any number of dims.
INGOT_API Tensor norm(const TensorArg& A, std::optional<double> ord = {}, const IntList& dim = {},
                      bool keepdim = false);
INGOT_API Tensor norm(const TensorArg& A, Word ord, const IntList& dim = {}, bool keepdim = false);
/// How much a relative change of A may grow in what is solved with it: norm(A) times the norm of its inverse, inf for a
/// singular A. p as matrix_norm's ord, 2 unless given; 2 and -2 are a quotient of singular values, of any matrix.
INGOT_API Tensor cond(const TensorArg& A, std::optional<double> p = {});
INGOT_API Tensor cond(const TensorArg& A, Word p);

/// P, L and U of A = P L U, by elimination with partial pivoting: with k = min(rows, columns), P is a permutation
/// [rows, rows], L [rows, k] has ones on its diagonal and zeros above, U [k, columns] zeros below.
INGOT_API std::tuple<Tensor, Tensor, Tensor> lu(const TensorArg& A);
/// The same as one matrix of A's shape, L (without its ones) below the diagonal of U, and pivots, i32 [k]: row i was
/// exchanged with row pivots[i] - 1, one after the other.
INGOT_API std::tuple<Tensor, Tensor> lu_factor(const TensorArg& A);
/// X of A X = B, with `left` false of X A = B, with `adjoint` of the transpose of A, from what lu_factor gives of A. B:
/// matrices, whose batch broadcasts.
INGOT_API Tensor lu_solve(const TensorArg& LU, const TensorArg& pivots, const TensorArg& B, bool left = true,
                          bool adjoint = false);
/// The first columns of the product of Householder's reflections 1 - tau[i] v v^T, as many as A has: v is column i of A
/// below the diagonal, with a 1 there. A: [rows, columns], no more columns than rows; tau: at most as many numbers.
INGOT_API Tensor householder_product(const TensorArg& A, const TensorArg& tau);
/// The inverse for tensordot(A, ., ind): A's first `ind` dims have as many elements as the others.
INGOT_API Tensor tensorinv(const TensorArg& A, int64_t ind = 2);
/// X of tensordot(A, X, X.dim()) = B; `dims` of A are moved to its end first.
INGOT_API Tensor tensorsolve(const TensorArg& A, const TensorArg& B, const IntList& dims = {});

}  // namespace linalg
}  // namespace ingot
