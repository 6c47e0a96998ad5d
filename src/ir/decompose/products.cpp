// Matrix products, linear, attention.
#include <cmath>
#include <limits>

#include "ir/decompose.h"

namespace ingot::ir {
namespace {

Operand transposed(GraphBuilder& b, const Operand& x) {
  Dims order;
  for (size_t i = 0; i < b.rank(x); ++i) order.push_back(static_cast<int64_t>(i));
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  return b.permute(x, order);
}

/// beta * self + alpha * product. Where beta is zero, self is not read: its NaN and infinities do not count.
Operand blended(GraphBuilder& b, const CompositeCall& call, const Operand& product) {
  const Operand &self = call.operands[0], &beta = call.operand("beta");
  Operand right = b.scaled(product, call.operand("alpha"));
  if (beta.kind == Operand::Kind::constant) {
    bool zero = beta.category == Category::floating ? beta.number == 0 : beta.integer == 0;
    return zero ? right : b.add(b.scaled(self, beta), right);
  }
  Operand none =
      b.eq(b.scalar(beta, is_floating(b.dtype(self)) ? b.dtype(self) : DType::i64), GraphBuilder::integer(0));
  return b.add(b.where(none, b.scalar(GraphBuilder::integer(0), b.dtype(self)), b.mul(self, beta)), right);
}

/// What attention divides scores by: the given scale, or one over the root of the last size.
Operand scores_scaled(GraphBuilder& b, const Operand& scores, const Operand& scale, Dim size) {
  if (scale.present()) return b.mul(scores, scale);
  if (size.is_constant()) return b.mul(scores, 1 / std::sqrt(static_cast<double>(size.code)));
  return b.mul(scores, b.rsqrt(b.scalar(Operand::size(size), b.dtype(scores))));
}

/// softmax over the last dim; a row without any finite score gives zeros.
Operand masked_softmax(GraphBuilder& b, const Operand& x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Dims dims{static_cast<int64_t>(b.rank(x)) - 1};
  Operand top = b.reduce_dims(OpId::amax, x, dims, true);
  Operand e = b.exp(b.sub(x, b.where(b.eq(top, -infinity), 0.0, top)));
  Operand sum = b.reduce_dims(OpId::sum, e, dims, true);
  return b.mul(e, b.where(b.eq(sum, 0.0), 0.0, b.reciprocal(sum)));
}

}  // namespace

namespace decompositions {

Outputs mm(GraphBuilder& b, const CompositeCall& call) { return {b.matmul(call.operands[0], call.operands[1])}; }
Outputs bmm(GraphBuilder& b, const CompositeCall& call) { return {b.matmul(call.operands[0], call.operands[1])}; }
Outputs mv(GraphBuilder& b, const CompositeCall& call) { return {b.matmul(call.operands[0], call.operands[1])}; }
Outputs dot(GraphBuilder& b, const CompositeCall& call) { return {b.matmul(call.operands[0], call.operands[1])}; }

Outputs outer(GraphBuilder& b, const CompositeCall& call) {
  return {b.mul(b.unsqueeze(call.operands[0], GraphBuilder::attr(1)), call.operands[1])};
}

Outputs addmm(GraphBuilder& b, const CompositeCall& call) {
  return {blended(b, call, b.matmul(call.operands[1], call.operands[2]))};
}
Outputs addmv(GraphBuilder& b, const CompositeCall& call) { return addmm(b, call); }
Outputs baddbmm(GraphBuilder& b, const CompositeCall& call) { return addmm(b, call); }

Outputs linear(GraphBuilder& b, const CompositeCall& call) {
  const Operand &weight = call.operands[1], &bias = call.operands[2];
  Operand product = b.matmul(call.operands[0], b.rank(weight) == 1 ? weight : transposed(b, weight));
  return {bias.present() ? b.add(product, bias) : product};
}

Outputs scaled_dot_product_attention(GraphBuilder& b, const CompositeCall& call) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Operand query = call.operands[0], key = call.operands[1], value = call.operands[2], mask = call.operand("attn_mask");
  const Dims given = b.shape(query);
  Dim length = given[given.size() - 2], positions = b.shape(key)[b.rank(key) - 2], width = b.shape(value).back();
  // Heads that share a key are rows of one product.
  Dims shared;
  if (call.flag("enable_gqa")) {
    shared = given;
    Dim heads = b.shape(key)[b.rank(key) - 3];
    Dim repeats = b.dims().floor_div(given[given.size() - 3], heads);
    shared[shared.size() - 3] = heads;
    shared[shared.size() - 2] = b.dims().mul(repeats, length);
    query = b.reshape(query, shared);
  }
  Operand scores = scores_scaled(b, b.matmul(query, transposed(b, key)), call.operand("scale"), given.back());
  const Dims together = b.shape(scores);
  if (!shared.empty()) {
    Dims apart(given.begin(), given.end() - 1);
    apart.push_back(positions);
    scores = b.reshape(scores, apart);
  }
  if (call.flag("is_causal")) {
    auto range = [&](Dim n) {
      return b.arange(GraphBuilder::integer(0), GraphBuilder::integer(1), Dims{n}, DType::i64);
    };
    Operand visible = b.le(range(positions), b.unsqueeze(range(length), GraphBuilder::attr(1)));
    scores = b.where(visible, scores, -infinity);
  } else if (mask.present()) {
    scores = b.dtype(mask) == DType::bool_ ? b.where(mask, scores, -infinity) : b.add(scores, mask);
  }
  Operand weights = mask.present() ? masked_softmax(b, scores)
                                   : b.softmax(scores, GraphBuilder::attr(static_cast<int64_t>(b.rank(scores)) - 1));
  Operand result = b.matmul(b.reshape(weights, together), value);
  if (shared.empty()) return {result};
  Dims apart(given.begin(), given.end() - 1);
  apart.push_back(width);
  return {b.reshape(result, apart)};
}

}  // namespace decompositions
}  // namespace ingot::ir
