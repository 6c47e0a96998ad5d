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

/// For each window, how far its first maximum (or its last NaN) lies from its start, counted row by row over `reaches`.
/// It starts as the first place within the tensor: that is the maximum where nothing is above the padding.
Operand first_maximum(GraphBuilder& b, const Operand& x, const std::vector<Slide>& slides,
                      const std::vector<Reach>& reaches) {
  const Operand whole = padded(b, x, slides, least_of(b.dtype(x)));
  const DType place = place_type(reaches);
  Operand best, at = b.scalar(GraphBuilder::integer(0), place);
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
  for (int64_t tap = 0; tap < taps(slides); ++tap) {
    int64_t offset = 0, unit = 1;
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

}  // namespace

// Each place asks the windows that hold it whether it was their first maximum: nothing is scattered, and the order of
// the sum is that of the windows, from the last one to the first.
Gradients max_pool(GraphBuilder& b, const DerivedCall& call) {
  const Operand& x = call.operands[0];
  const std::vector<Slide> slides = pool_slides(b, forward(b, call));
  const std::vector<Reach> reaches(slides.begin(), slides.end());
  const size_t count = slides.size(), first = b.rank(x) - count;
  Operand at = first_maximum(b, x, slides, reaches), g = call.cotangent();

  // Beyond the first and last window there is none.
  Dims pad;
  for (size_t i = count; i-- > 0;) pad.push_back(reaches[i].terms - 1), pad.push_back(reaches[i].terms - 1);
  at = b.constant_pad_nd(at, GraphBuilder::integer(-1), Attr::of(pad));
  g = b.constant_pad_nd(g, Operand::constant(0.0), Attr::of(pad));

  int64_t combinations = 1;
  for (const Reach& r : reaches) combinations *= r.terms;
  Operand sum;
  for (int64_t combination = 0; combination < combinations; ++combination) {
    // The windows that lie t before each place's own, as [.., windows, 1, ..], and the place's offset in them.
    Operand from = at, given = g, offset = b.scalar(GraphBuilder::integer(0), b.dtype(at));
    int64_t rest = combination, unit = 1;
    for (size_t i = count; i-- > 0;) {
      const Reach& r = reaches[i];
      const int64_t t = rest % r.terms, dim = static_cast<int64_t>(first + i);
      rest /= r.terms;
      const Dim end = b.dims().add(slides[i].count, 2 * (r.terms - 1) - t);
      auto moved = [&](const Operand& v) {
        const Operand part = b.slice(v, GraphBuilder::attr(dim), Attr::of(Dims{r.terms - 1 - t}), Attr::of(Dims{end}),
                                     GraphBuilder::attr(1));
        return b.unsqueeze(part, GraphBuilder::attr(dim + 1));
      };
      from = moved(from);
      given = moved(given);
      const Operand phase = b.add(coordinate(b, r.stride, 0, 2 * (count - i) - 1), GraphBuilder::integer(t * r.stride));
      offset = b.add(offset, b.mul(b.to(phase, b.dtype(at)), GraphBuilder::integer(unit)));
      unit *= r.size();
    }
    const Operand term = where(b, b.eq(from, offset), given);
    sum = sum.present() ? b.add(sum, term) : term;
  }

  Dims places = b.shape(x);
  for (size_t i = 0; i < count; ++i)
    places[first + i] = b.dims().mul(b.dims().add(slides[i].count, reaches[i].terms - 1), reaches[i].stride);
  sum = b.reshape(sum, places);
  for (size_t i = 0; i < count; ++i) sum = cut_out(b, sum, first + i, slides[i].padding, slides[i].size);
  return of_self(call, sum);
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
