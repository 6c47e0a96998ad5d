// Flips, rolls, diagonals, and writing to positions.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

Ints coordinates(int64_t position, const Ints& shape) {
  Ints at(shape.size());
  for (size_t d = shape.size(); d-- > 0; position /= shape[d]) at[d] = position % shape[d];
  return at;
}
int64_t position_of(const Ints& at, const Ints& shape) {
  int64_t position = 0;
  for (size_t d = 0; d < shape.size(); ++d) position = position * shape[d] + at[d];
  return position;
}

/// Element `at` of the output is element from(at) of self.
template <class From>
void move_elements(ReferenceContext& c, From from) {
  const ReferenceTensor& x = c.tensor("self");
  for (int64_t i = 0, n = c.out().size(); i < n; ++i)
    assign(c.out(), i, x, position_of(from(coordinates(i, c.out().shape)), x.shape));
}

void mirror(ReferenceContext& c, const Ints& dims) {
  const Ints& shape = c.out().shape;
  move_elements(c, [&](Ints at) {
    for (int64_t d : dims)
      if (!shape.empty()) at[d] = shape[d] - 1 - at[d];
    return at;
  });
}

/// Each line of self on a diagonal of the matrices in two dims of the output.
void put_on_diagonal(ReferenceContext& c, int64_t offset, size_t dim1, size_t dim2) {
  const ReferenceTensor& x = c.tensor("self");
  for (int64_t i = 0; i < x.size(); ++i) {
    Ints at = coordinates(i, x.shape);
    int64_t k = at.back(), row = k + std::max<int64_t>(0, -offset), column = k + std::max<int64_t>(0, offset);
    at.pop_back();
    at.insert(std::min(dim1, dim2), dim1 < dim2 ? row : column);
    at.insert(std::max(dim1, dim2), dim1 < dim2 ? column : row);
    assign(c.out(), position_of(at, c.out().shape), x, i);
  }
}

template <class Keeps>
void triangle_indices(ReferenceContext& c, Keeps keeps) {
  int64_t count = c.out().shape[1], next = 0, offset = c.integer("offset");
  const int64_t rows = c.list("row")[0], columns = c.list("col")[0];
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      if (!keeps(column, row + offset)) continue;
      c.out().integer[next] = row;
      c.out().integer[count + next++] = column;
    }
}

/// What one place of the output collects, in order.
struct Gathered {
  bool self = true;
  std::vector<int64_t> sources;
};

/// Joins self (where it takes part) and the sources that meet at each place. `source` gives element j of the source.
template <class Source>
void combine_cells(ReferenceContext& c, const std::map<int64_t, Gathered>& cells, std::string_view how, Source source) {
  const ReferenceTensor& self = c.tensor("self");
  ReferenceTensor& out = c.out();
  for (int64_t i = 0; i < out.size(); ++i) assign(out, i, self, i);
  for (const auto& [place, cell] : cells) {
    double real = self.at(place);
    int64_t whole = self.floating() ? 0 : self.integer[place];
    bool fresh = !cell.self;
    for (int64_t j : cell.sources) {
      ReferenceTensor x = source(j);
      double r = x.at(0);
      int64_t w = x.floating() ? 0 : x.integer[0];
      if (fresh || how == "none")
        real = r, whole = w;
      else if (how == "sum" || how == "mean" || how == "add")
        real += r, whole = plus(whole, w);
      else if (how == "prod" || how == "multiply")
        real *= r, whole = times(whole, w);
      else if (how == "amax")
        real = greatest(real, r), whole = std::max(whole, w);
      else
        real = least(real, r), whole = std::min(whole, w);
      fresh = false;
    }
    int64_t count = static_cast<int64_t>(cell.sources.size()) + cell.self;
    if (how == "mean") {
      real /= static_cast<double>(count);
      whole = whole / count - (whole % count < 0);
    }
    if (out.floating())
      out.real[place] = real;
    else
      out.integer[place] = whole;
  }
}

int64_t checked(const ReferenceContext& c, int64_t index, int64_t size, bool wraps = false) {
  if (wraps && index < 0 && index >= -size) return index + size;

  if (index < 0 || index >= size)
    c.refuse("index", std::to_string(index), "an index in 0.." + std::to_string(size - 1));
  return index;
}

/// One element, in the dtype of self.
ReferenceTensor element(const ReferenceContext& c, const Argument& from, int64_t j) {
  ReferenceTensor x(c.tensor("self").dtype, {});
  if (from.tensor) {
    assign(x, 0, *from.tensor, j);
    return x;
  }
  Reader reader(c, from, Ints(), x.dtype);
  if (x.floating())
    x.real[0] = reader.real(0);
  else
    x.integer[0] = reader.integer(0);
  return x;
}

/// Element j of the index writes element j of src to the place that it names along `dim`.
void scatter_elements(ReferenceContext& c, std::string_view how, bool include_self) {
  const ReferenceTensor &self = c.tensor("self"), &index = c.tensor("index");
  const Argument& src = c.argument("src");
  std::map<int64_t, Gathered> cells;
  for (int64_t j = 0; j < index.size(); ++j) {
    Ints at = coordinates(j, index.shape);
    int64_t from = src.tensor ? position_of(at, src.tensor->shape) : 0;
    int64_t dim = c.integer("dim"), size = self.shape.empty() ? 1 : self.shape[dim];
    int64_t place = checked(c, index.integer[j], size);
    if (!self.shape.empty()) {
      at[dim] = place;
      place = position_of(at, self.shape);
    }
    cells[place].self = include_self;
    cells[place].sources.push_back(from);
  }
  combine_cells(c, cells, how, [&](int64_t j) { return element(c, src, j); });
}

/// Position i of the index stands for slice i of the source along `dim`.
template <class Source>
void index_slices(ReferenceContext& c, std::string_view how, Source source, bool around = false) {
  const ReferenceTensor &self = c.tensor("self"), &index = c.tensor("index");
  int64_t dim = c.integer("dim"), size = self.shape.empty() ? 1 : self.shape[dim];
  Ints row = self.shape;
  if (!row.empty()) row[dim] = 1;
  std::map<int64_t, Gathered> cells;
  Ints whole = self.shape;
  if (!whole.empty()) whole[dim] = index.size();
  for (int64_t i = 0; i < index.size(); ++i)
    for (int64_t k = 0; k < product(row); ++k) {
      Ints at = coordinates(k, row), from = at;
      int64_t chosen = checked(c, index.integer[i], size, around);
      if (!row.empty()) at[dim] = chosen, from[dim] = i;
      cells[position_of(at, self.shape)].sources.push_back(row.empty() ? i : position_of(from, whole));
    }
  combine_cells(c, cells, how, source);
}

}  // namespace

void flip(ReferenceContext& c) { mirror(c, c.list("dims")); }
void fliplr(ReferenceContext& c) { mirror(c, {1}); }
void flipud(ReferenceContext& c) { mirror(c, {0}); }

void roll(ReferenceContext& c) {
  const Ints &shape = c.out().shape, &shifts = c.list("shifts");
  if (!c.has("dims") || c.list("dims").empty()) {
    int64_t n = c.out().size();
    for (int64_t i = 0; i < n; ++i) assign(c.out(), (i + shifts[0]) % n, c.tensor("self"), i);
    return;
  }
  const Ints& dims = c.list("dims");
  move_elements(c, [&](Ints at) {
    for (size_t i = 0; i < dims.size() && !shape.empty(); ++i) {
      int64_t n = shape[dims[i]];
      at[dims[i]] = ((at[dims[i]] - shifts[i]) % n + n) % n;
    }
    return at;
  });
}

/// k quarter turns from the first dim towards the second.
void rot90(ReferenceContext& c) {
  Ints dims = c.has("dims") && !c.list("dims").empty() ? c.list("dims") : Ints{0, 1};
  const Ints& shape = c.tensor("self").shape;
  int64_t a = dims[0], b = dims[1], k = (c.integer("k") % 4 + 4) % 4;
  move_elements(c, [&](Ints at) {
    int64_t i = at[a], j = at[b];
    at[a] = k == 0 ? i : k == 1 ? j : k == 2 ? shape[a] - 1 - i : shape[a] - 1 - j;
    at[b] = k == 0 ? j : k == 1 ? shape[b] - 1 - i : k == 2 ? shape[b] - 1 - j : i;
    return at;
  });
}

void diag(ReferenceContext& c) {
  int64_t offset = c.integer("diagonal");
  if (c.tensor("self").shape.size() == 1) return put_on_diagonal(c, offset, 0, 1);
  for (int64_t i = 0; i < c.out().size(); ++i) {
    Ints at{i + std::max<int64_t>(0, -offset), i + std::max<int64_t>(0, offset)};
    assign(c.out(), i, c.tensor("self"), position_of(at, c.tensor("self").shape));
  }
}
void diag_embed(ReferenceContext& c) {
  put_on_diagonal(c, c.integer("offset"), static_cast<size_t>(c.integer("dim1")),
                  static_cast<size_t>(c.integer("dim2")));
}
void trace(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("self");
  long double real = 0;
  int64_t whole = 0;
  for (int64_t i = 0; i < std::min(x.shape[0], x.shape[1]); ++i) {
    real += x.at(i * (x.shape[1] + 1));
    if (!x.floating()) whole = plus(whole, x.integer[i * (x.shape[1] + 1)]);
  }
  if (x.floating())
    c.out().real[0] = static_cast<double>(real);
  else
    c.out().integer[0] = whole;
}
void tril_indices(ReferenceContext& c) {
  triangle_indices(c, [](int64_t column, int64_t diagonal) { return column <= diagonal; });
}
void triu_indices(ReferenceContext& c) {
  triangle_indices(c, [](int64_t column, int64_t diagonal) { return column >= diagonal; });
}

void scatter(ReferenceContext& c) { scatter_elements(c, c.mode("reduce"), true); }
void scatter_reduce(ReferenceContext& c) { scatter_elements(c, c.mode("reduce"), c.flag("include_self")); }
void scatter_add(ReferenceContext& c) { scatter_elements(c, "sum", true); }
void index_add(ReferenceContext& c) {
  DType dtype = c.tensor("self").dtype;
  double alpha = c.number("alpha");
  index_slices(c, "sum", [&](int64_t j) {
    ReferenceTensor x = element(c, c.argument("source"), j);
    if (is_floating(dtype))
      x.real[0] *= alpha;
    else
      x.integer[0] = times(x.integer[0], static_cast<int64_t>(alpha));
    return x;
  });
}
void index_copy(ReferenceContext& c) {
  index_slices(c, "none", [&](int64_t j) { return element(c, c.argument("source"), j); });
}
void index_fill(ReferenceContext& c) {
  index_slices(
      c, "none", [&](int64_t) { return element(c, c.argument("value"), 0); }, true);
}

void take_along_dim(ReferenceContext& c) {
  const ReferenceTensor &x = c.tensor("self"), &indices = c.tensor("indices");
  if (!c.has("dim")) {
    for (int64_t i = 0; i < indices.size(); ++i) assign(c.out(), i, x, checked(c, indices.integer[i], x.size(), true));
    return;
  }
  int64_t dim = c.integer("dim");
  std::vector<int64_t> from_index = broadcast_positions(indices.shape, c.out().shape);
  for (int64_t i = 0; i < c.out().size(); ++i) {
    Ints at = coordinates(i, c.out().shape);
    for (size_t d = 0; d < at.size(); ++d)
      if (x.shape[d] == 1) at[d] = 0;
    at[dim] = checked(c, indices.integer[from_index[i]], x.shape[dim], true);
    assign(c.out(), i, x, position_of(at, x.shape));
  }
}

}  // namespace ingot::ir::reference
