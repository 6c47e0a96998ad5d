#include "eager/ops/selection.h"

#include <algorithm>
#include <limits>

#include "base/function_scope.h"
#include "eager/call/check_values.h"
#include "eager/data.h"
#include "eager/ops/checks.h"
#include "eager/ops/factories.h"

namespace ingot {
namespace {

using eager::fail;
using eager::present;
using eager::text;

const Tensor& mask_of(const char* op, const TensorArg& a) {
  const Tensor& mask = present(op, "mask", a);
  if (mask.dtype() != kBool)
    fail(op, "mask", "a tensor of " + std::string(name_of(mask.dtype())), "a bool tensor", a.location);
  return mask;
}

/// The shape to which two tensors broadcast.
Ints broadcast(const char* op, const char* argument, const Tensor& a, const Tensor& b, Location location) {
  size_t rank = std::max(a.sizes().size(), b.sizes().size());
  Ints shape(rank, 1);
  for (const Tensor* t : {&a, &b}) {
    IntArrayRef sizes = t->sizes();
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t& size = shape[rank - sizes.size() + d];
      if (size != 1 && sizes[d] != 1 && size != sizes[d])
        fail(op, argument, "shape " + text(b.sizes()), "a shape that broadcasts with " + text(a.sizes()), location);
      if (size == 1) size = sizes[d];
    }
  }
  return shape;
}

int64_t wrapped_dim(const char* op, int64_t dim, const Tensor& self, Location location) {
  int64_t count = std::max<int64_t>(self.dim(), 1);
  if (dim < -count || dim >= count)
    fail(op, "dim", std::to_string(dim), "a dim from " + std::to_string(-count) + " to " + std::to_string(count - 1),
         location);
  return dim < 0 ? dim + count : dim;
}

/// How often each position comes, as the ends of its repeats; and how many there are in all.
struct Repeats {
  Tensor ends;
  int64_t total;
};
Repeats repeats_of(const Tensor& repeats, std::optional<int64_t> total, Location location) {
  if (repeats.dtype() != kInt64 && repeats.dtype() != kInt32)
    fail("repeat_interleave", "repeats", "a tensor of " + std::string(name_of(repeats.dtype())), "i64 or i32",
         location);
  if (repeats.dim() != 1) fail("repeat_interleave", "repeats", "shape " + text(repeats.sizes()), "one dim", location);
  Tensor ends = repeats.cumsum(0, {}, location);
  if (total) return {ends, *total};
  if (repeats.numel() == 0) return {ends, 0};
  Tensor last = ends.select(0, -1, location), least = repeats.amin({}, false, location);
  int64_t sum = last.item<int64_t>(location);
  if (int64_t lowest = least.item<int64_t>(location); lowest < 0)
    fail("repeat_interleave", "repeats", std::to_string(lowest), "no negative number", location);
  return {ends, sum};
}

/// Of each repeat the position that it is of: how many positions end at it or before.
Tensor repeated_positions(const Repeats& repeats, Location location) {
  const Tensor ends = clamp(TensorArg(repeats.ends, location), 0, repeats.total);
  const Tensor counts = zeros({repeats.total + 1}, kInt64, location)
                            .index_add(0, ends, ones({1}, kInt64, location).expand_as(ends, location), 1, location);
  return counts.cumsum(0, {}, location).narrow(0, 0, repeats.total, location);
}

}  // namespace

Tensor nonzero(const TensorArg& a) {
  const Tensor& self = present("nonzero", "self", a);
  Tensor there = self.dtype() == kBool ? self : self.ne(0, a.location);
  int64_t count = there.sum({}, false, {}, a.location).item<int64_t>(a.location);
  return there.nonzero_static(count, a.location);
}

std::vector<Tensor> nonzero(const TensorArg& a, AsTuple) {
  const Tensor& self = present("nonzero", "self", a);
  const Tensor row = self.dim() ? self : self.unsqueeze(0, a.location);
  return nonzero({row, a.location}).unbind(1, a.location);
}
std::vector<Tensor> where(const TensorArg& condition) {
  present("where", "condition", condition);
  return nonzero(condition, as_tuple);
}
Tensor argwhere(const TensorArg& self) { return nonzero(self); }

Tensor masked_select(const TensorArg& a, const TensorArg& m) {
  const FunctionScope scope("masked_select", a.location);
  const Tensor &self = present("masked_select", "self", a), &mask = mask_of("masked_select", m);
  Ints shape = broadcast("masked_select", "mask", self, mask, a.location);
  Tensor at = nonzero({mask.expand(shape, a.location).reshape({-1}, a.location), a.location});
  return self.expand(shape, a.location)
      .reshape({-1}, a.location)
      .index_select(0, at.select(1, 0, a.location), a.location);
}

// An element in front of the source stands for those that keep their own: a source that is too short then shows as a
// position out of range.
Tensor masked_scatter(const TensorArg& a, const TensorArg& m, const TensorArg& s) {
  const FunctionScope scope("masked_scatter", a.location);
  const Tensor &self = present("masked_scatter", "self", a), &given_mask = mask_of("masked_scatter", m);
  const Tensor& source = present("masked_scatter", "source", s);
  if (source.dtype() != self.dtype())
    fail("masked_scatter", "source", "a tensor of " + std::string(name_of(source.dtype())),
         std::string(name_of(self.dtype())) + ", the dtype of self", a.location);
  Ints shape = broadcast("masked_scatter", "mask", self, given_mask, a.location);
  Tensor mask = given_mask.expand(shape, a.location);
  Tensor count = mask.reshape({-1}, a.location).cumsum(0, {}, a.location).view(shape, a.location);
  if (int64_t n = count.numel(); n && !eager::intercepted())
    if (int64_t wanted = count.reshape({n}, a.location).select(0, -1, a.location).item<int64_t>(a.location);
        wanted > source.numel())
      fail("masked_scatter", "source", std::to_string(source.numel()) + " elements",
           "at least " + std::to_string(wanted) + ", one wherever the mask is true", s.location);
  Tensor from = where(TensorArg(mask, a.location), count, 0);
  Tensor padded = cat({{zeros({1}, self.dtype(), a.location), source.reshape({-1}, a.location)}, a.location});
  Tensor chosen = padded.index_select(0, from.reshape({-1}, a.location), a.location).view(shape, a.location);
  return where(TensorArg(mask, a.location), chosen, self);
}

Tensor take(const TensorArg& a, const TensorArg& i) {
  const FunctionScope scope("take", a.location);
  const Tensor &self = present("take", "self", a), &index = present("take", "index", i);
  if (index.dtype() != kInt64 && index.dtype() != kInt32)
    fail("take", "index", "a tensor of " + std::string(name_of(index.dtype())), "i64 or i32", a.location);
  eager::check_numbers("take", "index", index, -self.numel(), self.numel(), a.location);
  Tensor flat = index.reshape({-1}, a.location);
  Tensor wrapped = where(TensorArg(flat.lt(0, a.location), a.location), flat.add(self.numel(), 1, a.location), flat);
  return self.reshape({-1}, a.location).index_select(0, wrapped, a.location).view(index.sizes(), a.location);
}

Tensor repeat_interleave(const TensorArg& a, int64_t repeats, std::optional<int64_t> dim) {
  const Tensor& given_self = present("repeat_interleave", "self", a);
  if (repeats < 0) fail("repeat_interleave", "repeats", std::to_string(repeats), "no negative number", a.location);
  Tensor self = dim && given_self.dim() ? given_self : given_self.reshape({-1}, a.location);
  int64_t d = wrapped_dim("repeat_interleave", dim.value_or(0), self, a.location);
  IntList sizes{}, repeated{};  // of sizes as a user's: a frozen function is not held to them
  for (int64_t i = 0; i < self.dim(); ++i) {
    const Size size = self.size(i);
    sizes.add(i == d ? size * repeats : size), repeated.add(size);
    if (i == d) repeated.add(repeats);
  }
  Tensor copy = self.unsqueeze(d + 1, a.location).expand(repeated, a.location).clone(a.location);
  return copy.view(sizes, a.location);
}

Tensor repeat_interleave(const TensorArg& a, const TensorArg& r, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  const Tensor& given_self = present("repeat_interleave", "self", a);
  Tensor repeats = present("repeat_interleave", "repeats", r);
  Tensor self = dim && given_self.dim() ? given_self : given_self.reshape({-1}, a.location);
  int64_t d = wrapped_dim("repeat_interleave", dim.value_or(0), self, a.location), n = self.size(d);
  if (repeats.numel() == 1) repeats = repeats.reshape({1}, a.location).expand({n}, a.location);
  if (repeats.dim() != 1 || repeats.size(0) != n)
    fail("repeat_interleave", "repeats", "shape " + text(repeats.sizes()), "one number, or " + std::to_string(n),
         a.location);
  return self.index_select(d, repeated_positions(repeats_of(repeats, output_size, a.location), a.location), a.location);
}

Tensor repeat_interleave(const TensorArg& r, std::optional<int64_t> output_size) {
  return repeated_positions(repeats_of(present("repeat_interleave", "repeats", r), output_size, r.location),
                            r.location);
}

Tensor index_put(const TensorArg& self, const std::vector<TensorIndex>& indices, const OperandArg& values,
                 bool accumulate) {
  Tensor copy = present("index_put", "self", self).clone(self.location);
  return copy.index_put_(indices, values, accumulate, self.location);
}

Tensor one_hot(const TensorArg& a, int64_t num_classes) {
  const FunctionScope scope("one_hot", a.location);
  const Tensor& self = present("one_hot", "self", a);
  if (self.dtype() != kInt64)
    fail("one_hot", "self", "a tensor of " + std::string(name_of(self.dtype())), "i64", a.location);
  if (num_classes < -1 || num_classes == 0)
    fail("one_hot", "num_classes", std::to_string(num_classes), "a positive number, or -1", a.location);
  if (num_classes < 0 && self.numel() == 0)
    fail("one_hot", "num_classes", "-1 for an empty tensor", "a positive number", a.location);
  if (num_classes < 0) num_classes = self.amax({}, false, a.location).item<int64_t>(a.location) + 1;
  IntList shape{};
  for (int64_t d = 0; d < self.dim(); ++d) shape.add(self.size(d));
  eager::check_numbers("one_hot", "self", self, 0, std::max<int64_t>(num_classes, 1), a.location);
  shape.add(std::max<int64_t>(num_classes, 1));
  // Zeros like what is a slice inside of a vmap, which are then written in place.
  const Tensor places = self.unsqueeze(-1, a.location), result = zeros_like(places.expand(shape, a.location));
  return result.scatter_(-1, places, 1, "none", a.location);
}

Tensor Tensor::index_put(const std::vector<TensorIndex>& indices, const OperandArg& value, bool accumulate,
                         Location location) const {
  return ingot::index_put({*this, location}, indices, value, accumulate);
}
Tensor Tensor::index_put(std::initializer_list<TensorIndex> indices, const OperandArg& value, bool accumulate,
                         Location location) const {
  return index_put(std::vector<TensorIndex>(indices), value, accumulate, location);
}
Tensor Tensor::nonzero(Location location) const { return ingot::nonzero({*this, location}); }
std::vector<Tensor> Tensor::nonzero(AsTuple, Location location) const {
  return ingot::nonzero({*this, location}, as_tuple);
}
Tensor Tensor::argwhere(Location location) const { return ingot::argwhere({*this, location}); }
Tensor Tensor::masked_select(const TensorArg& mask, Location location) const {
  return ingot::masked_select({*this, location}, mask);
}
Tensor Tensor::masked_scatter(const TensorArg& mask, const TensorArg& source, Location location) const {
  return ingot::masked_scatter({*this, location}, mask, source);
}
const Tensor& Tensor::masked_scatter_(const TensorArg& mask, const TensorArg& source, Location location) const {
  return copy_(masked_scatter(mask, source, location), location);
}
Tensor Tensor::take(const TensorArg& index, Location location) const { return ingot::take({*this, location}, index); }
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim, Location location) const {
  return ingot::repeat_interleave({*this, location}, repeats, dim);
}

namespace nn::functional {
namespace {

/// Where the first of the largest elements that go to a row and column of `count` rows is. As PyTorch's loop finds it:
/// nothing is larger than a NaN that comes first, and no other NaN is larger than anything.
Tensor first_largest(const Tensor& x, const Tensor& into, int64_t count) {
  const Ints shape{count, x.size(1)};
  const Tensor place = arange(x.size(0)).unsqueeze(1).expand(x.sizes());
  const auto first_of = [&](const Tensor& places) {
    return place == full(shape, x.size(0), kInt64).scatter_reduce(0, into, places, "amin").gather(0, into);
  };
  const Tensor left_out = logical_and(isnan(x), logical_not(first_of(place)));
  const Tensor numbers = is_floating(x.dtype()) ? x.masked_fill(left_out, -std::numeric_limits<double>::infinity()) : x;
  const Tensor largest = zeros(shape, x.dtype()).scatter_reduce(0, into, numbers, "amax", false).gather(0, into);
  return first_of(where(logical_or(numbers == largest, isnan(numbers)), place, x.size(0)));
}

/// Along dim 1, as first_largest has it; of equal elements the first has the gradient.
Tensor largest_rows(Tensor x) {
  if (is_floating(x.dtype())) {
    const Tensor later = (arange(x.size(1)) > 0).unsqueeze(1);
    x = x.masked_fill(logical_and(isnan(x), later), -std::numeric_limits<double>::infinity());
  }
  return std::get<0>(x.max(1));
}

}  // namespace

Tensor embedding_bag(const TensorArg& i, const TensorArg& w, const TensorArg& o, Word word, const TensorArg& p,
                     bool include_last_offset, std::optional<int64_t> padding_idx, bool scale_grad_by_freq) {
  constexpr const char* kOp = "embedding_bag";
  const std::string_view mode = word;
  const Tensor &indices = present(kOp, "indices", i), &weight = present(kOp, "weight", w);
  Location at = i.location;
  const FunctionScope scope(kOp, at);
  if (mode != "sum" && mode != "mean" && mode != "max")
    fail(kOp, "mode", "\"" + std::string(mode) + "\"", "one of \"sum\", \"mean\", \"max\"", at);
  if (scale_grad_by_freq && mode == "max")
    fail(kOp, "scale_grad_by_freq", "true with mode max", "false, or mode sum or mean", at);
  if (p.tensor && mode != "sum")
    fail(kOp, "per_sample_weights", "weights with mode " + std::string(mode), "mode sum", at);
  if (p.tensor && p.tensor->sizes() != indices.sizes())
    fail(kOp, "per_sample_weights", "shape " + text(p.tensor->sizes()), "that of indices, " + text(indices.sizes()),
         at);
  if (indices.dim() != 1 && indices.dim() != 2)
    fail(kOp, "indices", "shape " + text(indices.sizes()), "one dim or two", at);
  if ((indices.dim() == 1) != (o.tensor != nullptr))
    fail(kOp, "offsets", o.tensor ? "offsets" : "nothing", o.tensor ? "none for a matrix" : "a tensor for one dim", at);
  eager::check_numbers(kOp, "indices", indices, 0, weight.size(0), at);
  // What is summed is rounded once.
  const DType wide = mode == "max" ? weight.dtype() : working_dtype(weight.dtype());
  // Bags of one size, none of them empty: their rows lie side by side.
  if (!o.tensor && !padding_idx && indices.size(1) > 0) {
    Tensor rows = embedding(TensorArg(weight, at), indices, -1, scale_grad_by_freq);
    if (mode == "max") return largest_rows(rows);
    if (p.tensor) rows = rows.to(wide, at).mul(p.tensor->to(wide, at).unsqueeze(2, at), at);
    return (mode == "sum" ? rows.sum(1, false, std::nullopt, at) : rows.mean(1, false, std::nullopt, at))
        .to(weight.dtype(), at);
  }
  Tensor flat = indices.reshape({-1}, at), bag;
  int64_t bags;
  if (o.tensor) {
    if (o.tensor->dim() != 1) fail(kOp, "offsets", "shape " + text(o.tensor->sizes()), "one dim", at);
    const Tensor& offsets = *o.tensor;
    eager::require_numbers({kOp, "offsets", "one that is negative or too large", "positions of indices"}, offsets, 0,
                           indices.size(0) + 1, at);
    eager::require({kOp, "offsets", "one that is smaller than the one before", "offsets in ascending order"},
                   offsets.slice(0, 1) >= offsets.slice(0, 0, -1));
    eager::require({kOp, "offsets", "a first offset that is not 0", "0: every index is in a bag"},
                   offsets.slice(0, 0, 1) == 0);
    bags = o.tensor->size(0) - include_last_offset;
    if (bags < 0 || (bags == 0 && !include_last_offset && flat.numel() > 0))
      fail(kOp, "offsets", "none", "at least one: 0, where the first bag begins", at);
    // How many bags have begun, at each index.
    const Tensor begins =
        zeros({flat.numel() + 1}, kInt64, at).index_add(0, *o.tensor, ones({o.tensor->size(0)}, kInt64, at), 1, at);
    bag = begins.cumsum(0, std::nullopt, at).narrow(0, 0, flat.numel(), at).sub(1, 1, at);
  } else {
    bags = indices.size(0);
    bag = arange(bags, kInt64, at).unsqueeze(1, at).expand(indices.sizes(), at).reshape({-1}, at);
  }
  // What is padding goes to a bag of its own.
  if (padding_idx) {
    int64_t ignored = *padding_idx < 0 ? *padding_idx + weight.size(0) : *padding_idx;
    bag = where(TensorArg(flat.eq(ignored, at), at), bags, bag);
  }
  Tensor rows = embedding(TensorArg(weight, at), flat, -1, scale_grad_by_freq).to(wide, at);
  if (p.tensor) rows = rows.mul(p.tensor->to(wide, at).reshape({-1, 1}, at), at);
  const Tensor into = bag.unsqueeze(1, at).expand(rows.sizes(), at);
  const int64_t count = bags + (padding_idx || include_last_offset ? 1 : 0);  // and what is in no bag
  // Only the first of equal elements has a gradient.
  if (mode == "max") rows = where(TensorArg(first_largest(rows.detach(), into, count), at), rows, 0);
  Tensor sums = zeros({count, weight.size(1)}, rows.dtype(), at).scatter_add(0, into, rows, at);
  if (mode == "mean")
    sums = sums.div(zeros({count}, wide, at)
                        .index_add(0, bag, ones({flat.numel()}, wide, at), 1, at)
                        .clamp_min(1, at)
                        .unsqueeze(1, at),
                    "none", at);
  return sums.narrow(0, 0, bags, at).to(weight.dtype(), at).contiguous(at);
}

}  // namespace nn::functional
}  // namespace ingot
