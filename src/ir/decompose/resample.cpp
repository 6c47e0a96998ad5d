// Resampling of images: each spatial dim by itself, the last first. Positions are counted in double.
#include "ir/decompose.h"
#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {
enum Mode : int64_t { kNearest, kNearestExact, kLinear, kCubic };  // in the order of the table's words

/// One dim: its size, the size of the result, and by which factor it grows, where that is given.
struct Line {
  int64_t dim;
  Dim from, to;
  Operand scale;
  bool align_corners;
};

Operand size_in(GraphBuilder& b, Dim size, DType dtype) { return b.scalar(GraphBuilder::divisor(size), dtype); }

Operand counted(GraphBuilder& b, Dim size, DType dtype) {
  return b.arange(GraphBuilder::integer(0), GraphBuilder::integer(1), Dims{size}, dtype);
}

/// How far apart in the input two neighbours of the result are: by the factor, or by the sizes where there is none. As
/// in PyTorch one that is not above 0 counts as none.
Operand step(GraphBuilder& b, const Line& line, DType dtype) {
  const Operand by_sizes = b.div(size_in(b, line.from, dtype), size_in(b, line.to, dtype));
  if (!line.scale.present()) return by_sizes;
  const Operand scale = b.scalar(line.scale, DType::f64);
  return b.where(b.gt(scale, 0.0), b.to(b.reciprocal(scale), dtype), by_sizes);
}

/// The position in the input of each element of the result.
Operand positions(GraphBuilder& b, const Line& line) {
  DimTable& dims = b.dims();
  Operand i = counted(b, line.to, DType::f64);
  if (line.align_corners) {
    Operand gaps = size_in(b, dims.max(dims.sub(line.to, 1), 1), DType::f64);
    return b.mul(i, b.div(size_in(b, dims.sub(line.from, 1), DType::f64), gaps));
  }
  return b.sub(b.mul(b.add(i, 0.5), step(b, line, DType::f64)), 0.5);
}

/// The elements of x at these positions of a dim, which are drawn to its ends where they lie outside.
Operand taken(GraphBuilder& b, const Operand& x, const Line& line, const Operand& whole) {
  Operand last = GraphBuilder::size_operand(b.dims().sub(line.from, 1));
  Operand place = b.clamp(b.to(whole, DType::i64), GraphBuilder::integer(0), last);
  return b.index_select(x, place, GraphBuilder::attr(line.dim));
}

/// A factor for each place of a dim, in the dtype of x.
Operand factor(GraphBuilder& b, const Operand& x, const Line& line, const Operand& values) {
  Dims sizes(b.rank(x) - line.dim, 1);
  sizes[0] = line.to;
  return b.reshape(b.to(values, b.dtype(x)), sizes);
}

// In f32, whatever the image: at the border between two elements the last bit decides, and PyTorch's rule is this one.
Operand nearest(GraphBuilder& b, const Operand& x, const Line& line, bool exact) {
  Operand i = counted(b, line.to, DType::f32);
  return taken(b, x, line, b.floor(b.mul(exact ? b.add(i, 0.5) : i, step(b, line, DType::f32))));
}

Operand linear(GraphBuilder& b, const Operand& x, const Line& line) {
  Operand at = b.clamp_min(positions(b, line), 0.0), before = b.floor(at), share = b.sub(at, before);
  Operand left = taken(b, x, line, before), right = taken(b, x, line, b.add(before, 1.0));
  return b.add(b.mul(left, factor(b, x, line, b.rsub(share, 1.0))), b.mul(right, factor(b, x, line, share)));
}

/// Keys' cubic convolution (1981): the weight of an element at this distance. PyTorch's a is -3/4; with antialias -1/2.
Operand cubic_weight(GraphBuilder& b, const Operand& distance, bool near, double a = -0.75) {
  if (near) {
    Operand inner = b.sub(b.mul(distance, a + 2), a + 3);
    return b.add(b.mul(b.mul(inner, distance), distance), 1.0);
  }
  Operand inner = b.add(b.mul(b.sub(b.mul(distance, a), 5 * a), distance), 8 * a);
  return b.sub(b.mul(inner, distance), 4 * a);
}

Operand cubic(GraphBuilder& b, const Operand& x, const Line& line) {
  Operand at = positions(b, line), before = b.floor(at), share = b.sub(at, before), sum;
  for (int tap = -1; tap <= 2; ++tap) {
    Operand distance = tap <= 0 ? b.add(share, static_cast<double>(-tap)) : b.rsub(share, static_cast<double>(tap));
    Operand weight = factor(b, x, line, cubic_weight(b, distance, tap == 0 || tap == 1));
    Operand term = b.mul(taken(b, x, line, b.add(before, static_cast<double>(tap))), weight);
    sum = sum.present() ? b.add(sum, term) : term;
  }
  return sum;
}

/// Each element of the result as the mean of all that it covers, weighed by the filter at its distance, which is as
/// wide as elements of the result are apart.
Operand antialiased(GraphBuilder& b, const Operand& x, const Line& line, bool is_cubic) {
  DimTable& dims = b.dims();
  const Dim gaps = line.align_corners ? dims.sub(line.from, 1) : line.from;
  const Dim parts = line.align_corners ? dims.max(dims.sub(line.to, 1), 1) : line.to;
  const int64_t reach = is_cubic ? 2 : 1;
  const Dim taps = dims.max(dims.ceil_div(dims.mul(gaps, 2 * reach), parts), 2 * reach);
  const Operand by_sizes = b.div(size_in(b, gaps, DType::f64), size_in(b, parts, DType::f64));
  Operand apart = by_sizes;
  if (line.align_corners)
    apart = b.where(b.gt(size_in(b, line.to, DType::f64), 1.0), by_sizes, 0.0);
  else if (line.scale.present())
    apart = b.minimum(step(b, line, DType::f64), by_sizes);
  const Operand width = b.clamp_min(apart, 1.0), support = b.mul(width, static_cast<double>(reach));
  const Operand centre = b.mul(b.add(counted(b, line.to, DType::f64), 0.5), apart);
  const Operand begin = b.clamp_min(b.floor(b.add(b.sub(centre, support), 0.5)), 0.0);
  const Operand end = b.minimum(b.floor(b.add(b.add(centre, support), 0.5)), size_in(b, line.from, DType::f64));
  // [taps, to]: lines of the result are added, which are longer than the few elements of one.
  const Operand place = b.add(begin, b.unsqueeze(counted(b, taps, DType::f64), GraphBuilder::attr(1)));
  const Operand inside = b.lt(place, end);
  const Operand distance = b.abs(b.div(b.add(b.sub(place, centre), 0.5), width));
  const Operand outside = b.ge(distance, static_cast<double>(reach));
  Operand weight = is_cubic ? b.where(b.lt(distance, 1.0), cubic_weight(b, distance, true, -0.5),
                                      cubic_weight(b, distance, false, -0.5))
                            : b.rsub(distance, 1.0);
  weight = b.where(b.logical_and(inside, b.logical_not(outside)), weight, 0.0);
  weight = b.div(weight, b.reduce_dims(OpId::sum, weight, {0}, true));
  // What lies outside is not even multiplied by 0: it may be infinite.
  const auto along = [&](const Operand& values) {
    Dims sizes(b.rank(x) - line.dim + 1, 1);
    sizes[0] = taps;
    sizes[1] = line.to;
    return b.reshape(values, sizes);
  };
  Dims sizes = b.shape(x);
  sizes[line.dim] = line.to;
  sizes.insert(static_cast<size_t>(line.dim), taps);
  const Operand read = b.reshape(taken(b, x, line, b.reshape(place, {dims.mul(taps, line.to)})), sizes);
  const Operand terms = b.where(along(inside), b.mul(read, along(b.to(weight, b.dtype(x)))), 0.0);
  return b.reduce_dims(OpId::sum, terms, {line.dim}, false);
}

}  // namespace

namespace decompositions {

// Bytes are rounded to bytes after each dim, halves upwards, as PyTorch does.
Outputs upsample(GraphBuilder& b, const CompositeCall& call) {
  Operand x = call.operands[0];
  int64_t mode = call.integer("mode");
  const Dims& sizes = call.attribute("output_size").list;
  bool bytes = !is_floating(b.dtype(x)) && mode >= kLinear;
  if (bytes) x = b.to(x, DType::f32);
  for (size_t i = sizes.size(); i-- > 0;) {
    int64_t dim = static_cast<int64_t>(2 + i);
    // Factors are those of the last dims.
    const Line line{dim, b.shape(x)[dim], sizes[i], call.operands[4 - sizes.size() + i], call.flag("align_corners")};
    if (call.flag("antialias"))
      x = antialiased(b, x, line, mode == kCubic);
    else if (mode == kLinear)
      x = linear(b, x, line);
    else if (mode == kCubic)
      x = cubic(b, x, line);
    else
      x = nearest(b, x, line, mode == kNearestExact);
    if (bytes) x = b.clamp(b.floor(b.add(x, 0.5)), 0.0, 255.0);
  }
  return {x};
}

}  // namespace decompositions
}  // namespace ingot::ir
