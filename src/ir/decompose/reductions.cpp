// Means, variances, norms, softmax: reductions with arithmetic around them.
#include <algorithm>
#include <cmath>

#include "ir/decompose.h"
#include "ir/rules/rules.h"

namespace ingot::ir {

Dims reduced_dims(size_t rank, const Attr& dim) {
  if (dim.kind == Attr::Kind::integer) return {dim.integer};
  if (!dim.list.empty()) return dim.list;
  Dims all;
  for (size_t i = 0; i < rank; ++i) all.push_back(static_cast<int64_t>(i));
  return all;
}

Operand joined(GraphBuilder& b, const Operand& x, Dims& dims) {
  const Dims from = b.shape(x);
  auto is_reduced = [&](size_t d) {
    return std::find(dims.begin(), dims.end(), Dim(static_cast<int64_t>(d))) != dims.end();
  };
  if (dims.size() == from.size()) return x;
  Dims shape, left;
  for (size_t d = 0; d < from.size(); ++d) {
    if (d > 0 && is_reduced(d) && is_reduced(d - 1)) {
      shape.back() = b.dims().mul(shape.back(), from[d]);
      continue;
    }
    if (is_reduced(d)) left.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(from[d]);
  }
  if (shape.size() == from.size()) return x;
  dims = left;
  return b.reshape(x, shape);
}

Dim element_count(DimTable& table, const Dims& shape, const Dims& dims) {
  Dim n = 1;
  if (!shape.empty())
    for (Dim d : dims) n = table.mul(n, shape[static_cast<size_t>(d.code)]);
  return n;
}

namespace {

Dims dims_reduced(GraphBuilder& b, const Operand& x, const Attr& dim) { return reduced_dims(b.rank(x), dim); }

Dim count(GraphBuilder& b, const Operand& x, const Dims& dims) { return element_count(b.dims(), b.shape(x), dims); }

Operand mean_over(GraphBuilder& b, const Operand& x, const Dims& dims, bool keepdim) {
  return b.div(b.reduce_dims(OpId::sum, x, dims, keepdim), GraphBuilder::divisor(count(b, x, dims)));
}

/// sum / max(n - correction, 0) of squared differences from the mean (two passes). Of nothing: NaN.
Operand variance(GraphBuilder& b, const Operand& given, const Dims& over, double correction, bool keepdim) {
  Dims dims = over;
  const Operand x = keepdim ? given : joined(b, given, dims);
  Operand centered = b.sub(x, mean_over(b, x, dims, true));
  Operand squares = b.reduce_dims(OpId::sum, b.mul(centered, centered), dims, keepdim);
  Dim n = count(b, x, dims);
  if (n.is_constant())
    return b.div(squares, n == Dim(0) ? 0.0 : std::max(static_cast<double>(n.code) - correction, 0.0));
  Operand freedom = b.sub(b.scalar(Operand::size(n), b.dtype(x)), correction);
  return b.div(squares, b.clamp_min(freedom, 0.0));
}

/// x - max, finite where all of x is infinite.
Operand shift_of(GraphBuilder& b, const Operand& x, const Dims& dims) {
  Operand top = b.reduce_dims(OpId::amax, x, dims, true);
  return b.where(b.isinf(top), 0.0, top);
}

Operand norm_of(GraphBuilder& b, const Operand& x, double p, const Dims& dims, bool keepdim) {
  auto sum = [&](const Operand& y) { return b.reduce_dims(OpId::sum, y, dims, keepdim); };
  if (p == 2) return b.sqrt(sum(b.mul(x, x)));
  if (p == 1) return sum(b.abs(x));
  if (p == 0) return sum(b.cast(b.ne(x, 0.0), b.dtype(x)));
  if (std::isinf(p) && count(b, x, dims) == Dim(0)) return sum(b.abs(x));
  if (std::isinf(p)) return b.reduce_dims(p > 0 ? OpId::amax : OpId::amin, b.abs(x), dims, keepdim);
  return b.pow(sum(b.pow(b.abs(x), p)), 1 / p);
}

/// The same as a call, whose derivative is zero where the norm is.
Operand norm_call(GraphBuilder& b, const Operand& x, double p, const Dims& dims, bool keepdim) {
  if (std::isinf(p) && count(b, x, dims) == Dim(0)) return norm_of(b, x, p, dims, keepdim);  // refused as a call
  return b.vector_norm(x, Attr::number(p), Attr::of(dims), GraphBuilder::flag(keepdim));
}

/// x with 0 for NaN.
Operand numbers(GraphBuilder& b, const Operand& x) { return is_floating(b.dtype(x)) ? b.where(b.isnan(x), 0.0, x) : x; }

/// The operands of a comparison broadcast together.
std::pair<Operand, Operand> together(GraphBuilder& b, const Operand& x, const Operand& y) {
  std::vector<TensorType> none;
  RuleContext context{OpId::cosine_similarity, {}, {}, b.dims(), Location::none(), none};
  Dims shape = b.shape(x);
  broadcast_into(context, "x2", shape, b.shape(y));
  auto expanded = [&](const Operand& v) { return b.shape(v) == shape ? v : b.expand(v, shape); };
  return {expanded(x), expanded(y)};
}

/// The dim of a call whose operands, broadcast together, are like x; none where they have none.
Dims dim_of_both(GraphBuilder& b, const Operand& x, const CompositeCall& call) {
  const int64_t dim = call.integer("dim"), rank = static_cast<int64_t>(b.rank(x));
  Dims dims;
  if (rank > 0) dims.push_back(dim < 0 ? dim + rank : dim);
  return dims;
}

/// x with an order: false and true as numbers.
Operand ordered(GraphBuilder& b, const Operand& x) { return b.dtype(x) == DType::bool_ ? b.to(x, DType::u8) : x; }

}  // namespace

namespace decompositions {

Outputs mean(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  return {mean_over(b, x, dims_reduced(b, x, call.attribute("dim")), call.flag("keepdim"))};
}

Outputs var(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  double correction = call.attribute("correction").as_number();
  return {variance(b, x, dims_reduced(b, x, call.attribute("dim")), correction, call.flag("keepdim"))};
}

// In double: the variance may overflow or vanish where its root does not.
Outputs std(GraphBuilder& b, const CompositeCall& call) {
  CompositeCall wide = call;
  wide.operands[0] = b.to(call.operands[0], DType::f64);
  return {b.sqrt(var(b, wide)[0])};
}

Outputs max(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  return {b.amax(x, Dims{call.integer("dim")}, call.attribute("keepdim")),
          b.argmax(ordered(b, x), call.attribute("dim"), call.attribute("keepdim"))};
}

Outputs min(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  return {b.amin(x, Dims{call.integer("dim")}, call.attribute("keepdim")),
          b.argmin(ordered(b, x), call.attribute("dim"), call.attribute("keepdim"))};
}

Outputs aminmax(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  Dims dims = dims_reduced(b, x, call.attribute("dim"));
  bool keepdim = call.flag("keepdim");
  return {b.reduce_dims(OpId::amin, x, dims, keepdim), b.reduce_dims(OpId::amax, x, dims, keepdim)};
}

Outputs nansum(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  return {b.reduce_dims(OpId::sum, numbers(b, x), dims_reduced(b, x, call.attribute("dim")), call.flag("keepdim"))};
}

Outputs nanmean(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  Dims dims = dims_reduced(b, x, call.attribute("dim"));
  bool keepdim = call.flag("keepdim");
  Operand counted = b.cast(b.logical_not(b.isnan(x)), b.dtype(x));
  return {
      b.div(b.reduce_dims(OpId::sum, numbers(b, x), dims, keepdim), b.reduce_dims(OpId::sum, counted, dims, keepdim))};
}

Outputs count_nonzero(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  return {
      b.reduce_dims(OpId::sum, b.ne(x, GraphBuilder::integer(0)), dims_reduced(b, x, call.attribute("dim")), false)};
}

Outputs var_mean(GraphBuilder& b, const CompositeCall& call) {
  return {b.call(OpId::var, call.operands, call.attrs)[0], mean(b, call)[0]};
}
Outputs std_mean(GraphBuilder& b, const CompositeCall& call) {
  return {b.call(OpId::std, call.operands, call.attrs)[0], mean(b, call)[0]};
}

Outputs logsumexp(GraphBuilder& b, const CompositeCall& call) {
  Operand x = is_floating(b.dtype(call.operands[0])) ? call.operands[0] : b.to(call.operands[0], DType::f32);
  Dims dims = dims_reduced(b, x, call.attribute("dim"));
  bool keepdim = call.flag("keepdim");
  if (count(b, x, dims) == Dim(0)) return {b.log(b.reduce_dims(OpId::sum, x, dims, keepdim))};
  Operand shift = shift_of(b, x, dims);
  Operand sum = b.reduce_dims(OpId::sum, b.exp(b.sub(x, shift)), dims, keepdim);
  Operand logarithm = b.log(sum);
  return {b.add(logarithm, b.reshape(shift, b.shape(logarithm)))};
}

Outputs norm(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  return {
      norm_of(b, x, call.attribute("p").as_number(), dims_reduced(b, x, call.attribute("dim")), call.flag("keepdim"))};
}

Outputs vector_norm(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  return {norm_of(b, x, call.attribute("ord").as_number(), dims_reduced(b, x, call.attribute("dim")),
                  call.flag("keepdim"))};
}

Outputs vecdot(GraphBuilder& b, const CompositeCall& call) {
  auto [x, y] = together(b, call.operands[0], call.operands[1]);
  return {b.reduce_dims(OpId::sum, b.mul(x, y), dim_of_both(b, x, call), false)};
}

Outputs cosine_similarity(GraphBuilder& b, const CompositeCall& call) {
  auto [x, y] = together(b, call.operands[0], call.operands[1]);
  const Dims dims = dim_of_both(b, x, call);
  auto length = [&](const Operand& v) { return b.clamp_min(norm_call(b, v, 2, dims, false), call.operand("eps")); };
  return {b.div(b.div(b.reduce_dims(OpId::sum, b.mul(x, y), dims, false), length(x)), length(y))};
}

Outputs cdist(GraphBuilder& b, const CompositeCall& call) {
  const Operand &x = call.operands[0], &y = call.operands[1];
  Operand apart = b.sub(b.unsqueeze(x, GraphBuilder::attr(static_cast<int64_t>(b.rank(x)) - 1)),
                        b.unsqueeze(y, GraphBuilder::attr(static_cast<int64_t>(b.rank(y)) - 2)));
  return {norm_call(b, apart, call.attribute("p").as_number(), {static_cast<int64_t>(b.rank(apart)) - 1}, false)};
}

Outputs pairwise_distance(GraphBuilder& b, const CompositeCall& call) {
  auto [x, y] = together(b, call.operands[0], call.operands[1]);
  Operand apart = b.sub(x, y);
  if (!is_floating(b.dtype(apart))) apart = b.to(apart, DType::f32);
  Dims dims;
  if (b.rank(x) > 0) dims.push_back(static_cast<int64_t>(b.rank(x)) - 1);
  return {norm_call(b, b.add(apart, call.operand("eps")), call.attribute("p").as_number(), dims, call.flag("keepdim"))};
}

// e * (1 / sum): one division a row instead of one an element; within one rounding of e / sum.
Outputs softmax(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  Dims dims{call.integer("dim")};
  if (count(b, x, dims) == Dim(0)) return {x};
  Operand e = b.exp(b.sub(x, b.reduce_dims(OpId::amax, x, dims, true)));
  return {b.mul(e, b.reciprocal(b.reduce_dims(OpId::sum, e, dims, true)))};
}

// (-x).softmax(dim, dtype): integers are negated as what they are, as in PyTorch.
Outputs softmin(GraphBuilder& b, const CompositeCall& call) {
  return {b.softmax(b.neg(call.operands[0]), call.attribute("dim"), call.attribute("dtype"))};
}

Outputs log_softmax(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  Dims dims{call.integer("dim")};
  if (count(b, x, dims) == Dim(0)) return {x};
  Operand shifted = b.sub(x, b.reduce_dims(OpId::amax, x, dims, true));
  return {b.sub(shifted, b.log(b.reduce_dims(OpId::sum, b.exp(shifted), dims, true)))};
}

}  // namespace decompositions
}  // namespace ingot::ir
