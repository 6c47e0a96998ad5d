#include "eager/ops/products.h"

#include <limits>
#include <vector>

#include "base/function_scope.h"
#include "eager/ops/checks.h"
#include "eager/ops/linalg.h"
#include "eager/ops/shapes.h"

namespace ingot {
namespace {

using eager::dtype_text;
using eager::fail;
using eager::present;
using eager::shape_text;

Tensor cross_along(const char* op, const TensorArg& self, const TensorArg& other, int64_t dim) {
  const Tensor &a = present(op, "self", self), &b = present(op, "other", other);
  if (a.dim() != b.dim())
    fail(op, "other", shape_text(b), std::to_string(a.dim()) + " dims, as self has", self.location);
  const int64_t d = eager::wrapped_dim(op, "dim", dim, a.dim(), self.location);
  for (const Tensor* t : {&a, &b})
    if (t->dim() == 0 || t->size(d) != 3)
      fail(op, t == &a ? "self" : "other", shape_text(*t), "size 3 in dim " + std::to_string(d), self.location);
  return a.roll(-1, d) * b.roll(-2, d) - a.roll(-2, d) * b.roll(-1, d);
}

/// Powers 0 to count - 1 along a new last dim.
Tensor powers_of(const Tensor& x, int64_t count) {
  const Tensor column = (is_floating(x.dtype()) ? x : x.to(kInt64)).unsqueeze(-1);
  if (count == 0) return column.slice(-1, 0, 0).clone();
  IntList shape{};
  for (int64_t d = 0; d < x.dim(); ++d) shape.add(x.size(d));
  shape.add(count - 1);
  return cat({ones_like(column), column.expand(shape).cumprod(-1)}, -1);
}

/// The product of matrices [first, last] in the order that takes the fewest multiplications: the dynamic programme of
/// Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, chapter "Dynamic Programming".
Tensor product_of(const std::vector<Tensor>& matrices) {
  const size_t n = matrices.size();
  std::vector<double> sizes{static_cast<double>(int64_t{matrices[0].size(0)})};
  for (const Tensor& m : matrices) sizes.push_back(static_cast<double>(int64_t{m.size(1)}));
  std::vector<double> cost(n * n, 0);
  std::vector<size_t> cut(n * n, 0);
  for (size_t length = 1; length < n; ++length)
    for (size_t first = 0, last = length; last < n; ++first, ++last) {
      double& least = cost[first * n + last] = std::numeric_limits<double>::infinity();
      for (size_t k = first; k < last; ++k) {
        const double whole =
            cost[first * n + k] + cost[(k + 1) * n + last] + sizes[first] * sizes[k + 1] * sizes[last + 1];
        if (whole < least) least = whole, cut[first * n + last] = k;
      }
    }
  const auto multiply = [&](auto& self, size_t first, size_t last) -> Tensor {
    if (first == last) return matrices[first];
    const size_t k = cut[first * n + last];
    return matmul(self(self, first, k), self(self, k + 1, last));
  };
  return multiply(multiply, 0, n - 1);
}

Tensor multiply_all(const char* op, const TensorList& list, bool with_vectors) {
  std::vector<Tensor> matrices;
  bool row = false, column = false;
  for (size_t i = 0; i < list.size; ++i) {
    const std::string name = "tensors[" + std::to_string(i) + "]";
    Tensor t = present(op, name, {list.data[i], list.location});
    const bool first = i == 0, last = i + 1 == list.size, vector = t.dim() == 1 && with_vectors && (first || last);
    if (t.dim() != 2 && !vector)
      fail(op, name, shape_text(t), with_vectors && (first || last) ? "one or two dims" : "two dims", list.location);
    if (vector) {
      (first ? row : column) = true;
      t = t.unsqueeze(first ? 0 : 1);
    }
    if (!first && matrices.back().size(1) != t.size(0))
      fail(op, name, shape_text(list.data[i]),
           "size " + std::to_string(matrices.back().size(1)) + " in its first dim, as the last of the one before",
           list.location);
    matrices.push_back(t);
  }
  Tensor result = product_of(matrices);
  if (row) result = result.squeeze(0);
  return column ? result.squeeze(-1) : result;
}

Tensor power_of(const char* op, const TensorArg& self, int64_t n) {
  const FunctionScope scope(op, self.location);
  const Tensor& x = present(op, "self", self);
  if (x.dim() < 2 || x.size(-2) != x.size(-1))
    fail(op, "self", shape_text(x), "square matrices in the last two dims", self.location);
  if (n == 0) return x.clone().copy_(eye(x.size(-1), {}, x.dtype()));  // with a gradient of zeros
  Tensor square = n < 0 ? linalg::inv(x) : x, result;
  for (uint64_t left = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n);;) {
    if (left & 1) result = result.defined() ? matmul(result, square) : square;
    if (!(left >>= 1)) break;
    square = matmul(square, square);
  }
  return result.is_same(x) ? x.clone() : result;
}

}  // namespace

Tensor kron(const TensorArg& self, const TensorArg& other) {
  const FunctionScope scope("kron", self.location);
  const Tensor &a = present("kron", "self", self), &b = present("kron", "other", other);
  const int64_t rank = std::max(a.dim(), b.dim());
  if (rank == 0) return a * b;
  IntList spread_a{}, spread_b{}, joined{};
  for (int64_t d = 0; d < rank; ++d) {
    const auto size = [&](const Tensor& x) {
      const int64_t own = d - (rank - x.dim());
      return own < 0 ? Size::of(1) : x.size(own);
    };
    const Size m = size(a), n = size(b);
    spread_a.add(m), spread_a.add(1);
    spread_b.add(1), spread_b.add(n);
    joined.add(m * n);
  }
  return mul(a.reshape(spread_a), b.reshape(spread_b)).view(joined);
}

Tensor cross(const TensorArg& self, const TensorArg& other, std::optional<int64_t> dim) {
  const FunctionScope scope("cross", self.location);
  const Tensor& x = present("cross", "self", self);
  for (int64_t d = 0; d < x.dim() && !dim; ++d)
    if (x.size(d) == 3) dim = d;
  if (!dim) fail("cross", "self", shape_text(x), "a dim of size 3", self.location);
  return cross_along("cross", self, other, *dim);
}

Tensor chain_matmul(const TensorList& matrices) {
  const FunctionScope scope("chain_matmul", matrices.location);
  if (matrices.size == 0) fail("chain_matmul", "matrices", "an empty list", "at least one", matrices.location);
  return multiply_all("chain_matmul", matrices, false);
}

Tensor matrix_power(const TensorArg& self, int64_t n) { return power_of("matrix_power", self, n); }

Tensor vander(const TensorArg& x, std::optional<int64_t> N, bool increasing) {
  const FunctionScope scope("vander", x.location);
  const Tensor& given = eager::present_with_dims("vander", "x", x, 1);
  if (N && *N < 0) fail("vander", "N", std::to_string(*N), "no negative number", x.location);
  const Tensor powers = powers_of(given, N.value_or(given.size(0)));
  return increasing ? powers : powers.flip(-1);
}

Tensor dist(const TensorArg& self, const TensorArg& other, double p) {
  const FunctionScope scope("dist", self.location);
  present("dist", "self", self), present("dist", "other", other);
  return norm(sub(self, other), p);
}

Tensor renorm(const TensorArg& self, double p, int64_t dim, double maxnorm) {
  const FunctionScope scope("renorm", self.location);
  const Tensor& x = eager::present_floating("renorm", "self", self);
  if (x.dim() < 2) fail("renorm", "self", shape_text(x), "at least two dims", self.location);
  if (!(p > 0)) fail("renorm", "p", std::to_string(p), "a positive number", self.location);
  if (!(maxnorm >= 0)) fail("renorm", "maxnorm", std::to_string(maxnorm), "no negative number", self.location);
  const int64_t d = eager::wrapped_dim("renorm", "dim", dim, x.dim(), self.location);
  Ints others;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (i != d) others.push_back(i);
  // The norm of 16-bit floats is that of f32.
  const Tensor norms = vector_norm(x, p, others, true, working_dtype(x.dtype()));
  const Tensor factor = where(norms > maxnorm, maxnorm / (norms + 1e-7), 1);
  return x * factor.to(x.dtype());
}

namespace linalg {

Tensor cross(const TensorArg& self, const TensorArg& other, int64_t dim) {
  const FunctionScope scope("linalg::cross", self.location);
  return cross_along("linalg::cross", self, other, dim);
}

Tensor multi_dot(const TensorList& tensors) {
  const FunctionScope scope("linalg::multi_dot", tensors.location);
  if (tensors.size < 2)
    fail("linalg::multi_dot", "tensors", std::to_string(tensors.size) + " tensors", "at least two", tensors.location);
  return multiply_all("linalg::multi_dot", tensors, true);
}

Tensor matrix_power(const TensorArg& self, int64_t n) { return power_of("linalg::matrix_power", self, n); }

Tensor vander(const TensorArg& x, std::optional<int64_t> N) {
  const FunctionScope scope("linalg::vander", x.location);
  const Tensor& given = present("linalg::vander", "x", x);
  if (given.dtype() == kBool) fail("linalg::vander", "x", dtype_text(given), "integers or floats", x.location);
  if (N && *N < 2) fail("linalg::vander", "N", std::to_string(*N), "more than 1", x.location);
  const Tensor numbers = atleast_1d(given);
  return powers_of(numbers, N.value_or(numbers.size(-1)));
}

}  // namespace linalg

Tensor Tensor::kron(const TensorArg& other, Location location) const { return ingot::kron({*this, location}, other); }
Tensor Tensor::cross(const TensorArg& other, std::optional<int64_t> dim, Location location) const {
  return ingot::cross({*this, location}, other, dim);
}
Tensor Tensor::matrix_power(int64_t n, Location location) const { return ingot::matrix_power({*this, location}, n); }
Tensor Tensor::dist(const TensorArg& other, double p, Location location) const {
  return ingot::dist({*this, location}, other, p);
}
Tensor Tensor::renorm(double p, int64_t dim, double maxnorm, Location location) const {
  return ingot::renorm({*this, location}, p, dim, maxnorm);
}
const Tensor& Tensor::renorm_(double p, int64_t dim, double maxnorm, Location location) const {
  return copy_(renorm(p, dim, maxnorm, location), location);
}
Tensor Tensor::vdot(const TensorArg& other, Location location) const { return dot(other, location); }

}  // namespace ingot
