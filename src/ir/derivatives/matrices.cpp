// Functions of matrices: what solves with them, and factorizations.
#include <limits>

#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

enum SolveForm { kGeneral, kLower, kUpper };  // of linalg_solve_ex

Operand solve(GraphBuilder& b, SolveForm form, const Operand& a, const Operand& right) {
  return b.call(OpId::linalg_solve_ex, {a, right}, {Attr::mode(form)})[0];
}
/// X of X U^T = B of an upper triangle.
Operand solve_from_right(GraphBuilder& b, const Operand& u, const Operand& right) {
  return transposed(b, solve(b, kUpper, u, transposed(b, right)));
}

/// A size of a matrix: its rows, or its columns.
Dim size(GraphBuilder& b, const Operand& x, size_t from_end) { return b.shape(x)[b.rank(x) - from_end]; }

/// Rows (2) or columns (1) of matrices from `start` to `end`.
Operand part(GraphBuilder& b, const Operand& x, size_t from_end, Dim start, Dim end) {
  if (start == Dim(0) && b.dims().equal(size(b, x, from_end), end)) return x;
  return b.slice(x, GraphBuilder::attr(static_cast<int64_t>(b.rank(x) - from_end)), Attr::of(Dims{start}),
                 Attr::of(Dims{end}), GraphBuilder::attr(1));
}
Operand joined_blocks(GraphBuilder& b, const Operand& x, const Operand& y, size_t from_end) {
  return b.call(OpId::cat, {x, y}, {GraphBuilder::attr(static_cast<int64_t>(b.rank(x) - from_end))})[0];
}

Operand below(GraphBuilder& b, const Operand& x) { return b.tril(x, GraphBuilder::integer(-1)); }
Operand lower(GraphBuilder& b, const Operand& x) { return b.tril(x, GraphBuilder::integer(0)); }
Operand upper(GraphBuilder& b, const Operand& x) { return b.triu(x, GraphBuilder::integer(0)); }

Operand as_column(GraphBuilder& b, const Operand& x) {
  return b.unsqueeze(x, GraphBuilder::attr(static_cast<int64_t>(b.rank(x))));
}
Operand as_row(GraphBuilder& b, const Operand& x) {
  return b.unsqueeze(x, GraphBuilder::attr(static_cast<int64_t>(b.rank(x)) - 1));
}

/// [n, n], true on the diagonal.
Operand diagonal_mask(GraphBuilder& b, Dim n) { return b.eq(coordinate(b, n, 0, 2), count_up(b, n)); }
/// A matrix with these values on its diagonal.
Operand diagonal_matrix(GraphBuilder& b, const Operand& values) {
  return kept_where(b, diagonal_mask(b, size(b, values, 1)), as_column(b, values));
}
/// 1 / (b - a) of each pair of values, 0 of each with itself.
Operand inverse_gaps(GraphBuilder& b, const Operand& values) {
  const Operand own = diagonal_mask(b, size(b, values, 1)), gaps = b.sub(as_row(b, values), as_column(b, values));
  return kept_where_not(b, own, b.reciprocal(b.where(own, 1.0, gaps)));
}

/// A sum, some of whose terms are absent.
void add_to(GraphBuilder& b, Operand& sum, const Operand& term) { sum = sum.present() ? b.add(sum, term) : term; }

}  // namespace

// Murray, Differentiation of the Cholesky decomposition, 2016. Of a symmetric matrix, of which one triangle was read.
Gradients linalg_cholesky_ex(GraphBuilder& b, const DerivedCall& call) {
  const Operand &l = call.results[0], turned = transposed(b, l), product = b.matmul(turned, call.cotangents[0]);
  const Operand half = b.mul(b.add(lower(b, product), below(b, product)), 0.5);
  const Operand left = solve(b, kUpper, turned, half), both = solve(b, kUpper, turned, transposed(b, left));
  return of_self(call, b.mul(b.add(both, transposed(b, both)), 0.5));
}

Gradients linalg_inv_ex(GraphBuilder& b, const DerivedCall& call) {
  const Operand turned = transposed(b, call.results[0]);
  return of_self(call, b.neg(b.matmul(b.matmul(turned, call.cotangents[0]), turned)));
}

Gradients linalg_solve_ex(GraphBuilder& b, const DerivedCall& call) {
  const auto form = static_cast<SolveForm>(call.integer("form"));
  const SolveForm other = form == kLower ? kUpper : form == kUpper ? kLower : kGeneral;
  const Operand right = solve(b, other, transposed(b, call.operand("A")), call.cotangents[0]);
  return each(call, {[&] {
                       const Operand whole = b.neg(b.matmul(right, transposed(b, call.results[0])));
                       return form == kLower ? lower(b, whole) : form == kUpper ? upper(b, whole) : whole;
                     },
                     [&] { return right; }});
}

Gradients linalg_det(GraphBuilder& b, const DerivedCall& call) {
  const Operand &of_product = call.cotangents[0], &of_logarithm = call.cotangents[2], &a = call.operand("A");
  auto spread = [&](const Operand& x) { return as_column(b, as_column(b, x)); };
  Operand gradient;
  if (of_product.present()) gradient = b.mul(spread(of_product), b.linalg_cofactors(a));
  if (of_logarithm.present())
    add_to(b, gradient, b.mul(spread(of_logarithm), transposed(b, b.call(OpId::linalg_inv_ex, {a}, {})[0])));
  return of_self(call, gradient);
}

// Cofactors are the determinant times the inverse, turned.
Gradients linalg_cofactors(GraphBuilder& b, const DerivedCall& call) {
  const Operand &g = call.cotangent(), &cofactors = call.result();
  const Operand inverse = transposed(b, b.call(OpId::linalg_inv_ex, {call.operand("A")}, {})[0]);
  const auto rank = static_cast<int64_t>(b.rank(g));
  const Operand sum = b.sum(b.mul(g, cofactors), Attr::of(Dims{rank - 2, rank - 1}), GraphBuilder::flag(true));
  return of_self(call, b.sub(b.mul(inverse, sum), b.matmul(b.matmul(inverse, transposed(b, g)), cofactors)));
}

// Walter and Lehmann, Algorithmic Differentiation of Linear Algebra Functions, 2010; of square triangles. What is
// beyond a square follows from it by one of them.
Gradients linalg_lu_factor_ex(GraphBuilder& b, const DerivedCall& call) {
  const Operand &packed = call.results[0], &g = call.cotangents[0];
  const Dims shape = b.shape(packed);
  const Dim rows = size(b, packed, 2), columns = size(b, packed, 1);
  const bool wide = b.dims().less(rows, columns), tall = b.dims().less(columns, rows);
  const Dim k = wide ? rows : columns;
  auto square = [&](const Operand& x) { return part(b, part(b, x, 2, 0, k), 1, 0, k); };
  const Operand both = square(packed), u = upper(b, both);
  const Operand lt = transposed(b, b.where(diagonal_mask(b, k), 1.0, below(b, both)));
  Operand of_l = square(g), of_u = of_l, beyond;
  if (wide) {
    beyond = solve(b, kUpper, lt, part(b, g, 1, k, columns));
    of_l = b.sub(of_l, b.matmul(beyond, transposed(b, part(b, packed, 1, k, columns))));
  } else if (tall) {
    beyond = solve_from_right(b, u, part(b, g, 2, k, rows));
    of_u = b.sub(of_u, b.matmul(transposed(b, part(b, packed, 2, k, rows)), beyond));
  }
  const Operand inner =
      b.add(below(b, b.matmul(lt, below(b, of_l))), upper(b, b.matmul(upper(b, of_u), transposed(b, u))));
  Operand result = solve_from_right(b, u, solve(b, kUpper, lt, inner));
  if (beyond.present()) result = joined_blocks(b, result, beyond, wide ? 1 : 2);
  // Row order[i] of A was row i.
  const Operand order =
      b.expand(as_column(b, b.linalg_pivot_order(call.results[1], Attr::of(Dims{rows}))), Attr::of(shape));
  return of_self(call, b.scatter(zeros(b, shape, DType::f64), order, result,
                                 GraphBuilder::attr(static_cast<int64_t>(shape.size()) - 2)));
}

// The same. A square Q that A's columns do not determine has none.
Gradients linalg_qr(GraphBuilder& b, const DerivedCall& call) {
  const Operand &q = call.results[0], &r = call.results[1], &of_q = call.cotangents[0], &of_r = call.cotangents[1];
  const Dims shape = b.shape(call.operand("A"));
  if (call.flag("complete") && !b.dims().equal(shape[shape.size() - 2], shape.back()))
    return of_self(call, b.full(Attr::of(shape), std::numeric_limits<double>::quiet_NaN(), Attr::of(DType::f64)));
  if (!of_q.present() && !of_r.present()) return of_self(call, {});
  Operand m;
  if (of_r.present()) m = b.matmul(r, transposed(b, of_r));
  if (of_q.present()) add_to(b, m, b.neg(b.matmul(transposed(b, of_q), q)));
  Operand left = b.matmul(q, b.add(lower(b, m), transposed(b, below(b, m))));
  if (of_q.present()) left = b.add(of_q, left);
  return of_self(call, solve_from_right(b, r, left));
}

// Of a symmetric matrix, of which one triangle was read.
Gradients linalg_eigh(GraphBuilder& b, const DerivedCall& call) {
  const bool has_vectors = call.flag("vectors");
  const Operand &values = call.results[0], &of_values = call.cotangents[0], &of_vectors = call.cotangents[1];
  const Operand v = has_vectors
                        ? call.results[1]
                        : b.call(OpId::linalg_eigh, {call.operand("A")}, {call.attribute("upper"), Attr::of(true)})[1];
  Operand inner;
  if (of_values.present()) inner = diagonal_matrix(b, of_values);
  if (has_vectors && of_vectors.present()) {
    const Operand turned = b.mul(b.matmul(transposed(b, v), of_vectors), inverse_gaps(b, values));
    add_to(b, inner, b.mul(b.add(turned, transposed(b, turned)), 0.5));
  }
  if (!inner.present()) return of_self(call, {});
  return of_self(call, b.matmul(b.matmul(v, inner), transposed(b, v)));
}

// Townsend, Differentiating the Singular Value Decomposition, 2016.
Gradients linalg_svd(GraphBuilder& b, const DerivedCall& call) {
  const bool has_vectors = call.flag("vectors");
  const Operand &s = call.results[1], &of_u = call.cotangents[0], &of_s = call.cotangents[1],
                &of_vt = call.cotangents[2];
  const Dim k = size(b, s, 1);
  std::vector<Operand> parts = call.results;
  if (!has_vectors)
    parts = b.call(OpId::linalg_svd, {call.operand("A")}, {call.attribute("full_matrices"), Attr::of(true)});
  const Operand u = part(b, parts[0], 1, 0, k), vt = part(b, parts[2], 2, 0, k);
  const Operand ut = transposed(b, u), v = transposed(b, vt), gaps = inverse_gaps(b, b.square(s));
  auto skew = [&](const Operand& x) { return b.sub(x, transposed(b, x)); };
  Operand inner, outer;
  if (of_s.present()) inner = diagonal_matrix(b, of_s);
  if (has_vectors && of_u.present()) {
    const Operand g = part(b, of_u, 1, 0, k), own = b.matmul(ut, g);
    add_to(b, inner, b.mul(b.mul(gaps, skew(own)), as_row(b, s)));
    if (b.dims().less(k, size(b, u, 2)))
      add_to(b, outer, b.matmul(b.div(b.sub(g, b.matmul(u, own)), as_row(b, s)), vt));
  }
  if (has_vectors && of_vt.present()) {
    const Operand g = transposed(b, part(b, of_vt, 2, 0, k)), own = b.matmul(vt, g);
    add_to(b, inner, b.mul(as_column(b, s), b.mul(gaps, skew(own))));
    if (b.dims().less(k, size(b, vt, 1)))
      add_to(b, outer, b.matmul(u, b.div(transposed(b, b.sub(g, b.matmul(v, own))), as_column(b, s))));
  }
  if (!inner.present()) return of_self(call, {});
  const Operand result = b.matmul(b.matmul(u, inner), vt);
  return of_self(call, outer.present() ? b.add(result, outer) : result);
}

// The exponential of [A^T G; 0 A^T] has it in its upper right corner: Mathias, A Chain Rule for Matrix Functions and
// Applications, 1996.
Gradients linalg_matrix_exp(GraphBuilder& b, const DerivedCall& call) {
  const Operand turned = transposed(b, call.operand("A")), nothing = zeros(b, b.shape(turned), DType::f64);
  const Operand upper_half = joined_blocks(b, turned, call.cotangents[0], 1),
                lower_half = joined_blocks(b, nothing, turned, 1);
  const Dim n = size(b, turned, 1);
  const Operand result = b.linalg_matrix_exp(joined_blocks(b, upper_half, lower_half, 2));
  return of_self(call, part(b, part(b, result, 2, 0, n), 1, n, b.dims().mul(n, 2)));
}

}  // namespace ingot::ir::derivatives
