// Creation, casts, views as gathers of values, joining and indexing.
#include <algorithm>

#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

/// The output is a strided view of `self` as it lies in row-major order.
void strided(ReferenceContext& c, const Ints& strides, int64_t offset = 0) {
  take_positions(c.tensor("self"), positions(c.out().shape, strides, offset), c.out());
}

void same_order(ReferenceContext& c) {
  Ints flat{c.out().size()};
  take_positions(c.tensor("self"), positions(flat, {1}), c.out());
}

/// Every element of the output from the operand broadcast to it.
void broadcast_from(ReferenceContext& c, std::string_view name) {
  ReferenceTensor& out = c.out();
  Reader from(c, c.argument(name), out.shape, out.dtype);
  for (int64_t i = 0, n = out.size(); i < n; ++i) {
    if (out.floating())
      out.real[i] = from.real(i);
    else
      out.integer[i] = from.integer(i);
  }
}

/// Joins tensors along a dim of the output; sizes of each along it are given.
void join(ReferenceContext& c, int64_t dim, bool members_lack_dim) {
  ReferenceTensor& out = c.out();
  Ints strides = strides_of(out.shape);
  int64_t start = 0;
  for (const Argument& member : c.list_members()) {
    const ReferenceTensor& t = *member.tensor;
    // An empty one-dim tensor joins with anything (PyTorch's legacy).
    if (t.shape.size() == 1 && t.shape[0] == 0) continue;
    Ints sizes = out.shape;
    sizes[dim] = members_lack_dim ? 1 : t.shape[dim];
    std::vector<int64_t> to = positions(sizes, strides, start * strides[dim]);
    ReferenceTensor cast = cast_to(c, t, out.dtype);
    for (size_t i = 0; i < to.size(); ++i) assign(out, to[i], cast, static_cast<int64_t>(i));
    start += sizes[dim];
  }
}

int64_t checked_index(const ReferenceContext& c, std::string_view name, int64_t index, int64_t size) {
  if (index < 0 || index >= size) c.refuse(name, std::to_string(index), "an index in 0.." + std::to_string(size - 1));
  return index;
}

/// Keeps the elements below or above a diagonal of the last two dims.
template <class Keeps>
void triangle(ReferenceContext& c, Keeps keeps) {
  const ReferenceTensor& x = c.tensor("self");
  int64_t columns = x.shape.back(), rows = x.shape[x.shape.size() - 2];
  for (int64_t i = 0, n = x.size(); i < n; ++i) {
    int64_t row = i / columns % rows, column = i % columns;
    if (keeps(row, column)) assign(c.out(), i, x, i);
  }
}

}  // namespace

void cast(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("self");
  for (int64_t i = 0, n = x.size(); i < n; ++i) assign(c.out(), i, x, i);
}
void clone(ReferenceContext& c) { same_order(c); }
void copy(ReferenceContext& c) { broadcast_from(c, "source"); }
void fill(ReferenceContext& c) { broadcast_from(c, "value"); }
void full(ReferenceContext& c) { broadcast_from(c, "fill_value"); }

void arange(ReferenceContext& c) {
  ReferenceTensor& out = c.out();
  // The two scalars keep double precision; only the result is rounded.
  Reader start(c, c.argument("start"), {}, out.floating() ? DType::f64 : out.dtype);
  Reader step(c, c.argument("step"), {}, out.floating() ? DType::f64 : out.dtype);
  for (int64_t i = 0, n = out.size(); i < n; ++i) {
    if (out.floating())
      out.real[i] = start.real(0) + static_cast<double>(i) * step.real(0);
    else
      out.integer[i] = plus(start.integer(0), times(i, step.integer(0)));
  }
}
/// Counted from the nearer end; ends of integers are integers.
void linspace(ReferenceContext& c) {
  ReferenceTensor& out = c.out();
  int64_t n = out.size();
  auto end_at = [&](std::string_view name) -> double {
    const Argument& end = c.argument(name);
    const bool fraction = end.tensor ? end.tensor->floating() : end.scalar.category == Category::floating;
    Reader whole(c, end, {}, out.dtype), real(c, end, {}, DType::f64);
    if (out.floating()) return real.real(0);
    return static_cast<double>(fraction ? saturate_to(out.dtype, real.real(0)) : whole.integer(0));
  };
  double start = end_at("start"), end = end_at("end");
  double step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  for (int64_t i = 0; i < n; ++i) {
    bool near = i < n / 2 || i == 0;
    put(out, i, near ? start + step * static_cast<double>(i) : end - step * static_cast<double>(n - 1 - i));
  }
}
void eye(ReferenceContext& c) {
  ReferenceTensor& out = c.out();
  for (int64_t d = 0; d < std::min(out.shape[0], out.shape[1]); ++d) put(out, d * (out.shape[1] + 1), int64_t{1});
}

void permute(ReferenceContext& c) {
  Ints own = strides_of(c.tensor("self").shape), strides;
  for (int64_t d : c.list("dims")) strides.push_back(own[d]);
  strided(c, strides);
}
void view(ReferenceContext& c) { same_order(c); }
void squeeze(ReferenceContext& c) { same_order(c); }
void unsqueeze(ReferenceContext& c) { same_order(c); }
void detach(ReferenceContext& c) { same_order(c); }
void expand(ReferenceContext& c) {
  take_positions(c.tensor("self"), broadcast_positions(c.tensor("self").shape, c.out().shape), c.out());
}
void select(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("self");
  int64_t dim = c.integer("dim"), index = c.integer("index");
  Ints strides = strides_of(x.shape);
  int64_t offset = index * strides[dim];
  strides.erase(dim);
  strided(c, strides, offset);
}
void slice(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("self");
  int64_t dim = c.integer("dim"), start = std::min(c.integer("start"), x.shape[dim]);
  Ints strides = strides_of(x.shape);
  int64_t offset = start * strides[dim];
  strides[dim] *= c.integer("step");
  strided(c, strides, offset);
}
/// The diagonal becomes the last dim. A positive offset lies above the main diagonal.
void diagonal(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("self");
  int64_t row = c.integer("dim1"), column = c.integer("dim2"), offset = c.integer("offset");
  Ints own = strides_of(x.shape), strides;
  for (int64_t d = 0; d < static_cast<int64_t>(own.size()); ++d)
    if (d != row && d != column) strides.push_back(own[d]);
  strides.push_back(own[row] + own[column]);
  strided(c, strides, offset < 0 ? -offset * own[row] : offset * own[column]);
}
/// Windows of a dim; their elements become the last dim.
void unfold(ReferenceContext& c) {
  Ints strides = strides_of(c.tensor("self").shape);
  if (strides.empty()) return strided(c, Ints(c.out().shape.size(), 1));
  int64_t dim = c.integer("dimension"), inner = strides[dim];
  strides[dim] *= c.integer("step");
  strides.push_back(inner);
  strided(c, strides);
}
void as_strided(ReferenceContext& c) { strided(c, c.list("stride"), c.integer("storage_offset")); }
void as_strided_scatter(ReferenceContext& c) {
  same_order(c);
  const ReferenceTensor& source = c.tensor("src");
  std::vector<int64_t> to = positions(c.list("size"), c.list("stride"), c.integer("storage_offset"));
  for (size_t i = 0; i < to.size(); ++i) assign(c.out(), to[i], source, static_cast<int64_t>(i));
}

void cat(ReferenceContext& c) { join(c, c.integer("dim"), false); }
void stack(ReferenceContext& c) { join(c, c.integer("dim"), true); }

void index_select(ReferenceContext& c) {
  const ReferenceTensor &x = c.tensor("self"), &index = c.tensor("index");
  if (x.shape.empty()) {
    for (int64_t i : index.integer) assign(c.out(), 0, x, checked_index(c, "index", i, 1));
    return;
  }
  int64_t dim = c.integer("dim");
  Ints row = x.shape;
  row[dim] = 1;
  Ints from_strides = strides_of(x.shape), to_strides = strides_of(c.out().shape);
  for (int64_t i = 0; i < index.size(); ++i) {
    int64_t chosen = checked_index(c, "index", index.integer[i], x.shape[dim]);
    std::vector<int64_t> from = positions(row, from_strides, chosen * from_strides[dim]);
    std::vector<int64_t> to = positions(row, to_strides, i * to_strides[dim]);
    for (size_t k = 0; k < to.size(); ++k) assign(c.out(), to[k], x, from[k]);
  }
}
void gather(ReferenceContext& c) {
  const ReferenceTensor &x = c.tensor("self"), &index = c.tensor("index");
  if (index.size() == 0) return;
  int64_t dim = c.integer("dim");
  Ints strides = strides_of(x.shape);
  int64_t stride = x.shape.empty() ? 1 : strides[dim], size = x.shape.empty() ? 1 : x.shape[dim];
  if (!x.shape.empty()) strides[dim] = 0;
  std::vector<int64_t> rows = positions(index.shape, index.shape.empty() ? Ints{}
                                                     : x.shape.empty()   ? Ints(index.shape.size(), 0)
                                                                         : strides);
  for (int64_t i = 0; i < index.size(); ++i)
    assign(c.out(), i, x, rows[i] + stride * checked_index(c, "index", index.integer[i], size));
}
void embedding(ReferenceContext& c) {
  const ReferenceTensor &weight = c.tensor("weight"), &indices = c.tensor("indices");
  int64_t width = weight.shape[1];
  for (int64_t i = 0; i < indices.size(); ++i) {
    int64_t row = checked_index(c, "indices", indices.integer[i], weight.shape[0]);
    for (int64_t k = 0; k < width; ++k) assign(c.out(), i * width + k, weight, row * width + k);
  }
}

void tril(ReferenceContext& c) {
  const int64_t diagonal = c.whole("diagonal");
  triangle(c, [=](int64_t row, int64_t column) { return column - row <= diagonal; });
}
void triu(ReferenceContext& c) {
  const int64_t diagonal = c.whole("diagonal");
  triangle(c, [=](int64_t row, int64_t column) { return column - row >= diagonal; });
}
/// Pairs (before, after) from the last dim inwards.
void constant_pad_nd(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("self");
  broadcast_from(c, "value");
  const Ints& pad = c.list("pad");
  Ints strides = strides_of(c.out().shape);
  int64_t offset = 0;
  for (size_t pair = 0; 2 * pair < pad.size(); ++pair) offset += pad[2 * pair] * strides[strides.size() - 1 - pair];
  std::vector<int64_t> to = positions(x.shape, strides, offset);
  for (size_t i = 0; i < to.size(); ++i) assign(c.out(), to[i], x, static_cast<int64_t>(i));
}

}  // namespace ingot::ir::reference
