// Matrix products and linear.
#include "ir/decompose.h"

namespace ingot::ir {
namespace {

Operand transposed(GraphBuilder& b, const Operand& x) {
  Dims order;
  for (size_t i = 0; i < b.rank(x); ++i) order.push_back(static_cast<int64_t>(i));
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  return b.permute(x, order);
}

/// A factor in the category of what it multiplies: a floating one is truncated for integers, as in PyTorch.
Operand factor_for(GraphBuilder& b, const Operand& factor, DType dtype) {
  if (is_floating(dtype) || factor.category != Category::floating) return factor;
  if (factor.kind == Operand::Kind::constant) return GraphBuilder::integer(static_cast<int64_t>(factor.number));
  return b.scalar(factor, DType::i64);
}

/// beta * self + alpha * product. Where beta is zero, self is not read: its NaN and infinities do not count.
Operand blended(GraphBuilder& b, const CompositeCall& call, const Operand& product) {
  const Operand& self = call.operands[0];
  DType dtype = b.dtype(self);
  Operand beta = factor_for(b, call.operand("beta"), dtype);
  Operand right = b.scaled(product, factor_for(b, call.operand("alpha"), dtype));
  if (beta.kind == Operand::Kind::constant) {
    bool zero = beta.category == Category::floating ? beta.number == 0 : beta.integer == 0;
    return zero ? right : b.add(b.scaled(self, beta), right);
  }
  if (!is_floating(dtype)) return b.add(b.mul(self, beta), right);
  Operand none = b.eq(b.scalar(beta, dtype), GraphBuilder::integer(0));
  return b.add(b.where(none, b.scalar(GraphBuilder::integer(0), dtype), b.mul(self, beta)), right);
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

// Rows of all matrices side by side: one product sums over the batch too.
Outputs addbmm(GraphBuilder& b, const CompositeCall& call) {
  const Operand &left = call.operands[1], &right = call.operands[2];
  const Dims a = b.shape(left), c = b.shape(right);
  Dim depth = b.dims().mul(a[0], a[2]);
  Operand rows = b.reshape(b.permute(left, Dims{1, 0, 2}), {a[1], depth});
  return {blended(b, call, b.matmul(rows, b.reshape(right, {depth, c[2]})))};
}

Outputs addr(GraphBuilder& b, const CompositeCall& call) {
  CompositeCall same = call;
  DType dtype = is_half(call.result) ? DType::f32 : call.result;
  for (size_t i = 0; i < 3; ++i) same.operands[i] = b.to(call.operands[i], dtype);
  return {blended(b, same, b.mul(b.unsqueeze(same.operands[1], GraphBuilder::attr(1)), same.operands[2]))};
}

Outputs linear(GraphBuilder& b, const CompositeCall& call) {
  const Operand &weight = call.operands[1], &bias = call.operands[2];
  Operand product = b.matmul(call.operands[0], b.rank(weight) == 1 ? weight : transposed(b, weight));
  return {bias.present() ? b.add(product, bias) : product};
}

// The cast comes last, so that lowering finds it: tiles then read the int8 as it is.
Outputs linear_int8(GraphBuilder& b, const CompositeCall& call) {
  const Operand &x = call.operands[0], &scale = call.operand("weight_scale"), &bias = call.operand("bias");
  const DType dtype = b.dtype(x);
  Operand y = b.mul(b.matmul(x, b.to(transposed(b, call.operands[1]), dtype)), b.to(scale, dtype));
  return {bias.present() ? b.add(y, bias) : y};
}

}  // namespace decompositions
}  // namespace ingot::ir
