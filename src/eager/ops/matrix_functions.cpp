#include "eager/ops/matrix_functions.h"

#include <algorithm>
#include <any>
#include <cmath>

#include "eager/autograd/function.h"
#include "eager/ops/checks.h"
#include "eager/ops/factorizations.h"
#include "eager/ops/functions.h"
#include "eager/ops/matrices.h"

namespace ingot::eager {
namespace {

using autograd::AutogradContext;

/// In errors: which matrix of a batch.
std::string which(const Matrices& m, int64_t i) { return m.count == 1 ? "a matrix" : "matrix " + std::to_string(i); }

Tensor diagonal_matrix(const Tensor& values) { return values.diag_embed(); }

/// Solves A X = B for each matrix of a batch in place of B, which is row-major. Without an op: X is infinite or NaN
/// where A is singular.
void solve_each(const char* op, const Tensor& a, Form form, const Tensor& b) {
  const Matrices m(a);
  const int64_t n = m.rows, columns = b.size(-1);
  double* to = b.mutable_data_ptr<double>();
  std::vector<int64_t> zeros(static_cast<size_t>(m.count), -1);  // the first pivot that is one
  spread(m, [&](int64_t i) {
    double* x = to + i * n * columns;
    if (form == Form::general) {
      std::vector<double> lu(m.at(i), m.at(i) + n * n);
      const Pivots pivots = factor_lu(lu.data(), n, n);
      zeros[i] = pivots.zero;
      solve_lu(lu.data(), pivots, n, x, columns);
    } else {
      for (int64_t k = n; k-- > 0;)
        if (m.at(i)[k * n + k] == 0) zeros[i] = k;
      solve_triangle(m.at(i), n, form == Form::upper, false, x, columns);
    }
  });
  for (int64_t i = 0; op && i < m.count; ++i)
    if (zeros[i] >= 0)
      fail(op, "A", which(m, i) + " that is singular (pivot " + std::to_string(zeros[i] + 1) + " is 0)",
           "one that has an inverse", Location::none());
}

struct Inverse : autograd::Function<Inverse> {
  /// Without an op: see solve_each.
  static Tensor forward(AutogradContext* context, const char* op, const Tensor& a) {
    const Tensor result = eye(a.size(-1), {}, kFloat64).expand(a.sizes()).clone();
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
    spread(m, [&](int64_t i) {
      std::vector<double> lu(m.at(i), m.at(i) + n * n);
      product[i] = sign[i] = factor_lu(lu.data(), n, n).sign;
      for (int64_t k = 0; k < n; ++k) {
        const double pivot = lu[k * n + k];
        product[i] *= pivot;
        sign[i] *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
        logarithm[i] += std::log(std::fabs(pivot));
      }
    });
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
    spread(m, [&](int64_t i) {
      factor_qr(to_r + i * m.rows * m.columns, m.rows, m.columns, to_q + i * m.rows * q_columns, q_columns);
    });
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
    std::vector<int64_t> orders(static_cast<size_t>(m.count));
    spread(m, [&](int64_t i) { orders[i] = factor_cholesky(to + i * m.rows * m.rows, m.rows); });
    for (int64_t i = 0; op && i < m.count; ++i)
      if (orders[i])
        fail(op, "A", which(m, i) + " whose leading minor of order " + std::to_string(orders[i]) + " is not positive",
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

/// What stopped the factorization of each matrix, i32. `factor`: gives it of the elements and the size of one, which it
/// may overwrite.
template <class Factor>
Tensor stops_of(const Tensor& a, Factor factor) {
  const Matrices m(a.detach());
  const Tensor stops = zeros(batch_of(a), kInt32);
  int32_t* to = stops.mutable_data_ptr<int32_t>();
  spread(m, [&](int64_t i) {
    std::vector<double> work(m.at(i), m.at(i) + m.rows * m.rows);
    to[i] = static_cast<int32_t>(factor(work.data(), m.rows));
  });
  return stops;
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
  spread(m, [&](int64_t i) {
    std::vector<double> work(m.at(i), m.at(i) + n * n);
    factor_symmetric(work.data(), n, to_values + i * n, to_vectors ? to_vectors + i * n * n : nullptr);
  });
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
  spread(m, [&](int64_t i) {
    factor_singular(m.at(i), m.rows, m.columns, to_u ? to_u + i * m.rows * u_columns : nullptr, u_columns, to_s + i * k,
                    to_vt ? to_vt + i * vt_rows * m.columns : nullptr, vt_rows);
  });
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

}  // namespace

Form transposed(Form form) {
  return form == Form::lower ? Form::upper : form == Form::upper ? Form::lower : Form::general;
}
Tensor inverse_of(const char* op, const Tensor& a) { return Inverse::apply(op, a); }
Tensor solution_of(const char* op, const Tensor& a, Form form, const Tensor& b) { return Solve::apply(op, a, form, b); }
std::vector<Tensor> determinants_of(const Tensor& a) { return Determinant::apply(a); }
Tensor cholesky_of(const char* op, const Tensor& a) { return Cholesky::apply(op, a); }
Tensor zero_pivots_of(const Tensor& a) {
  return stops_of(a, [](double* matrix, int64_t n) { return factor_lu(matrix, n, n).zero + 1; });
}
Tensor minors_not_positive_of(const Tensor& a) { return stops_of(a, factor_cholesky); }
std::vector<Tensor> qr_of(const Tensor& a, int64_t q_columns) { return Orthogonal::apply(a, q_columns); }
std::vector<Tensor> eigenvectors_of(const Tensor& a, bool lower) { return Symmetric::apply(a, lower); }
Tensor eigenvalues_of(const Tensor& a, bool lower) {
  return a.requires_grad() ? Symmetric::apply(a, lower)[0] : eigenvalues(a, lower, {});
}
Tensor square_root_of(const Tensor& a) { return SquareRoot::apply(a); }
std::vector<Tensor> singular_vectors_of(const Tensor& a, bool full) { return Singular::apply(a, full); }
Tensor singular_values_of(const Tensor& a) {
  return a.requires_grad() ? Singular::apply(a, false)[1] : singular_values(a, {}, {});
}
Tensor pseudo_inverse_of(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vt, const Tensor& tolerance) {
  return PseudoInverse::apply(a, u, s, vt, tolerance);
}

}  // namespace ingot::eager
