// Convolution in one and three dims as conv2d, transposed convolution as a product whose results overlap, and integer
// convolution as a product over the unfolded input.
#include "ir/decompose/windows.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

/// [N, C, spatial]; an image alone is a batch of one.
Operand batched(GraphBuilder& b, const Operand& x, size_t spatial) {
  return b.rank(x) == spatial + 2 ? x : b.unsqueeze(x, GraphBuilder::attr(0));
}

Outputs convolution_transposed(GraphBuilder& b, const CompositeCall& call) {
  size_t spatial = spatial_dims(call.op);
  Operand x = batched(b, call.operands[0], spatial);
  const Operand &weight = call.operands[1], &bias = call.operands[2];
  DimTable& dims = b.dims();
  const Dims shape = b.shape(x), kernel = b.shape(weight);
  Dim groups = call.integer("groups"), depth = dims.floor_div(kernel[0], groups),
      channels = dims.mul(kernel[1], groups);
  Dim taps = dims.product(std::span<const Dim>(&kernel[2], spatial)),
      places = dims.product(std::span<const Dim>(&shape[2], spatial));

  // [g][o * taps][c] times [n, g][c][places]: what each place of the input adds to each element of its window.
  Operand panel = b.reshape(weight, {groups, depth, dims.mul(kernel[1], taps)});
  panel = b.permute(panel, Dims{0, 2, 1});
  Operand pixels = b.reshape(x, {shape[0], groups, depth, places});
  Operand windows = b.matmul(panel, pixels);

  Dims split{shape[0], channels};
  for (size_t i = 0; i < spatial; ++i) split.push_back(kernel[2 + i]);
  for (size_t i = 0; i < spatial; ++i) split.push_back(shape[2 + i]);
  Operand result = b.reshape(windows, split);
  for (size_t i = spatial; i-- > 0;) {
    Slide s{
        kernel[2 + i].code, entry(call, "stride", i), entry(call, "padding", i), entry(call, "dilation", i), false, 0,
        shape[2 + i]};
    Dim whole = dims.add(dims.mul(shape[2 + i], s.stride), s.extent() + entry(call, "output_padding", i));
    Dim size = dims.sub(whole, s.stride + 2 * s.padding);
    result = overlap_added(b, result, 2 + i, 3 + 2 * i, s, size);
  }
  if (bias.present()) result = b.add(result, b.per_channel(bias, 1, spatial + 2));
  return {b.rank(call.operands[0]) == b.rank(result) ? result : b.squeeze(result, Dims{0})};
}

}  // namespace

namespace decompositions {

Outputs conv_transpose1d(GraphBuilder& b, const CompositeCall& call) { return convolution_transposed(b, call); }
Outputs conv_transpose2d(GraphBuilder& b, const CompositeCall& call) { return convolution_transposed(b, call); }
Outputs conv_transpose3d(GraphBuilder& b, const CompositeCall& call) { return convolution_transposed(b, call); }

Outputs conv1d(GraphBuilder& b, const CompositeCall& call) {
  const Operand &x = call.operands[0], &weight = call.operands[1];
  // A row of height one.
  auto with = [&](std::string_view name, int64_t other) { return Attr::of(Dims{other, call.attribute(name).list[0]}); };
  Operand image = b.unsqueeze(x, GraphBuilder::attr(static_cast<int64_t>(b.rank(x)) - 1));
  Operand kernel = b.unsqueeze(weight, GraphBuilder::attr(2));
  Operand result = b.conv2d(image, kernel, call.operands[2], with("stride", 1), with("padding", 0), with("dilation", 1),
                            call.attribute("groups"));
  return {b.squeeze(result, Dims{static_cast<int64_t>(b.rank(result)) - 2})};
}

// The planes that a window takes along the depth are channels of one image, and the outputs along the depth a batch.
Outputs conv3d(GraphBuilder& b, const CompositeCall& call) {
  Operand x = batched(b, call.operands[0], 3);
  const Operand& weight = call.operands[1];
  DimTable& dims = b.dims();
  const Dims shape = b.shape(x), kernel = b.shape(weight);
  Slide depth = make_slide(b, kernel[2].code, entry(call, "stride", 0), entry(call, "padding", 0),
                           entry(call, "dilation", 0), false, shape[2]);
  if (depth.padding > 0) x = b.constant_pad_nd(x, zero_of(b.dtype(x)), Dims{0, 0, 0, 0, depth.padding, depth.padding});
  Operand planes = b.unfold(x, GraphBuilder::attr(2), Dims{depth.extent()}, GraphBuilder::attr(depth.stride));
  if (depth.dilation > 1)
    planes = b.slice(planes, GraphBuilder::attr(5), Dims{0}, Dims{depth.extent()}, GraphBuilder::attr(depth.dilation));
  // [n, c, od, h, w, kd] -> [n * od, c * kd, h, w].
  planes = b.reshape(b.permute(planes, Dims{0, 2, 1, 5, 3, 4}),
                     {dims.mul(shape[0], depth.count), dims.mul(shape[1], kernel[2]), shape[3], shape[4]});
  Operand panel = b.reshape(weight, {kernel[0], dims.mul(kernel[1], kernel[2]), kernel[3], kernel[4]});
  auto plane = [&](std::string_view name) { return Attr::of(Dims{entry(call, name, 1), entry(call, name, 2)}); };
  Operand result = b.conv2d(planes, panel, call.operands[2], plane("stride"), plane("padding"), plane("dilation"),
                            call.attribute("groups"));
  const Dims flat = b.shape(result);
  result = b.permute(b.reshape(result, {shape[0], depth.count, flat[1], flat[2], flat[3]}), Dims{0, 2, 1, 3, 4});
  return {b.rank(call.operands[0]) == 5 ? result : b.squeeze(result, Dims{0})};
}

}  // namespace decompositions

Operand convolution_as_product(GraphBuilder& b, const CompositeCall& call) {
  Operand x = batched(b, call.operands[0], 2);
  const Operand &weight = call.operands[1], &bias = call.operands[2];
  DimTable& dims = b.dims();
  const Dims shape = b.shape(x), kernel = b.shape(weight);
  std::vector<Slide> slides;
  for (size_t i = 0; i < 2; ++i)
    slides.push_back(make_slide(b, kernel[2 + i].code, entry(call, "stride", i), entry(call, "padding", i),
                                entry(call, "dilation", i), false, shape[2 + i]));
  Operand windows = window_views(b, padded(b, x, slides, GraphBuilder::integer(0)), slides);
  // [n, g * c, oh, ow, kh, kw] -> [g][n * oh * ow][kh * kw * c]; the weight [g * o, c, kh, kw] -> [g][kh * kw * c][o].
  Dim groups = call.integer("groups"), channels = kernel[1], results = dims.floor_div(kernel[0], groups);
  Dim depth = dims.mul(channels, dims.mul(kernel[2], kernel[3]));
  Dim pixels = dims.product(Dims{shape[0], slides[0].count, slides[1].count});
  windows = b.view(windows, Dims{shape[0], groups, channels, slides[0].count, slides[1].count, kernel[2], kernel[3]});
  windows = b.reshape(b.permute(windows, Dims{1, 0, 3, 4, 5, 6, 2}), {groups, pixels, depth});
  Operand panel = b.permute(b.view(weight, Dims{groups, results, channels, kernel[2], kernel[3]}), Dims{0, 3, 4, 2, 1});
  panel = b.reshape(panel, {groups, depth, results});
  if (groups == Dim(1)) {
    windows = b.reshape(windows, {pixels, depth});
    panel = b.reshape(panel, {depth, results});
  }
  Operand product = b.reshape(b.matmul(windows, panel), {groups, shape[0], slides[0].count, slides[1].count, results});
  Operand result =
      b.reshape(b.permute(product, Dims{1, 0, 4, 2, 3}), {shape[0], kernel[0], slides[0].count, slides[1].count});
  if (bias.present()) result = b.add(result, b.per_channel(bias, 1, 4));
  return b.rank(call.operands[0]) == 4 ? result : b.squeeze(result, Dims{0});
}

}  // namespace ingot::ir
