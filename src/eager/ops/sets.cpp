#include "eager/ops/sets.h"

#include "base/function_scope.h"
#include "eager/ops/checks.h"
#include "eager/ops/selection.h"

namespace ingot {
namespace {

using eager::fail;
using eager::present;

/// Of a row of elements that stand in groups: where each group begins, and how many elements each has.
struct Groups {
  Tensor starts, counts;
};
/// `begins`: bool [n], n > 0: whether a group begins here. The first one does.
Groups groups_of(const Tensor& begins) {
  const Tensor starts = nonzero(begins).select(1, 0);
  const Tensor ends = cat({starts.slice(0, 1), full({1}, begins.size(0), kInt64)});
  return {starts, ends - starts};
}
/// The number of each element's group.
Tensor numbers_of(const Tensor& begins) { return begins.cumsum(0) - 1; }

/// Whether an element differs from the one before; rows: whether one of their elements does.
Tensor begins_of(const Tensor& x) {
  const int64_t n = x.size(0);
  Tensor differs = x.slice(0, 1, n).ne(x.slice(0, 0, n - 1));
  if (x.dim() > 1) differs = differs.any(1);
  return cat({ones({1}, kBool), differs});
}

Tensor nothing() { return zeros({0}, kInt64); }

/// Slices along a dim as rows; a graph break is to come, so their sizes are plain numbers.
Tensor rows_of(const char* op, const Tensor& self, int64_t dim, Location location) {
  const int64_t n = self.size(dim), others = n ? self.numel() / n : 1;
  if (n && !others)
    fail(op, "self", eager::shape_text(self), "slices with elements along dim " + std::to_string(dim), location);
  return self.movedim(dim, 0).reshape({n, n ? others : 1});
}

// One stable sort a column, the last column first.
Tensor lexicographic_order(const Tensor& rows) {
  Tensor order = arange(rows.size(0));
  for (int64_t c = rows.size(1) - 1; c >= 0; --c)
    order = order.index_select(0, rows.select(1, c).index_select(0, order).argsort(0, false, true));
  return order;
}

}  // namespace

Tensor isin(const OperandArg& elements, const OperandArg& test_elements, bool, bool invert) {
  const FunctionScope scope("isin", elements.location.line ? elements.location : test_elements.location);
  if (!elements.tensor && !test_elements.tensor)
    fail("isin", "elements", "two numbers", "at least one tensor", elements.location);
  for (const OperandArg* given : {&elements, &test_elements})
    if (given->tensor &&
        present("isin", given == &elements ? "elements" : "test_elements", {*given->tensor, given->location}).dtype() ==
            kBool)
      fail("isin", given == &elements ? "elements" : "test_elements", "a tensor of bool", "integers or floats",
           given->location);
  Tensor found;
  if (!test_elements.tensor) {
    found = eq(elements, test_elements);
  } else if (!elements.tensor) {
    found = eq(elements, test_elements).any();
  } else {
    const Tensor &x = *elements.tensor, &test = *test_elements.tensor;
    const DType common = promote(x.dtype(), test.dtype());
    const Tensor sorted = std::get<0>(test.reshape({-1}).to(common).sort());
    const Tensor flat = x.reshape({-1}).to(common);
    if (sorted.size(0) == 0) {
      found = zeros_like(x, kBool);
    } else {
      const Tensor place = clamp_max(searchsorted(sorted, flat), sorted.size(0) - 1);
      found = sorted.index_select(0, place).eq(flat).view_as(x);
    }
  }
  return invert ? found.logical_not() : found;
}

std::tuple<Tensor, Tensor, Tensor> unique(const TensorArg& a) {
  const FunctionScope scope("unique", a.location);
  const Tensor& self = present("unique", "self", a);
  if (self.numel() == 0) return {self.reshape({0}), zeros(self.sizes(), kInt64), nothing()};
  auto [sorted, order] = self.reshape({-1}).sort(0, false, true);
  const Tensor begins = begins_of(sorted);
  const Groups groups = groups_of(begins);
  const Tensor inverse = zeros_like(order).scatter(0, order, numbers_of(begins));
  return {sorted.index_select(0, groups.starts), inverse.view(self.sizes()), groups.counts};
}

std::tuple<Tensor, Tensor, Tensor> unique_dim(const TensorArg& a, int64_t dim, bool, bool return_inverse,
                                              bool return_counts) {
  const FunctionScope scope("unique_dim", a.location);
  const Tensor& self = present("unique_dim", "self", a);
  if (self.dim() == 0) fail("unique_dim", "self", "a zero-dim tensor", "at least one dim", a.location);
  const int64_t d = eager::wrapped_dim("unique_dim", "dim", dim, self.dim(), a.location);
  const Tensor rows = rows_of("unique_dim", self, d, a.location);
  if (rows.size(0) == 0) return {self.clone(), nothing(), nothing()};
  const Tensor order = lexicographic_order(rows);
  const Tensor begins = begins_of(rows.index_select(0, order));
  const Groups groups = groups_of(begins);
  return {self.index_select(d, order.index_select(0, groups.starts)),
          return_inverse ? zeros_like(order).scatter(0, order, numbers_of(begins)) : nothing(),
          return_counts ? groups.counts : nothing()};
}

std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const TensorArg& a, bool return_inverse, bool return_counts,
                                                      std::optional<int64_t> dim) {
  const FunctionScope scope("unique_consecutive", a.location);
  const Tensor& self = present("unique_consecutive", "self", a);
  if (dim && self.dim() == 0) fail("unique_consecutive", "self", "a zero-dim tensor", "at least one dim", a.location);
  const int64_t d = eager::wrapped_dim("unique_consecutive", "dim", dim.value_or(0), self.dim(), a.location);
  const Tensor given = dim ? self : self.reshape({-1});
  const Tensor rows = dim ? rows_of("unique_consecutive", self, d, a.location) : given;
  if (rows.size(0) == 0)
    return {given.clone(), return_inverse && !dim ? zeros_like(self, kInt64) : nothing(), nothing()};
  const Tensor begins = begins_of(rows);
  const Groups groups = groups_of(begins);
  return {given.index_select(dim ? d : 0, groups.starts),
          !return_inverse ? nothing()
          : dim           ? numbers_of(begins)
                          : numbers_of(begins).view(self.sizes()),
          return_counts ? groups.counts : nothing()};
}

std::tuple<Tensor, Tensor, Tensor> Tensor::unique_dim(int64_t dim, bool sorted, bool return_inverse, bool return_counts,
                                                      Location location) const {
  return ingot::unique_dim({*this, location}, dim, sorted, return_inverse, return_counts);
}
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_consecutive(bool return_inverse, bool return_counts,
                                                              std::optional<int64_t> dim, Location location) const {
  return ingot::unique_consecutive({*this, location}, return_inverse, return_counts, dim);
}

}  // namespace ingot
