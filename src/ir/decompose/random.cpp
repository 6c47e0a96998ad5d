// Random numbers from random bits: the bits of an element depend on its position in row-major order.
#include <bit>

#include "ir/decompose.h"

namespace ingot::ir {
namespace {

constexpr double kTwoPi = 0x1.921fb54442d18p2;

struct Draws {
  GraphBuilder& b;
  Operand counter, seed, offset;

  Draws(GraphBuilder& builder, const CompositeCall& call, const Dims& shape)
      : b(builder), seed(call.operand("seed")), offset(call.operand("offset")) {
    Dims count{b.dims().product(shape)};
    counter = b.reshape(b.arange(GraphBuilder::integer(0), GraphBuilder::integer(1), count, DType::i64), shape);
  }

  Operand bits(int64_t word) { return b.random_bits(counter, seed, offset, GraphBuilder::attr(word)); }

  /// A multiple of 2^-digits in [0, 1), from the bits of `word` above the lowest `skipped`.
  Operand uniform(int64_t word, DType working, int digits, int skipped = 0) {
    Operand x = bits(word);
    if (skipped) x = b.bitwise_right_shift(x, GraphBuilder::integer(skipped));
    x = b.bitwise_and(x, GraphBuilder::integer((int64_t{1} << digits) - 1));
    if (working == DType::f32) x = b.to(x, DType::i32);
    return b.mul(b.to(x, working), std::bit_cast<double>(static_cast<int64_t>(1023 - digits) << 52));
  }
  /// As many bits as the dtype of the result holds: rounding to it must not reach 1.
  Operand uniform(DType result) {
    int digits = result == DType::f64 ? 53 : result == DType::f32 ? 24 : result == DType::f16 ? 11 : 8;
    return uniform(0, working_dtype(result), digits);
  }

  /// Box and Muller: one number of the two, so that element i depends on draw i alone.
  Operand normal(DType working) {
    int digits = working == DType::f64 ? 53 : 24;
    Operand u = uniform(0, working, digits);
    // 1 - u is in (0, 1], where the logarithm is finite.
    Operand radius = b.sqrt(b.mul(b.log(b.rsub(u, 1.0)), -2.0));
    Operand turn = working == DType::f64 ? uniform(1, working, digits) : uniform(0, working, digits, 32);
    return b.mul(radius, b.cos(b.mul(turn, kTwoPi)));
  }

  /// In [0, range): the high half of the 128-bit product of 64 bits and the range, from products of 32-bit halves.
  Operand below(const Operand& range) {
    auto low = [&](const Operand& x) { return b.bitwise_and(x, GraphBuilder::integer(0xFFFFFFFF)); };
    auto high = [&](const Operand& x) { return low(b.bitwise_right_shift(x, GraphBuilder::integer(32))); };
    Operand x = bits(0), low_range = low(range), high_range = high(range);
    Operand middle = b.add(b.mul(high(x), low_range), high(b.mul(low(x), low_range)));
    Operand other = b.add(b.mul(low(x), high_range), low(middle));
    return b.add(b.mul(high(x), high_range), b.add(high(middle), high(other)));
  }
};

}  // namespace

namespace decompositions {

Outputs rand(GraphBuilder& b, const CompositeCall& call) {
  return {Draws(b, call, call.attribute("size").list).uniform(call.result)};
}

Outputs randn(GraphBuilder& b, const CompositeCall& call) {
  return {Draws(b, call, call.attribute("size").list).normal(working_dtype(call.result))};
}

Outputs randint(GraphBuilder& b, const CompositeCall& call) {
  Operand low = b.scalar(call.operand("low"), DType::i64),
          range = b.sub(b.scalar(call.operand("high"), DType::i64), low);
  return {b.to(b.add(Draws(b, call, call.attribute("size").list).below(range), low), call.result)};
}

// The order of random keys; of 64 bits, hardly ever equal.
Outputs randperm(GraphBuilder& b, const CompositeCall& call) {
  Operand keys = Draws(b, call, call.attribute("n").list).bits(0);
  return {
      b.to(b.call(OpId::sort, {keys}, {GraphBuilder::attr(0), GraphBuilder::flag(false), GraphBuilder::flag(false)})[1],
           call.result)};
}

Outputs uniform(GraphBuilder& b, const CompositeCall& call) {
  DType working = working_dtype(call.result);
  Operand from = b.scalar(call.operand("from"), working), to = b.scalar(call.operand("to"), working);
  Operand u = Draws(b, call, b.shape(call.operands[0])).uniform(call.result);
  return {b.add(b.mul(u, b.sub(to, from)), from)};
}

Outputs normal(GraphBuilder& b, const CompositeCall& call) {
  Operand z = Draws(b, call, b.shape(call.operands[0])).normal(working_dtype(call.result));
  return {b.add(b.mul(z, call.operand("std")), call.operand("mean"))};
}

// 1 - u is in (0, 1].
Outputs exponential(GraphBuilder& b, const CompositeCall& call) {
  DType working = working_dtype(call.result);
  Operand u = Draws(b, call, b.shape(call.operands[0])).uniform(0, working, working == DType::f64 ? 53 : 24);
  return {b.div(b.neg(b.log(b.rsub(u, 1.0))), b.scalar(call.operand("lambd"), working))};
}

Outputs bernoulli(GraphBuilder& b, const CompositeCall& call) {
  const Operand& p = call.operand("p").present() ? call.operand("p") : call.operands[0];
  return {b.to(b.lt(Draws(b, call, b.shape(call.operands[0])).uniform(DType::f32), p), call.result)};
}

Outputs multinomial(GraphBuilder& b, const CompositeCall& call) {
  // Of the largest in its row, so that no sum overflows.
  const Operand given = b.to(call.operands[0], DType::f64);
  const Operand weights =
      b.div(given, b.reduce_dims(OpId::amax, given, {static_cast<int64_t>(call.shape.size()) - 1}, true));
  const Attr last = GraphBuilder::attr(static_cast<int64_t>(call.shape.size()) - 1);
  const Dims& samples = call.attribute("num_samples").list;
  if (!call.flag("replacement")) {
    // No waiting time is 0, so that what weighs nothing comes last.
    const Operand u = Draws(b, call, b.shape(weights)).uniform(DType::f64);
    const Operand time = b.clamp_min(b.neg(b.log(b.rsub(u, 1.0))), 0x1p-54);
    return {b.call(OpId::topk, {b.div(weights, time)},
                   {Attr::of(samples), last, GraphBuilder::flag(true), GraphBuilder::flag(true)})[1]};
  }
  const Operand sums = b.cumsum(weights, last);
  const Dim size = b.shape(weights).back();
  Dims one = b.shape(weights);
  one.back() = 1;
  const Operand total = b.reshape(b.select(sums, last, Dims{b.dims().sub(size, 1)}), one);
  // The product is below the total: u is a multiple of 2^-53 below 1.
  const Operand at = b.mul(Draws(b, call, call.shape).uniform(DType::f64), total);
  return {b.searchsorted(sums, at, GraphBuilder::flag(false), GraphBuilder::flag(true))};
}

// NaN stays NaN where it is dropped: it is multiplied by zero, as in PyTorch.
Outputs dropout(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  DType working = b.dtype(x);
  Operand p = b.scalar(call.operand("p"), working);
  Operand kept = b.ge(Draws(b, call, b.shape(x)).uniform(DType::f32), p);
  return {b.mul(x, b.where(kept, b.reciprocal(b.rsub(p, 1.0)), 0.0))};
}

}  // namespace decompositions
}  // namespace ingot::ir
