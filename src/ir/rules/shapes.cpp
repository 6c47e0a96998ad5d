// Shape rules of elementwise ops, creation, indexing and reductions.
#include <algorithm>
#include <cmath>

#include "base/overlap.h"
#include "ir/rules/rules.h"

namespace ingot::ir::shapes {
void broadcast(RuleContext& context) {
  Dims& shape = context.outputs[0].shape;
  shape.clear();
  for (size_t i = 0; i < context.operands.size(); ++i) {
    const OperandType& given = context.operands[i];
    if (!given.is_tensor()) continue;
    if (shape.empty())
      shape = *given.shape;
    else if (!(*given.shape == shape))
      broadcast_into(context, info(context.op).operand(static_cast<int>(i)).name, shape, *given.shape);
  }
}

void into_self(RuleContext& context) {
  const OperandType& source = context.operands[1];
  if (source.is_tensor()) require_broadcast(context, operand_name(context, 1), source, shape_of(context, 0));
  set_shape(context, shape_of(context, 0));
}

void self(RuleContext& context) {
  const Attr& dim = attribute(context, "dim");
  if (dim.kind == Attr::Kind::integer) check_dim(context, "dim", dim.integer, shape_of(context, 0).size());
  for (TensorType& output : context.outputs) output.shape = shape_of(context, 0);
}

void from_size(RuleContext& context) { set_shape(context, attribute(context, "size").list); }
void from_length(RuleContext& context) { set_shape(context, attribute(context, "length").list); }

void from_steps(RuleContext& context) {
  for (size_t i = 0; i < 2; ++i)
    if (context.operands[i].is_tensor() && !context.operands[i].shape->empty())
      context.fail(operand_name(context, i), describe(context, context.operands[i]), "a number or a zero-dim tensor");
  set_shape(context, attribute(context, "steps").list);
}

// The integers' dtypes hold all numbers below n.
void from_n(RuleContext& context) {
  const Dims& n = attribute(context, "n").list;
  const DType dtype = context.outputs[0].dtype;
  if (is_integral(dtype) && n[0].is_constant() && n[0].code - 1 > integer_range(dtype).second)
    context.fail("n", std::to_string(n[0].code),
                 "at most " + std::to_string(integer_range(dtype).second + 1) + ": the numbers below it, in " +
                     std::string(name_of(dtype)));
  set_shape(context, n);
}

void eye(RuleContext& context) {
  Dim n = attribute(context, "n").list[0];
  set_shape(context, {n, attribute(context, "m").present() ? attribute(context, "m").list[0] : n});
}

void cat(RuleContext& context) {
  if (context.operands.empty()) context.fail("tensors", "an empty list", "at least one tensor");
  auto skipped = [&](size_t i) { return passed_over(shape_of(context, i)); };
  size_t first = 0;
  while (first + 1 < context.operands.size() && skipped(first)) ++first;
  Dims shape = shape_of(context, first);
  int64_t dim = integer_attribute(context, "dim");
  if (shape.empty()) context.fail(operand_name(context, first), "a zero-dim tensor", "at least one dim");
  check_dim(context, "dim", dim, shape.size());
  Dim total = 0;
  for (size_t i = first; i < context.operands.size(); ++i) {
    const Dims& given = shape_of(context, i);
    if (skipped(i) && shape.size() != 1) continue;
    bool fits = given.size() == shape.size();
    for (size_t d = 0; fits && d < given.size(); ++d)
      fits = static_cast<int64_t>(d) == dim || context.dims.equal(given[d], shape[d]);
    if (!fits)
      context.fail(operand_name(context, i), given_shape(context, given),
                   given_shape(context, shape) + " but for dim " + std::to_string(dim));
    total = context.dims.add(total, given[dim]);
  }
  shape[dim] = total;
  set_shape(context, std::move(shape));
}

void stack(RuleContext& context) {
  if (context.operands.empty()) context.fail("tensors", "an empty list", "at least one tensor");
  Dims shape = shape_of(context, 0);
  for (size_t i = 1; i < context.operands.size(); ++i) {
    const Dims& given = shape_of(context, i);
    bool fits = given.size() == shape.size();
    for (size_t d = 0; fits && d < given.size(); ++d) fits = context.dims.equal(given[d], shape[d]);
    if (!fits) context.fail(operand_name(context, i), given_shape(context, given), given_shape(context, shape));
  }
  int64_t dim = integer_attribute(context, "dim"), rank = static_cast<int64_t>(shape.size());
  if (dim < 0 || dim > rank) context.fail("dim", std::to_string(dim), "a dim of 0 to " + std::to_string(rank));
  shape.insert(dim, static_cast<int64_t>(context.operands.size()));
  set_shape(context, std::move(shape));
}

void index_select(RuleContext& context) {
  Dims shape = shape_of(context, 0);
  int64_t dim = integer_attribute(context, "dim");
  const Dims& index = shape_of(context, 1);
  check_dim(context, "dim", dim, shape.size());
  if (index.size() > 1) context.fail("index", given_shape(context, index), "at most one dim");
  if (shape.empty() && !index.empty() && !context.dims.is_one(index[0]))
    context.fail("index", given_shape(context, index), "one position of a zero-dim tensor");
  if (!shape.empty()) shape[dim] = index.empty() ? Dim(1) : index[0];
  set_shape(context, std::move(shape));
}

void gather(RuleContext& context) {
  const Dims &self = shape_of(context, 0), &index = shape_of(context, 1);
  int64_t dim = integer_attribute(context, "dim");
  check_dim(context, "dim", dim, self.size());
  // An empty index selects nothing, whatever its shape.
  bool empty = std::count(index.begin(), index.end(), Dim(0)) > 0;
  bool fits = empty || std::max<size_t>(self.size(), 1) == std::max<size_t>(index.size(), 1);
  for (size_t d = 0; fits && !empty && d < index.size() && d < self.size(); ++d)
    fits = static_cast<int64_t>(d) == dim || index[d] == self[d] || !context.dims.less(self[d], index[d]);
  if (!fits)
    context.fail("index", given_shape(context, index),
                 "as many dims as self, and outside dim " + std::to_string(dim) + " at most its sizes, " +
                     shape_text(context.dims, self));
  set_shape(context, index);
}

void embedding(RuleContext& context) {
  check_rank(context, "weight", 2);
  Dims shape = shape_of(context, 1);
  shape.push_back(shape_of(context, 0)[1]);
  set_shape(context, std::move(shape));
}

void triangle(RuleContext& context) {
  if (shape_of(context, 0).size() < 2)
    context.fail("self", given_shape(context, shape_of(context, 0)), "at least two dims");
  if (const OperandType& diagonal = context.operands[1]; diagonal.present() && diagonal.category > Category::integer)
    context.fail("diagonal", describe(context, diagonal), "an integer");
  set_shape(context, shape_of(context, 0));
}

void pad(RuleContext& context) {
  Dims shape = shape_of(context, 0);
  const Dims& pad = attribute(context, "pad").list;
  if (pad.size() % 2 || pad.size() / 2 > shape.size())
    context.fail("pad", shape_text(context.dims, pad),
                 "two numbers for each of at most " + std::to_string(shape.size()) + " dims, the last dim first");
  for (size_t i = 0; i < pad.size(); ++i) {
    Dim& size = shape[shape.size() - 1 - i / 2];
    size = context.dims.add(size, pad[i]);
  }
  set_shape(context, std::move(shape));
}

void as_strided_scatter(RuleContext& context) {
  const Dims &sizes = attribute(context, "size").list, &strides = attribute(context, "stride").list;
  if (sizes.size() != strides.size())
    context.fail("stride", shape_text(context.dims, strides), std::to_string(sizes.size()) + " strides, one a size");
  const Dims& src = shape_of(context, 1);
  bool fits = src.size() == sizes.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) fits = context.dims.equal(src[i], sizes[i]);
  if (!fits) context.fail("src", given_shape(context, src), given_shape(context, sizes));
  check_extent(context, sizes, strides, attribute(context, "storage_offset").list[0],
               context.dims.product(shape_of(context, 0)));
  auto constant = [](const Dims& list) {
    return std::all_of(list.begin(), list.end(), [](Dim d) { return d.is_constant(); });
  };
  Ints counts, steps;
  for (size_t i = 0; i < sizes.size(); ++i) counts.push_back(sizes[i].code), steps.push_back(strides[i].code);
  if (constant(sizes) && constant(strides) && elements_overlap(counts, steps))
    context.fail("stride", shape_text(context.dims, strides), "strides that give each element a place of its own");
  set_shape(context, shape_of(context, 0));
}

namespace {
void require_elements(RuleContext& context, const Dims& shape, size_t dim) {
  if (context.dims.equal(shape[dim], 0))
    context.fail(operand_name(context, 0), given_shape(context, shape),
                 "at least one element along dim " + std::to_string(dim) + ": this reduction has no identity");
}

void require_elements(RuleContext& context) {
  const Dims& self = shape_of(context, 0);
  SmallVector<bool, 8> reduced = reduced_dims(context);
  for (size_t i = 0; i < self.size(); ++i)
    if (reduced[i]) require_elements(context, self, i);
}

/// The largest or smallest magnitude of nothing (a norm of infinite order) is not defined.
bool infinite_order(const RuleContext& context) {
  return std::any_of(context.attrs.begin(), context.attrs.end(),
                     [](const Attr& a) { return a.kind == Attr::Kind::number && std::isinf(a.as_number()); });
}
}  // namespace

void reduce(RuleContext& context) {
  const Dims& self = shape_of(context, 0);
  SmallVector<bool, 8> reduced = reduced_dims(context);
  bool keep = boolean_attribute(context, "keepdim");
  Dims shape;
  for (size_t i = 0; i < self.size(); ++i) {
    if (!reduced[i])
      shape.push_back(self[i]);
    else if (keep)
      shape.push_back(1);
  }
  for (TensorType& output : context.outputs) output.shape = shape;
  if (infinite_order(context)) require_elements(context);
}

void halved(RuleContext& context) {
  Dims shape = shape_of(context, 0);
  int64_t dim = integer_attribute(context, "dim");
  check_dim(context, "dim", dim, shape.size());
  DimTable& dims = context.dims;
  Dim half = shape.empty() ? Dim(0) : dims.floor_div(shape[dim], 2);
  if (shape.empty() || !dims.equal(dims.mul(half, 2), shape[dim]))
    context.fail(operand_name(context, 0), "shape " + shape_text(dims, shape),
                 "an even size at dim " + std::to_string(dim));
  shape[dim] = half;
  set_shape(context, std::move(shape));
}

void compared(RuleContext& context) {
  if (context.operands[0].dtype == DType::bool_ && context.operands[1].dtype == DType::bool_)
    context.fail(operand_name(context, 0), describe(context, context.operands[0]), "a numeric dtype");
  Dims shape = shape_of(context, 0);
  broadcast_into(context, operand_name(context, 1), shape, shape_of(context, 1));
  const Attr& given = attribute(context, "dim");
  int64_t rank = static_cast<int64_t>(shape.size());
  int64_t dim = given.present() ? given.integer : -1;
  if (dim < -std::max<int64_t>(rank, 1) || dim >= std::max<int64_t>(rank, 1))
    context.fail("dim", std::to_string(dim), "a dim of shape " + shape_text(context.dims, shape));
  if (dim < 0) dim += rank;
  if (rank > 0 && infinite_order(context)) require_elements(context, shape, static_cast<size_t>(dim));
  if (rank > 0 && boolean_attribute(context, "keepdim"))
    shape[dim] = 1;
  else if (rank > 0)
    shape.erase(dim);
  set_shape(context, std::move(shape));
}

void reduce_some(RuleContext& context) {
  reduce(context);
  require_elements(context);
}

}  // namespace ingot::ir::shapes
