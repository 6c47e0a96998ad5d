#include <algorithm>
#include <cmath>
#include <limits>

#include "base/function_scope.h"
#include "eager/autograd/function.h"
#include "eager/ops/checks.h"
#include "eager/ops/functions.h"
#include "eager/ops/linalg.h"
#include "eager/ops/matrices.h"

namespace ingot {
namespace {

using autograd::AutogradContext;
using eager::fail;
using eager::present;
using eager::shape_text;

/// It has no derivative itself: one that is asked for is an Error.
struct NuclearNormBackward : autograd::Function<NuclearNormBackward> {
  static Tensor forward(AutogradContext*, const Tensor& /*matrices*/, const Tensor& polar, const Tensor& gradient) {
    return gradient.unsqueeze(-1).unsqueeze(-1) * polar;
  }
};

struct NuclearNorm : autograd::Function<NuclearNorm> {
  /// Of matrices of f64; it rises along U V^T of their singular vectors, where a singular value that is 0 to rounding
  /// has no part.
  static Tensor forward(AutogradContext* context, const Tensor& matrices) {
    const auto [u, s, vt] = linalg_svd(matrices);
    const double rounding = std::numeric_limits<double>::epsilon() *
                            static_cast<double>(std::max<int64_t>(matrices.size(-1), matrices.size(-2)));
    const Tensor counts = s > s.narrow(-1, 0, std::min<int64_t>(s.size(-1), 1)) * rounding;
    context->save_for_backward({matrices, matmul(where(counts.unsqueeze(-2), u, 0.0), vt)});
    return s.sum(-1);
  }
  static std::vector<Tensor> backward(AutogradContext* context, const std::vector<Tensor>& gradients) {
    const std::vector<Tensor> saved = context->get_saved_variables();
    return {NuclearNormBackward::apply(saved[0], saved[1], gradients[0])};
  }
};

Tensor norm_of(const char* op, const TensorArg& A, const IntList& dim, bool keepdim, std::string_view word,
               double order) {
  const FunctionScope scope(op, A.location);
  const Tensor& x = present(op, "A", A);
  if (!is_floating(x.dtype())) fail(op, "A", eager::dtype_text(x), "a floating dtype", A.location);
  if (dim.items().size() != 2) fail(op, "dim", std::to_string(dim.items().size()) + " dims", "two", A.location);
  if (x.dim() < 2) fail(op, "A", shape_text(x), "at least two dims", A.location);
  const int64_t rows = eager::wrapped_dim(op, "dim", dim.items()[0], x.dim(), A.location),
                columns = eager::wrapped_dim(op, "dim", dim.items()[1], x.dim(), A.location);
  if (rows == columns) fail(op, "dim", std::to_string(rows) + " twice", "two dims", A.location);
  if (word == "fro") return vector_norm(x, 2, {rows, columns}, keepdim);
  if (word == "nuc") return nuclear_norm({x, A.location}, {rows, columns}, keepdim);
  if (!word.empty()) fail(op, "ord", "\"" + std::string(word) + "\"", "\"fro\", \"nuc\" or a number", A.location);
  const double size = std::fabs(order);
  if (size != 1 && size != 2 && !std::isinf(size))
    fail(op, "ord", std::to_string(order), "1, -1, 2, -2, inf or -inf", A.location);
  // Nothing has no largest element; its norm is 0.
  if (order > 0 && x.numel() == 0) return abs(x).sum({rows, columns}, keepdim);
  Tensor result = size == 2 ? linalg::svdvals({x.movedim({rows, columns}, {-2, -1}), A.location})
                            : abs(x).sum(size == 1 ? rows : columns, true);
  if (size == 2) {
    result = order > 0 ? result.amax(-1) : result.amin(-1);
    return keepdim ? result.unsqueeze(std::min(rows, columns)).unsqueeze(std::max(rows, columns)) : result;
  }
  const int64_t last = size == 1 ? columns : rows;
  result = order > 0 ? result.amax(last, true) : result.amin(last, true);
  return keepdim ? result : result.squeeze({rows, columns});
}

constexpr const char* kCond = "linalg::cond";

/// The norm of A times that of its inverse; a singular matrix has none.
template <class Norm>
Tensor condition(const TensorArg& A, Norm norm) {
  eager::wide(kCond, "A", A, true);
  const Tensor& a = *A.tensor;
  const Tensor singular = std::get<0>(linalg::slogdet(a.detach())) == 0;
  const Tensor regular = where(singular.unsqueeze(-1).unsqueeze(-1), eye(a.size(-1), {}, a.dtype()), a);
  return where(singular, std::numeric_limits<double>::infinity(), norm(regular) * norm(linalg::inv(regular)));
}

}  // namespace

Tensor nuclear_norm(const TensorArg& self, const IntList& dim, bool keepdim) {
  Location location = self.location;
  if (dim.items().size() != 2)
    fail("nuclear_norm", "dim", std::to_string(dim.items().size()) + " dims", "two", location);
  const Tensor& x = present("nuclear_norm", "self", self);
  if (!x.is_floating_point(location))
    fail("nuclear_norm", "self", std::string(name_of(x.dtype())), "a floating dtype", location);
  const Tensor matrices = x.movedim(dim.items(), {-2, -1}, location).to(kFloat64, location);
  const int64_t rank = matrices.dim();
  const FunctionScope scope("nuclear_norm", location);
  Tensor result = NuclearNorm::apply(matrices);
  result = result.to(x.dtype(), location);
  if (!keepdim) return result;
  int64_t a = dim.items()[0], b = dim.items()[1];
  a = a < 0 ? a + rank : a;
  b = b < 0 ? b + rank : b;
  return result.unsqueeze(std::min(a, b), location).unsqueeze(std::max(a, b), location);
}

namespace linalg {

Tensor matrix_norm(const TensorArg& A, Word ord, const IntList& dim, bool keepdim) {
  return norm_of("linalg::matrix_norm", A, dim, keepdim, ord, 0);
}
Tensor matrix_norm(const TensorArg& A, double ord, const IntList& dim, bool keepdim) {
  return norm_of("linalg::matrix_norm", A, dim, keepdim, {}, ord);
}

Tensor norm(const TensorArg& A, std::optional<double> ord, const IntList& dim, bool keepdim) {
  const CallerLine line(A.location);
  const Tensor& x = present("linalg::norm", "A", A);
  const size_t dims = dim.present() ? dim.items().size() : static_cast<size_t>(x.dim());
  if (!ord || dims == 1) return vector_norm(x, ord.value_or(2), dim, keepdim);
  if (dims != 2)
    fail("linalg::norm", dim.present() ? "dim" : "A", std::to_string(dims) + " dims", "one or two, for an order",
         A.location);
  return norm_of("linalg::norm", A, dim.present() ? dim : IntList{-2, -1}, keepdim, {}, *ord);
}
Tensor norm(const TensorArg& A, Word ord, const IntList& dim, bool keepdim) {
  const CallerLine line(A.location);
  const Tensor& x = present("linalg::norm", "A", A);
  if (!dim.present() && x.dim() != 2)
    fail("linalg::norm", "A", shape_text(x), "two dims, unless dim names them", A.location);
  return norm_of("linalg::norm", A, dim.present() ? dim : IntList{-2, -1}, keepdim, ord, 0);
}

Tensor cond(const TensorArg& A, std::optional<double> p) {
  const CallerLine line(A.location);
  if (p && std::fabs(*p) != 2)
    return condition(A, [&](const Tensor& a) { return norm_of(kCond, a, {-2, -1}, false, {}, *p); });
  eager::wide(kCond, "A", A, false);
  const Tensor s = svdvals(A);
  const Tensor largest = s.amax(-1), least = s.amin(-1);
  return p && *p < 0 ? least / largest : largest / least;
}
Tensor cond(const TensorArg& A, Word p) {
  const CallerLine line(A.location);
  return condition(A, [&](const Tensor& a) { return norm_of(kCond, a, {-2, -1}, false, p, 0); });
}

}  // namespace linalg
}  // namespace ingot
