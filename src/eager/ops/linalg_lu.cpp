// Elimination, and what is solved with it.
#include <algorithm>

#include "eager/ops/linalg.h"
#include "eager/ops/matrices.h"

namespace ingot {
namespace {

using eager::batch_of;
using eager::fail;
using eager::present;
using eager::shape_of;
using eager::shape_text;
using eager::wide;

int64_t smaller_size(const Tensor& a) { return std::min<int64_t>(a.size(-2), a.size(-1)); }

/// L and U, of which one matrix is made.
Tensor lower_of(const Tensor& packed) {
  const int64_t k = smaller_size(packed);
  return packed.narrow(-1, 0, k).tril(-1) + eye(packed.size(-2), k, kFloat64);
}
Tensor upper_of(const Tensor& packed) { return packed.narrow(-2, 0, smaller_size(packed)).triu(); }

/// [rows, rows], with a one in row order[i] of column i.
Tensor permutation(const Tensor& order) {
  const int64_t n = order.size(-1);
  return (arange(n, kInt64).unsqueeze(-1) == order.unsqueeze(-2)).to(kFloat64);
}

/// From exchanges of rows, their order in the end.
Tensor order_of(const char* op, const TensorArg& pivots, const Tensor& packed) {
  const Tensor& given = present(op, "pivots", pivots);
  const Size rows = packed.size(-2);
  const Ints shape = shape_of(batch_of(packed), {smaller_size(packed)});
  if (given.dtype() != kInt32) fail(op, "pivots", eager::dtype_text(given), "i32", pivots.location);
  if (given.sizes() != IntArrayRef(shape)) fail(op, "pivots", shape_text(given), eager::text(shape), pivots.location);
  eager::require_numbers({op, "pivots", "a number that is no row's", "numbers of rows, counted from 1"}, given, 1,
                         rows + 1, pivots.location);
  return linalg_pivot_order(given, rows);
}

}  // namespace

Tensor lu_solve(const TensorArg& self, const TensorArg& LU, const TensorArg& pivots) {
  return linalg::lu_solve(LU, pivots, self);
}
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const TensorArg& LU, const TensorArg& pivots) {
  const CallerLine line(LU.location);
  const Tensor packed = wide("lu_unpack", "LU", LU, false);
  const DType dtype = LU.tensor->dtype();
  return {permutation(order_of("lu_unpack", pivots, packed)).to(dtype), lower_of(packed).to(dtype),
          upper_of(packed).to(dtype)};
}

namespace linalg {

std::tuple<Tensor, Tensor, Tensor> lu(const TensorArg& A) {
  const CallerLine line(A.location);
  const auto [packed, pivots, info] = linalg_lu_factor_ex(wide("linalg::lu", "A", A, false));
  const DType dtype = A.tensor->dtype();
  const Tensor order = linalg_pivot_order(pivots, packed.size(-2));
  return {permutation(order).to(dtype), lower_of(packed).to(dtype), upper_of(packed).to(dtype)};
}

std::tuple<Tensor, Tensor> lu_factor(const TensorArg& A) {
  const CallerLine line(A.location);
  const auto [packed, pivots, info] = linalg_lu_factor_ex(wide("linalg::lu_factor", "A", A, false));
  return {packed.to(A.tensor->dtype()), pivots};
}

Tensor lu_solve(const TensorArg& LU, const TensorArg& pivots, const TensorArg& B, bool left, bool adjoint) {
  constexpr const char* kOp = "linalg::lu_solve";
  const CallerLine line(LU.location);
  const Tensor packed = wide(kOp, "LU", LU, true), b = wide(kOp, "B", B, false);
  if (B.tensor->dtype() != LU.tensor->dtype())
    fail(kOp, "B", eager::dtype_text(*B.tensor), std::string(name_of(LU.tensor->dtype())) + ", the dtype of LU",
         LU.location);
  const Tensor p = permutation(order_of(kOp, pivots, packed)), l = lower_of(packed), u = upper_of(packed);
  // X A = B is A^T X^T = B^T.
  Tensor right = left ? b : b.mT();
  while (right.dim() < packed.dim()) right = right.unsqueeze(0);  // not taken for vectors
  if (right.size(-2) != packed.size(-1))
    fail(kOp, "B", shape_text(*B.tensor),
         std::string(left ? "as many rows" : "as many columns") + " as LU has, " + std::to_string(packed.size(-1)),
         LU.location);
  eager::require({kOp, "LU", "a zero on the diagonal: of a matrix that is singular", "one that has an inverse"},
                 packed.detach().diagonal(0, -2, -1) != 0);
  const Tensor x =
      adjoint == left ? matmul(p, solve(l.mT(), solve(u.mT(), right))) : solve(u, solve(l, matmul(p.mT(), right)));
  return (left ? x : x.mT()).to(LU.tensor->dtype()).contiguous();
}

Tensor householder_product(const TensorArg& A, const TensorArg& tau) {
  constexpr const char* kOp = "linalg::householder_product";
  const CallerLine line(A.location);
  const Tensor a = wide(kOp, "A", A, false);
  const Tensor& factors = present(kOp, "tau", tau);
  const int64_t rows = a.size(-2), columns = a.size(-1);
  if (columns > rows) fail(kOp, "A", shape_text(a), "no more columns than rows", A.location);
  if (factors.dtype() != A.tensor->dtype())
    fail(kOp, "tau", eager::dtype_text(factors), std::string(name_of(A.tensor->dtype())) + ", the dtype of A",
         A.location);
  if (factors.dim() != a.dim() - 1 || factors.size(-1) > columns ||
      IntArrayRef(shape_of(batch_of(a), {factors.size(-1)})) != factors.sizes())
    fail(kOp, "tau", shape_text(factors), "the batch of A and at most " + std::to_string(columns) + " numbers",
         A.location);
  const Tensor vectors = a.tril(-1) + eye(rows, columns, kFloat64), scales = factors.to(kFloat64);
  Tensor result = eye(rows, columns, kFloat64).expand(a.sizes());
  for (int64_t i = factors.size(-1); i-- > 0;) {
    const Tensor v = vectors.narrow(-1, i, 1), scale = scales.narrow(-1, i, 1).unsqueeze(-1);
    result = result - scale * matmul(v, matmul(v.mT(), result));
  }
  return result.to(A.tensor->dtype()).contiguous();
}

Tensor tensorinv(const TensorArg& A, int64_t ind) {
  const CallerLine line(A.location);
  const Tensor& a = present("linalg::tensorinv", "A", A);
  if (ind < 1) fail("linalg::tensorinv", "ind", std::to_string(ind), "a positive number", A.location);
  const size_t first = std::min<size_t>(ind, a.sizes().size());
  const IntArrayRef sizes = a.sizes(), front(sizes.data(), first), back(sizes.data() + first, sizes.size() - first);
  int64_t n = 1, others = 1;
  for (int64_t s : front) n *= s;
  for (int64_t s : back) others *= s;
  if (n != others)
    fail("linalg::tensorinv", "A", shape_text(a),
         "as many elements in the first " + std::to_string(ind) + " dims as in the others", A.location);
  Ints turned(back.begin(), back.end());
  for (int64_t s : front) turned.push_back(s);
  return inv(a.reshape({n, n})).view(turned);
}

Tensor tensorsolve(const TensorArg& A, const TensorArg& B, const IntList& dims) {
  const CallerLine line(A.location);
  Tensor a = present("linalg::tensorsolve", "A", A);
  const Tensor& b = present("linalg::tensorsolve", "B", B);
  if (dims.present()) {
    Ints ends;
    for (size_t i = 0; i < dims.items().size(); ++i)
      ends.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(dims.items().size()));
    a = a.movedim(dims.items(), ends);
  }
  const IntArrayRef sizes = a.sizes();
  const size_t first = std::min(b.sizes().size(), sizes.size());
  const Ints shape(sizes.begin() + static_cast<std::ptrdiff_t>(first), sizes.end());
  int64_t unknowns = 1;
  for (int64_t s : shape) unknowns *= s;
  if (b.numel() != unknowns || a.numel() != unknowns * unknowns)
    fail("linalg::tensorsolve", "B", shape_text(b),
         "as many elements as X has, and A of " + shape_text(*A.tensor) + " that number squared", A.location);
  return solve(a.reshape({unknowns, unknowns}), b.reshape({unknowns})).view(shape);
}

}  // namespace linalg

Tensor Tensor::lu_solve(const TensorArg& LU, const TensorArg& pivots, Location location) const {
  return ingot::lu_solve({*this, location}, LU, pivots);
}

}  // namespace ingot
