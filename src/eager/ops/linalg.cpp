#include "eager/ops/linalg.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/function_scope.h"
#include "eager/autograd/function.h"
#include "eager/ops/checks.h"
#include "eager/ops/functions.h"
#include "eager/ops/matrices.h"
#include "eager/ops/matrix_functions.h"

namespace ingot {
namespace {

using eager::batch_of;
using eager::fail;
using eager::Form;
using eager::present;
using eager::shape_of;
using eager::shape_text;
using eager::text;
using eager::wide;

/// With `hermitian` what the lower triangle says of a symmetric matrix.
Tensor mirrored(const char* op, const TensorArg& A, const Tensor& a, bool hermitian) {
  if (!hermitian) return a;
  if (a.size(-1) != a.size(-2)) fail(op, "A", shape_text(a), "square matrices where they are symmetric", A.location);
  return a.tril() + a.tril(-1).mT();
}

/// Up to where singular values count as 0, a number for each matrix.
Tensor tolerance_of(const Tensor& s, const Tensor& a, DType dtype, const OperandArg& atol, const OperandArg& rtol) {
  if (s.size(-1) == 0) return zeros(batch_of(a), kFloat64);
  const auto wide = [](const OperandArg& x) {
    return x.tensor ? x.tensor->detach().to(kFloat64) : scalar_tensor(x.value, kFloat64);
  };
  const double epsilon =
      dtype == kFloat32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  const double usual = epsilon * static_cast<double>(std::max<int64_t>(a.size(-1), a.size(-2)));
  const Tensor least = wide(atol);  // absent: 0
  const Tensor share = rtol.tensor || rtol.is_scalar ? wide(rtol) : where(least > 0, 0.0, usual);
  return maximum(s.amax(-1) * share, least);
}

/// A right side as matrices, of one batch with A. `vectors`: what has A's sizes but for the last one is a vector a
/// matrix; without it, one dim alone is a vector.
struct Sides {
  Tensor a, b;
  bool vector;
};
Sides sides_of(const char* op, const Tensor& a, const TensorArg& given, DType dtype, bool rows_first, bool vectors) {
  const Tensor& right = present(op, "B", given);
  if (right.dtype() != dtype)
    fail(op, "B", eager::dtype_text(right), std::string(name_of(dtype)) + ", the dtype of A", given.location);
  const bool vector = right.dim() == 1 || (vectors && right.dim() == a.dim() - 1 &&
                                           right.sizes() == IntArrayRef(a.sizes().data(), a.sizes().size() - 1));
  if (right.dim() < 1) fail(op, "B", shape_text(right), "at least one dim", given.location);
  Tensor b = right.to(kFloat64);
  if (vector) b = b.unsqueeze(-1);
  if (b.size(rows_first ? -2 : -1) != a.size(rows_first ? -2 : -1))
    fail(op, "B", shape_text(right),
         "as many rows" + std::string(rows_first ? "" : " (columns, unless left)") + " as A has, " +
             std::to_string(a.size(-2)),
         given.location);
  Ints batch = batch_of(a), other = batch_of(b);
  while (batch.size() < other.size()) batch.insert(0, 1);
  while (other.size() < batch.size()) other.insert(0, 1);
  for (size_t d = 0; d < batch.size(); ++d) {
    if (batch[d] != other[d] && batch[d] != 1 && other[d] != 1)
      fail(op, "B", shape_text(right), "a batch that broadcasts with A's, " + text(a.sizes()), given.location);
    if (batch[d] == 1) batch[d] = other[d];
  }
  return {a.expand(shape_of(batch, {a.size(-2), a.size(-1)})), b.expand(shape_of(batch, {b.size(-2), b.size(-1)})),
          vector};
}

Tensor solve_by(const char* op, const Tensor& wide_a, Form form, const TensorArg& given, DType dtype, bool left,
                bool vectors) {
  const Sides sides = sides_of(op, wide_a, given, dtype, left, vectors);
  Tensor x = left ? eager::solution_of(op, sides.a, form, sides.b)
                  : eager::solution_of(op, sides.a.mT(), eager::transposed(form), sides.b.mT()).mT();
  if (sides.vector) x = x.squeeze(-1);
  return x.to(dtype).contiguous();
}

std::tuple<Tensor, Tensor> factor_of(const char* op, const TensorArg& A, const Tensor& a, bool upper) {
  const auto [l, info] = eager::cholesky_of(op, upper ? a.mT() : a);
  return {(upper ? l.mT() : l).to(A.tensor->dtype()).contiguous(), info};
}

/// Whether `uplo` says the lower triangle.
bool is_lower(const char* op, const TensorArg& A, std::string_view uplo) {
  if (uplo != "L" && uplo != "U" && uplo != "l" && uplo != "u")
    fail(op, "UPLO", "\"" + std::string(uplo) + "\"", "\"L\" or \"U\"", A.location);
  return uplo == "L" || uplo == "l";
}

/// A complete Q of more rows than columns, of which no gradient is known.
struct CompleteBasis : autograd::Function<CompleteBasis> {
  static std::vector<Tensor> forward(autograd::AutogradContext*, const Tensor& a) { return eager::qr_of(a, true); }
  static std::vector<Tensor> backward(autograd::AutogradContext*, const std::vector<Tensor>&) {
    fail("linalg::qr", "gradients", "those of a complete Q of more rows than columns", "mode \"reduced\"",
         Location::none());
  }
};

}  // namespace

Tensor det(const TensorArg& self) { return linalg::det(self); }
std::tuple<Tensor, Tensor> slogdet(const TensorArg& self) { return linalg::slogdet(self); }
Tensor inverse(const TensorArg& self) { return linalg::inv(self); }
Tensor pinverse(const TensorArg& self, double rcond) { return linalg::pinv(self, 0, rcond); }
Tensor matrix_exp(const TensorArg& self) { return linalg::matrix_exp(self); }
Tensor cholesky_solve(const TensorArg& B, const TensorArg& L, bool upper) {
  const FunctionScope scope("cholesky_solve", B.location);
  wide("cholesky_solve", "B", B, false);
  const Tensor l = wide("cholesky_solve", "L", L, true), lower = upper ? l.triu().mT() : l.tril();
  return solve_by("cholesky_solve", matmul(lower, lower.mT()), Form::general, B, L.tensor->dtype(), true, false);
}
Tensor cholesky_inverse(const TensorArg& L, bool upper) {
  const FunctionScope scope("cholesky_inverse", L.location);
  const Tensor l = wide("cholesky_inverse", "L", L, true), lower = upper ? l.triu().mT() : l.tril();
  return eager::inverse_of("cholesky_inverse", matmul(lower, lower.mT())).result.to(L.tensor->dtype());
}
Tensor cholesky(const TensorArg& self, bool upper) { return linalg::cholesky(self, upper); }
std::tuple<Tensor, Tensor> qr(const TensorArg& self, bool some) {
  return linalg::qr(self, some ? "reduced" : "complete");
}
std::tuple<Tensor, Tensor, Tensor> svd(const TensorArg& self, bool some, bool compute_uv) {
  const CallerLine line(self.location);
  if (!compute_uv) {
    const Tensor s = linalg::svdvals(self);
    const Ints batch = batch_of(*self.tensor);
    const auto nothing = [&](int64_t d) {
      const int64_t n = self.tensor->size(d);
      return zeros(shape_of(batch, {n, n}), s.dtype());
    };
    return {nothing(-2), s, nothing(-1)};
  }
  const auto [u, s, vt] = linalg::svd(self, !some);
  return {u, s, vt.mT()};
}
std::tuple<Tensor, Tensor> triangular_solve(const TensorArg& self, const TensorArg& A, bool upper, bool transpose,
                                            bool unitriangular) {
  const FunctionScope scope("triangular_solve", self.location);
  const Tensor& a = present("triangular_solve", "A", A);
  const Tensor turned = transpose && a.dim() > 1 ? a.mT() : a;
  return {linalg::solve_triangular(turned, self, upper != transpose, true, unitriangular), a.clone()};
}
Tensor logdet(const TensorArg& self) {
  const FunctionScope scope("logdet", self.location);
  const auto [sign, logarithm] = linalg::slogdet(self);
  return where(sign < 0, std::numeric_limits<double>::quiet_NaN(), logarithm);
}

namespace linalg {

Tensor det(const TensorArg& A) {
  const FunctionScope scope("linalg::det", A.location);
  return eager::determinants_of(wide("linalg::det", "A", A, true))[0].to(A.tensor->dtype());
}

std::tuple<Tensor, Tensor> slogdet(const TensorArg& A) {
  const FunctionScope scope("linalg::slogdet", A.location);
  const std::vector<Tensor> parts = eager::determinants_of(wide("linalg::slogdet", "A", A, true));
  return {parts[1].to(A.tensor->dtype()), parts[2].to(A.tensor->dtype())};
}

Tensor inv(const TensorArg& A) {
  const FunctionScope scope("linalg::inv", A.location);
  return eager::inverse_of("linalg::inv", wide("linalg::inv", "A", A, true)).result.to(A.tensor->dtype());
}

Tensor solve(const TensorArg& A, const TensorArg& B, bool left) {
  const FunctionScope scope("linalg::solve", A.location);
  const Tensor a = wide("linalg::solve", "A", A, true);
  return solve_by("linalg::solve", a, Form::general, B, A.tensor->dtype(), left, true);
}

Tensor solve_triangular(const TensorArg& A, const TensorArg& B, bool upper, bool left, bool unitriangular) {
  const FunctionScope scope("linalg::solve_triangular", A.location);
  Tensor a = wide("linalg::solve_triangular", "A", A, true);
  if (unitriangular) a = (upper ? a.triu(1) : a.tril(-1)) + eye(a.size(-1), {}, kFloat64);
  return solve_by("linalg::solve_triangular", a, upper ? Form::upper : Form::lower, B, A.tensor->dtype(), left, false);
}

Tensor cholesky(const TensorArg& A, bool upper) {
  const FunctionScope scope("linalg::cholesky", A.location);
  const Tensor a = wide("linalg::cholesky", "A", A, true);
  return std::get<0>(factor_of("linalg::cholesky", A, a, upper));
}
std::tuple<Tensor, Tensor> cholesky_ex(const TensorArg& A, bool upper, bool check_errors) {
  constexpr const char* kOp = "linalg::cholesky_ex";
  const FunctionScope scope(kOp, A.location);
  const Tensor a = wide(kOp, "A", A, true);
  return factor_of(check_errors ? kOp : nullptr, A, a, upper);
}
std::tuple<Tensor, Tensor> inv_ex(const TensorArg& A, bool check_errors) {
  constexpr const char* kOp = "linalg::inv_ex";
  const FunctionScope scope(kOp, A.location);
  const Tensor a = wide(kOp, "A", A, true);
  const auto [inverse, info] = eager::inverse_of(check_errors ? kOp : nullptr, a);
  return {inverse.to(A.tensor->dtype()), info};
}
std::tuple<Tensor, Tensor> solve_ex(const TensorArg& A, const TensorArg& B, bool left, bool check_errors) {
  constexpr const char* kOp = "linalg::solve_ex";
  const FunctionScope scope(kOp, A.location);
  const Tensor a = wide(kOp, "A", A, true), info = std::get<2>(linalg_lu_factor_ex(a.detach()));
  if (check_errors) return {solve_by(kOp, a, Form::general, B, A.tensor->dtype(), left, true), info};
  const Tensor regular = where((info == 0).unsqueeze(-1).unsqueeze(-1), a, std::numeric_limits<double>::quiet_NaN());
  return {solve_by(kOp, regular, Form::general, B, A.tensor->dtype(), left, true), info};
}
Tensor matrix_sqrth(const TensorArg& A) {
  const FunctionScope scope("linalg::matrix_sqrth", A.location);
  return eager::square_root_of(wide("linalg::matrix_sqrth", "A", A, true, true)).to(A.tensor->dtype());
}

std::tuple<Tensor, Tensor> qr(const TensorArg& A, Word word) {
  const FunctionScope scope("linalg::qr", A.location);
  const std::string_view mode = word;
  if (mode != "reduced" && mode != "complete" && mode != "r")
    fail("linalg::qr", "mode", "\"" + std::string(mode) + "\"", "one of \"reduced\", \"complete\", \"r\"", A.location);
  const DType dtype = present("linalg::qr", "A", A).dtype();
  Tensor a = wide("linalg::qr", "A", A, false);
  if (mode == "r") a = a.detach();
  const int64_t rows = a.size(-2), columns = a.size(-1);
  // The columns beyond a square follow by Q, which that square gives.
  const Tensor square = a.narrow(-1, 0, std::min(rows, columns));
  const bool spans_more = mode == "complete" && rows > columns;
  const std::vector<Tensor> parts =
      spans_more && a.requires_grad() ? CompleteBasis::apply(square) : eager::qr_of(square, mode == "complete");
  const Tensor& q = parts[0];
  Tensor r = parts[1];
  if (columns > rows) r = cat({r, matmul(q.mT(), a.narrow(-1, rows, columns - rows))}, -1);
  return {mode == "r" ? zeros({0}, dtype) : q.to(dtype), r.to(dtype)};
}

std::tuple<Tensor, Tensor> eigh(const TensorArg& A, Word UPLO) {
  constexpr const char* kOp = "linalg::eigh";
  const FunctionScope scope(kOp, A.location);
  const bool lower = is_lower(kOp, A, UPLO);
  const std::vector<Tensor> parts = eager::eigenvectors_of(wide(kOp, "A", A, true, true), lower);
  return {parts[0].to(A.tensor->dtype()), parts[1].to(A.tensor->dtype())};
}
Tensor eigvalsh(const TensorArg& A, Word UPLO) {
  constexpr const char* kOp = "linalg::eigvalsh";
  const FunctionScope scope(kOp, A.location);
  const bool lower = is_lower(kOp, A, UPLO);
  const Tensor a = wide(kOp, "A", A, true, true);
  return eager::eigenvalues_of(a, lower).to(A.tensor->dtype());
}

std::tuple<Tensor, Tensor, Tensor> svd(const TensorArg& A, bool full_matrices) {
  const FunctionScope scope("linalg::svd", A.location);
  const std::vector<Tensor> parts = eager::singular_vectors_of(wide("linalg::svd", "A", A, false, true), full_matrices);
  const DType dtype = A.tensor->dtype();
  return {parts[0].to(dtype), parts[1].to(dtype), parts[2].to(dtype)};
}
Tensor svdvals(const TensorArg& A) {
  const FunctionScope scope("linalg::svdvals", A.location);
  const Tensor a = wide("linalg::svdvals", "A", A, false, true);
  return eager::singular_values_of(a).to(A.tensor->dtype());
}

Tensor pinv(const TensorArg& A, const OperandArg& atol, const OperandArg& rtol, bool hermitian) {
  const FunctionScope scope("linalg::pinv", A.location);
  const Tensor a = wide("linalg::pinv", "A", A, false, true);
  const std::vector<Tensor> parts =
      eager::singular_vectors_of(mirrored("linalg::pinv", A, a.detach(), hermitian), false);
  const Tensor tolerance = tolerance_of(parts[1], a, A.tensor->dtype(), atol, rtol);
  return eager::pseudo_inverse_of(a, parts[0], parts[1], parts[2], tolerance).to(A.tensor->dtype());
}

Tensor matrix_rank(const TensorArg& A, const OperandArg& atol, const OperandArg& rtol, bool hermitian) {
  const FunctionScope scope("linalg::matrix_rank", A.location);
  const Tensor a = wide("linalg::matrix_rank", "A", A, false, true);
  const Tensor s = eager::singular_values_of(mirrored("linalg::matrix_rank", A, a.detach(), hermitian));
  return (s > tolerance_of(s, a, A.tensor->dtype(), atol, rtol).unsqueeze(-1)).sum(-1);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const TensorArg& A, const TensorArg& B, std::optional<double> rcond) {
  const FunctionScope scope("linalg::lstsq", A.location);
  const DType dtype = present("linalg::lstsq", "A", A).dtype();
  const Tensor wide_a = wide("linalg::lstsq", "A", A, false, true);
  const auto [a, b, vector] = sides_of("linalg::lstsq", wide_a, B, dtype, true, true);
  const std::vector<Tensor> parts = eager::singular_vectors_of(wide_a.detach(), false);
  const Tensor& s = parts[1];
  const Tensor tolerance = tolerance_of(s, wide_a, dtype, {}, rcond ? OperandArg(*rcond) : OperandArg());
  const Tensor inverse = eager::pseudo_inverse_of(wide_a, parts[0], s, parts[2], tolerance);
  const Tensor x = matmul(inverse, b), rank = (s > tolerance.unsqueeze(-1)).sum(-1);
  Tensor residuals = zeros({0}, dtype);
  if (a.size(-2) > a.size(-1) && (rank == a.size(-1)).all().item<bool>())
    residuals = (matmul(a, x) - b).square().sum(-2).to(dtype);
  return {(vector ? x.squeeze(-1) : x).to(dtype), residuals, rank, s.to(dtype)};
}

Tensor matrix_exp(const TensorArg& A) {
  const FunctionScope scope("linalg::matrix_exp", A.location);
  return linalg_matrix_exp(wide("linalg::matrix_exp", "A", A, true, true, true)).to(A.tensor->dtype());
}

}  // namespace linalg

Tensor Tensor::det(Location location) const { return ingot::det({*this, location}); }
Tensor Tensor::logdet(Location location) const { return ingot::logdet({*this, location}); }
std::tuple<Tensor, Tensor> Tensor::slogdet(Location location) const { return ingot::slogdet({*this, location}); }
Tensor Tensor::inverse(Location location) const { return ingot::inverse({*this, location}); }
Tensor Tensor::pinverse(double rcond, Location location) const { return ingot::pinverse({*this, location}, rcond); }
Tensor Tensor::cholesky(bool upper, Location location) const { return ingot::cholesky({*this, location}, upper); }
Tensor Tensor::cholesky_inverse(bool upper, Location location) const {
  return ingot::cholesky_inverse({*this, location}, upper);
}
Tensor Tensor::cholesky_solve(const TensorArg& L, bool upper, Location location) const {
  return ingot::cholesky_solve({*this, location}, L, upper);
}
std::tuple<Tensor, Tensor> Tensor::qr(bool some, Location location) const { return ingot::qr({*this, location}, some); }
std::tuple<Tensor, Tensor, Tensor> Tensor::svd(bool some, bool compute_uv, Location location) const {
  return ingot::svd({*this, location}, some, compute_uv);
}
Tensor Tensor::matrix_exp(Location location) const { return ingot::matrix_exp({*this, location}); }

}  // namespace ingot
