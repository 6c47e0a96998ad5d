#include "eager/ops/linalg.h"

#include <algorithm>
#include <any>
#include <cmath>
#include <limits>
#include <vector>

#include "base/function_scope.h"
#include "eager/autograd/function.h"
#include "eager/ops/checks.h"
#include "eager/ops/factorizations.h"
#include "eager/ops/functions.h"
#include "eager/ops/matrices.h"

namespace ingot {
namespace {

using autograd::AutogradContext;
using eager::batch_of;
using eager::fail;
using eager::Matrices;
using eager::present;
using eager::shape_of;
using eager::shape_text;
using eager::text;
using eager::wide;

/// In errors: which matrix of a batch.
std::string which(const Matrices& m, int64_t i) { return m.count == 1 ? "a matrix" : "matrix " + std::to_string(i); }

Tensor diagonal_matrix(const Tensor& values) { return values.diag_embed(); }
Tensor identity(const Tensor& like) { return eye(like.size(-1), {}, kFloat64); }

/// What the matrices of a system are known to be; of a triangle the rest is not read.
enum class Form : uint8_t { general, lower, upper };
Form transposed(Form form) {
  return form == Form::lower ? Form::upper : form == Form::upper ? Form::lower : Form::general;
}

/// Solves A X = B for each matrix of a batch in place of B, which is row-major. Without an op: X is infinite or NaN
/// where A is singular.
void solve_each(const char* op, const Tensor& a, Form form, const Tensor& b) {
  const Matrices m(a);
  const int64_t n = m.rows, columns = b.size(-1);
  double* to = b.mutable_data_ptr<double>();
  for (int64_t i = 0; i < m.count; ++i, to += n * columns) {
    const auto require_pivot = [&](bool there, int64_t k) {
      if (op && !there)
        fail(op, "A", which(m, i) + " that is singular (pivot " + std::to_string(k + 1) + " is 0)",
             "one that has an inverse", Location::none());
    };
    if (form == Form::general) {
      std::vector<double> lu(m.at(i), m.at(i) + n * n);
      const eager::Pivots pivots = eager::factor_lu(lu.data(), n, n);
      require_pivot(pivots.zero < 0, pivots.zero);
      eager::solve_lu(lu.data(), pivots, n, to, columns);
    } else {
      for (int64_t k = 0; k < n; ++k) require_pivot(m.at(i)[k * n + k] != 0, k);
      eager::solve_triangle(m.at(i), n, form == Form::upper, false, to, columns);
    }
  }
}

struct Inverse : autograd::Function<Inverse> {
  /// Without an op: see solve_each.
  static Tensor forward(AutogradContext* context, const char* op, const Tensor& a) {
    const Tensor result = identity(a).expand(a.sizes()).clone();
    solve_each(op, a, Form::general, result);
    context->save_for_backward({result});
    return result;
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const Tensor turned = context->get_saved_variables()[0].mT();
    return {Tensor(), -matmul(matmul(turned, gradients[0]), turned)};
  }
};

struct Solve : autograd::Function<Solve> {
  /// A and B have the same batch.
  static Tensor forward(AutogradContext* context, const char* op, const Tensor& a, Form form, const Tensor& b) {
    const Tensor result = b.clone();
    solve_each(op, a, form, result);
    context->save_for_backward({a, result});
    context->saved_data["form"] = form;
    return result;
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const std::vector<Tensor> saved = context->get_saved_variables();
    const Form form = transposed(std::any_cast<Form>(context->saved_data["form"]));
    const Tensor right = Solve::apply("linalg::solve", saved[0].mT(), form, gradients[0]);
    return {Tensor(), -matmul(right, saved[1].mT()), Tensor(), right};
  }
};

/// Determinants, their signs, and the logarithms of their absolute values.
struct Determinant : autograd::Function<Determinant> {
  static std::vector<Tensor> forward(AutogradContext* context, const Tensor& a) {
    const Matrices m(a);
    const int64_t n = m.rows;
    const Tensor products = ones(batch_of(a), kFloat64), signs = ones(batch_of(a), kFloat64),
                 logarithms = zeros(batch_of(a), kFloat64);
    double *product = products.mutable_data_ptr<double>(), *sign = signs.mutable_data_ptr<double>(),
           *logarithm = logarithms.mutable_data_ptr<double>();
    for (int64_t i = 0; i < m.count; ++i) {
      std::vector<double> lu(m.at(i), m.at(i) + n * n);
      product[i] = sign[i] = eager::factor_lu(lu.data(), n, n).sign;
      for (int64_t k = 0; k < n; ++k) {
        const double pivot = lu[k * n + k];
        product[i] *= pivot;
        sign[i] *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
        logarithm[i] += std::log(std::fabs(pivot));
      }
    }
    context->save_for_backward({a, products});
    context->mark_non_differentiable({signs});
    return {products, signs, logarithms};
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const std::vector<Tensor> saved = context->get_saved_variables();
    const Tensor weight = gradients[0] * saved[1] + gradients[2];
    const char* const op = nullptr;
    return {weight.unsqueeze(-1).unsqueeze(-1) * Inverse::apply(op, saved[0]).mT()};
  }
};

/// The parts of R and Q by which a gradient comes: Walter and Lehmann, Algorithmic Differentiation of Linear Algebra
/// Functions, 2010.
struct Orthogonal : autograd::Function<Orthogonal> {
  /// Q: [rows, q_columns].
  static std::vector<Tensor> forward(AutogradContext* context, const Tensor& a, int64_t q_columns) {
    const Matrices m(a);
    const Tensor r = a.clone(), q = zeros(shape_of(batch_of(a), {m.rows, q_columns}), kFloat64);
    double *to_r = r.mutable_data_ptr<double>(), *to_q = q.mutable_data_ptr<double>();
    if (!m.count) q.copy_(eye(m.rows, q_columns, kFloat64));
    for (int64_t i = 0; i < m.count; ++i)
      eager::factor_qr(to_r + i * m.rows * m.columns, m.rows, m.columns, to_q + i * m.rows * q_columns, q_columns);
    const Tensor upper = r.narrow(-2, 0, q_columns).clone();
    context->save_for_backward({q, upper});
    return {q, upper};
  }
  /// Of at least as many rows as columns, and as many columns in Q.
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const std::vector<Tensor> saved = context->get_saved_variables();
    const Tensor &q = saved[0], &r = saved[1];
    if (q.size(-1) != r.size(-1))
      fail("linalg::qr", "gradients", "those of a complete Q of more rows than columns", "mode \"reduced\"",
           Location::none());
    const Tensor m = matmul(r, gradients[1].mT()) - matmul(gradients[0].mT(), q);
    const Tensor lower = m.tril(-1), symmetric = m.tril() + lower.mT();
    const Tensor left = gradients[0] + matmul(q, symmetric);  // X of X R^T
    return {Solve::apply("linalg::qr", r, Form::upper, left.mT()).mT(), Tensor()};
  }
};

struct Cholesky : autograd::Function<Cholesky> {
  /// Without an op: of a matrix that is not positive definite, whatever the elimination leaves.
  static Tensor forward(AutogradContext* context, const char* op, const Tensor& a) {
    const Matrices m(a);
    const Tensor result = a.clone();
    double* to = result.mutable_data_ptr<double>();
    for (int64_t i = 0; i < m.count; ++i)
      if (const int64_t order = eager::factor_cholesky(to + i * m.rows * m.rows, m.rows); order && op)
        fail(op, "A", which(m, i) + " whose leading minor of order " + std::to_string(order) + " is not positive",
             "positive definite ones", Location::none());
    context->save_for_backward({result});
    return result;
  }
  // Murray, Differentiation of the Cholesky decomposition, 2016.
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const Tensor l = context->get_saved_variables()[0], product = matmul(l.mT(), gradients[0]);
    const Tensor half = product.tril() - 0.5 * diagonal_matrix(product.diagonal(0, -2, -1));
    const Tensor left = Solve::apply("linalg::cholesky", l.mT(), Form::upper, half);
    const Tensor both = Solve::apply("linalg::cholesky", l.mT(), Form::upper, left.mT());
    return {Tensor(), (both + both.mT()) * 0.5};
  }
};

/// What stopped the factorization of each matrix, i32: the order of a leading minor, or 0. `factor`: gives it of the
/// elements and the size of one, which it may overwrite.
template <class Factor>
Tensor stops_of(const Tensor& a, Factor factor) {
  const Matrices m(a.detach());
  const Tensor stops = zeros(batch_of(a), kInt32);
  int32_t* to = stops.mutable_data_ptr<int32_t>();
  for (int64_t i = 0; i < m.count; ++i) {
    std::vector<double> work(m.at(i), m.at(i) + m.rows * m.rows);
    to[i] = static_cast<int32_t>(factor(work.data(), m.rows));
  }
  return stops;
}
Tensor zero_pivots(const Tensor& a) {
  return stops_of(a, [](double* matrix, int64_t n) { return eager::factor_lu(matrix, n, n).zero + 1; });
}

/// 1 / (b - a) of each pair of values, 0 of each with itself.
Tensor inverse_gaps(const Tensor& values) {
  const Tensor gaps = values.unsqueeze(-2) - values.unsqueeze(-1), own = eye(values.size(-1), {}, kBool);
  return where(own, 0, where(own, 1, gaps).reciprocal());
}

/// The first of `to`, a tensor of matrices or none.
double* matrices_of(const Tensor& to) { return to.defined() ? to.mutable_data_ptr<double>() : nullptr; }

/// Of one triangle of A. `vectors`: where they go, or none.
Tensor eigenvalues(const Tensor& a, bool lower, const Tensor& vectors) {
  const Matrices m(lower ? a.tril() + a.tril(-1).mT() : a.triu() + a.triu(1).mT());
  const int64_t n = m.rows;
  const Tensor values = zeros(shape_of(batch_of(a), {n}), kFloat64);
  double *to_values = values.mutable_data_ptr<double>(), *to_vectors = matrices_of(vectors);
  for (int64_t i = 0; i < m.count; ++i) {
    std::vector<double> work(m.at(i), m.at(i) + n * n);
    eager::factor_symmetric(work.data(), n, to_values + i * n, to_vectors ? to_vectors + i * n * n : nullptr);
  }
  return values;
}

struct Symmetric : autograd::Function<Symmetric> {
  /// Of one triangle of A; its gradient is that of a symmetric matrix.
  static std::vector<Tensor> forward(AutogradContext* context, const Tensor& a, bool lower) {
    const Tensor vectors = zeros(a.sizes(), kFloat64), values = eigenvalues(a, lower, vectors);
    context->save_for_backward({values, vectors});
    context->set_materialize_grads(false);
    return {values, vectors};
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const std::vector<Tensor> saved = context->get_saved_variables();
    const Tensor &values = saved[0], &v = saved[1];
    Tensor inner;
    if (gradients[0].defined()) inner = diagonal_matrix(gradients[0]);
    if (gradients[1].defined()) {
      const Tensor turned = matmul(v.mT(), gradients[1]) * inverse_gaps(values), part = (turned + turned.mT()) * 0.5;
      inner = inner.defined() ? inner + part : part;
    }
    return {matmul(matmul(v, inner), v.mT()), Tensor()};
  }
};

/// v diag(f) v^T of eigenvectors, or with a matrix in the middle.
Tensor among_eigenvectors(const Tensor& v, const Tensor& inner) { return matmul(matmul(v, inner), v.mT()); }

/// Y of X Y + Y X = G for a symmetric positive X, among whose eigenvectors it is diagonal.
struct Lyapunov : autograd::Function<Lyapunov> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& g) {
    const std::vector<Tensor> parts = Symmetric::apply(x, true);
    const Tensor &values = parts[0], &v = parts[1];
    const Tensor inner = matmul(matmul(v.mT(), g), v) / (values.unsqueeze(-1) + values.unsqueeze(-2));
    const Tensor y = among_eigenvectors(v, inner);
    context->save_for_backward({x, y});
    return y;
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const std::vector<Tensor> saved = context->get_saved_variables();
    const Tensor turned = saved[1].mT(), s = Lyapunov::apply(saved[0], gradients[0]);
    return {-(matmul(s, turned) + matmul(turned, s)), s};
  }
};

/// X of X X = A: dX solves X dX + dX X = dA.
struct SquareRoot : autograd::Function<SquareRoot> {
  static Tensor forward(AutogradContext* context, const Tensor& a) {
    const std::vector<Tensor> parts = Symmetric::apply(a, true);
    const Tensor result = among_eigenvectors(parts[1], diagonal_matrix(parts[0].sqrt()));
    context->save_for_backward({result});
    return result;
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const Tensor s = Lyapunov::apply(context->get_saved_variables()[0], gradients[0]);
    return {(s + s.mT()) * 0.5};
  }
};

/// `u` [rows, u_columns] and `vt` [vt_rows, columns]: where vectors go, or none.
Tensor singular_values(const Tensor& a, const Tensor& u, const Tensor& vt) {
  const Matrices m(a);
  const int64_t k = std::min(m.rows, m.columns);
  const int64_t u_columns = u.defined() ? u.size(-1) : k, vt_rows = vt.defined() ? vt.size(-2) : k;
  const Tensor s = zeros(shape_of(batch_of(a), {k}), kFloat64);
  double *to_u = matrices_of(u), *to_s = s.mutable_data_ptr<double>(), *to_vt = matrices_of(vt);
  for (int64_t i = 0; i < m.count; ++i)
    eager::factor_singular(m.at(i), m.rows, m.columns, to_u ? to_u + i * m.rows * u_columns : nullptr, u_columns,
                           to_s + i * k, to_vt ? to_vt + i * vt_rows * m.columns : nullptr, vt_rows);
  return s;
}

/// Townsend, Differentiating the Singular Value Decomposition, 2016.
struct Singular : autograd::Function<Singular> {
  /// U: [rows, u_columns], V^T: [vt_rows, columns].
  static std::vector<Tensor> forward(AutogradContext* context, const Tensor& a, bool full) {
    const int64_t rows = a.size(-2), columns = a.size(-1), k = std::min(rows, columns);
    const int64_t u_columns = full ? rows : k, vt_rows = full ? columns : k;
    const Ints batch = batch_of(a);
    const Tensor u = zeros(shape_of(batch, {rows, u_columns}), kFloat64),
                 vt = zeros(shape_of(batch, {vt_rows, columns}), kFloat64);
    if (k == 0) u.copy_(eye(rows, u_columns, kFloat64)), vt.copy_(eye(vt_rows, columns, kFloat64));
    const Tensor s = singular_values(a, u, vt);
    context->save_for_backward({u, s, vt});
    context->set_materialize_grads(false);
    return {u, s, vt};
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const std::vector<Tensor> saved = context->get_saved_variables();
    const Tensor& s = saved[1];
    const Size k = s.size(-1);
    const Tensor u = saved[0].narrow(-1, 0, k), vt = saved[2].narrow(-2, 0, k);
    Tensor inner, outer;
    const auto add_to = [](Tensor& sum, const Tensor& part) { sum = sum.defined() ? sum + part : part; };
    if (gradients[1].defined()) add_to(inner, diagonal_matrix(gradients[1]));
    const auto skew = [](const Tensor& m) { return m - m.mT(); };
    if (gradients[0].defined()) {
      const Tensor g = gradients[0].narrow(-1, 0, k), own = matmul(u.mT(), g);
      add_to(inner, inverse_gaps(s * s) * skew(own) * s.unsqueeze(-2));
      if (u.size(-2) > k) add_to(outer, matmul((g - matmul(u, own)) / s.unsqueeze(-2), vt));
    }
    if (gradients[2].defined()) {
      const Tensor g = gradients[2].narrow(-2, 0, k).mT(), own = matmul(vt, g);
      add_to(inner, s.unsqueeze(-1) * (inverse_gaps(s * s) * skew(own)));
      if (vt.size(-1) > k) add_to(outer, matmul(u, (g - matmul(vt.mT(), own)).mT() / s.unsqueeze(-1)));
    }
    Tensor result = matmul(matmul(u, inner), vt);
    return {outer.defined() ? result + outer : result, Tensor()};
  }
};

/// Golub and Pereyra, The Differentiation of Pseudo-Inverses, 1973.
struct PseudoInverse : autograd::Function<PseudoInverse> {
  /// `tolerance`: which singular values count as 0, one number a matrix.
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vt,
                        const Tensor& tolerance) {
    const Tensor counts = s > tolerance.unsqueeze(-1);
    const Tensor inverse = where(counts, where(counts, s, 1).reciprocal(), 0);
    const Tensor result = matmul(vt.mT() * inverse.unsqueeze(-2), u.mT());
    context->save_for_backward({a, result});
    return result;
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const std::vector<Tensor> saved = context->get_saved_variables();
    const Tensor &a = saved[0], &p = saved[1], pt = p.mT(), &g = gradients[0], gt = g.mT();
    const Tensor left = matmul(matmul(gt, p), pt), right = matmul(pt, matmul(p, gt));
    return {left - matmul(a, matmul(p, left)) + right - matmul(matmul(right, p), a) - matmul(matmul(pt, g), pt),
            Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

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
  Tensor x = left ? Solve::apply(op, sides.a, form, sides.b)
                  : Solve::apply(op, sides.a.mT(), transposed(form), sides.b.mT()).mT();
  if (sides.vector) x = x.squeeze(-1);
  return x.to(dtype).contiguous();
}

Tensor factor_of(const char* op, const TensorArg& A, const Tensor& a, bool upper) {
  const Tensor l = Cholesky::apply(op, upper ? a.mT() : a);
  return (upper ? l.mT() : l).to(A.tensor->dtype()).contiguous();
}

/// Whether `uplo` says the lower triangle.
bool is_lower(const char* op, const TensorArg& A, std::string_view uplo) {
  if (uplo != "L" && uplo != "U" && uplo != "l" && uplo != "u")
    fail(op, "UPLO", "\"" + std::string(uplo) + "\"", "\"L\" or \"U\"", A.location);
  return uplo == "L" || uplo == "l";
}

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
  return Inverse::apply("cholesky_inverse", matmul(lower, lower.mT())).to(L.tensor->dtype());
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
  const Tensor a = wide("linalg::det", "A", A, true);
  const Tensor result = Determinant::apply(a)[0];
  if (!a.requires_grad() || !(result == 0).any().item<bool>()) return result.to(A.tensor->dtype());
  // Of singular matrices by their cofactors, the products of all singular values but one: as a linear function of A.
  Tensor cofactors;
  {
    const NoGradGuard off;
    const auto [u, s, vt] = svd({a.detach(), A.location});
    const Tensor own = eye(s.size(-1), {}, kBool);
    const Tensor others = where(own, 1, s.unsqueeze(-2)).prod(-1);
    const Tensor sign = Determinant::apply(matmul(u, vt))[1];
    cofactors = matmul(u * others.unsqueeze(-2), vt) * sign.unsqueeze(-1).unsqueeze(-1);
  }
  const Tensor moved = ((a - a.detach()) * cofactors).sum({-2, -1});
  return (result.detach() + moved).to(A.tensor->dtype());
}

std::tuple<Tensor, Tensor> slogdet(const TensorArg& A) {
  const FunctionScope scope("linalg::slogdet", A.location);
  const std::vector<Tensor> parts = Determinant::apply(wide("linalg::slogdet", "A", A, true));
  return {parts[1].to(A.tensor->dtype()), parts[2].to(A.tensor->dtype())};
}

Tensor inv(const TensorArg& A) {
  const FunctionScope scope("linalg::inv", A.location);
  return Inverse::apply("linalg::inv", wide("linalg::inv", "A", A, true)).to(A.tensor->dtype());
}

Tensor solve(const TensorArg& A, const TensorArg& B, bool left) {
  const FunctionScope scope("linalg::solve", A.location);
  const Tensor a = wide("linalg::solve", "A", A, true);
  return solve_by("linalg::solve", a, Form::general, B, A.tensor->dtype(), left, true);
}

Tensor solve_triangular(const TensorArg& A, const TensorArg& B, bool upper, bool left, bool unitriangular) {
  const FunctionScope scope("linalg::solve_triangular", A.location);
  Tensor a = wide("linalg::solve_triangular", "A", A, true);
  const int64_t from = unitriangular ? 1 : 0;
  a = upper ? a.triu(from) : a.tril(-from);
  if (unitriangular) a = a + identity(a);
  return solve_by("linalg::solve_triangular", a, upper ? Form::upper : Form::lower, B, A.tensor->dtype(), left, false);
}

Tensor cholesky(const TensorArg& A, bool upper) {
  const FunctionScope scope("linalg::cholesky", A.location);
  const Tensor a = wide("linalg::cholesky", "A", A, true);
  return factor_of("linalg::cholesky", A, a, upper);
}
std::tuple<Tensor, Tensor> cholesky_ex(const TensorArg& A, bool upper, bool check_errors) {
  constexpr const char* kOp = "linalg::cholesky_ex";
  const FunctionScope scope(kOp, A.location);
  const Tensor a = wide(kOp, "A", A, true);
  const Tensor info = stops_of(upper ? a.mT() : a, eager::factor_cholesky);
  return {factor_of(check_errors ? kOp : nullptr, A, a, upper), info};
}
std::tuple<Tensor, Tensor> inv_ex(const TensorArg& A, bool check_errors) {
  constexpr const char* kOp = "linalg::inv_ex";
  const FunctionScope scope(kOp, A.location);
  const Tensor a = wide(kOp, "A", A, true);
  const char* const op = check_errors ? kOp : nullptr;
  return {Inverse::apply(op, a).to(A.tensor->dtype()), zero_pivots(a)};
}
std::tuple<Tensor, Tensor> solve_ex(const TensorArg& A, const TensorArg& B, bool left, bool check_errors) {
  constexpr const char* kOp = "linalg::solve_ex";
  const FunctionScope scope(kOp, A.location);
  const Tensor a = wide(kOp, "A", A, true), info = zero_pivots(a);
  if (check_errors || (info == 0).all().item<bool>())
    return {solve_by(kOp, a, Form::general, B, A.tensor->dtype(), left, true), info};
  const Tensor regular = where((info == 0).unsqueeze(-1).unsqueeze(-1), a, std::numeric_limits<double>::quiet_NaN());
  return {solve_by(kOp, regular, Form::general, B, A.tensor->dtype(), left, true), info};
}
Tensor matrix_sqrth(const TensorArg& A) {
  const FunctionScope scope("linalg::matrix_sqrth", A.location);
  return SquareRoot::apply(wide("linalg::matrix_sqrth", "A", A, true, true)).to(A.tensor->dtype());
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
  const std::vector<Tensor> parts = Orthogonal::apply(square, mode == "complete" ? rows : std::min(rows, columns));
  const Tensor& q = parts[0];
  Tensor r = parts[1];
  if (columns > rows) r = cat({r, matmul(q.mT(), a.narrow(-1, rows, columns - rows))}, -1);
  return {mode == "r" ? zeros({0}, dtype) : q.to(dtype), r.to(dtype)};
}

std::tuple<Tensor, Tensor> eigh(const TensorArg& A, Word UPLO) {
  constexpr const char* kOp = "linalg::eigh";
  const FunctionScope scope(kOp, A.location);
  const bool lower = is_lower(kOp, A, UPLO);
  const std::vector<Tensor> parts = Symmetric::apply(wide(kOp, "A", A, true, true), lower);
  return {parts[0].to(A.tensor->dtype()), parts[1].to(A.tensor->dtype())};
}
Tensor eigvalsh(const TensorArg& A, Word UPLO) {
  constexpr const char* kOp = "linalg::eigvalsh";
  const FunctionScope scope(kOp, A.location);
  const bool lower = is_lower(kOp, A, UPLO);
  const Tensor a = wide(kOp, "A", A, true, true);
  return (a.requires_grad() ? Symmetric::apply(a, lower)[0] : eigenvalues(a, lower, {})).to(A.tensor->dtype());
}

std::tuple<Tensor, Tensor, Tensor> svd(const TensorArg& A, bool full_matrices) {
  const FunctionScope scope("linalg::svd", A.location);
  const std::vector<Tensor> parts = Singular::apply(wide("linalg::svd", "A", A, false, true), full_matrices);
  const DType dtype = A.tensor->dtype();
  return {parts[0].to(dtype), parts[1].to(dtype), parts[2].to(dtype)};
}
Tensor svdvals(const TensorArg& A) {
  const FunctionScope scope("linalg::svdvals", A.location);
  const Tensor a = wide("linalg::svdvals", "A", A, false, true);
  return (a.requires_grad() ? Singular::apply(a, false)[1] : singular_values(a, {}, {})).to(A.tensor->dtype());
}

Tensor pinv(const TensorArg& A, const OperandArg& atol, const OperandArg& rtol, bool hermitian) {
  const FunctionScope scope("linalg::pinv", A.location);
  const Tensor a = wide("linalg::pinv", "A", A, false, true);
  const std::vector<Tensor> parts = Singular::apply(mirrored("linalg::pinv", A, a.detach(), hermitian), false);
  const Tensor tolerance = tolerance_of(parts[1], a, A.tensor->dtype(), atol, rtol);
  return PseudoInverse::apply(a, parts[0], parts[1], parts[2], tolerance).to(A.tensor->dtype());
}

Tensor matrix_rank(const TensorArg& A, const OperandArg& atol, const OperandArg& rtol, bool hermitian) {
  const FunctionScope scope("linalg::matrix_rank", A.location);
  const Tensor a = wide("linalg::matrix_rank", "A", A, false, true);
  const Tensor s = singular_values(mirrored("linalg::matrix_rank", A, a.detach(), hermitian), {}, {});
  return (s > tolerance_of(s, a, A.tensor->dtype(), atol, rtol).unsqueeze(-1)).sum(-1);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const TensorArg& A, const TensorArg& B, std::optional<double> rcond) {
  const FunctionScope scope("linalg::lstsq", A.location);
  const DType dtype = present("linalg::lstsq", "A", A).dtype();
  const Tensor wide_a = wide("linalg::lstsq", "A", A, false, true);
  const auto [a, b, vector] = sides_of("linalg::lstsq", wide_a, B, dtype, true, true);
  const std::vector<Tensor> parts = Singular::apply(wide_a.detach(), false);
  const Tensor& s = parts[1];
  const Tensor tolerance = tolerance_of(s, wide_a, dtype, {}, rcond ? OperandArg(*rcond) : OperandArg());
  const Tensor inverse = PseudoInverse::apply(wide_a, parts[0], s, parts[2], tolerance);
  const Tensor x = matmul(inverse, b), rank = (s > tolerance.unsqueeze(-1)).sum(-1);
  Tensor residuals = zeros({0}, dtype);
  if (a.size(-2) > a.size(-1) && (rank == a.size(-1)).all().item<bool>())
    residuals = (matmul(a, x) - b).square().sum(-2).to(dtype);
  return {(vector ? x.squeeze(-1) : x).to(dtype), residuals, rank, s.to(dtype)};
}

// Moler and Van Loan, Nineteen Dubious Ways to Compute the Exponential of a Matrix, 2003: method 3, with a Taylor
// series.
Tensor matrix_exp(const TensorArg& A) {
  const FunctionScope scope("linalg::matrix_exp", A.location);
  Tensor a = wide("linalg::matrix_exp", "A", A, true, true, true);
  if (a.numel() == 0) return A.tensor->clone();
  const double norm = a.detach().abs().sum(-1).amax().item<double>();
  constexpr int kMostHalvings = 1100;  // more than f64 has exponents: of a sum beyond it
  int halvings = 0;
  while (halvings < kMostHalvings && std::ldexp(norm, -halvings) > 0.5) ++halvings;
  a = a * std::ldexp(1.0, -halvings);
  // Of a norm of a half, term 16 is below the last bit of 1.
  constexpr int kTerms = 16;
  const Tensor one = identity(a);
  Tensor result = one + a / kTerms;
  for (int term = kTerms - 1; term > 0; --term) result = one + matmul(a, result) / term;
  for (int i = 0; i < halvings; ++i) result = matmul(result, result);
  return result.to(A.tensor->dtype());
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
