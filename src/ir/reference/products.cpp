// Matrix products, each element in extended precision (integers modulo 2^64).
#include <algorithm>
#include <optional>

#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

/// An element of a product before it is rounded.
struct Sum {
  long double real = 0;
  int64_t whole = 0;
};

Sum dot_of(const ReferenceTensor& a, int64_t at, int64_t a_step, const ReferenceTensor& b, int64_t bt, int64_t b_step,
           int64_t n) {
  Sum sum;
  for (int64_t k = 0; k < n; ++k, at += a_step, bt += b_step) {
    if (a.floating())
      sum.real += static_cast<long double>(a.real[at]) * b.real[bt];
    else
      sum.whole = plus(sum.whole, times(a.integer[at], b.integer[bt]));
  }
  return sum;
}

/// Every element of a product of (batches of) matrices; a vector on the left is a row, on the right a column.
/// f(position in the result, sum).
template <class F>
void product_of(const ReferenceTensor& a, const ReferenceTensor& b, const Ints& result, F f) {
  bool row = a.shape.size() == 1, column = b.shape.size() == 1;
  int64_t depth = a.shape.back();
  int64_t m = row ? 1 : a.shape[a.shape.size() - 2], n = column ? 1 : b.shape.back();
  Ints batch = result, a_batch = a.shape, b_batch = b.shape;
  batch.resize(batch.size() - !row - !column);
  a_batch.resize(a_batch.size() - (row ? 1 : 2));
  b_batch.resize(b_batch.size() - (column ? 1 : 2));
  std::vector<int64_t> a_at = broadcast_positions(a_batch, batch), b_at = broadcast_positions(b_batch, batch);
  int64_t at = 0;
  for (size_t g = 0; g < a_at.size(); ++g)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        f(at++, dot_of(a, (a_at[g] * m + i) * depth, 1, b, b_at[g] * depth * n + j, n, depth));
}

void put_sum(ReferenceTensor& out, int64_t i, const Sum& sum) {
  if (out.floating())
    out.real[i] = static_cast<double>(sum.real);
  else
    out.integer[i] = sum.whole;
}

void plain_product(ReferenceContext& c, std::string_view a, std::string_view b) {
  product_of(c.tensor(a), c.tensor(b), c.out().shape, [&](int64_t i, const Sum& sum) { put_sum(c.out(), i, sum); });
}

/// beta * self + alpha * sum(element); with beta 0 self is not looked at.
template <class F>
void blend(ReferenceContext& c, F sum_at) {
  ReferenceTensor& out = c.out();
  double beta = c.number("beta", out.floating() ? out.dtype : DType::f64);
  double alpha = c.number("alpha", out.floating() ? out.dtype : DType::f64);
  int64_t whole_beta = saturate_to(DType::i64, beta), whole_alpha = saturate_to(DType::i64, alpha);
  Reader self(c, c.argument("self"), out.shape, out.dtype);
  for (int64_t i = 0; i < out.size(); ++i) {
    Sum sum = sum_at(i);
    if (out.floating())
      out.real[i] =
          static_cast<double>(alpha * sum.real + (beta == 0 ? 0 : static_cast<long double>(beta) * self.real(i)));
    else
      out.integer[i] = plus(times(whole_alpha, sum.whole), times(whole_beta, self.integer(i)));
  }
}

void added_product(ReferenceContext& c, std::string_view a, std::string_view b) {
  std::vector<Sum> sums(c.out().size());
  product_of(c.tensor(a), c.tensor(b), c.out().shape, [&](int64_t i, const Sum& sum) { sums[i] = sum; });
  blend(c, [&](int64_t i) { return sums[i]; });
}

}  // namespace

void matmul(ReferenceContext& c) { plain_product(c, "self", "other"); }
void mm(ReferenceContext& c) { plain_product(c, "self", "mat2"); }
void bmm(ReferenceContext& c) { plain_product(c, "self", "mat2"); }
void mv(ReferenceContext& c) { plain_product(c, "self", "vec"); }
void dot(ReferenceContext& c) { plain_product(c, "self", "tensor"); }
void addmm(ReferenceContext& c) { added_product(c, "mat1", "mat2"); }
void addmv(ReferenceContext& c) { added_product(c, "mat", "vec"); }
void baddbmm(ReferenceContext& c) { added_product(c, "batch1", "batch2"); }

void addbmm(ReferenceContext& c) {
  const ReferenceTensor &a = c.tensor("batch1"), &b = c.tensor("batch2");
  int64_t batch = a.shape[0], rows = a.shape[1], depth = a.shape[2], columns = b.shape[2];
  blend(c, [&](int64_t i) {
    Sum sum;
    for (int64_t g = 0; g < batch; ++g) {
      Sum part = dot_of(a, (g * rows + i / columns) * depth, 1, b, g * depth * columns + i % columns, columns, depth);
      sum.real += part.real;
      sum.whole = plus(sum.whole, part.whole);
    }
    return sum;
  });
}

/// On bools: or, with products as conditions.
void addr(ReferenceContext& c) {
  DType dtype = c.out().dtype;
  const ReferenceTensor a = cast_to(c, c.tensor("vec1"), dtype), b = cast_to(c, c.tensor("vec2"), dtype);
  blend(c, [&](int64_t i) { return dot_of(a, i / b.size(), 0, b, i % b.size(), 0, 1); });
}

void outer(ReferenceContext& c) {
  const ReferenceTensor a = cast_to(c, c.tensor("self"), c.out().dtype),
                        b = cast_to(c, c.tensor("vec2"), c.out().dtype);
  for (int64_t i = 0; i < a.size(); ++i)
    for (int64_t j = 0; j < b.size(); ++j) put_sum(c.out(), i * b.size() + j, dot_of(a, i, 0, b, j, 0, 1));
}

/// input times the transposed weight (out features by in features), plus bias.
void linear(ReferenceContext& c) {
  const ReferenceTensor &x = c.tensor("input"), &weight = c.tensor("weight");
  std::optional<Reader> bias;
  if (c.has("bias")) bias.emplace(c, c.argument("bias"), c.out().shape, c.out().dtype);
  int64_t depth = x.shape.back(), features = weight.shape.size() == 1 ? 1 : weight.shape[0];
  for (int64_t i = 0; i < c.out().size(); ++i) {
    int64_t row = i / features, feature = i % features;
    Sum sum = dot_of(x, row * depth, 1, weight, feature * depth, 1, depth);
    if (bias) {
      if (c.out().floating())
        sum.real += bias->real(i);
      else
        sum.whole = plus(sum.whole, bias->integer(i));
    }
    put_sum(c.out(), i, sum);
  }
}

void linear_int8(ReferenceContext& c) {
  const ReferenceTensor &x = c.tensor("input"), &weight = c.tensor("weight"), &scale = c.tensor("weight_scale");
  std::optional<Reader> bias;
  if (c.has("bias")) bias.emplace(c, c.argument("bias"), c.out().shape, c.out().dtype);
  const int64_t depth = weight.shape[1], features = weight.shape[0];
  for (int64_t i = 0; i < c.out().size(); ++i) {
    const int64_t row = i / features, feature = i % features;
    long double sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += static_cast<long double>(x.real[row * depth + k]) *
             static_cast<long double>(weight.integer[feature * depth + k]);
    put_sum(c.out(), i, Sum{sum * scale.real[feature] + (bias ? bias->real(i) : 0)});
  }
}

}  // namespace ingot::ir::reference
