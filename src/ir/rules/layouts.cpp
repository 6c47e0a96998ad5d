// Layout rules: what a view does to sizes, strides and offset. Sizes are checked here too.
#include "ir/rules/rules.h"

namespace ingot::ir {

std::optional<Dims> view_strides(DimTable& dims, const Layout& base, std::span<const Dim> sizes) {
  Dims strides(sizes.size());
  for (Dim d : base.sizes)
    if (d == Dim(0)) {
      Dim step = 1;
      for (size_t i = sizes.size(); i-- > 0; step = dims.mul(step, dims.max(sizes[i], 1))) strides[i] = step;
      return strides;
    }
  // Runs of old dims that lie dense in each other are matched, from the right, with runs of new dims of the same
  // product (the rule of PyTorch's view).
  size_t next = sizes.size();
  Dim run = 1, covered = 1;
  Dim step = base.sizes.empty() ? Dim(1) : base.strides.back();
  for (size_t i = base.sizes.size(); i-- > 0;) {
    run = dims.mul(run, base.sizes[i]);
    if (i > 0) {
      Dim dense = dims.mul(run, step);
      if (base.strides[i - 1] == dense || base.sizes[i - 1] == Dim(1)) continue;
      if (!base.sizes[i - 1].is_constant() && dims.is_one(base.sizes[i - 1])) continue;
      if (dims.equal(base.strides[i - 1], dense)) continue;
    }
    while (next > 0 && (i == 0 || sizes[next - 1] == Dim(1) || dims.less(covered, run))) {
      strides[--next] = dims.mul(covered, step);
      covered = dims.mul(covered, sizes[next]);
    }
    if (!dims.equal(covered, run)) return std::nullopt;
    if (i > 0) step = base.strides[i - 1];
    run = covered = 1;
  }
  for (size_t i = 0; i < next; ++i) {  // a zero-dim base: only sizes of one are left
    if (!dims.is_one(sizes[i])) return std::nullopt;
    strides[i] = 1;
  }
  return strides;
}

namespace layouts {
namespace {
size_t dim_of(RuleContext& context, std::string_view name, const Layout& base) {
  int64_t dim = integer_attribute(context, name);
  check_dim(context, name, dim, base.sizes.size());
  if (base.sizes.empty()) context.fail("self", "a zero-dim tensor", "at least one dim");
  return static_cast<size_t>(dim);
}
}  // namespace

Layout permute(RuleContext& context, const Layout& base) {
  const Dims& order = attribute(context, "dims").list;
  if (order.size() != base.sizes.size())
    context.fail("dims", shape_text(context.dims, order), std::to_string(base.sizes.size()) + " dims");
  Layout view{Dims(order.size()), Dims(order.size()), base.offset};
  SmallVector<bool, 8> seen(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    check_dim(context, "dims", order[i].code, order.size());
    size_t from = static_cast<size_t>(order[i].code);
    if (seen[from]) context.fail("dims", shape_text(context.dims, order), "each dim once");
    seen[from] = true;
    view.sizes[i] = base.sizes[from];
    view.strides[i] = base.strides[from];
  }
  return view;
}

Layout view(RuleContext& context, const Layout& base) {
  const Dims& sizes = attribute(context, "size").list;
  DimTable& dims = context.dims;
  if (!dims.equal(dims.product(sizes), dims.product(base.sizes)))
    context.fail("size", shape_text(dims, sizes), "as many elements as shape " + shape_text(dims, base.sizes));
  std::optional<Dims> strides = view_strides(dims, base, sizes);
  if (!strides)
    context.fail("size", shape_text(dims, sizes),
                 "a view of sizes " + shape_text(dims, base.sizes) + " and strides " + shape_text(dims, base.strides) +
                     " (reshape copies where it must)");
  return {sizes, *strides, base.offset};
}

Layout expand(RuleContext& context, const Layout& base) {
  const Dims& sizes = attribute(context, "size").list;
  DimTable& dims = context.dims;
  if (sizes.size() < base.sizes.size())
    context.fail("size", shape_text(dims, sizes), "at least " + std::to_string(base.sizes.size()) + " dims");
  Layout view{sizes, Dims(sizes.size()), base.offset};
  size_t fresh = sizes.size() - base.sizes.size();
  for (size_t i = fresh; i < sizes.size(); ++i) {
    Dim old = base.sizes[i - fresh];
    if (old == sizes[i])
      view.strides[i] = base.strides[i - fresh];
    else if (old == Dim(1))
      view.strides[i] = 0;
    else if (dims.equal(old, sizes[i]))
      view.strides[i] = base.strides[i - fresh];
    else if (old.is_constant() || !dims.is_one(old))
      context.fail("size", shape_text(dims, sizes), "sizes that shape " + shape_text(dims, base.sizes) + " expands to");
  }
  return view;
}

Layout detach(RuleContext&, const Layout& base) { return base; }

Layout select(RuleContext& context, const Layout& base) {
  size_t dim = dim_of(context, "dim", base);
  Dim index = attribute(context, "index").list[0];
  DimTable& dims = context.dims;
  if (!dims.less(index, base.sizes[dim]))
    context.fail("index", dims.str(index),
                 "an index below the size of dim " + std::to_string(dim) + ", " + dims.str(base.sizes[dim]));
  Layout view = base;
  view.offset = dims.add(view.offset, dims.mul(index, base.strides[dim]));
  view.sizes.erase(dim);
  view.strides.erase(dim);
  return view;
}

Layout slice(RuleContext& context, const Layout& base) {
  size_t dim = dim_of(context, "dim", base);
  DimTable& dims = context.dims;
  Dim size = base.sizes[dim], start = attribute(context, "start").list[0];
  Dim end = attribute(context, "end").present() ? attribute(context, "end").list[0] : size;
  int64_t step = integer_attribute(context, "step");
  if (step < 1) context.fail("step", std::to_string(step), "a positive number");
  if (!(end == size) && dims.less(size, end)) context.fail("end", dims.str(end), "at most " + dims.str(size));
  if (!(start == Dim(0)) && dims.less(end, start))
    context.fail("start", dims.str(start), "at most the end, " + dims.str(end));
  Layout view = base;
  view.offset = dims.add(view.offset, dims.mul(start, base.strides[dim]));
  view.sizes[dim] = dims.ceil_div(dims.sub(end, start), step);
  view.strides[dim] = dims.mul(base.strides[dim], step);
  return view;
}

Layout squeeze(RuleContext& context, const Layout& base) {
  const Attr& given = attribute(context, "dim");
  size_t rank = base.sizes.size();
  SmallVector<bool, 8> named(rank, !given.present());
  for (Dim dim : given.list) {
    check_dim(context, "dim", dim.code, rank);
    if (!rank) continue;
    if (named[dim.code]) context.fail("dim", shape_text(context.dims, given.list), "each dim once");
    named[dim.code] = true;
  }
  Layout view{{}, {}, base.offset};
  for (size_t i = 0; i < rank; ++i) {
    if (named[i] && context.dims.is_one(base.sizes[i])) continue;
    view.sizes.push_back(base.sizes[i]);
    view.strides.push_back(base.strides[i]);
  }
  return view;
}

Layout unsqueeze(RuleContext& context, const Layout& base) {
  int64_t dim = integer_attribute(context, "dim"), rank = static_cast<int64_t>(base.sizes.size());
  if (dim < 0 || dim > rank) context.fail("dim", std::to_string(dim), "a dim of 0 to " + std::to_string(rank));
  Layout view = base;
  view.strides.insert(dim, dim == rank ? Dim(1) : context.dims.mul(base.sizes[dim], base.strides[dim]));
  view.sizes.insert(dim, 1);
  return view;
}

Layout diagonal(RuleContext& context, const Layout& base) {
  size_t dim1 = dim_of(context, "dim1", base), dim2 = dim_of(context, "dim2", base);
  if (dim1 == dim2) context.fail("dim2", std::to_string(dim2), "another dim than dim1");
  DimTable& dims = context.dims;
  int64_t offset = diagonal_offset(context, "offset");
  // An offset that is not negative skips columns (dim2), a negative one rows (dim1).
  size_t skipped = offset >= 0 ? dim2 : dim1, other = offset >= 0 ? dim1 : dim2;
  Dim skip = offset >= 0 ? offset : -offset;
  bool some = skip == Dim(0) || dims.less(skip, base.sizes[skipped]);
  Layout view{{}, {}, base.offset};
  for (size_t i = 0; i < base.sizes.size(); ++i) {
    if (i == dim1 || i == dim2) continue;
    view.sizes.push_back(base.sizes[i]);
    view.strides.push_back(base.strides[i]);
  }
  view.sizes.push_back(some ? dims.min(dims.sub(base.sizes[skipped], skip), base.sizes[other]) : Dim(0));
  view.strides.push_back(dims.add(base.strides[dim1], base.strides[dim2]));
  if (some) view.offset = dims.add(view.offset, dims.mul(skip, base.strides[skipped]));
  return view;
}

Layout unfold(RuleContext& context, const Layout& base) {
  DimTable& dims = context.dims;
  int64_t dim = integer_attribute(context, "dimension"), step = integer_attribute(context, "step");
  check_dim(context, "dimension", dim, base.sizes.size());
  Dim size = attribute(context, "size").list[0];
  Dim old = base.sizes.empty() ? Dim(1) : base.sizes[dim], stride = base.sizes.empty() ? Dim(1) : base.strides[dim];
  if (step < 1) context.fail("step", std::to_string(step), "a positive number");
  if (!(size == old) && dims.less(old, size))
    context.fail("size", dims.str(size), "at most the size of the dim, " + dims.str(old));
  Layout view = base;
  if (!base.sizes.empty()) {
    view.sizes[dim] = dims.add(dims.floor_div(dims.sub(old, size), step), 1);
    view.strides[dim] = dims.mul(stride, step);
  }
  view.sizes.push_back(size);
  view.strides.push_back(stride);
  return view;
}

Layout as_strided(RuleContext& context, const Layout&) {
  const Dims &sizes = attribute(context, "size").list, &strides = attribute(context, "stride").list;
  if (sizes.size() != strides.size())
    context.fail("stride", shape_text(context.dims, strides), std::to_string(sizes.size()) + " strides, one a size");
  return {sizes, strides, attribute(context, "storage_offset").list[0]};
}

}  // namespace layouts
}  // namespace ingot::ir
