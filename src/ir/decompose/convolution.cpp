// Convolution in one and three dims as conv2d, transposed convolution as convolutions that give the phases of the
// stride, and integer convolution as a product over the unfolded input.
#include <numeric>
#include <vector>

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

/// Of stride 1, in one to three dims.
Operand convolved(GraphBuilder& b, const Operand& x, const Operand& kernel, const Dims& padding, const Dims& dilation,
                  int64_t groups) {
  constexpr OpId kConvolutions[] = {OpId::conv1d, OpId::conv2d, OpId::conv3d};
  return b.call(kConvolutions[padding.size() - 1], {x, kernel, Operand::none()},
                {Attr::of(Dims{1}), Attr::of(padding), Attr::of(dilation), Attr::of(groups)})[0];
}

constexpr int64_t kMostPhases = 16;     // that get a convolution each
constexpr int64_t kChannelsInside = 8;  // from so many on phases are joined with the channels innermost

/// One spatial dim of a transposed convolution: input x adds kernel element k to place x * stride + k * gap - cut.
struct Axis {
  int64_t stride, gap, kernel, cut;
  Dim inputs, size;
};

/// The elements first + m * step of a kernel meet the places j * stride + phase, place j as a window over the inputs
/// from j + before on, `gap` apart, in their opposite order.
struct Phase {
  int64_t first, step, taps, gap, before;
};

Phase phase_of(const Axis& a, int64_t phase) {
  const int64_t rest = (phase + a.cut) % a.stride, step = a.stride / std::gcd(a.stride, a.gap);
  Phase p{0, step, 0, a.gap * step / a.stride, 0};
  while (p.first < std::min(step, a.kernel) && p.first * a.gap % a.stride != rest) ++p.first;
  if (p.first == std::min(step, a.kernel)) return p;  // no element meets it
  p.taps = (a.kernel - p.first - 1) / step + 1;
  p.before = (phase + a.cut) / a.stride - (p.first * a.gap - rest) / a.stride - (p.taps - 1) * p.gap;
  return p;
}

/// How many more places than inputs there are at most, of each phase. Not what it is for these sizes: gradients by a
/// kernel are sums over all that is computed, and their order is not to depend on which sizes are known.
int64_t most_beyond_inputs(const Axis& a) {
  // size = (inputs - 1) stride - 2 cut + extent + rest, with a rest (output_padding) below stride or gap.
  const int64_t most = a.gap * (a.kernel - 1) + 1 - 2 * a.cut + std::max(a.stride, a.gap) - 1;
  return (most >= 0 ? (most + a.stride - 1) / a.stride : -(-most / a.stride)) - 1;
}

/// [n, channels, (q, phase) ...] with the phases of each dim inside of its places, to the sizes of the result.
Operand joined_phases(GraphBuilder& b, const Operand& x, bool inside, const std::vector<Axis>& axes) {
  const size_t first = inside ? 1 : 2, spatial = axes.size();
  const Dims apart = b.shape(x);
  Dims shape(apart.begin(), apart.begin() + first), order{0};
  for (size_t i = 0; i < spatial; ++i) shape.push_back(b.dims().mul(apart[first + 2 * i], apart[first + 2 * i + 1]));
  if (inside) shape.push_back(apart.back());
  Operand result = b.reshape(x, shape);
  if (inside) {
    order.push_back(static_cast<int64_t>(1 + spatial));
    for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(1 + i));
    result = b.permute(result, order);
  }
  return result;
}

/// A convolution for each phase of the strides, with the elements that meet it. Where none does there are zeros.
Operand phase_by_phase(GraphBuilder& b, const Operand& x, const Operand& kernel, const std::vector<Axis>& axes,
                       int64_t groups, bool inside) {
  DimTable& dims = b.dims();
  const size_t spatial = axes.size();
  const Dims taps = b.shape(kernel);
  const Dim channels = dims.mul(taps[1], groups);
  auto at = [](size_t dim) { return GraphBuilder::attr(static_cast<int64_t>(dim)); };
  int64_t phases = 1;
  for (const Axis& a : axes) phases *= a.stride;
  std::vector<Operand> parts;
  for (int64_t number = 0; number < phases; ++number) {
    Operand panel = kernel;
    Dims padding, dilation, counts{b.shape(x)[0], channels};
    SmallVector<int64_t, 3> starts;
    bool empty = false;
    for (size_t i = 0, left = phases, rest = number; i < spatial; ++i) {
      const Axis& a = axes[i];
      left /= a.stride;
      const Phase p = phase_of(a, static_cast<int64_t>(rest / left));
      rest %= left;
      const Dim count = dims.ceil_div(a.size, a.stride);
      counts.push_back(count);
      empty = empty || p.taps == 0;
      if (empty) continue;
      panel = b.slice(panel, at(2 + i), Dims{p.first}, Dims{p.first + (p.taps - 1) * p.step + 1},
                      GraphBuilder::attr(p.step));
      const int64_t after = p.before + (p.taps - 1) * p.gap + most_beyond_inputs(a);
      padding.push_back(std::max<int64_t>({0, -p.before, after}));
      dilation.push_back(p.gap);
      starts.push_back(padding.back().code + p.before);
    }
    Operand part;
    if (empty) {
      part = b.full(Attr::of(counts), zero_of(b.dtype(x)), Attr::of(b.dtype(x)));
    } else {
      // [g * c, o, t ...] to [g * o, c, t ...].
      panel = turned(b, panel, 2);
      Dims split = b.shape(panel), order{0, 2, 1};
      split.insert(0, groups), split[1] = dims.floor_div(split[1], groups);
      for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(3 + i));
      Dims shape(split.begin() + 1, split.end());
      shape[0] = channels, shape[1] = split[1];
      panel = b.reshape(b.permute(b.reshape(panel, split), order), shape);
      part = convolved(b, x, panel, padding, dilation, groups);
      for (size_t i = 0; i < spatial; ++i)
        if (starts[i] != 0 || !(b.shape(part)[2 + i] == counts[2 + i]))
          part = cut_out(b, part, 2 + i, starts[i], counts[2 + i]);
    }
    if (phases == 1) return part;
    if (inside) {
      Dims order{0};
      for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(2 + i));
      order.push_back(1);
      part = b.permute(part, order);
    }
    for (size_t i = spatial; i-- > 0;) part = b.unsqueeze(part, at((inside ? 2 : 3) + i));
    parts.push_back(part);
  }
  for (size_t i = spatial; i-- > 0;) {
    std::vector<Operand> next;
    const auto stride = static_cast<size_t>(axes[i].stride);
    for (size_t k = 0; k < parts.size(); k += stride)
      next.push_back(stride == 1 ? parts[k]
                                 : b.call(OpId::cat, {parts.begin() + k, parts.begin() + k + stride},
                                          {at((inside ? 2 : 3) + 2 * i)})[0]);
    parts = std::move(next);
  }
  return joined_phases(b, parts[0], inside, axes);
}

/// One convolution of stride 1 that gives all phases as channels.
Operand phases_as_channels(GraphBuilder& b, const Operand& x, Operand panel, const std::vector<Axis>& axes,
                           int64_t groups, bool inside) {
  DimTable& dims = b.dims();
  const size_t spatial = axes.size();
  const Dims kernel = b.shape(panel);
  const Dim depth = dims.floor_div(kernel[0], groups), channels = dims.mul(kernel[1], groups);
  // [g * c, o, t * s ...] to [g, s ..., o, c, t ...].
  Dims split{groups, depth, kernel[1]}, padding, phases, taps;
  for (size_t i = 0; i < spatial; ++i) {
    const Axis& a = axes[i];
    const int64_t extent = a.gap * (a.kernel - 1), count = extent / a.stride + 1;
    panel = extended(b, spaced(b, panel, 2 + i, a.gap), 2 + i, 0, count * a.stride - extent - 1);
    padding.push_back(count - 1), phases.push_back(a.stride), taps.push_back(count);
    split.push_back(count), split.push_back(a.stride);
  }
  Dims order{0}, panel_shape{dims.mul(channels, dims.product(phases)), depth};
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(4 + 2 * i));
  order.push_back(2), order.push_back(1);
  for (size_t i = 0; i < spatial; ++i) {
    order.push_back(static_cast<int64_t>(3 + 2 * i));
    panel_shape.push_back(taps[i]);
  }
  panel = turned(b, b.reshape(b.permute(b.reshape(panel, split), order), panel_shape), 2);
  Operand result = convolved(b, x, panel, padding, {1}, groups);
  // [n, g * s ... * o, q ...] to [n, q, s ..., g * o], or [n, g * o, q, s ...].
  const Dims windows = b.shape(result);
  Dims apart{windows[0], groups}, places{0};
  for (Dim phase : phases) apart.push_back(phase);
  apart.push_back(kernel[1]);
  for (size_t i = 0; i < spatial; ++i) apart.push_back(windows[2 + i]);
  auto channels_here = [&] { places.push_back(1), places.push_back(static_cast<int64_t>(2 + spatial)); };
  if (!inside) channels_here();
  for (size_t i = 0; i < spatial; ++i) {
    places.push_back(static_cast<int64_t>(3 + spatial + i));
    places.push_back(static_cast<int64_t>(2 + i));
  }
  if (inside) channels_here();
  Dims shape{windows[0]};
  if (!inside) shape.push_back(channels);
  for (size_t i = 0; i < spatial; ++i) shape.push_back(windows[2 + i]), shape.push_back(phases[i]);
  if (inside) shape.push_back(channels);
  return joined_phases(b, b.reshape(b.permute(b.reshape(result, apart), places), shape), inside, axes);
}

}  // namespace

// Place q * stride + r of the result is a sum over the inputs q - t with element t * stride + r of the kernel, so each
// phase r is a convolution of stride 1. Nothing is multiplied by the zeros between the inputs, and no window is stored.
Operand convolution_transposed(GraphBuilder& b, const CompositeCall& call, const Dims& sizes) {
  const size_t spatial = spatial_dims(call.op);
  const Operand x = batched(b, call.operands[0], spatial), &kernel = call.operands[1], &bias = call.operands[2];
  const int64_t groups = call.integer("groups");
  const Dims shape = b.shape(x), taps = b.shape(kernel);
  std::vector<Axis> axes;
  int64_t phases = 1;
  bool even = true;  // each phase has as many elements
  for (size_t i = 0; i < spatial; ++i) {
    axes.push_back({entry(call, "stride", i), entry(call, "dilation", i), fixed_size(b, taps[2 + i]),
                    entry(call, "padding", i), shape[2 + i], sizes[i]});
    phases *= axes[i].stride;
    even = even && axes[i].gap == 1 && axes[i].kernel % axes[i].stride == 0;
  }
  const bool inside = !b.dims().less(b.dims().mul(taps[1], groups), kChannelsInside);
  const bool together = phases > kMostPhases || (phases > 1 && even && !b.dims().equal(taps[0], groups));
  Operand result = together ? phases_as_channels(b, x, kernel, axes, groups, inside)
                            : phase_by_phase(b, x, kernel, axes, groups, inside);
  // Sizes that vary are cut, as a program for those that a stride divides would be one more.
  for (size_t i = 0; i < spatial; ++i)
    if (together || !(b.shape(result)[2 + i] == sizes[i]))
      result = cut_out(b, result, 2 + i, together ? axes[i].cut : 0, sizes[i]);
  if (bias.present()) result = b.add(result, b.per_channel(bias, 1, spatial + 2));
  return b.rank(call.operands[0]) == b.rank(result) ? result : b.squeeze(result, Dims{0});
}

namespace {

Outputs transposed_of_call(GraphBuilder& b, const CompositeCall& call) {
  const size_t spatial = spatial_dims(call.op);
  return {convolution_transposed(b, call, Dims(call.shape.end() - spatial, call.shape.end()))};
}

}  // namespace

namespace decompositions {

Outputs conv_transpose1d(GraphBuilder& b, const CompositeCall& call) { return transposed_of_call(b, call); }
Outputs conv_transpose2d(GraphBuilder& b, const CompositeCall& call) { return transposed_of_call(b, call); }
Outputs conv_transpose3d(GraphBuilder& b, const CompositeCall& call) { return transposed_of_call(b, call); }

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
