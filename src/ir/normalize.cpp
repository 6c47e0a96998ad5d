#include "ir/normalize.h"

#include <algorithm>

#include "base/program.h"
#include "ir/decompose/convolution.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

Operand reduced(GraphBuilder& b, OpId op, Operand x, const Attr& dim, const Dims& result) {
  const Combiner combiner = *info(op).combiner;
  bool position = combiner == Combiner::argmax || combiner == Combiner::argmin;
  if ((combiner == Combiner::sum || combiner == Combiner::prod) && !is_floating(b.dtype(x))) x = b.to(x, DType::i64);
  if ((combiner == Combiner::any || combiner == Combiner::all) && b.dtype(x) != DType::bool_)
    x = b.ne(x, GraphBuilder::integer(0));

  bool all = info(op).reduces_all(dim.present(), dim.kind == Attr::Kind::list && dim.list.empty());
  // A position over all dims counts in row-major order; a zero-dim tensor has one element to reduce.
  if (b.rank(x) == 0 || (position && all)) {
    x = b.reshape(x, {b.dims().product(b.shape(x))});
    all = true;
  }
  SmallVector<bool, 8> wanted(b.rank(x), all);
  if (!all && dim.kind == Attr::Kind::integer) wanted[dim.integer] = true;
  if (!all)
    for (Dim d : dim.list) wanted[d.code] = true;

  // Innermost first; dims that are neighbours by number are one dim.
  for (size_t end = b.rank(x); end > 0;) {
    if (!wanted[end - 1]) {
      --end;
      continue;
    }
    size_t begin = end - 1;
    while (begin > 0 && wanted[begin - 1]) --begin;
    const Dims shape = b.shape(x);
    Dims merged(shape.begin(), shape.begin() + begin);
    merged.push_back(b.dims().product(std::span<const Dim>(&shape[begin], end - begin)));
    for (size_t i = end; i < shape.size(); ++i) merged.push_back(shape[i]);
    x = b.reshape(x, std::move(merged));
    int64_t at = static_cast<int64_t>(begin);
    x = b.primitive(op, {x}, {position ? Attr::of(at) : Attr::of(Dims{at}), Attr::of(false)})[0];
    end = begin;
  }
  return b.reshape(x, result);
}

/// Attention's step has one dim before the heads: a mask of a query of more, that is broadcast over some of them alone,
/// is made whole in these.
Operand mask_of_one_batch(GraphBuilder& b, const Operand& mask, const Dims& query) {
  if (!mask.present() || query.size() <= 4) return mask;
  const size_t batches = query.size() - 3, fresh = query.size() - b.rank(mask);
  const Dims given = b.shape(mask);
  size_t broadcast = 0;
  for (size_t d = 0; d < batches; ++d) broadcast += d < fresh || b.dims().is_one(given[d - fresh]);
  if (broadcast == 0 || broadcast == batches) return mask;
  Dims whole(query.begin(), query.begin() + batches);
  for (size_t d = batches; d < query.size(); ++d) whole.push_back(d < fresh ? Dim(1) : given[d - fresh]);
  return b.expand(mask, whole);
}

/// A call whose last attribute is out_dtype: of bf16, if it may be and all operands were, else of what they are.
Outputs of_bf16_or_wide(GraphBuilder& b, const CompositeCall& call, bool may) {
  std::vector<Attr> attrs = call.attrs;
  attrs.back() = {};
  std::vector<Operand> narrow = call.operands;
  auto narrows = [&](Operand& x) {
    if (!x.is_value()) return true;
    const std::optional<Operand> found = b.narrow(x);
    if (found) x = *found;
    return found.has_value();
  };
  if (!may || !std::all_of(narrow.begin(), narrow.end(), narrows))
    return b.primitive(call.op.id, call.operands, std::move(attrs));
  attrs.back() = Attr::of(DType::f32);
  return {b.primitive_of_narrow(call.op.id, std::move(narrow), std::move(attrs), call.operands)};
}

}  // namespace

namespace normal {

Outputs unchanged(GraphBuilder& b, const CompositeCall& call) {
  return b.primitive(call.op.id, call.operands, call.attrs);
}

Outputs identity(GraphBuilder&, const CompositeCall& call) { return {call.operands[0]}; }

Outputs reduction(GraphBuilder& b, const CompositeCall& call) {
  return {reduced(b, call.op.id, call.operands[0], call.attrs[0], call.shape)};
}

Outputs matmul(GraphBuilder& b, const CompositeCall& call) {
  Operand self = call.operands[0], other = call.operands[1];
  const Dims& result = call.shape;
  const DType dtype = b.dtype(self);
  // Sums of integers are integers of 64 bits: what the result keeps of them is what its own would be.
  auto summed = [&](const Operand& products, int64_t from_end) {
    const Attr depth = Attr::of(Dims{static_cast<int64_t>(b.rank(products)) - from_end});
    return Outputs{b.to(reduced(b, OpId::sum, products, depth, result), dtype)};
  };
  // With a vector no element is used twice: a sum of products is bound by reading alone, and threads share it.
  if (b.rank(self) == 1 || b.rank(other) == 1) {
    const bool left = b.rank(other) > 1;
    return summed(b.mul(left ? b.unsqueeze(self, GraphBuilder::attr(1)) : self, other), left ? 2 : 1);
  }
  // So with one column; and with one product an element.
  Dims turned = b.shape(other);
  if (b.dims().is_one(turned.back())) {
    std::swap(turned.back(), turned[turned.size() - 2]);
    return summed(b.mul(self, b.reshape(other, std::move(turned))), 1);
  }
  if (b.dims().is_one(b.shape(self).back())) return {b.reshape(b.mul(self, other), result)};
  // There are no tiles of integers; the order of their sums is free: rows of the right side, each times a number.
  if (!is_floating(dtype)) {
    const auto rank = static_cast<int64_t>(b.rank(other));
    return summed(b.mul(b.unsqueeze(self, GraphBuilder::attr(static_cast<int64_t>(b.rank(self)))),
                        b.unsqueeze(other, GraphBuilder::attr(rank - 2))),
                  2);
  }
  if (b.rank(self) > 2 && b.rank(other) == 2) {
    const Dims& shape = b.shape(self);
    Dim rows = b.dims().product(std::span<const Dim>(shape.data(), shape.size() - 1));
    self = b.reshape(self, {rows, shape.back()});
  }
  // Products of bf16 are exact in f32, and there are instructions for their sums: a product of bf16 reads its operands
  // as they were before they were widened.
  std::optional<Operand> left = b.narrow(self), right = b.narrow(other);
  if (left && right)
    return {
        b.reshape(b.primitive_of_narrow(OpId::matmul, {*left, *right}, {Attr::of(DType::f32)}, {self, other}), result)};
  return {b.reshape(b.primitive(OpId::matmul, {self, other}, {Attr()})[0], result)};
}

// Where each channel is a group, there are no two products to a sum.
Outputs conv2d(GraphBuilder& b, const CompositeCall& call) {
  if (!is_floating(call.result)) return {convolution_as_product(b, call)};
  return of_bf16_or_wide(b, call, b.convolves_bf16() && !b.dims().is_one(b.shape(call.operands[1])[1]));
}

// Where each channel is a group, tiles multiply channels by channels.
Outputs conv2d_weight_backward(GraphBuilder& b, const CompositeCall& call) {
  const Dim channels = b.shape(call.operands[0])[1], groups = call.attribute("groups").integer;
  return of_bf16_or_wide(b, call, b.convolves_bf16() && !b.dims().equal(channels, groups));
}

Outputs scaled_dot_product_attention_backward(GraphBuilder& b, const CompositeCall& call) {
  std::vector<Operand> operands = call.operands;
  operands[3] = mask_of_one_batch(b, operands[3], b.shape(operands[0]));
  return b.primitive(call.op.id, std::move(operands), call.attrs);
}

Outputs scaled_dot_product_attention(GraphBuilder& b, const CompositeCall& call) {
  std::vector<Operand> operands = call.operands;
  // Heads of key and value may be fewer than those of the query where they are shared; what lies before them
  // broadcasts.
  bool shared = call.flag("enable_gqa");
  size_t own = shared ? 3 : 2;
  std::vector<TensorType> none;
  RuleContext context{call.op.id, {}, {}, b.dims(), Location::none(), none};
  Dims batch;
  for (size_t i = 0; i < 3; ++i)
    broadcast_into(context, call.op.operand(static_cast<int>(i)).name, batch,
                   std::span<const Dim>(b.shape(operands[i]).data(), b.rank(operands[i]) - own));
  for (size_t i = 0; i < 3; ++i) {
    Dims whole = batch;
    for (size_t d = b.rank(operands[i]) - own; d < b.rank(operands[i]); ++d) whole.push_back(b.shape(operands[i])[d]);
    if (!(whole == b.shape(operands[i]))) operands[i] = b.expand(operands[i], whole);
  }
  // As many heads of the value as of the key: both as many as the query has.
  auto heads = [&](int i) { return b.shape(operands[i])[batch.size()]; };
  if (shared && !b.dims().equal(heads(1), heads(2)))
    for (int i : {1, 2}) {
      Dims shape = b.shape(operands[i]), each = shape;
      each.insert(batch.size() + 1, b.dims().floor_div(heads(0), heads(i)));
      shape[batch.size()] = heads(0);
      Operand groups = b.unsqueeze(operands[i], GraphBuilder::attr(static_cast<int64_t>(batch.size()) + 1));
      operands[i] = b.reshape(b.expand(groups, each), shape);
    }
  operands[3] = mask_of_one_batch(b, operands[3], b.shape(operands[0]));
  return b.primitive(call.op.id, std::move(operands), call.attrs);
}

Outputs cat(GraphBuilder& b, const CompositeCall& call) {
  std::vector<Operand> joined;
  for (const Operand& x : call.operands)
    if (!passed_over(b.shape(x))) joined.push_back(b.to(x, call.result));
  if (joined.empty()) joined.push_back(b.to(call.operands[0], call.result));
  if (joined.size() == 1) return joined;
  return b.primitive(OpId::cat, std::move(joined), call.attrs);
}

Outputs scatter_reduce(GraphBuilder& b, const CompositeCall& call) {
  const Dims index = b.shape(call.operands[1]);
  if (std::count(index.begin(), index.end(), Dim(0))) return {call.operands[0]};
  return unchanged(b, call);
}

Outputs scatter(GraphBuilder& b, const CompositeCall& call) {
  const std::vector<Attr>& attrs = call.attrs;
  const Operand &self = call.operands[0], index = b.to(call.operands[1], DType::i64);
  const Dims shape = b.shape(index);
  if (std::count(shape.begin(), shape.end(), Dim(0))) return {self};
  Operand src = call.operands[2];
  if (!src.is_value()) src = b.expand(b.scalar(src, b.dtype(self)), shape);
  enum { kNone, kAdd, kMultiply };
  enum { kSum, kProd };
  if (attrs[1].integer == kNone) return b.primitive(OpId::scatter, {self, index, src}, attrs);
  Attr reduce = Attr::mode(attrs[1].integer == kAdd ? kSum : kProd);
  return {b.scatter_reduce(self, attrs[0], index, src, reduce, GraphBuilder::flag(true))};
}

Outputs searchsorted(GraphBuilder& b, const CompositeCall& call) {
  std::vector<Operand> operands = call.operands;
  Operand &sequence = operands[0], &value = operands[1];
  if (!value.is_value()) {
    // A fraction among integers: both as doubles.
    if (value.category == Category::floating && !is_floating(b.dtype(sequence))) sequence = b.to(sequence, DType::f64);
    value = b.scalar(value, b.dtype(sequence));
  } else if (b.dtype(value) != b.dtype(sequence)) {
    const DType common = promote(b.dtype(sequence), b.dtype(value));
    sequence = b.to(sequence, common), value = b.to(value, common);
  }
  return b.primitive(OpId::searchsorted, std::move(operands), call.attrs);
}

Outputs nonzero_static(GraphBuilder& b, const CompositeCall& call) {
  Operand self = call.operands[0];
  if (b.dtype(self) != DType::bool_) self = b.ne(self, GraphBuilder::integer(0));
  return b.primitive(OpId::nonzero_static, {self}, call.attrs);
}

Outputs lookup(GraphBuilder& b, const CompositeCall& call) {
  Operand self = call.operands[0], index = call.operands[1];
  if (b.rank(self) == 0) self = b.unsqueeze(self, GraphBuilder::attr(0));
  if (b.rank(index) == 0) index = b.unsqueeze(index, GraphBuilder::attr(0));
  return {b.reshape(b.primitive(call.op.id, {self, index}, call.attrs)[0], call.shape)};
}

}  // namespace normal

}  // namespace ingot::ir
