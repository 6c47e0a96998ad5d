#include "ir/decompose/windows.h"

#include <algorithm>

namespace ingot::ir {

int64_t Slide::padding_after() const {
  // Beside what stands before, ceil_mode asks for less than a stride and less than a window: its last window starts
  // inside the input or the left padding.
  if (!size.is_constant()) return ceil_mode ? std::max(padding, std::min(padding + stride, extent()) - 1) : padding;
  return std::max<int64_t>(0, (count.code - 1) * stride + extent() - size.code - padding);
}

Dim size_entry(const CompositeCall& call, std::string_view name, size_t i) {
  const Dims& list = call.attribute(name).list;
  return list[list.size() == 1 ? 0 : i];
}
int64_t entry(const CompositeCall& call, std::string_view name, size_t i) { return size_entry(call, name, i).code; }

int64_t fixed_size(GraphBuilder& b, Dim size) {
  const int64_t value = b.dims().hint(size);
  INGOT_CHECK(b.dims().equal(size, Dim(value)));
  return value;
}

Slide make_slide(GraphBuilder& b, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode,
                 Dim size) {
  Slide s{kernel, stride, padding, dilation, ceil_mode, size, 0};
  DimTable& dims = b.dims();
  // With ceil_mode the last window may hang over the end, of an input smaller than it, too.
  Dim room = dims.sub(dims.add(size, 2 * padding + (ceil_mode ? stride - 1 : 0)), s.extent());
  s.count = dims.add(dims.floor_div(room, stride), 1);
  // The last window must start inside the input or the left padding.
  if (ceil_mode && !dims.less(dims.mul(dims.sub(s.count, 1), stride), dims.add(size, padding)))
    s.count = dims.sub(s.count, 1);
  return s;
}

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

Operand window_views(GraphBuilder& b, Operand x, const std::vector<Slide>& slides) {
  int64_t rank = static_cast<int64_t>(b.rank(x)), first = rank - static_cast<int64_t>(slides.size());
  for (size_t i = 0; i < slides.size(); ++i) {
    const Slide& s = slides[i];
    int64_t dim = first + static_cast<int64_t>(i), taps = rank + static_cast<int64_t>(i), reach = s.extent();
    x = b.unfold(x, GraphBuilder::attr(dim), Dims{reach}, GraphBuilder::attr(s.stride));
    if (!(b.shape(x)[dim] == s.count))
      x = b.slice(x, GraphBuilder::attr(dim), Dims{0}, Dims{s.count}, GraphBuilder::attr(1));
    if (s.dilation > 1) x = b.slice(x, GraphBuilder::attr(taps), Dims{0}, Dims{reach}, GraphBuilder::attr(s.dilation));
  }
  return x;
}

Operand zero_of(DType dtype) { return is_floating(dtype) ? Operand::constant(0.0) : GraphBuilder::integer(0); }

namespace {

/// x with dim `dim` as two, of these sizes.
Operand split_dim(GraphBuilder& b, const Operand& x, size_t dim, Dim outer, Dim inner) {
  Dims shape = b.shape(x);
  shape[dim] = outer;
  shape.insert(dim + 1, inner);
  return b.reshape(x, shape);
}

/// x with dims `dim` and dim + 1 as one.
Operand joined_dim(GraphBuilder& b, const Operand& x, size_t dim) {
  Dims shape = b.shape(x);
  shape[dim] = b.dims().mul(shape[dim], shape[dim + 1]);
  shape.erase(dim + 1);
  return b.reshape(x, shape);
}

}  // namespace

Operand extended(GraphBuilder& b, const Operand& x, size_t dim, Dim before, Dim after) {
  if (before == Dim(0) && after == Dim(0)) return x;
  Dims pad(2 * (b.rank(x) - dim), 0);
  pad[pad.size() - 2] = before;
  pad[pad.size() - 1] = after;
  return b.constant_pad_nd(x, zero_of(b.dtype(x)), pad);
}

Operand spaced(GraphBuilder& b, const Operand& x, size_t dim, int64_t dilation) {
  if (dilation == 1) return x;
  const int64_t size = fixed_size(b, b.shape(x)[dim]);
  if (size < 2) return x;
  Operand pairs = extended(b, split_dim(b, x, dim, size, 1), dim + 1, 0, dilation - 1);
  return b.slice(joined_dim(b, pairs, dim), GraphBuilder::attr(static_cast<int64_t>(dim)), Dims{0},
                 Dims{dilation * (size - 1) + 1}, GraphBuilder::attr(1));
}

Operand cut_out(GraphBuilder& b, const Operand& x, size_t dim, Dim first, Dim size) {
  DimTable& dims = b.dims();
  Dim end = dims.add(first, size), length = b.shape(x)[dim];
  Operand whole = dims.less(length, end) ? extended(b, x, dim, 0, dims.sub(end, length)) : x;
  return b.slice(whole, GraphBuilder::attr(static_cast<int64_t>(dim)), Dims{first}, Dims{end}, GraphBuilder::attr(1));
}

// Place q * stride + r gets element t * stride + r of window q - t, for every t: as many terms as strides fit into a
// window. Dilation is a window with zeros between its elements.
Operand overlap_added(GraphBuilder& b, Operand x, size_t tap, size_t at, const Slide& s, Dim size) {
  DimTable& dims = b.dims();
  int64_t extent = s.extent(), terms = (extent + s.stride - 1) / s.stride;
  x = spaced(b, x, tap, s.dilation);
  x = split_dim(b, extended(b, x, tap, 0, terms * s.stride - extent), tap, terms, s.stride);
  Dim windows = b.shape(x)[at + 1], places = dims.add(windows, terms - 1);
  x = extended(b, x, at + 1, terms - 1, terms - 1);
  Operand sum;
  for (int64_t t = 0; t < terms; ++t) {
    // The term's own dim is gone: the phases stand at `tap`, the windows at `at`.
    Operand term = b.select(x, GraphBuilder::attr(static_cast<int64_t>(tap)), Dims{t});
    term = b.slice(term, GraphBuilder::attr(static_cast<int64_t>(at)), Dims{terms - 1 - t},
                   Dims{dims.add(places, terms - 1 - t)}, GraphBuilder::attr(1));
    sum = sum.present() ? b.add(sum, term) : term;
  }
  Dims order;
  for (size_t i = 0; i < b.rank(sum); ++i) {
    if (i != tap) order.push_back(static_cast<int64_t>(i));
    if (i == at) order.push_back(static_cast<int64_t>(tap));
  }
  return cut_out(b, joined_dim(b, b.permute(sum, order), at - 1), at - 1, s.padding, size);
}

}  // namespace ingot::ir
