// Layer, RMS, batch, instance, group and local response normalisation: (x - mean) * rsqrt(variance + eps), then weight
// and bias. Variance is the mean of squared differences, in a second pass.
#include "ir/decompose.h"

namespace ingot::ir {
namespace {

/// One over the standard deviation, from the mean square of what was centered.
Operand inverse_deviation(GraphBuilder& b, const Operand& variance, const Operand& eps) {
  return b.rsqrt(b.add(variance, eps));
}

Operand mean_keeping(GraphBuilder& b, const Operand& x, const Dims& dims) {
  return b.mean(x, Attr::of(dims), GraphBuilder::flag(true));
}

Operand normalized(GraphBuilder& b, const Operand& x, const Dims& dims, const Operand& eps) {
  Operand centered = b.sub(x, mean_keeping(b, x, dims));
  Operand variance = mean_keeping(b, b.mul(centered, centered), dims);
  return b.mul(centered, inverse_deviation(b, variance, eps));
}

Operand affine(GraphBuilder& b, Operand x, const Operand& weight, const Operand& bias) {
  if (weight.present()) x = b.mul(x, weight);
  if (bias.present()) x = b.add(x, bias);
  return x;
}

/// The last `n` dims of x.
Dims last_dims(GraphBuilder& b, const Operand& x, size_t n) {
  Dims dims;
  for (size_t i = b.rank(x) - n; i < b.rank(x); ++i) dims.push_back(static_cast<int64_t>(i));
  return dims;
}

Operand channelwise(GraphBuilder& b, const Operand& x, size_t rank) {
  return x.present() ? b.per_channel(x, 1, rank) : x;
}

/// That of the type it computes in: 16-bit floats have f32's.
double epsilon_of(DType dtype) { return dtype == DType::f64 ? 0x1p-52 : 0x1p-23; }

}  // namespace

namespace decompositions {

Outputs layer_norm(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  Dims dims = last_dims(b, x, call.attribute("normalized_shape").list.size());
  return {affine(b, normalized(b, x, dims, call.operand("eps")), call.operand("weight"), call.operand("bias"))};
}

Outputs rms_norm(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  Dims dims = last_dims(b, x, call.attribute("normalized_shape").list.size());
  Operand eps = call.operand("eps").present() ? call.operand("eps") : Operand::constant(epsilon_of(call.result));
  Operand scale = inverse_deviation(b, mean_keeping(b, b.mul(x, x), dims), eps);
  return {affine(b, b.mul(x, scale), call.operand("weight"), Operand::none())};
}

Outputs batch_norm(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  size_t rank = b.rank(x);
  if (rank < 2) return {x};  // empty
  if (call.flag("training")) {
    Dims dims;
    for (size_t i = 0; i < rank; ++i)
      if (i != 1) dims.push_back(static_cast<int64_t>(i));
    // What is summed over is one dim from the start, so that the sums, and those of the gradient, compute what they
    // sum.
    const Dims shape = b.shape(x);
    const Operand flat = joined(b, x, dims);
    auto channel = [&](std::string_view name) { return channelwise(b, call.operand(name), b.rank(flat)); };
    return {b.reshape(affine(b, normalized(b, flat, dims, call.operand("eps")), channel("weight"), channel("bias")),
                      shape)};
  }
  Operand weight = channelwise(b, call.operand("weight"), rank), bias = channelwise(b, call.operand("bias"), rank);
  // Weight and deviation are one factor a channel.
  Operand factor = inverse_deviation(b, channelwise(b, call.operand("running_var"), rank), call.operand("eps"));
  if (weight.present()) factor = b.mul(factor, weight);
  Operand mean = channelwise(b, call.operand("running_mean"), rank);
  if (size_of(call.result) < 4) return {affine(b, b.sub(x, mean), factor, bias)};
  // And so are mean and bias a summand, which a 16-bit float would round too early: one multiply-add an element.
  Operand shift = bias.present() ? b.addcmul(bias, mean, factor, Operand::constant(-1.0)) : b.neg(b.mul(mean, factor));
  return {b.addcmul(shift, x, factor, Operand::constant(1.0))};
}

Outputs instance_norm(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  size_t rank = b.rank(x);
  auto channel = [&](std::string_view name) { return channelwise(b, call.operand(name), rank); };
  if (!call.flag("use_input_stats")) {
    Operand scale = inverse_deviation(b, channel("running_var"), call.operand("eps"));
    return {affine(b, b.mul(b.sub(x, channel("running_mean")), scale), channel("weight"), channel("bias"))};
  }
  return {
      affine(b, normalized(b, x, last_dims(b, x, rank - 2), call.operand("eps")), channel("weight"), channel("bias"))};
}

// x / (k + alpha * mean of the squares of `size` neighbouring channels)^beta; zeros stand beside the first and last
// channel. The mean of integers is one.
Outputs local_response_norm(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  int64_t size = call.integer("size"), rank = static_cast<int64_t>(b.rank(x));
  bool floating = is_floating(b.dtype(x));
  Operand squares = floating ? b.mul(x, x) : b.to(b.mul(x, x), DType::i64);
  Dims pad(2 * (rank - 1), 0);
  pad[2 * rank - 4] = size / 2;
  pad[2 * rank - 3] = (size - 1) / 2;
  squares = b.constant_pad_nd(squares, floating ? Operand::constant(0.0) : GraphBuilder::integer(0), pad);
  squares = b.unfold(squares, GraphBuilder::attr(1), Dims{size}, GraphBuilder::attr(1));
  Operand sums = b.reduce_dims(OpId::sum, squares, {rank}, false);
  Operand means = floating ? b.div(sums, static_cast<double>(size))
                           : b.to(b.div(sums, GraphBuilder::integer(size), Attr::mode(2)), DType::f32);
  Operand scale = b.pow(b.add(b.mul(means, call.operand("alpha")), call.operand("k")), call.operand("beta"));
  return {b.div(floating ? x : b.to(x, DType::f32), scale)};
}

Outputs group_norm(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  const Dims shape = b.shape(x);
  const Dim groups = call.integer("num_groups"), channels = b.dims().floor_div(shape[1], groups);
  const Dim places = b.dims().product(std::span<const Dim>(shape).subspan(2));
  const Operand flat = b.reshape(x, {shape[0], shape[1], places});
  // First over the places of each channel, then over the channels of a group; one number a channel again. So it suits
  // images whose channels lie innermost as well.
  auto mean = [&](const Operand& v) {
    const Operand each = b.mean(v, Attr::of(Dims{2}), GraphBuilder::flag(false));
    const Operand all = mean_keeping(b, b.reshape(each, {shape[0], groups, channels}), {2});
    return b.reshape(b.expand(all, Dims{shape[0], groups, channels}), {shape[0], shape[1], 1});
  };
  const Operand centered = b.sub(flat, mean(flat));
  const Operand deviation = inverse_deviation(b, mean(b.mul(centered, centered)), call.operand("eps"));
  const Operand result = affine(b, b.mul(centered, deviation), channelwise(b, call.operand("weight"), 3),
                                channelwise(b, call.operand("bias"), 3));
  return {b.reshape(result, shape)};
}

}  // namespace decompositions
}  // namespace ingot::ir
