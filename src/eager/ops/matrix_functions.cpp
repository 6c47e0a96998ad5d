#include "eager/ops/matrix_functions.h"

#include "base/function_scope.h"
#include "eager/autograd/function.h"
#include "eager/call/call.h"
#include "eager/ops/functions.h"

namespace ingot::eager {
namespace {

using autograd::AutogradContext;

std::string_view word_of(Form form) {
  return form == Form::lower ? "lower" : form == Form::upper ? "upper" : "general";
}

/// v diag(f) v^T of eigenvectors, or with a matrix in the middle.
Tensor among_eigenvectors(const Tensor& v, const Tensor& inner) { return matmul(matmul(v, inner), v.mT()); }

/// Y of X Y + Y X = G for a symmetric positive X, among whose eigenvectors it is diagonal.
struct Lyapunov : autograd::Function<Lyapunov> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& g) {
    const std::vector<Tensor> parts = eigenvectors_of(x, true);
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
    const std::vector<Tensor> parts = eigenvectors_of(a, true);
    const Tensor result = among_eigenvectors(parts[1], parts[0].sqrt().diag_embed());
    context->save_for_backward({result});
    return result;
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const Tensor s = Lyapunov::apply(context->get_saved_variables()[0], gradients[0]);
    return {(s + s.mT()) * 0.5};
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

/// Without an op those that failed are no error.
Tensor finished(const char* op, const Tensor& result, const Tensor& info, const char* stopped_by) {
  if (!op) return result;
  const FunctionScope scope(CalledFunction{op, "A"});
  linalg_failed(info, stopped_by);
  return result;
}

std::vector<Tensor> list_of(const std::tuple<Tensor, Tensor>& parts) {
  return {std::get<0>(parts), std::get<1>(parts)};
}
std::vector<Tensor> list_of(const std::tuple<Tensor, Tensor, Tensor>& parts) {
  return {std::get<0>(parts), std::get<1>(parts), std::get<2>(parts)};
}

}  // namespace

Form transposed(Form form) {
  return form == Form::lower ? Form::upper : form == Form::upper ? Form::lower : Form::general;
}
Made inverse_of(const char* op, const Tensor& a) {
  const auto [inverse, info] = linalg_inv_ex(a);
  return {finished(op, inverse, info, "pivot"), info};
}
Tensor solution_of(const char* op, const Tensor& a, Form form, const Tensor& b) {
  const auto [x, info] = linalg_solve_ex(a, b, word_of(form));
  return finished(op, x, info, "pivot");
}
std::vector<Tensor> determinants_of(const Tensor& a) { return list_of(linalg_det(a)); }
Made cholesky_of(const char* op, const Tensor& a) {
  const auto [l, info] = linalg_cholesky_ex(a);
  return {finished(op, l, info, "minor"), info};
}
std::vector<Tensor> qr_of(const Tensor& a, bool complete) { return list_of(linalg_qr(a, complete)); }
std::vector<Tensor> eigenvectors_of(const Tensor& a, bool lower) { return list_of(linalg_eigh(a, !lower)); }
Tensor eigenvalues_of(const Tensor& a, bool lower) { return std::get<0>(linalg_eigh(a, !lower, a.requires_grad())); }
Tensor square_root_of(const Tensor& a) { return SquareRoot::apply(a); }
std::vector<Tensor> singular_vectors_of(const Tensor& a, bool full) { return list_of(linalg_svd(a, full)); }
Tensor singular_values_of(const Tensor& a) { return std::get<1>(linalg_svd(a, false, a.requires_grad())); }
Tensor pseudo_inverse_of(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vt, const Tensor& tolerance) {
  return PseudoInverse::apply(a, u, s, vt, tolerance);
}

}  // namespace ingot::eager
