#include "eager/ops/shapes.h"

#include <algorithm>

#include "base/function_scope.h"
#include "eager/ops/aliases.h"
#include "eager/ops/checks.h"
#include "eager/ops/lists.h"

namespace ingot {
namespace {

using eager::fail;
using eager::present;
using eager::shape_text;

using Function = Tensor (*)(const TensorArg&);

std::vector<Tensor> each(const TensorList& tensors, Function f) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < tensors.size; ++i) results.push_back(f({tensors.data[i], tensors.location}));
  return results;
}

/// The dim that a split by name is along.
struct Cut {
  const char* op;
  int64_t least_dims, dim;
};
constexpr Cut kColumns{"hsplit", 1, 1}, kRows{"vsplit", 2, 0}, kPlanes{"dsplit", 3, 2};

int64_t dim_of(const Cut& cut, const TensorArg& self) {
  const Tensor& x = present(cut.op, "self", self);
  if (x.dim() < cut.least_dims)
    fail(cut.op, "self", shape_text(x), "at least " + std::to_string(cut.least_dims) + " dims", self.location);
  return std::min(cut.dim, x.dim() - 1);
}
std::vector<Tensor> split_by(const Cut& cut, const TensorArg& self, int64_t sections) {
  const int64_t dim = dim_of(cut, self), size = self.tensor->size(dim);
  if (sections < 1 || size % sections != 0)
    fail(cut.op, "sections", std::to_string(sections), "a divisor of " + std::to_string(size) + ", the size of the dim",
         self.location);
  return tensor_split(self, sections, dim);
}
std::vector<Tensor> split_by(const Cut& cut, const TensorArg& self, const std::vector<int64_t>& indices) {
  return tensor_split(self, indices, dim_of(cut, self));
}

constexpr double kMostChosen = 0x1p30;

/// Positions of all choices of r out of n, one behind the other.
std::vector<int64_t> choices(int64_t n, int64_t r, bool with_replacement) {
  std::vector<int64_t> all, choice(r);
  for (int64_t i = 0; i < r; ++i) choice[i] = with_replacement ? 0 : i;
  // The highest position that place i may have: without replacement the places behind it need others.
  const auto highest = [&](int64_t i) { return with_replacement ? n - 1 : n - r + i; };
  if (r && choice[r - 1] > highest(r - 1)) return all;
  for (;;) {
    all.insert(all.end(), choice.begin(), choice.end());
    int64_t i = r - 1;
    while (i >= 0 && choice[i] == highest(i)) --i;
    if (i < 0) return all;
    ++choice[i];
    for (int64_t j = i + 1; j < r; ++j) choice[j] = with_replacement ? choice[i] : choice[j - 1] + 1;
  }
}

}  // namespace

Tensor ravel(const TensorArg& self) { return present("ravel", "self", self).reshape({-1}, self.location); }

Tensor atleast_1d(const TensorArg& self) {
  const Tensor& x = present("atleast_1d", "self", self);
  return x.dim() ? x : x.unsqueeze(0, self.location);
}
Tensor atleast_2d(const TensorArg& self) {
  const Tensor x = atleast_1d(self);
  return x.dim() > 1 ? x : x.unsqueeze(0, self.location);
}
Tensor atleast_3d(const TensorArg& self) {
  const Tensor x = atleast_2d(self);
  return x.dim() > 2 ? x : x.unsqueeze(-1, self.location);
}
std::vector<Tensor> atleast_1d(const TensorList& tensors) { return each(tensors, atleast_1d); }
std::vector<Tensor> atleast_2d(const TensorList& tensors) { return each(tensors, atleast_2d); }
std::vector<Tensor> atleast_3d(const TensorList& tensors) { return each(tensors, atleast_3d); }

std::vector<Tensor> hsplit(const TensorArg& self, int64_t sections) { return split_by(kColumns, self, sections); }
std::vector<Tensor> hsplit(const TensorArg& self, const std::vector<int64_t>& indices) {
  return split_by(kColumns, self, indices);
}
std::vector<Tensor> vsplit(const TensorArg& self, int64_t sections) { return split_by(kRows, self, sections); }
std::vector<Tensor> vsplit(const TensorArg& self, const std::vector<int64_t>& indices) {
  return split_by(kRows, self, indices);
}
std::vector<Tensor> dsplit(const TensorArg& self, int64_t sections) { return split_by(kPlanes, self, sections); }
std::vector<Tensor> dsplit(const TensorArg& self, const std::vector<int64_t>& indices) {
  return split_by(kPlanes, self, indices);
}

Tensor block_diag(const TensorList& tensors) {
  const FunctionScope scope("block_diag", tensors.location);
  if (tensors.size == 0) fail("block_diag", "tensors", "an empty list", "at least one tensor", tensors.location);
  std::vector<Tensor> blocks;
  Size columns, before;
  for (size_t i = 0; i < tensors.size; ++i) {
    const std::string name = "tensors[" + std::to_string(i) + "]";
    const Tensor& t = present("block_diag", name, {tensors.data[i], tensors.location});
    if (t.dim() > 2) fail("block_diag", name, shape_text(t), "at most two dims", tensors.location);
    blocks.push_back(atleast_2d(t));
    columns += blocks.back().size(1);
  }
  for (Tensor& block : blocks) {
    const Size own = block.size(1);
    const auto nothing = [&](const Size& size) { return zeros({block.size(0), size}, block.dtype()); };
    block = cat({nothing(before), block, nothing(columns - before - own)}, 1);
    before += own;
  }
  return cat(blocks, 0);
}

Tensor diagflat(const TensorArg& self, int64_t offset) { return diag({ravel(self), self.location}, offset); }

Tensor cartesian_prod(const TensorList& tensors) {
  const FunctionScope scope("cartesian_prod", tensors.location);
  if (tensors.size == 0) fail("cartesian_prod", "tensors", "an empty list", "at least one tensor", tensors.location);
  for (size_t i = 0; i < tensors.size; ++i) {
    const std::string name = "tensors[" + std::to_string(i) + "]";
    const Tensor& t = present("cartesian_prod", name, {tensors.data[i], tensors.location});
    if (t.dim() != 1) fail("cartesian_prod", name, shape_text(t), "one dim", tensors.location);
    if (t.dtype() != tensors.data[0].dtype())
      fail("cartesian_prod", name, eager::dtype_text(t),
           std::string(name_of(tensors.data[0].dtype())) + ", the dtype of the first", tensors.location);
  }
  if (tensors.size == 1) return tensors.data[0];
  return stack(each(meshgrid(tensors), ravel), 1);
}

Tensor combinations(const TensorArg& self, int64_t r, bool with_replacement) {
  const FunctionScope scope("combinations", self.location);
  const Tensor& x = eager::present_with_dims("combinations", "self", self, 1);
  if (r < 0) fail("combinations", "r", std::to_string(r), "no negative number", self.location);
  if (r == 0) return x.slice(0, 0, 0);
  const int64_t n = x.size(0);
  if (n == 0 || (!with_replacement && r > n)) return x.slice(0, 0, 0).view({0, r});
  // r out of n, or out of n + r - 1, as many as leave out the others.
  const double all = static_cast<double>(n) + (with_replacement ? static_cast<double>(r) - 1 : 0);
  const int64_t fewer = std::min(r, with_replacement ? n - 1 : n - r);
  double elements = static_cast<double>(r);
  for (int64_t i = 0; i < fewer && elements <= kMostChosen; ++i)
    elements *= (all - static_cast<double>(i)) / static_cast<double>(i + 1);
  if (elements > kMostChosen)
    fail("combinations", "r", std::to_string(r) + " of " + std::to_string(n) + " elements",
         "at most 2^30 elements in all ways together", self.location);
  const Tensor positions = tensor(choices(n, r, with_replacement));
  return x.index_select(0, positions).view({-1, r});
}

std::vector<Tensor> unravel_index(const TensorArg& indices, const IntList& shape) {
  const FunctionScope scope("unravel_index", indices.location);
  const Tensor& given = present("unravel_index", "indices", indices);
  if (!is_integral(given.dtype()))
    fail("unravel_index", "indices", eager::dtype_text(given), "integers", indices.location);
  Tensor rest = given.to(kInt64);
  const Ints& sizes = shape.items();
  std::vector<Tensor> positions(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] < 1) fail("unravel_index", "shape", std::to_string(sizes[d]), "positive sizes", indices.location);
    positions[d] = remainder(rest, sizes[d]);
    rest = floor_divide(rest, sizes[d]);
  }
  return positions;
}

Tensor Tensor::ravel(Location location) const { return ingot::ravel({*this, location}); }
Tensor Tensor::diagflat(int64_t offset, Location location) const { return ingot::diagflat({*this, location}, offset); }
Tensor Tensor::swapaxes(int64_t axis0, int64_t axis1, Location location) const {
  return ingot::swapaxes({*this, location}, axis0, axis1);
}
Tensor Tensor::swapdims(int64_t dim0, int64_t dim1, Location location) const {
  return ingot::swapdims({*this, location}, dim0, dim1);
}
Tensor Tensor::moveaxis(const IntList& source, const IntList& destination, Location location) const {
  return ingot::moveaxis({*this, location}, source, destination);
}
std::vector<Tensor> Tensor::hsplit(int64_t sections, Location location) const {
  return ingot::hsplit({*this, location}, sections);
}
std::vector<Tensor> Tensor::hsplit(const std::vector<int64_t>& indices, Location location) const {
  return ingot::hsplit({*this, location}, indices);
}
std::vector<Tensor> Tensor::vsplit(int64_t sections, Location location) const {
  return ingot::vsplit({*this, location}, sections);
}
std::vector<Tensor> Tensor::vsplit(const std::vector<int64_t>& indices, Location location) const {
  return ingot::vsplit({*this, location}, indices);
}
std::vector<Tensor> Tensor::dsplit(int64_t sections, Location location) const {
  return ingot::dsplit({*this, location}, sections);
}
std::vector<Tensor> Tensor::dsplit(const std::vector<int64_t>& indices, Location location) const {
  return ingot::dsplit({*this, location}, indices);
}
Tensor Tensor::sum_to_size(const IntList& size, Location location) const {
  const CallerLine line(location);
  const Ints& wanted = size.items();
  const IntArrayRef own = sizes(location);
  const size_t extra = own.size() - std::min(own.size(), wanted.size());
  Ints dims;
  bool fits = wanted.size() <= own.size();
  for (size_t d = 0; d < own.size() && fits; ++d) {
    const bool summed = d < extra || (wanted[d - extra] == 1 && own[d] != 1);
    if (summed)
      dims.push_back(static_cast<int64_t>(d));
    else
      fits = wanted[d - extra] == own[d];
  }
  if (!fits) fail("sum_to_size", "size", eager::text(wanted), "sizes that broadcast to " + eager::text(own), location);
  if (wanted.empty()) return sum();  // of integers i64, even of one
  return dims.empty() ? *this : sum(dims, true).view(wanted);
}

}  // namespace ingot
