#include "eager/ops/replacements.h"

#include "base/function_scope.h"
#include "eager/call/check_values.h"
#include "eager/ops/checks.h"

namespace ingot {
namespace {

using eager::dtype_text;
using eager::fail;
using eager::present;
using eager::shape_text;

/// `view` of a copy of self, replaced.
template <class View>
Tensor with_part(const char* op, const TensorArg& self, const TensorArg& src, View view) {
  const FunctionScope scope(op, self.location);
  const Tensor copy = present(op, "self", self).clone(), &given = present(op, "src", src);
  const Tensor part = view(copy);
  if (!(given.sizes() == part.sizes()))
    fail(op, "src", shape_text(given), eager::text(part.sizes()) + ", the shape of what it replaces", self.location);
  part.copy_(given);
  return copy;
}

void check_same_dtype(const char* op, const Tensor& self, const Tensor& source, Location location) {
  if (source.dtype() != self.dtype())
    fail(op, "source", dtype_text(source), std::string(name_of(self.dtype())) + ", the dtype of self", location);
}

}  // namespace

Tensor select_scatter(const TensorArg& self, const TensorArg& src, int64_t dim, const SizeArg& index) {
  return with_part("select_scatter", self, src, [&](const Tensor& x) { return x.select(dim, index); });
}
Tensor slice_scatter(const TensorArg& self, const TensorArg& src, int64_t dim, const SizeArg& start,
                     std::optional<SizeArg> end, int64_t step) {
  return with_part("slice_scatter", self, src, [&](const Tensor& x) { return x.slice(dim, start, end, step); });
}
Tensor diagonal_scatter(const TensorArg& self, const TensorArg& src, int64_t offset, int64_t dim1, int64_t dim2) {
  return with_part("diagonal_scatter", self, src, [&](const Tensor& x) { return x.diagonal(offset, dim1, dim2); });
}

Tensor put(const TensorArg& self, const TensorArg& i, const TensorArg& s, bool accumulate) {
  const FunctionScope scope("put", self.location);
  const Tensor &x = present("put", "self", self), &index = present("put", "index", i),
               &source = present("put", "source", s);
  check_same_dtype("put", x, source, self.location);
  if (index.dtype() != kInt64) fail("put", "index", dtype_text(index), "i64", self.location);
  if (index.numel() != source.numel())
    fail("put", "source", std::to_string(source.numel()) + " elements",
         std::to_string(index.numel()) + ", one for each index", self.location);
  if (index.numel() == 0) return x.clone();
  eager::check_numbers("put", "index", index, -x.numel(), x.numel(), self.location);
  const Tensor flat = x.clone().view({-1});
  flat.index_put_({index.reshape({-1})}, source.reshape({-1}), accumulate);
  return flat.view_as(x);
}

Tensor index_reduce(const TensorArg& self, int64_t dim, const TensorArg& i, const TensorArg& s, Word word,
                    bool include_self) {
  const FunctionScope scope("index_reduce", self.location);
  const Tensor &x = present("index_reduce", "self", self), &index = present("index_reduce", "index", i),
               &source = present("index_reduce", "source", s);
  const std::string_view reduce = word;
  if (reduce != "prod" && reduce != "mean" && reduce != "amax" && reduce != "amin")
    fail("index_reduce", "reduce", "\"" + std::string(reduce) + "\"", "one of \"prod\", \"mean\", \"amax\", \"amin\"",
         self.location);
  const int64_t d = eager::wrapped_dim("index_reduce", "dim", dim, x.dim(), self.location);
  if (index.dtype() != kInt64 && index.dtype() != kInt32)
    fail("index_reduce", "index", dtype_text(index), "i64 or i32", self.location);
  if (index.dim() > 1) fail("index_reduce", "index", shape_text(index), "one dim", self.location);
  check_same_dtype("index_reduce", x, source, self.location);
  Ints shape(x.sizes().begin(), x.sizes().end()), line_of_ones(x.dim(), 1);
  if (x.dim()) shape[d] = index.numel(), line_of_ones[d] = index.numel();
  if (!(source.sizes() == IntArrayRef(shape)) || (!x.dim() && index.numel() != 1))
    fail("index_reduce", "source", shape_text(source),
         eager::text(shape) + ", a slice of self's shape for each of the " + std::to_string(index.numel()) + " indices",
         self.location);
  eager::check_numbers("index_reduce", "index", index, 0, x.dim() ? int64_t{x.size(d)} : 1, self.location);
  return x.scatter_reduce(d, index.to(kInt64).view(line_of_ones).expand(shape), source, reduce, include_self);
}

Tensor Tensor::select_scatter(const TensorArg& src, int64_t dim, const SizeArg& index, Location location) const {
  return ingot::select_scatter({*this, location}, src, dim, index);
}
Tensor Tensor::slice_scatter(const TensorArg& src, int64_t dim, const SizeArg& start, std::optional<SizeArg> end,
                             int64_t step, Location location) const {
  return ingot::slice_scatter({*this, location}, src, dim, start, end, step);
}
Tensor Tensor::diagonal_scatter(const TensorArg& src, int64_t offset, int64_t dim1, int64_t dim2,
                                Location location) const {
  return ingot::diagonal_scatter({*this, location}, src, offset, dim1, dim2);
}
Tensor Tensor::put(const TensorArg& index, const TensorArg& source, bool accumulate, Location location) const {
  return ingot::put({*this, location}, index, source, accumulate);
}
const Tensor& Tensor::put_(const TensorArg& index, const TensorArg& source, bool accumulate, Location location) const {
  return copy_(ingot::put({*this, location}, index, source, accumulate), location);
}
Tensor Tensor::index_reduce(int64_t dim, const TensorArg& index, const TensorArg& source, Word reduce,
                            bool include_self, Location location) const {
  return ingot::index_reduce({*this, location}, dim, index, source, reduce, include_self);
}
const Tensor& Tensor::index_reduce_(int64_t dim, const TensorArg& index, const TensorArg& source, Word reduce,
                                    bool include_self, Location location) const {
  return copy_(index_reduce(dim, index, source, reduce, include_self, location), location);
}
const Tensor& Tensor::fill_diagonal_(const ScalarArg& fill_value, bool wrap, Location location) const {
  const CallerLine line(location);
  const IntArrayRef own = sizes(location);
  if (own.size() < 2) fail("fill_diagonal_", "self", shape_text(*this), "at least two dims", location);
  if (own.size() > 2)
    for (int64_t size : own)
      if (size != own[0]) fail("fill_diagonal_", "self", shape_text(*this), "dims of one size", location);
  if (own.size() > 2) {
    // The common diagonal, as one of the first two dims of what the others have left.
    Tensor line_of_all = diagonal(0, 0, 1);
    while (line_of_all.dim() > 1) line_of_all = line_of_all.diagonal(0, 0, 1);
    line_of_all.fill_(fill_value);
    return *this;
  }
  diagonal().fill_(fill_value);
  // A row is left out between two blocks.
  for (int64_t row = own[1] + 1; wrap && row < own[0]; row += own[1] + 1)
    slice(0, row, own[0]).diagonal().fill_(fill_value);
  return *this;
}

}  // namespace ingot
