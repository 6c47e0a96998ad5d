// Convolution in one and three dims as conv2d, transposed convolution as a convolution that gives every phase of the
// stride, and integer convolution as a product over the unfolded input.
#include <utility>

#include "ir/decompose/convolution.h"

#include "ir/decompose/windows.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {

/// [N, C, spatial]; an image alone is a batch of one.
Operand batched(GraphBuilder& b, const Operand& x, size_t spatial) {
  return b.rank(x) == spatial + 2 ? x : b.unsqueeze(x, GraphBuilder::attr(0));
}

/// A kernel with its elements in the opposite order from dim `first` on.
Operand turned(GraphBuilder& b, const Operand& kernel, size_t first) {
  Dims dims;
  for (size_t dim = first; dim < b.rank(kernel); ++dim)
    if (fixed_size(b, b.shape(kernel)[dim]) > 1) dims.push_back(static_cast<int64_t>(dim));
  return dims.empty() ? kernel : b.flip(kernel, dims);
}

}  // namespace

// Place q * stride + r of the output is a sum over the inputs q - t with element t * stride + r of the kernel: one
// convolution of stride 1 gives all phases r as channels of q, which then take their places. So nothing is multiplied
// by the zeros between the inputs, and no window is stored.
Operand convolution_transposed(GraphBuilder& b, const CompositeCall& call, const Dims& sizes) {
  size_t spatial = spatial_dims(call.op);
  Operand x = batched(b, call.operands[0], spatial), panel = call.operands[1];
  const Operand& bias = call.operands[2];
  DimTable& dims = b.dims();
  const Dims shape = b.shape(x), kernel = b.shape(panel);
  Dim groups = call.integer("groups"), depth = dims.floor_div(kernel[0], groups),
      channels = dims.mul(kernel[1], groups);

  // [g * c, o, t * s ...] to [g, o, s ..., c, t ...].
  Dims split{groups, depth, kernel[1]}, padding, dilation, phases, taps;
  SmallVector<int64_t, 3> cut;  // what is left to be cut off before each dim
  for (size_t i = 0; i < spatial; ++i) {
    int64_t stride = entry(call, "stride", i), gap = entry(call, "dilation", i), count = fixed_size(b, kernel[2 + i]),
            extent = gap * (count - 1);
    if (stride > 1) {
      count = extent / stride + 1;
      panel = extended(b, spaced(b, panel, 2 + i, gap), 2 + i, 0, count * stride - extent - 1);
    }
    // Of stride 1 the places that the padding cuts off need not be computed.
    cut.push_back(entry(call, "padding", i));
    const bool whole = stride == 1 && cut[i] <= extent && entry(call, "output_padding", i) == 0;
    padding.push_back(stride > 1 ? count - 1 : whole ? extent - std::exchange(cut[i], 0) : extent);
    dilation.push_back(stride > 1 ? 1 : gap);
    phases.push_back(stride);
    taps.push_back(count);
    split.push_back(count);
    split.push_back(stride);
  }
  // Where each channel is a group, each phase of it becomes one: phases stand outside of channels then, and the input
  // is there for each of them.
  const Dim places_a_channel = dims.product(phases);
  const bool depthwise =
      groups.code > 1 && dims.equal(depth, 1) && dims.equal(kernel[1], 1) && !dims.equal(places_a_channel, 1);
  Dims order, panel_shape{dims.mul(channels, places_a_channel), depth};
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(4 + 2 * i));
  for (size_t i = 0; i < 2; ++i) order.insert(depthwise ? order.size() : i, static_cast<int64_t>(2 * i));
  order.push_back(1);
  for (size_t i = 0; i < spatial; ++i) {
    order.push_back(static_cast<int64_t>(3 + 2 * i));
    panel_shape.push_back(taps[i]);
  }
  panel = turned(b, b.reshape(b.permute(b.reshape(panel, split), order), panel_shape), 2);
  if (depthwise) {
    Dims several = shape, joined = shape;
    several.insert(1, places_a_channel), joined[1] = dims.mul(shape[1], places_a_channel);
    x = b.reshape(b.expand(b.unsqueeze(x, GraphBuilder::attr(1)), several), joined);
    groups = dims.mul(groups, places_a_channel);
  }
  constexpr OpId kConvolutions[] = {OpId::conv1d, OpId::conv2d, OpId::conv3d};
  Operand result = b.call(kConvolutions[spatial - 1], {x, panel, Operand::none()},
                          {Attr::of(Dims{1}), Attr::of(padding), Attr::of(dilation), Attr::of(groups.code)})[0];

  // [n, o * s ..., q ...] (depthwise: s * o) to [n, o, q * s ...], of which the padding is cut off.
  Dims apart{shape[0]}, places{0, depthwise ? 1 + static_cast<int64_t>(spatial) : 1}, joined{shape[0], channels};
  for (size_t i = 0; i < spatial; ++i) apart.push_back(phases[i]);
  apart.insert(depthwise ? apart.size() : 1, channels);
  for (size_t i = 0; i < spatial; ++i) {
    Dim windows = b.shape(result)[2 + i];
    apart.push_back(windows);
    joined.push_back(dims.mul(windows, phases[i]));
    places.push_back(static_cast<int64_t>(2 + spatial + i));
    places.push_back(static_cast<int64_t>((depthwise ? 1 : 2) + i));
  }
  result = b.reshape(b.permute(b.reshape(result, apart), places), joined);
  for (size_t i = 0; i < spatial; ++i) result = cut_out(b, result, 2 + i, cut[i], sizes[i]);
  if (bias.present()) result = b.add(result, b.per_channel(bias, 1, spatial + 2));
  return b.rank(call.operands[0]) == b.rank(result) ? result : b.squeeze(result, Dims{0});
}

namespace {

Outputs convolution_transposed(GraphBuilder& b, const CompositeCall& call) {
  const size_t spatial = spatial_dims(call.op);
  return {convolution_transposed(b, call, Dims(call.shape.end() - spatial, call.shape.end()))};
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
  Slide depth = make_slide(b, fixed_size(b, kernel[2]), entry(call, "stride", 0), entry(call, "padding", 0),
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
    slides.push_back(make_slide(b, fixed_size(b, kernel[2 + i]), entry(call, "stride", i), entry(call, "padding", i),
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
