// Convolution and pooling. A small pooling window is arithmetic over strided slices, which fuses and reads nothing
// twice from memory; convolution is a matrix product over the unfolded input, reduced in the order (kh, kw, channel).
#include <algorithm>
#include <limits>

#include "ir/decompose.h"

namespace ingot::ir {
namespace {

/// One spatial dim of a window that slides.
struct Slide {
  int64_t kernel, stride, padding, dilation;
  bool ceil_mode;
  Dim size, count;  // of the input, of the output
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
  /// What must follow the input for every window to lie inside; a size that varies gets the most that it could need.
  int64_t padding_after() const {
    if (!size.is_constant()) return padding + (ceil_mode ? stride - 1 : 0);
    return std::max<int64_t>(0, (count.code - 1) * stride + extent() - size.code - padding);
  }
};

int64_t entry(const CompositeCall& call, std::string_view name, size_t i) {
  const Dims& list = call.attribute(name).list;
  return list[list.size() == 1 ? 0 : i].code;
}

Dim slide_count(GraphBuilder& b, const Slide& s) {
  DimTable& dims = b.dims();
  Dim room = dims.sub(dims.add(s.size, 2 * s.padding), s.extent());
  if (!s.ceil_mode) return dims.add(dims.floor_div(room, s.stride), 1);
  Dim count = dims.add(dims.ceil_div(room, s.stride), 1);
  bool outside = !dims.less(dims.mul(dims.sub(count, 1), s.stride), dims.add(s.size, s.padding));
  return outside ? dims.sub(count, 1) : count;
}

std::vector<Slide> pool_slides(GraphBuilder& b, const CompositeCall& call) {
  std::vector<Slide> slides;
  const Dims& shape = b.shape(call.operands[0]);
  bool dilated = call.op.id == OpId::max_pool2d;
  for (size_t i = 0; i < 2; ++i) {
    Slide s{entry(call, "kernel_size", i),
            0,
            entry(call, "padding", i),
            dilated ? entry(call, "dilation", i) : 1,
            call.flag("ceil_mode"),
            shape[shape.size() - 2 + i],
            0};
    const Attr& stride = call.attribute("stride");
    s.stride = stride.present() && !stride.list.empty() ? entry(call, "stride", i) : s.kernel;
    s.count = slide_count(b, s);
    slides.push_back(s);
  }
  return slides;
}

/// x with `fill` around it, so that every window lies inside.
Operand padded(GraphBuilder& b, const Operand& x, const std::vector<Slide>& slides, const Operand& fill) {
  Dims pad;
  bool any = false;
  for (size_t i = slides.size(); i-- > 0;) {
    pad.push_back(slides[i].padding);
    pad.push_back(slides[i].padding_after());
    any = any || slides[i].padding || slides[i].padding_after();
  }
  return any ? b.constant_pad_nd(x, fill, pad) : x;
}

/// Element (i, j) of every window, as a strided slice over the last two dims.
Operand window_element(GraphBuilder& b, Operand x, const std::vector<Slide>& slides, int64_t i, int64_t j) {
  DimTable& dims = b.dims();
  for (size_t k = 0; k < 2; ++k) {
    const Slide& s = slides[k];
    int64_t dim = static_cast<int64_t>(b.rank(x)) - 2 + static_cast<int64_t>(k), start = (k ? j : i) * s.dilation;
    Dim end = dims.add(dims.mul(dims.sub(s.count, 1), s.stride), start + 1);
    x = b.slice(x, GraphBuilder::attr(dim), Dims{start}, Dims{end}, GraphBuilder::attr(s.stride));
  }
  return x;
}

/// Combines the elements of every window: one after the other, or by a reduction where they are many.
Operand combined(GraphBuilder& b, const Operand& x, const std::vector<Slide>& slides, OpId pair, OpId whole) {
  constexpr int64_t kFew = 64;
  if (slides[0].kernel * slides[1].kernel <= kFew) {
    Operand result;
    for (int64_t i = 0; i < slides[0].kernel; ++i)
      for (int64_t j = 0; j < slides[1].kernel; ++j) {
        Operand element = window_element(b, x, slides, i, j);
        result = result.present() ? b.call(pair, {result, element}, {})[0] : element;
      }
    return result;
  }
  Operand windows = x;
  int64_t rank = static_cast<int64_t>(b.rank(x));
  for (int64_t k = 0; k < 2; ++k) {
    const Slide& s = slides[k];
    int64_t reach = s.extent();
    windows = b.unfold(windows, GraphBuilder::attr(rank - 2 + k), Dims{reach}, GraphBuilder::attr(s.stride));
    windows = b.slice(windows, GraphBuilder::attr(rank - 2 + k), Dims{0}, Dims{s.count}, GraphBuilder::attr(1));
    windows = b.slice(windows, GraphBuilder::attr(rank + k), Dims{0}, Dims{reach}, GraphBuilder::attr(s.dilation));
  }
  return b.reduce_dims(whole, windows, {rank, rank + 1}, false);
}

/// How many elements each window along one dim has: those inside the input, and the padding where it counts.
Operand window_counts(GraphBuilder& b, const Slide& s, bool include_padding, DType dtype) {
  DimTable& dims = b.dims();
  Operand start =
      b.arange(GraphBuilder::integer(-s.padding), GraphBuilder::integer(s.stride), Dims{s.count}, DType::i64);
  Operand limit = GraphBuilder::size_operand(include_padding ? dims.add(s.size, s.padding) : s.size);
  Operand end = b.clamp_max(b.add(start, GraphBuilder::integer(s.kernel)), limit);
  if (!include_padding) start = b.clamp_min(start, GraphBuilder::integer(0));
  return b.to(b.sub(end, start), dtype);
}

/// [.., n] with sizes [i * n / m, ceil((i + 1) * n / m)) averaged, along dim `dim` (adaptive pooling).
Operand bins(GraphBuilder& b, const Operand& x, size_t dim, int64_t count) {
  Dim size = b.shape(x)[dim];
  Attr at = GraphBuilder::attr(static_cast<int64_t>(dim));
  if (size == Dim(count)) return x;
  INGOT_CHECK(size.is_constant() || count == 1 || count == 0,
              "adaptive pooling of a size that varies, to more than one");
  std::vector<Operand> means;
  for (int64_t i = 0; i < count; ++i) {
    Dim start = 0, end = size;
    if (size.is_constant()) start = i * size.code / count, end = ((i + 1) * size.code + count - 1) / count;
    Operand part = b.slice(x, at, Dims{start}, Dims{end}, GraphBuilder::attr(1));
    means.push_back(b.mean(part, Dims{static_cast<int64_t>(dim)}, GraphBuilder::flag(true)));
  }
  if (means.empty()) return b.slice(x, at, Dims{0}, Dims{0}, GraphBuilder::attr(1));
  return b.call(OpId::cat, std::move(means), {at})[0];
}

}  // namespace

namespace decompositions {

Outputs max_pool2d(GraphBuilder& b, const CompositeCall& call) {
  std::vector<Slide> slides = pool_slides(b, call);
  const Operand& x = call.operands[0];
  DType dtype = b.dtype(x);
  Operand least = Operand::constant(-std::numeric_limits<double>::infinity());
  if (!is_floating(dtype))
    least = GraphBuilder::integer(dtype == DType::u8 ? 0 : -(int64_t{1} << (8 * size_of(dtype) - 2)) * 2);
  return {combined(b, padded(b, x, slides, least), slides, OpId::maximum, OpId::amax)};
}

Outputs avg_pool2d(GraphBuilder& b, const CompositeCall& call) {
  std::vector<Slide> slides = pool_slides(b, call);
  Operand x = call.operands[0];
  bool floating = is_floating(b.dtype(x));
  if (!floating) x = b.to(x, DType::i64);
  Operand zero = floating ? Operand::constant(0.0) : GraphBuilder::integer(0);
  Operand sums = combined(b, padded(b, x, slides, zero), slides, OpId::add, OpId::sum);

  // Every window counts alike unless it may hang over the end, or holds padding that does not count.
  bool include = call.flag("count_include_pad"), same = true;
  for (const Slide& s : slides) same = same && !s.ceil_mode && (include || s.padding == 0);
  Attr whole = Attr::mode(floating ? 0 : 2);
  auto constant = [&](int64_t n) {
    return floating ? Operand::constant(static_cast<double>(n)) : GraphBuilder::integer(n);
  };
  if (call.attribute("divisor_override").present())
    return {b.div(sums, constant(call.integer("divisor_override")), whole)};
  if (same) return {b.div(sums, constant(slides[0].kernel * slides[1].kernel), whole)};
  Operand rows = b.unsqueeze(window_counts(b, slides[0], include, b.dtype(x)), GraphBuilder::attr(1));
  return {b.div(sums, b.mul(rows, window_counts(b, slides[1], include, b.dtype(x))), whole)};
}

Outputs adaptive_avg_pool2d(GraphBuilder& b, const CompositeCall& call) {
  Operand x = call.operands[0];
  size_t rank = b.rank(x);
  int64_t rows = entry(call, "output_size", 0), columns = entry(call, "output_size", 1);
  if (rows == 1 && columns == 1)
    return {b.mean(x, Dims{static_cast<int64_t>(rank) - 2, static_cast<int64_t>(rank) - 1}, GraphBuilder::flag(true))};
  return {bins(b, bins(b, x, rank - 1, columns), rank - 2, rows)};
}

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

}  // namespace decompositions

Operand convolution_as_product(GraphBuilder& b, const CompositeCall& call) {
  Operand x = call.operands[0];
  const Operand &weight = call.operands[1], &bias = call.operands[2];
  bool batched = b.rank(x) == 4;
  if (!batched) x = b.unsqueeze(x, GraphBuilder::attr(0));
  DimTable& dims = b.dims();
  const Dims shape = b.shape(x), kernel = b.shape(weight);
  std::vector<Slide> slides;
  for (size_t i = 0; i < 2; ++i) {
    Slide s{kernel[2 + i].code,
            entry(call, "stride", i),
            entry(call, "padding", i),
            entry(call, "dilation", i),
            false,
            shape[2 + i],
            0};
    s.count = slide_count(b, s);
    slides.push_back(s);
  }
  Operand windows = padded(b, x, slides, GraphBuilder::integer(0));
  for (int64_t k = 0; k < 2; ++k) {
    const Slide& s = slides[k];
    int64_t reach = s.extent();
    windows = b.unfold(windows, GraphBuilder::attr(2 + k), Dims{reach}, GraphBuilder::attr(s.stride));
    if (s.dilation > 1)
      windows = b.slice(windows, GraphBuilder::attr(4 + k), Dims{0}, Dims{reach}, GraphBuilder::attr(s.dilation));
  }
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
  return batched ? result : b.squeeze(result, Dims{0});
}

}  // namespace ingot::ir
