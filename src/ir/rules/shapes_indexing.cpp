// Shape rules of writing to positions, of order and search, and of movement along dims.
#include <algorithm>
#include <cstdlib>

#include "ir/rules/rules.h"

namespace ingot::ir::shapes {
namespace {

void set_self(RuleContext& context) {
  for (TensorType& output : context.outputs) output.shape = shape_of(context, 0);
}

std::string self_text(RuleContext& context) { return given_shape(context, shape_of(context, 0)); }

/// True if every size of `inner` but that of `dim` is known to be at most the other's; a zero-dim tensor has size 1.
bool fits(RuleContext& context, const Dims& inner, const Dims& outer, int64_t dim) {
  const size_t rank = std::max<size_t>(inner.size(), 1);
  if (rank != std::max<size_t>(outer.size(), 1)) return false;
  for (size_t d = 0; d < rank; ++d) {
    const Dim own = inner.empty() ? Dim(1) : inner[d], other = outer.empty() ? Dim(1) : outer[d];
    if (static_cast<int64_t>(d) != dim && !(own == other) && context.dims.less(other, own)) return false;
  }
  return true;
}

/// Dims in a list, each in range and once; all where the list is absent.
void check_dims(RuleContext& context, std::string_view name) {
  size_t rank = shape_of(context, 0).size();
  SmallVector<bool, 8> seen(std::max<size_t>(rank, 1));
  const Dims& list = attribute(context, name).list;
  for (Dim d : list) {
    check_dim(context, name, d.code, rank);
    if (seen[d.code]) context.fail(name, shape_text(context.dims, list), "each dim once");
    seen[d.code] = true;
  }
}

void check_rank_from(RuleContext& context, size_t least) {
  if (shape_of(context, 0).size() < least)
    context.fail("self", self_text(context), "at least " + std::to_string(least) + " dims");
}

/// The size of the dim of self that attribute `dim` names; 1 of a zero-dim tensor.
Dim size_along(RuleContext& context) {
  const Dims& self = shape_of(context, 0);
  int64_t dim = integer_attribute(context, "dim");
  check_dim(context, "dim", dim, self.size());
  return self.empty() ? Dim(1) : self[dim];
}

void check_k(RuleContext& context, int64_t least) {
  Dim k = attribute(context, "k").list[0], size = size_along(context);
  if (shape_of(context, 0).empty()) least = 1;  // its result has an element
  if (context.dims.less(size, k) || context.dims.less(k, least))
    context.fail("k", context.dims.str(k), std::to_string(least) + " to " + context.dims.str(size));
}

/// Number of elements of a matrix on and below a diagonal.
int64_t triangle_count(int64_t rows, int64_t columns, int64_t offset) {
  // Row r has clamp(r + offset + 1, 0, columns) of them: none before `first`, all from `full` on.
  using Wide = __int128;
  int64_t first = std::clamp<int64_t>(-offset - 1, 0, rows);
  int64_t full = std::clamp<int64_t>(columns - offset - 1, first, rows);
  Wide growing = Wide(full - first) * (Wide(first) + full - 1 + 2 * (Wide(offset) + 1)) / 2;
  Wide count = growing + Wide(rows - full) * columns;
  return static_cast<int64_t>(std::min<Wide>(count, INT64_MAX));
}

/// The same for sizes that may be symbols.
Dim triangle_count(DimTable& dims, Dim rows, Dim columns, int64_t offset) {
  if (rows.is_constant() && columns.is_constant()) return triangle_count(rows.code, columns.code, offset);
  auto less = [&](Dim a, Dim b) { return dims.sub(dims.max(a, b), b); };
  const int64_t below = offset + 1;  // of them stand in row 0, where it has any
  Dim first = dims.min(std::max<int64_t>(-below, 0), rows);
  Dim full = dims.min(dims.max(below > 0 ? less(columns, below) : dims.add(columns, -below), first), rows);
  Dim ends = dims.add(first, full);  // first + full - 1 + 2 (offset + 1), where there are such rows
  ends = 2 * below - 1 >= 0 ? dims.add(ends, 2 * below - 1) : less(ends, 1 - 2 * below);
  Dim growing = dims.floor_div(dims.mul(dims.sub(full, first), ends), 2);
  return dims.add(growing, dims.mul(dims.sub(rows, full), columns));
}

void triangle_indices(RuleContext& context, bool lower) {
  constexpr int64_t kMost = int64_t{1} << 59;
  Dim sizes[2];
  for (int i = 0; i < 2; ++i) {
    const char* name = i == 0 ? "row" : "col";
    sizes[i] = attribute(context, name).list[0];
    if (sizes[i].is_constant() && sizes[i].code > kMost) context.fail(name, std::to_string(sizes[i].code), "0 to 2^59");
  }
  int64_t offset = diagonal_offset(context, "offset");
  // What lies above a diagonal lies below the one beside it in the transposed matrix.
  set_shape(context, {2, lower ? triangle_count(context.dims, sizes[0], sizes[1], offset)
                               : triangle_count(context.dims, sizes[1], sizes[0], -offset)});
}

}  // namespace

void scatter(RuleContext& context) {
  const Dims &self = shape_of(context, 0), &index = shape_of(context, 1);
  int64_t dim = integer_attribute(context, "dim");
  check_dim(context, "dim", dim, self.size());
  set_self(context);
  if (std::count(index.begin(), index.end(), Dim(0))) return;  // writes nothing, whatever its shape
  if (!fits(context, index, self, dim))
    context.fail("index", given_shape(context, index),
                 "as many dims as self, and outside dim " + std::to_string(dim) + " at most its sizes, " +
                     shape_text(context.dims, self));
  const OperandType& src = operand(context, "src");
  if (src.is_tensor() && !fits(context, index, *src.shape, -1))
    context.fail("src", given_shape(context, *src.shape),
                 "as many dims as index, and at least its sizes, " + shape_text(context.dims, index));
}

void index_fill(RuleContext& context) {
  const Dims& index = shape_of(context, 1);
  size_along(context);
  if (index.size() > 1) context.fail("index", given_shape(context, index), "at most one dim");
  const OperandType& value = operand(context, "value");
  if (value.is_tensor() && !value.shape->empty())
    context.fail("value", describe(context, value), "a scalar or a zero-dim tensor");
  set_self(context);
}

void index_source(RuleContext& context) {
  const Dims &self = shape_of(context, 0), &index = shape_of(context, 1);
  const Dims& source = *operand(context, "source").shape;
  int64_t dim = integer_attribute(context, "dim");
  size_along(context);
  if (index.size() > 1) context.fail("index", given_shape(context, index), "at most one dim");
  Dim count = index.empty() ? Dim(1) : index[0];
  bool same = std::max<size_t>(source.size(), 1) == std::max<size_t>(self.size(), 1);
  for (size_t d = 0; same && d < source.size(); ++d) {
    Dim expected = static_cast<int64_t>(d) == dim ? count : self.empty() ? Dim(1) : self[d];
    same = context.dims.equal(source[d], expected);
  }
  if (same && source.empty()) same = context.dims.equal(count, 1);
  if (!same)
    context.fail("source", given_shape(context, source),
                 "the shape of self, " + shape_text(context.dims, self) + ", but for " + context.dims.str(count) +
                     " along dim " + std::to_string(dim));
  set_self(context);
}

void topk(RuleContext& context) {
  check_k(context, 0);
  set_self(context);
  if (shape_of(context, 0).empty()) return;
  for (TensorType& output : context.outputs)
    output.shape[integer_attribute(context, "dim")] = attribute(context, "k").list[0];
}

void multinomial(RuleContext& context) {
  const Dims& shape = shape_of(context, 0);
  if (shape.empty() || shape.size() > 2 || context.dims.equal(shape.back(), 0))
    context.fail("self", given_shape(context, shape), "one or two dims, the last of which is not empty");
  const Dim samples = attribute(context, "num_samples").list[0];
  const bool replacement = boolean_attribute(context, "replacement");
  if (context.dims.less(samples, 1) || (!replacement && context.dims.less(shape.back(), samples)))
    context.fail("num_samples", context.dims.str(samples),
                 replacement ? "1 or more" : "1 to " + context.dims.str(shape.back()) + " without replacement");
  set_self(context);
  context.outputs[0].shape.back() = samples;
}

void kthvalue(RuleContext& context) {
  check_k(context, 1);
  reduce(context);
}

void searchsorted(RuleContext& context) {
  const Dims& sequence = shape_of(context, 0);
  const OperandType &values = context.operands[1], &sorter = context.operands[2];
  if (sequence.empty()) context.fail("sorted_sequence", "a zero-dim tensor", "at least one dim");
  if (sequence.size() > 1) {
    bool same = values.is_tensor() && values.shape->size() == sequence.size();
    for (size_t d = 0; same && d + 1 < sequence.size(); ++d) same = context.dims.equal((*values.shape)[d], sequence[d]);
    if (!same)
      context.fail(
          "self", describe(context, values),
          "the shape of the sorted sequence, " + shape_text(context.dims, sequence) + ", but for the last dim");
  }
  if (sorter.present()) {
    bool same = sorter.shape->size() == sequence.size();
    for (size_t d = 0; same && d < sequence.size(); ++d) same = context.dims.equal((*sorter.shape)[d], sequence[d]);
    if (!same)
      context.fail("sorter", describe(context, sorter),
                   "the shape of the sorted sequence, " + shape_text(context.dims, sequence));
  }
  set_shape(context, values.is_tensor() ? *values.shape : Dims());
}

void bucketize(RuleContext& context) {
  check_rank(context, "boundaries", 1);
  set_shape(context, context.operands[0].is_tensor() ? shape_of(context, 0) : Dims());
}

void take_along_dim(RuleContext& context) {
  Dims self = shape_of(context, 0), indices = shape_of(context, 1);
  const Attr& dim = attribute(context, "dim");
  if (!dim.present()) return set_shape(context, {context.dims.product(indices)});
  check_dim(context, "dim", dim.integer, self.size());
  if (self.size() != indices.size() || self.empty())
    context.fail("indices", given_shape(context, indices),
                 "as many dims as self, " + shape_text(context.dims, self) + ", and at least one");
  Dim count = indices[dim.integer];
  self[dim.integer] = indices[dim.integer] = 1;
  broadcast_into(context, "indices", self, indices);
  self[dim.integer] = count;
  set_shape(context, std::move(self));
}

void nonzero_static(RuleContext& context) {
  set_shape(context, {attribute(context, "size").list[0], static_cast<int64_t>(shape_of(context, 0).size())});
}

void flip(RuleContext& context) {
  check_dims(context, "dims");
  set_self(context);
}
void fliplr(RuleContext& context) {
  check_rank_from(context, 2);
  set_self(context);
}
void flipud(RuleContext& context) {
  check_rank_from(context, 1);
  set_self(context);
}

void roll(RuleContext& context) {
  const Dims &shifts = attribute(context, "shifts").list, &dims = attribute(context, "dims").list;
  if (dims.empty() ? shifts.size() != 1 : shifts.size() != dims.size())
    context.fail("shifts", std::to_string(shifts.size()) + " shifts",
                 dims.empty() ? "one shift where there are no dims" : std::to_string(dims.size()) + ", one a dim");
  for (Dim d : dims) check_dim(context, "dims", d.code, shape_of(context, 0).size());
  set_self(context);
}

void rot90(RuleContext& context) {
  check_rank_from(context, 2);
  Dims dims = attribute(context, "dims").list;
  if (dims.empty()) dims = {0, 1};
  if (dims.size() != 2) context.fail("dims", shape_text(context.dims, dims), "two dims");
  check_dims(context, "dims");
  set_self(context);
  Dims& shape = context.outputs[0].shape;
  if (integer_attribute(context, "k") % 2) std::swap(shape[dims[0].code], shape[dims[1].code]);
}

void diag(RuleContext& context) {
  const Dims& self = shape_of(context, 0);
  if (self.empty() || self.size() > 2) context.fail("self", self_text(context), "one dim or two");
  int64_t offset = diagonal_offset(context, "diagonal");
  if (self.size() == 1) {
    Dim size = context.dims.add(self[0], std::abs(offset));
    return set_shape(context, {size, size});
  }
  // A diagonal that is not negative skips columns.
  Dim skipped = self[offset >= 0 ? 1 : 0], other = self[offset >= 0 ? 0 : 1], skip = std::abs(offset);
  bool some = skip == Dim(0) || context.dims.less(skip, skipped);
  set_shape(context, {some ? context.dims.min(context.dims.sub(skipped, skip), other) : Dim(0)});
}

void diag_embed(RuleContext& context) {
  check_rank_from(context, 1);
  Dims shape = shape_of(context, 0);
  int64_t dim1 = integer_attribute(context, "dim1"), dim2 = integer_attribute(context, "dim2");
  int64_t rank = static_cast<int64_t>(shape.size()) + 1;
  if (dim1 < 0 || dim1 >= rank) context.fail("dim1", std::to_string(dim1), "a dim below " + std::to_string(rank));
  if (dim2 < 0 || dim2 >= rank) context.fail("dim2", std::to_string(dim2), "a dim below " + std::to_string(rank));
  if (dim1 == dim2) context.fail("dim2", std::to_string(dim2), "another dim than dim1");
  Dim size = context.dims.add(shape.back(), std::abs(diagonal_offset(context, "offset")));
  shape.erase(shape.size() - 1);
  shape.insert(static_cast<size_t>(std::min(dim1, dim2)), size);
  shape.insert(static_cast<size_t>(std::max(dim1, dim2)), size);
  set_shape(context, std::move(shape));
}

void trace(RuleContext& context) {
  check_rank(context, "self", 2);
  set_shape(context, {});
}

void tril_indices(RuleContext& context) { triangle_indices(context, true); }
void triu_indices(RuleContext& context) { triangle_indices(context, false); }

}  // namespace ingot::ir::shapes
