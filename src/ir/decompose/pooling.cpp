// Pooling and patches. A small window is arithmetic over strided slices, which fuses and reads nothing twice from
// memory.
#include <algorithm>
#include <limits>

#include "ir/decompose/pooling.h"
#include "ir/rules/rules.h"

namespace ingot::ir {

std::vector<Slide> pool_slides(GraphBuilder& b, const CompositeCall& call) {
  std::vector<Slide> slides;
  const Dims& shape = b.shape(call.operands[0]);
  size_t spatial = spatial_dims(call.op);
  bool dilated = attribute_position(call.op, "dilation") >= 0;
  const Attr& stride = call.attribute("stride");
  for (size_t i = 0; i < spatial; ++i) {
    int64_t kernel = entry(call, "kernel_size", i);
    slides.push_back(make_slide(b, kernel, stride.present() && !stride.list.empty() ? entry(call, "stride", i) : kernel,
                                entry(call, "padding", i), dilated ? entry(call, "dilation", i) : 1,
                                call.flag("ceil_mode"), shape[shape.size() - spatial + i]));
  }
  return slides;
}

int64_t taps(const std::vector<Slide>& slides) {
  int64_t count = 1;
  for (const Slide& s : slides) count *= s.kernel;
  return count;
}

Operand window_element(GraphBuilder& b, Operand x, const std::vector<Slide>& slides, int64_t tap) {
  DimTable& dims = b.dims();
  for (size_t k = slides.size(); k-- > 0;) {
    const Slide& s = slides[k];
    int64_t dim = static_cast<int64_t>(b.rank(x) - slides.size() + k), start = tap % s.kernel * s.dilation;
    Dim end = dims.add(dims.mul(dims.sub(s.count, 1), s.stride), start + 1);
    x = b.slice(x, GraphBuilder::attr(dim), Dims{start}, Dims{end}, GraphBuilder::attr(s.stride));
    tap /= s.kernel;
  }
  return x;
}

Operand least_of(DType dtype) {
  if (is_floating(dtype)) return Operand::constant(-std::numeric_limits<double>::infinity());
  return GraphBuilder::integer(dtype == DType::u8 ? 0 : -(int64_t{1} << (8 * size_of(dtype) - 2)) * 2);
}

namespace {

/// Combines the elements of every window: one after the other, or by a reduction where they are many.
Operand combined(GraphBuilder& b, const Operand& x, const std::vector<Slide>& slides, OpId pair, OpId whole) {
  constexpr int64_t kFew = 64;
  if (taps(slides) <= kFew) {
    Operand result;
    for (int64_t tap = 0; tap < taps(slides); ++tap) {
      Operand element = window_element(b, x, slides, tap);
      result = result.present() ? b.call(pair, {result, element}, {})[0] : element;
    }
    return result;
  }
  Dims reduced;
  for (size_t i = 0; i < slides.size(); ++i) reduced.push_back(static_cast<int64_t>(b.rank(x) + i));
  return b.reduce_dims(whole, window_views(b, x, slides), reduced, false);
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

}  // namespace

Operand averaged(GraphBuilder& b, const CompositeCall& call, const std::vector<Slide>& slides, const Operand& sums) {
  const bool floating = is_floating(b.dtype(sums));
  // Every window counts alike unless it may hang over the end, or holds padding that does not count.
  bool include = call.flag("count_include_pad"), same = true;
  for (const Slide& s : slides) same = same && !s.ceil_mode && (include || s.padding == 0);
  Attr whole = Attr::mode(floating ? 0 : 2);
  auto constant = [&](int64_t n) {
    return floating ? Operand::constant(static_cast<double>(n)) : GraphBuilder::integer(n);
  };
  if (call.attribute("divisor_override").present())
    return b.div(sums, constant(call.integer("divisor_override")), whole);
  if (same) return b.div(sums, constant(taps(slides)), whole);
  Operand counts;
  for (size_t i = 0; i < slides.size(); ++i) {
    Operand line = window_counts(b, slides[i], include, b.dtype(sums));
    counts = counts.present() ? b.mul(b.unsqueeze(counts, GraphBuilder::attr(static_cast<int64_t>(i))), line) : line;
  }
  return b.div(sums, counts, whole);
}

namespace {

/// The windows of one dim that start at `first` places into the input and lie inside it: those of one stretch hold the
/// same taps, and those that hang over an end hold fewer than the others. `missing`: the places before the input that
/// each of them would begin with.
struct Stretch {
  Dim first;
  int64_t missing;
  Slide windows;
};

/// Makes a varying size one whose last window ends as far behind it, or before it, as it does now, and which has
/// windows that lie inside. By guards in eager only: a function with several of these would be compiled for each
/// mixture.
bool ends_as_now(GraphBuilder& b, const Slide& s, int64_t over, int64_t hanging) {
  if (s.size.is_constant()) return true;
  DimTable& dims = b.dims();
  const Dim last = dims.add(dims.mul(dims.sub(s.count, 1), s.stride), s.extent());
  return b.one_op() && dims.less(hanging, s.count) &&
         dims.equal(dims.add(last, std::max<int64_t>(0, -over)),
                    dims.add(s.size, s.padding + std::max<int64_t>(0, over)));
}

/// The stretches of a dim from its first window to its last. None where that is not known, or a window holds no
/// element.
std::vector<Stretch> stretches_of(GraphBuilder& b, const Slide& s) {
  if (s.padding == 0 && s.padding_after() == 0) return {{0, 0, s}};
  DimTable& dims = b.dims();
  std::vector<Stretch> stretches;
  const int64_t size = dims.hint(s.size), count = dims.hint(s.count), room = size + s.padding - s.extent();
  const int64_t left = std::min(count, (s.padding + s.stride - 1) / s.stride);
  const int64_t right = std::clamp(room < 0 ? 0 : room / s.stride + 1, left, count);
  if (!ends_as_now(b, s, (count - 1) * s.stride - room, left + count - right)) return {};
  auto add = [&](int64_t window, Dim windows) {
    const int64_t start = window * s.stride - s.padding;
    const int64_t from = (std::max<int64_t>(0, -start) + s.dilation - 1) / s.dilation;
    const int64_t to = std::min(s.kernel, (size - 1 - start) / s.dilation + 1);
    if (start >= size || from >= to) return false;
    const int64_t first = start + from * s.dilation;
    stretches.push_back({window < right || s.size.is_constant() ? Dim(first) : dims.sub(s.size, size - first),
                         from * s.dilation,
                         {to - from, s.stride, 0, s.dilation, false, s.size, windows}});
    return true;
  };
  for (int64_t window = 0; window < count; window = window == left && left < right ? right : window + 1)
    if (!add(window, window == left && left < right ? dims.sub(s.count, left + count - right) : Dim(1))) return {};
  return stretches;
}

/// What is made of these stretches of windows, joined; dims from `i` on are left.
Operand joined_stretches(GraphBuilder& b, const Operand& x, const std::vector<std::vector<Stretch>>& stretches,
                         std::vector<Slide>& windows, std::vector<int64_t>& missing, OfWindows of_windows) {
  const size_t i = windows.size();
  if (i == stretches.size()) return of_windows(x, windows, missing);
  const Attr dim = GraphBuilder::attr(static_cast<int64_t>(b.rank(x) - stretches.size() + i));
  std::vector<Operand> pieces;
  for (const Stretch& stretch : stretches[i]) {
    windows.push_back(stretch.windows);
    missing.push_back(stretch.missing);
    const Operand rest = stretch.first == Dim(0)
                             ? x
                             : b.slice(x, dim, Dims{stretch.first}, Dims{stretch.windows.size}, GraphBuilder::attr(1));
    pieces.push_back(joined_stretches(b, rest, stretches, windows, missing, of_windows));
    windows.pop_back();
    missing.pop_back();
  }
  return pieces.size() == 1 ? pieces[0] : b.call(OpId::cat, std::move(pieces), {dim})[0];
}

}  // namespace

Operand without_border(GraphBuilder& b, const Operand& x, const std::vector<Slide>& slides, OfWindows of_windows) {
  constexpr size_t kMostPieces = 9;
  std::vector<std::vector<Stretch>> stretches;
  size_t pieces = 1;
  for (const Slide& s : slides) pieces *= stretches.emplace_back(stretches_of(b, s)).size();
  if (pieces == 0 || pieces > kMostPieces) return {};
  std::vector<Slide> windows;
  std::vector<int64_t> missing;
  return joined_stretches(b, x, stretches, windows, missing, of_windows);
}

namespace {

Outputs max_pool(GraphBuilder& b, const CompositeCall& call) {
  const std::vector<Slide> slides = pool_slides(b, call);
  const Operand& x = call.operands[0];
  const Operand inside = without_border(
      b, x, slides, [&](const Operand& part, const std::vector<Slide>& windows, const std::vector<int64_t>&) {
        return combined(b, part, windows, OpId::maximum, OpId::amax);
      });
  if (inside.present()) return {inside};
  return {combined(b, padded(b, x, slides, least_of(b.dtype(x))), slides, OpId::maximum, OpId::amax)};
}

Outputs avg_pool(GraphBuilder& b, const CompositeCall& call) {
  std::vector<Slide> slides = pool_slides(b, call);
  Operand x = call.operands[0];
  if (!is_floating(b.dtype(x))) x = b.to(x, DType::i64);
  Operand sums = combined(b, padded(b, x, slides, zero_of(b.dtype(x))), slides, OpId::add, OpId::sum);

  return {averaged(b, call, slides, sums)};
}

/// One dim cut into `count` bins, from floor(i * size / count) to ceil((i + 1) * size / count): [.., count, widest
/// bin], with `fill` beyond the end of a bin, how many elements each bin has, and where it begins; `even` if all have
/// as many.
struct Bins {
  Operand elements, sizes, starts;
  bool even = false;
};
Bins cut(GraphBuilder& b, const Operand& x, size_t dim, Dim count, const Operand& fill) {
  DimTable& dims = b.dims();
  Dims shape = b.shape(x);
  Dim size = shape[dim];
  auto with = [&](Dim width) {
    Dims split = shape;
    split[dim] = count;
    split.insert(dim + 1, width);
    return split;
  };
  // These broadcast against what follows the dim.
  Dims line{count};
  for (size_t i = dim + 1; i < shape.size(); ++i) line.push_back(1);
  auto integer = [](int64_t n) { return GraphBuilder::integer(n); };
  Operand bin = b.unsqueeze(b.arange(integer(0), integer(1), Dims{count}, DType::i64), GraphBuilder::attr(1));
  // Rows that are known to be short are combined side by side. In eager these are, by a guard, as its sizes are.
  constexpr int64_t kShort = 16;
  auto known_if_short = [&](Dim length) {
    const int64_t now = dims.hint(length);
    return b.one_op() && now < kShort && dims.equal(length, now) ? Dim(now) : length;
  };
  // Equal bins are a view. By a guard in eager only: a function with several of these would be compiled for each
  // mixture.
  const Dim width = dims.floor_div(size, count), covered = dims.mul(width, count);
  if (b.one_op() ? dims.equal(covered, size) : dims.same(covered, size)) {
    const Dim each = known_if_short(width);
    return {b.reshape(x, with(each)), GraphBuilder::divisor(each),
            b.reshape(b.mul(bin, GraphBuilder::size_operand(each)), line), true};
  }
  const Dim widest = known_if_short(dims.add(dims.ceil_div(size, count), 1));
  Operand length = GraphBuilder::size_operand(size), bins = GraphBuilder::size_operand(count);
  Operand start = b.floor_divide(b.mul(bin, length), bins);
  Operand reach = b.add(b.mul(b.add(bin, integer(1)), length), GraphBuilder::size_operand(dims.sub(count, 1)));
  Operand end = b.floor_divide(reach, bins);
  Operand at = b.add(start, b.arange(integer(0), integer(1), Dims{widest}, DType::i64));
  Operand inside = b.lt(at, end);
  Operand place = b.reshape(b.clamp_max(at, GraphBuilder::size_operand(dims.sub(size, 1))), {dims.mul(widest, count)});
  Operand elements = b.reshape(b.index_select(x, place, GraphBuilder::attr(static_cast<int64_t>(dim))), with(widest));
  Dims mask = line;
  mask.insert(1, widest);
  return {b.where(b.reshape(inside, mask), elements, fill), b.reshape(b.sub(end, start), line), b.reshape(start, line)};
}

enum class Order { last_dim_first, first_dim_first };

/// Bins of the last dims, one dim after the other, each combined by `combine`(bins, dim of their elements, what was
/// cut).
template <class Combine>
Operand binned(GraphBuilder& b, const CompositeCall& call, Order order, const Operand& fill, Combine combine) {
  Operand x = call.operands[0];
  size_t spatial = spatial_dims(call.op);
  for (size_t done = 0; done < spatial; ++done) {
    const size_t i = order == Order::first_dim_first ? done : spatial - 1 - done;
    size_t dim = b.rank(x) - spatial + i;
    Dim count = size_entry(call, "output_size", i);
    Attr at = GraphBuilder::attr(static_cast<int64_t>(dim));
    if (!b.dims().less(0, count))
      x = b.slice(x, at, Dims{0}, Dims{0}, GraphBuilder::attr(1));
    else if (!(b.shape(x)[dim] == count))
      x = combine(cut(b, x, dim, count, fill), static_cast<int64_t>(dim) + 1, x);
  }
  return x;
}

// By a guard where a size is a symbol: the mean sums in another order than the bins.
bool is_global(GraphBuilder& b, const CompositeCall& call) {
  for (Dim d : call.attribute("output_size").list)
    if (!b.dims().is_one(d)) return false;
  return true;
}

Outputs adaptive_avg_pool(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  size_t spatial = spatial_dims(call.op);
  if (is_global(b, call)) {
    Dims dims;
    for (size_t i = b.rank(x) - spatial; i < b.rank(x); ++i) dims.push_back(static_cast<int64_t>(i));
    return {b.mean(x, dims, GraphBuilder::flag(true))};
  }
  // -0 is what changes no sum. Whole lines are added before few of them are cut.
  return {binned(b, call, Order::first_dim_first, Operand::constant(-0.0),
                 [&](const Bins& bins, int64_t dim, const Operand&) {
                   return b.div(b.reduce_dims(OpId::sum, bins.elements, {dim}, false), bins.sizes);
                 })};
}

/// x, whose gradient is a sum of two: -0 is +0 in it, as a scatter to zeros has it.
Operand with_added_gradient(GraphBuilder& b, const Operand& x) {
  return b.where(b.scalar(Operand::constant(true), DType::bool_), x, x);
}

// By max rather than amax: of equal elements the first one in memory has the gradient. Where the size of a bin is not
// known the gradient goes to the places of the maxima rather than through all that the bins hold.
Outputs adaptive_max_pool(GraphBuilder& b, const CompositeCall& call) {
  return {binned(b, call, Order::last_dim_first, least_of(b.dtype(call.operands[0])),
                 [&](const Bins& bins, int64_t dim, const Operand& x) {
                   const Attr along = GraphBuilder::attr(dim);
                   const bool known = bins.even && b.shape(bins.elements)[dim].is_constant();
                   if (!b.deriving()) return b.max(bins.elements, along);
                   if (known) return b.max(with_added_gradient(b, bins.elements), along);
                   const Operand place = b.add(b.argmax(bins.elements, along), bins.starts);
                   return b.gather(x, place, GraphBuilder::attr(dim - 1));
                 })};
}

/// The windows of im2col and col2im over an image of these sizes.
std::vector<Slide> patch_slides(GraphBuilder& b, const CompositeCall& call, Dim height, Dim width) {
  std::vector<Slide> slides;
  for (size_t i = 0; i < 2; ++i)
    slides.push_back(make_slide(b, entry(call, "kernel_size", i), entry(call, "stride", i), entry(call, "padding", i),
                                entry(call, "dilation", i), false, i ? width : height));
  return slides;
}

}  // namespace

namespace decompositions {

Outputs max_pool1d(GraphBuilder& b, const CompositeCall& call) { return max_pool(b, call); }
Outputs max_pool2d(GraphBuilder& b, const CompositeCall& call) { return max_pool(b, call); }
Outputs max_pool3d(GraphBuilder& b, const CompositeCall& call) { return max_pool(b, call); }
Outputs avg_pool1d(GraphBuilder& b, const CompositeCall& call) { return avg_pool(b, call); }
Outputs avg_pool2d(GraphBuilder& b, const CompositeCall& call) { return avg_pool(b, call); }
Outputs avg_pool3d(GraphBuilder& b, const CompositeCall& call) { return avg_pool(b, call); }
Outputs adaptive_avg_pool1d(GraphBuilder& b, const CompositeCall& call) { return adaptive_avg_pool(b, call); }
Outputs adaptive_avg_pool2d(GraphBuilder& b, const CompositeCall& call) { return adaptive_avg_pool(b, call); }
Outputs adaptive_avg_pool3d(GraphBuilder& b, const CompositeCall& call) { return adaptive_avg_pool(b, call); }
Outputs adaptive_max_pool1d(GraphBuilder& b, const CompositeCall& call) { return adaptive_max_pool(b, call); }
Outputs adaptive_max_pool2d(GraphBuilder& b, const CompositeCall& call) { return adaptive_max_pool(b, call); }
Outputs adaptive_max_pool3d(GraphBuilder& b, const CompositeCall& call) { return adaptive_max_pool(b, call); }

Outputs im2col(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  const Dims shape = b.shape(x);
  DimTable& dims = b.dims();
  int64_t rank = static_cast<int64_t>(shape.size()), channel = rank - 3;
  std::vector<Slide> slides = patch_slides(b, call, shape[rank - 2], shape[rank - 1]);
  Operand windows = window_views(b, padded(b, x, slides, zero_of(b.dtype(x))), slides);
  // [.., c, oh, ow, kh, kw] -> [.., c * kh * kw, oh * ow].
  Dims order, result;
  for (int64_t i = 0; i <= channel; ++i) order.push_back(i);
  for (int64_t i : {rank, rank + 1, rank - 2, rank - 1}) order.push_back(i);
  for (int64_t i = 0; i < channel; ++i) result.push_back(shape[i]);
  result.push_back(dims.mul(shape[channel], taps(slides)));
  result.push_back(dims.mul(slides[0].count, slides[1].count));
  return {b.reshape(b.permute(windows, order), result)};
}

Outputs col2im(GraphBuilder& b, const CompositeCall& call) {
  const Operand& x = call.operands[0];
  const Dims& image = call.attribute("output_size").list;
  DimTable& dims = b.dims();
  std::vector<Slide> slides = patch_slides(b, call, image[0], image[1]);
  const Dims whole = b.shape(x);
  Dims shape(whole.begin(), whole.end() - 2);
  shape.push_back(dims.floor_div(b.shape(x)[shape.size()], taps(slides)));
  size_t tap = shape.size();
  for (Dim d : {Dim(slides[0].kernel), Dim(slides[1].kernel), slides[0].count, slides[1].count}) shape.push_back(d);
  Operand rows = overlap_added(b, b.reshape(x, shape), tap + 1, tap + 3, slides[1], image[1]);
  return {overlap_added(b, rows, tap, tap + 1, slides[0], image[0])};
}

}  // namespace decompositions
}  // namespace ingot::ir
