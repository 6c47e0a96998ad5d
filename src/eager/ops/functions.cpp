#include "eager/ops/functions.h"

#include <cmath>

#include "base/function_scope.h"
#include "eager/call/call.h"
#include "eager/call/script.h"
#include "eager/data.h"
#include "ir/rules/rules.h"

namespace ingot {
namespace {

using eager::composite;
using eager::fail;
using eager::wrapped_dim;

const Tensor& present(const char* op, const TensorArg& self) { return eager::present(op, "self", self); }

bool has_view(const Tensor& self, const Ints& sizes) {
  DimTable dims;
  const detail::TensorImpl& impl = *self.impl();
  ir::Layout base{Dims(impl.sizes.begin(), impl.sizes.end()), Dims(impl.strides.begin(), impl.strides.end()),
                  impl.offset};
  Dims wanted(sizes.begin(), sizes.end());
  return ir::view_strides(dims, base, wanted).has_value();
}

Tensor reshaped(const Tensor& self, const Ints& shape, Location location) {
  const int64_t elements = self.numel(location);
  Ints sizes = eager::resolve_sizes("reshape", shape, elements, location);
  int64_t wanted = eager::count(sizes);
  if (wanted != elements)
    fail("reshape", "shape", std::to_string(wanted) + " elements", std::to_string(elements) + ", those of the tensor",
         location);
  return has_view(self, sizes) ? self.view(sizes, location) : self.clone(location).view(sizes, location);
}

}  // namespace

Tensor Tensor::reshape(const IntList& shape, Location location) const {
  return composite(*this, shape, location, [location](const Tensor& self, const IntList& sizes) {
    return reshaped(self, sizes.items(), location);
  });
}
Tensor Tensor::reshape_as(const Tensor& other, Location location) const {
  return reshape(eager::sizes_of(other, location), location);
}
Tensor Tensor::view_as(const Tensor& other, Location location) const {
  return view(eager::sizes_of(other, location), location);
}
Tensor Tensor::expand_as(const Tensor& other, Location location) const {
  return expand(eager::sizes_of(other, location), location);
}

Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim, Location location) const {
  int64_t rank = dim(location);
  int64_t first = wrapped_dim("flatten", "start_dim", start_dim, rank, location);
  int64_t last = wrapped_dim("flatten", "end_dim", end_dim, rank, location);
  if (first > last)
    fail("flatten", "start_dim", std::to_string(start_dim), "a dim that does not come after end_dim", location);
  if (rank == 0) return reshape({1}, location);
  if (first == last) return *this;
  return composite(*this, {}, location, [=](const Tensor& self, const IntList&) {
    Ints shape;
    for (int64_t d = 0; d < rank; ++d) {
      if (d <= first || d > last)
        shape.push_back(self.size(d));
      else
        shape.back() *= self.size(d);
    }
    return reshaped(self, shape, location);
  });
}

Tensor Tensor::unflatten(int64_t d, const IntList& sizes, Location location) const {
  d = wrapped_dim("unflatten", "dim", d, dim(location), location);
  return composite(*this, sizes, location, [=](const Tensor& self, const IntList& given) {
    const int64_t whole = self.size(d, location);
    Ints pieces = eager::resolve_sizes("unflatten", given.items(), whole, location);
    if (eager::count(pieces) != whole)
      fail("unflatten", "sizes", std::to_string(eager::count(pieces)) + " elements",
           std::to_string(whole) + ", the size of the dim", location);
    Ints shape;
    for (int64_t i = 0; i < self.dim(); ++i) {
      if (i != d)
        shape.push_back(self.size(i));
      else
        for (int64_t s : pieces) shape.push_back(s);
    }
    return self.view(shape, location);
  });
}

Tensor Tensor::transpose(int64_t dim0, int64_t dim1, Location location) const {
  int64_t rank = dim(location);
  int64_t a = wrapped_dim("transpose", "dim0", dim0, rank, location),
          b = wrapped_dim("transpose", "dim1", dim1, rank, location);
  if (a == b) return *this;
  Ints order(rank);
  for (int64_t d = 0; d < rank; ++d) order[d] = d;
  std::swap(order[a], order[b]);
  return permute(order, location);
}
Tensor Tensor::t(Location location) const {
  if (dim(location) > 2) fail("t", "self", "a tensor with " + std::to_string(dim()) + " dims", "at most two", location);
  return dim() < 2 ? *this : transpose(0, 1, location);
}
static Tensor transposed_matrices(const char* op, const Tensor& self, Location location) {
  if (self.dim(location) < 2)
    fail(op, "self", "a tensor with " + std::to_string(self.dim()) + " dims", "at least two", location);
  return self.transpose(-2, -1, location);
}
Tensor Tensor::mT(Location location) const { return transposed_matrices("mT", *this, location); }

Tensor Tensor::mH(Location location) const { return transposed_matrices("mH", *this, location); }
Tensor Tensor::adjoint(Location location) const { return transposed_matrices("adjoint", *this, location); }

Tensor Tensor::movedim(const IntList& source, const IntList& destination, Location location) const {
  int64_t rank = dim(location);
  if (source.items().size() != destination.items().size())
    fail("movedim", "destination", std::to_string(destination.items().size()) + " dims",
         std::to_string(source.items().size()) + ", as many as source", location);
  Ints order(rank, -1);
  SmallVector<bool, 8> moved(rank, false);
  for (size_t i = 0; i < source.items().size(); ++i) {
    int64_t from = wrapped_dim("movedim", "source", source.items()[i], rank, location);
    int64_t to = wrapped_dim("movedim", "destination", destination.items()[i], rank, location);
    if (rank == 0) continue;
    if (moved[from] || order[to] >= 0) fail("movedim", "source", "a dim twice", "each dim once", location);
    order[to] = from;
    moved[from] = true;
  }
  for (int64_t to = 0, from = 0; to < rank; ++to) {
    if (order[to] >= 0) continue;
    while (moved[from]) ++from;
    order[to] = from++;
  }
  return permute(order, location);
}

Tensor Tensor::narrow(int64_t d, const SizeArg& from, const SizeArg& count, Location location) const {
  d = wrapped_dim("narrow", "dim", d, dim(location), location);
  return composite(*this, {from, count}, location, [=](const Tensor& self, const IntList& numbers) {
    const int64_t start = numbers.items()[0], length = numbers.items()[1];
    int64_t n = self.size(d, location), first = start < 0 ? start + n : start;
    if (first < 0 || first > n)
      fail("narrow", "start", std::to_string(start), "a position in a dim of size " + std::to_string(n), location);
    if (length < 0 || length > n - first)
      fail("narrow", "length", std::to_string(length), "at most " + std::to_string(n - first), location);
    return self.slice(d, first, first + length, 1, location);
  });
}

std::vector<Tensor> Tensor::unbind(int64_t d, Location location) const {
  int64_t n = size(d, location);
  std::vector<Tensor> pieces;
  pieces.reserve(n);
  for (int64_t i = 0; i < n; ++i) pieces.push_back(select(d, i, location));
  return pieces;
}

std::vector<Tensor> Tensor::split_with_sizes(const IntList& split_sizes, int64_t d, Location location) const {
  int64_t n = size(d, location), total = 0;
  for (int64_t s : split_sizes.items()) {
    if (s < 0) fail("split_with_sizes", "split_sizes", std::to_string(s), "no negative size", location);
    total += s;
  }
  if (total != n)
    fail("split_with_sizes", "split_sizes", "sizes that sum to " + std::to_string(total),
         std::to_string(n) + ", the size of the dim", location);
  std::vector<Tensor> pieces;
  int64_t at = 0;
  for (int64_t s : split_sizes.items()) {
    pieces.push_back(slice(d, at, at + s, 1, location));
    at += s;
  }
  return pieces;
}

std::vector<Tensor> Tensor::split(int64_t split_size, int64_t d, Location location) const {
  return composite(*this, {}, location, [=](const Tensor& self, const IntList&) {
    int64_t n = self.size(d, location);
    if (split_size < 0 || (split_size == 0 && n > 0))
      fail("split", "split_size", std::to_string(split_size), "a positive size", location);
    Ints sizes;
    for (int64_t at = 0; at < n; at += split_size) sizes.push_back(std::min(split_size, n - at));
    if (n == 0) sizes.push_back(0);
    return self.split_with_sizes(sizes, d, location);
  });
}
std::vector<Tensor> Tensor::split(const std::vector<int64_t>& split_sizes, int64_t d, Location location) const {
  return split_with_sizes(split_sizes, d, location);
}

std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t d, Location location) const {
  if (chunks < 1) fail("chunk", "chunks", std::to_string(chunks), "a positive number", location);
  return composite(*this, {}, location, [=](const Tensor& self, const IntList&) {
    int64_t n = self.size(d, location);
    if (n == 0) return self.split_with_sizes(Ints(chunks, 0), d, location);
    return self.split((n + chunks - 1) / chunks, d, location);
  });
}

Tensor Tensor::repeat(const IntList& repeats, Location location) const {
  int64_t rank = static_cast<int64_t>(repeats.numbers().size()), lead = rank - dim(location);
  if (lead < 0)
    fail("repeat", "repeats", std::to_string(rank) + " numbers", "at least one for each of the tensor's dims",
         location);
  return composite(*this, repeats, location, [=](const Tensor& self, const IntList& given) {
    const Ints& times = given.items();
    // Each dim stands once more in front of itself with stride 0; the pairs are then joined.
    Ints spread, wide, joined;
    for (int64_t d = 0; d < rank; ++d) {
      if (times[d] < 0) fail("repeat", "repeats", std::to_string(times[d]), "no negative number", location);
      int64_t n = d < lead ? 1 : int64_t{self.size(d - lead)};
      spread.push_back(1), spread.push_back(n);
      wide.push_back(times[d]), wide.push_back(n);
      joined.push_back(times[d] * n);
    }
    return reshaped(self, spread, location).expand(wide, location).clone(location).view(joined, location);
  });
}

Tensor Tensor::tile(const IntList& repeats, Location location) const {
  Ints times = repeats.items();
  while (static_cast<int64_t>(times.size()) < dim(location)) times.insert(0, 1);
  return repeat(times, location);
}

Tensor Tensor::contiguous(Location location) const {
  return composite(*this, {}, location, [location](const Tensor& self, const IntList&) {
    return self.is_contiguous(location) ? self : self.clone(location);
  });
}
Tensor Tensor::to(DType type, Location location) const {
  return dtype(location) == type ? *this : cast(type, location);
}
Tensor Tensor::to(const TensorOptions& options, Location location) const {
  return options.type ? to(*options.type, location) : *this;
}
Tensor Tensor::type_as(const Tensor& other, Location location) const { return to(other.dtype(location), location); }
const Tensor& Tensor::zero_(Location location) const { return fill_(0, location); }
const Tensor& Tensor::bernoulli_(const OperandArg& p, const std::optional<Generator>& generator,
                                 Location location) const {
  return copy_(bernoulli(p, generator, location), location);
}

Tensor Tensor::max(Location location) const { return amax({}, false, location); }
Tensor Tensor::max(const TensorArg& other, Location location) const { return maximum(other, location); }
Tensor Tensor::min(Location location) const { return amin({}, false, location); }
Tensor Tensor::min(const TensorArg& other, Location location) const { return minimum(other, location); }
Tensor Tensor::where(const TensorArg& condition, const OperandArg& other, Location location) const {
  return ingot::where(TensorArg(*condition.tensor, location), *this, other);
}

// The free forms of the above.
Tensor reshape(const TensorArg& self, const IntList& shape) {
  return present("reshape", self).reshape(shape, self.location);
}
Tensor flatten(const TensorArg& self, int64_t start_dim, int64_t end_dim) {
  return present("flatten", self).flatten(start_dim, end_dim, self.location);
}
Tensor unflatten(const TensorArg& self, int64_t dim, const IntList& sizes) {
  return present("unflatten", self).unflatten(dim, sizes, self.location);
}
Tensor transpose(const TensorArg& self, int64_t dim0, int64_t dim1) {
  return present("transpose", self).transpose(dim0, dim1, self.location);
}
Tensor t(const TensorArg& self) { return present("t", self).t(self.location); }
Tensor movedim(const TensorArg& self, const IntList& source, const IntList& destination) {
  return present("movedim", self).movedim(source, destination, self.location);
}
Tensor narrow(const TensorArg& self, int64_t dim, const SizeArg& start, const SizeArg& length) {
  return present("narrow", self).narrow(dim, start, length, self.location);
}
std::vector<Tensor> unbind(const TensorArg& self, int64_t dim) {
  return present("unbind", self).unbind(dim, self.location);
}
std::vector<Tensor> split(const TensorArg& self, int64_t split_size, int64_t dim) {
  return present("split", self).split(split_size, dim, self.location);
}
std::vector<Tensor> split(const TensorArg& self, const std::vector<int64_t>& split_sizes, int64_t dim) {
  return present("split", self).split(split_sizes, dim, self.location);
}
std::vector<Tensor> split_with_sizes(const TensorArg& self, const IntList& split_sizes, int64_t dim) {
  return present("split_with_sizes", self).split_with_sizes(split_sizes, dim, self.location);
}
std::vector<Tensor> chunk(const TensorArg& self, int64_t chunks, int64_t dim) {
  return present("chunk", self).chunk(chunks, dim, self.location);
}
Tensor tile(const TensorArg& self, const IntList& repeats) {
  return present("tile", self).tile(repeats, self.location);
}
Tensor max(const TensorArg& self) { return present("max", self).max(self.location); }
Tensor max(const TensorArg& self, const TensorArg& other) { return maximum(self, other); }
Tensor min(const TensorArg& self) { return present("min", self).min(self.location); }
Tensor min(const TensorArg& self, const TensorArg& other) { return minimum(self, other); }

Tensor hstack(const TensorList& tensors) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < tensors.size; ++i)
    parts.push_back(tensors.data[i].dim() ? tensors.data[i] : tensors.data[i].reshape({1}, tensors.location));
  return cat(TensorList(parts, tensors.location), !parts.empty() && parts[0].dim() > 1 ? 1 : 0);
}
Tensor vstack(const TensorList& tensors) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < tensors.size; ++i) {
    const Tensor& part = tensors.data[i];
    parts.push_back(part.dim() > 1 ? part : part.reshape({1, -1}, tensors.location));
  }
  return cat(TensorList(parts, tensors.location), 0);
}

Tensor diff(const TensorArg& self, int64_t n, int64_t dim, const TensorArg& prepend, const TensorArg& append) {
  Tensor x = present("diff", self);
  Location location = self.location;
  if (x.dim() == 0) fail("diff", "self", "a zero-dim tensor", "at least one dim", location);
  if (n < 0) fail("diff", "n", std::to_string(n), "no negative number", location);
  if (n == 0) return x.clone(location);
  dim = wrapped_dim("diff", "dim", dim, x.dim(), location);
  std::vector<Tensor> parts;
  for (const TensorArg* part : {&prepend, &self, &append})
    if (part->tensor && part->tensor->defined()) parts.push_back(*part->tensor);
  if (parts.size() > 1) x = cat(TensorList(parts, location), dim);
  for (n = std::min<int64_t>(n, x.size(dim)); n > 0; --n) {
    int64_t gaps = x.size(dim) - 1;
    Tensor later = x.narrow(dim, 1, gaps, location), earlier = x.narrow(dim, 0, gaps, location);
    x = x.dtype() == kBool ? logical_xor(TensorArg(later, location), earlier)
                           : sub(TensorArg(later, location), earlier);
  }
  return x;
}

Tensor Tensor::diff(int64_t n, int64_t dim, const TensorArg& prepend, const TensorArg& append,
                    Location location) const {
  return ingot::diff({*this, location}, n, dim, prepend, append);
}

Tensor isreal(const TensorArg& self) {
  present("isreal", self);
  return ones_like(self, kBool);
}
Tensor Tensor::isreal(Location location) const { return ingot::isreal({*this, location}); }

Tensor logspace(const OperandArg& start, const OperandArg& end, const SizeArg& steps, double base,
                TensorOptions options) {
  const FunctionScope scope("logspace", start.location);
  const DType dtype = options.dtype_or(kFloat32);
  // Integers have whole exponents at both ends, as in PyTorch.
  Tensor held[2];
  auto whole = [&](const OperandArg& given, Tensor& converted) -> OperandArg {
    if (is_floating(dtype)) return given;
    if (!given.tensor) return given.value.category() == Category::floating ? given.value.to_int64_saturated() : given;
    return converted = given.tensor->to(kInt64);
  };
  Tensor powers = pow(OperandArg(base), linspace(whole(start, held[0]), whole(end, held[1]), steps, kFloat64));
  return eager::as_asked(powers.to(dtype), options, start.location);
}

bool equal(const TensorArg& self, const TensorArg& other) {
  if (present("equal", self).sizes() != present("equal", other).sizes()) return false;
  return eq(self, other).all().item<bool>(self.location);
}

bool allclose(const TensorArg& self, const TensorArg& other, double rtol, double atol, bool equal_nan) {
  Tensor near = le(abs(sub(self, other)), add(mul(abs(other), rtol), atol)) & isfinite(other);
  Tensor close = logical_or(near, eq(self, other));
  if (equal_nan) close = logical_or(close, logical_and(isnan(self), isnan(other)));
  return close.all().item<bool>(self.location);
}

bool Tensor::equal(const TensorArg& other, Location location) const { return ingot::equal({*this, location}, other); }

bool Tensor::allclose(const TensorArg& other, double rtol, double atol, bool equal_nan, Location location) const {
  return ingot::allclose({*this, location}, other, rtol, atol, equal_nan);
}

}  // namespace ingot
