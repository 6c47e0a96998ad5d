// Pooling and patches.
#include "ir/decompose/pooling.h"

#include <limits>

#include "ir/derivatives/support.h"

namespace ingot::ir::derivatives {
namespace {

CompositeCall forward(GraphBuilder& b, const DerivedCall& call) {
  return {call.op, call.operands, call.attrs, b.dtype(call.cotangent()), b.shape(call.cotangent())};
}

/// How far a place lies from the start of a window that holds it: t * stride + r for the t-th window that reaches it.
struct Reach {
  int64_t stride, terms;
  explicit Reach(const Slide& s) : stride(s.stride), terms((s.extent() + s.stride - 1) / s.stride) {}
  int64_t size() const { return terms * stride; }
};

/// Of places within windows: as narrow as the elements of most images where windows are not huge.
DType place_type(const std::vector<Reach>& reaches) {
  int64_t places = 1;
  for (const Reach& r : reaches)
    if (__builtin_mul_overflow(places, r.size(), &places)) return DType::i64;
  return places <= std::numeric_limits<int32_t>::max() ? DType::i32 : DType::i64;
}

/// For each window of a tensor that holds them all, how far its first maximum (or its last NaN) lies from its start,
/// counted row by row over `reaches`. It starts as `at`, which its first tap is `known` behind.
Operand first_of_windows(GraphBuilder& b, const Operand& whole, const std::vector<Slide>& slides,
                         const std::vector<Reach>& reaches, Operand at, int64_t known) {
  Operand best;
  for (int64_t tap = 0; tap < taps(slides); ++tap) {
    int64_t offset = known, unit = 1;
    for (size_t i = slides.size(), rest = static_cast<size_t>(tap); i-- > 0;) {
      offset += static_cast<int64_t>(rest % slides[i].kernel) * slides[i].dilation * unit;
      rest /= slides[i].kernel;
      unit *= reaches[i].size();
    }
    const Operand element = window_element(b, whole, slides, tap);
    if (tap == 0) {
      best = element;
      at = b.expand(at, Attr::of(b.shape(element)));
      continue;
    }
    const Operand better = b.logical_or(b.gt(element, best), b.isnan(element));
    best = b.where(better, element, best);
    at = b.where(better, GraphBuilder::integer(offset), at);
  }
  return at;
}

/// The same of any tensor: the first place within it is the maximum where nothing is above the padding.
Operand first_maximum(GraphBuilder& b, const Operand& x, const std::vector<Slide>& slides,
                      const std::vector<Reach>& reaches) {
  const DType place = place_type(reaches);
  const Operand inside = without_border(
      b, x, slides, [&](const Operand& part, const std::vector<Slide>& windows, const std::vector<int64_t>& missing) {
        int64_t known = 0, unit = 1;
        for (size_t i = windows.size(); i-- > 0; unit *= reaches[i].size()) known += missing[i] * unit;
        return first_of_windows(b, part, windows, reaches, b.scalar(GraphBuilder::integer(known), place), known);
      });
  if (inside.present()) return inside;
  Operand at = b.scalar(GraphBuilder::integer(0), place);
  for (size_t i = slides.size(), unit = 1; i-- > 0; unit *= static_cast<size_t>(reaches[i].size())) {
    const Slide& s = slides[i];
    if (s.padding == 0) continue;
    const Operand start = b.mul(coordinate(b, s.count, i, slides.size()), GraphBuilder::integer(s.stride));
    Operand missing = b.clamp_min(b.rsub(start, GraphBuilder::integer(s.padding)), GraphBuilder::integer(0));
    if (s.dilation > 1) {
      missing =
          b.floor_divide(b.add(missing, GraphBuilder::integer(s.dilation - 1)), GraphBuilder::integer(s.dilation));
      missing = b.mul(missing, GraphBuilder::integer(s.dilation));
    }
    at = b.add(at, b.mul(b.to(missing, place), GraphBuilder::integer(static_cast<int64_t>(unit))));
  }
  return first_of_windows(b, padded(b, x, slides, least_of(b.dtype(x))), slides, reaches, at, 0);
}

/// The gradients of the windows whose first maximum each place was: nothing is scattered, and the order of the sum is
/// that of the windows, from the last one to the first. Places are counted from `before` places in front of the input,
/// in blocks of a stride.
class Gathered {
 public:
  Gathered(GraphBuilder& b, const DerivedCall& call, const std::vector<Slide>& slides,
           const std::vector<Reach>& reaches)
      : b_(b),
        slides_(slides),
        reaches_(reaches),
        places_(b.shape(call.operands[0])),
        first_(places_.size() - slides.size()) {
    int64_t places = 1;
    for (const Reach& r : reaches_) places *= r.stride;
    apart_ = places <= kFewPlaces;
    DimTable& dims = b.dims();
    Dims pad;
    for (size_t i = slides.size(); i-- > 0;) {
      const Slide& s = slides[i];
      const Reach& r = reaches[i];
      // Apart, a place has a block of windows of its own, and the blocks are those of the result.
      const Dim whole = dims.floor_div(s.size, r.stride), covered = dims.mul(whole, r.stride);
      const bool even = apart_ && (b.one_op() ? dims.equal(covered, s.size) : dims.same(covered, s.size));
      const Dim blocks = !apart_ ? dims.add(s.count, r.terms - 1) : even ? whole : dims.ceil_div(s.size, r.stride);
      places_[first_ + i] = even ? s.size : dims.mul(blocks, r.stride);
      blocks_.insert(0, blocks);
      // Beyond the first and last window there is none.
      const Dim end = dims.add(blocks, apart_ ? (r.stride - 1 + s.padding) / r.stride : 0);
      pad.push_back(r.terms - 1);
      pad.push_back(dims.less(s.count, end) ? dims.sub(end, s.count) : Dim(0));
    }
    at_ = b.constant_pad_nd(first_maximum(b, call.operands[0], slides, reaches), GraphBuilder::integer(-1),
                            Attr::of(pad));
    g_ = b.constant_pad_nd(call.cotangent(), Operand::constant(0.0), Attr::of(pad));
  }

  /// With the shape of the input.
  Operand sums() const {
    Operand sum = b_.reshape(joined({}), places_);
    for (size_t i = 0; i < slides_.size(); ++i)
      if (!apart_ || !(places_[first_ + i] == slides_[i].size))
        sum = cut_out(b_, sum, first_ + i, apart_ ? 0 : slides_[i].padding, slides_[i].size);
    return sum;
  }

 private:
  /// So many places of a stride are joined, each a loop over the windows as they lie; more are dims of one loop.
  static constexpr int64_t kFewPlaces = 9;

  /// As [.., blocks, stride, ..]: the places that lie so far behind the start of a block in the first dims; in the
  /// others all of them.
  Operand joined(std::vector<int64_t> places) const {
    const size_t i = places.size();
    if (!apart_ || i == slides_.size()) return sum(places);
    std::vector<Operand> parts;
    places.push_back(0);
    for (int64_t& place = places.back(); place < reaches_[i].stride; ++place) parts.push_back(joined(places));
    if (parts.size() == 1) return parts[0];
    return b_.call(OpId::cat, std::move(parts), {GraphBuilder::attr(static_cast<int64_t>(first_ + 2 * i + 1))})[0];
  }

  Operand sum(const std::vector<int64_t>& places) const {
    int64_t combinations = 1;
    bool left_out = false;
    for (const Reach& r : reaches_) combinations *= r.terms;
    Operand sum;
    for (int64_t combination = 0; combination < combinations; ++combination) {
      const Operand term = of_windows_before(combination, places);
      if (!term.present())
        left_out = true;
      else
        sum = sum.present() ? b_.add(sum, term) : term;
    }
    if (!sum.present()) return none();
    // What no window has there is a zero of the sum like any other: +0, to which -0 is added.
    return left_out ? b_.add(sum, Operand::constant(0.0)) : sum;
  }

  /// Zeros, of places that no window reaches.
  Operand none() const {
    Dims shape = b_.shape(g_);
    for (size_t i = slides_.size(); i-- > 0;) {
      shape[first_ + i] = blocks_[i];
      shape.insert(first_ + i + 1, 1);
    }
    return zeros(b_, shape, b_.dtype(g_));
  }

  /// What the windows give that lie t before each place's own, t by dim as `combination` counts; absent where these do
  /// not hold it.
  Operand of_windows_before(int64_t combination, const std::vector<int64_t>& places) const {
    const size_t count = slides_.size();
    // As [.., blocks, 1, ..], and the offsets of places in the windows.
    Operand from = at_, given = g_, offset = b_.scalar(GraphBuilder::integer(0), b_.dtype(at_));
    int64_t known = 0, unit = 1;
    for (size_t i = count; i-- > 0;) {
      const Slide& s = slides_[i];
      const Reach& r = reaches_[i];
      const int64_t t = combination % r.terms, dim = static_cast<int64_t>(first_ + i);
      const int64_t place = apart_ ? places[i] + s.padding : 0, behind = t * r.stride + place % r.stride;
      combination /= r.terms;
      if (apart_ && (behind >= s.extent() || behind % s.dilation != 0)) return {};
      const int64_t start = place / r.stride + r.terms - 1 - t;
      auto moved = [&](const Operand& v) {
        const Operand part = b_.slice(v, GraphBuilder::attr(dim), Attr::of(Dims{start}),
                                      Attr::of(Dims{b_.dims().add(blocks_[i], start)}), GraphBuilder::attr(1));
        return b_.unsqueeze(part, GraphBuilder::attr(dim + 1));
      };
      from = moved(from);
      given = moved(given);
      if (apart_) {
        known += behind * unit;
      } else {
        const Operand all =
            b_.add(coordinate(b_, r.stride, 0, 2 * (count - i) - 1), GraphBuilder::integer(t * r.stride));
        offset = b_.add(offset, b_.mul(b_.to(all, b_.dtype(at_)), GraphBuilder::integer(unit)));
      }
      unit *= r.size();
    }
    return kept_where(b_, b_.eq(from, apart_ ? GraphBuilder::integer(known) : offset), given);
  }

  GraphBuilder& b_;
  const std::vector<Slide>& slides_;
  const std::vector<Reach>& reaches_;
  Dims places_;         // a tensor of all that blocks hold
  const size_t first_;  // pooled dim
  bool apart_;          // places of a block, joined
  Dims blocks_;         // of each pooled dim
  Operand at_, g_;      // of each window: its first maximum, its gradient
};

}  // namespace

Gradients max_pool(GraphBuilder& b, const DerivedCall& call) {
  const std::vector<Slide> slides = pool_slides(b, forward(b, call));
  const std::vector<Reach> reaches(slides.begin(), slides.end());
  return of_self(call, Gathered(b, call, slides, reaches).sums());
}

Gradients avg_pool(GraphBuilder& b, const DerivedCall& call) {
  const CompositeCall pool = forward(b, call);
  const std::vector<Slide> slides = pool_slides(b, pool);
  Operand g = averaged(b, pool, slides, call.cotangent());
  for (size_t i = 0; i < slides.size(); ++i) {
    const size_t dim = b.rank(g) - slides.size() + i;
    Operand windows = b.unsqueeze(g, GraphBuilder::attr(static_cast<int64_t>(dim)));
    Dims each = b.shape(windows);
    each[dim] = slides[i].kernel;
    g = overlap_added(b, b.expand(windows, Attr::of(each)), dim, dim + 1, slides[i], slides[i].size);
  }
  return of_self(call, g);
}

Gradients im2col(GraphBuilder& b, const DerivedCall& call) {
  const Dims shape = b.shape(call.operands[0]);
  std::vector<Attr> attrs{Attr::of(Dims(shape.end() - 2, shape.end()))};
  attrs.insert(attrs.end(), call.attrs.begin(), call.attrs.end());
  return of_self(call, b.call(OpId::col2im, {call.cotangent()}, attrs)[0]);
}
Gradients col2im(GraphBuilder& b, const DerivedCall& call) {
  return of_self(call, b.call(OpId::im2col, {call.cotangent()}, {call.attrs.begin() + 1, call.attrs.end()})[0]);
}

}  // namespace ingot::ir::derivatives
