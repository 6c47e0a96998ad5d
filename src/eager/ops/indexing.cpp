// x.index({...}): what is a view becomes views; tensors of positions become one index_select over joined dims.
#include "eager/ops/indexing.h"

#include "eager/call/call.h"
#include "eager/data.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/selection.h"

namespace ingot {
namespace {

using eager::fail;

/// After the views: which dims of `base` are selected by tensors of positions.
struct Parsed {
  Tensor base;
  std::vector<Tensor> positions;  // one a dim of base; undefined: the whole dim
  bool any = false;
};

bool is_mask(const Tensor& t) { return t.dtype() == kBool || t.dtype() == kUInt8; }

// A mask stands for the positions where it is true, one tensor a dim: their number is read now.
std::vector<Tensor> positions_of(const Tensor& mask, Location location) {
  Tensor found = nonzero({mask, location});
  std::vector<Tensor> result;
  for (int64_t d = 0; d < mask.dim(); ++d) result.push_back(found.select(1, d, location));
  return result;
}

/// As LibTorch reads them: tensors without dims as the number or the truth value that they hold, which is read now,
/// and an undefined one as the whole dim.
std::vector<TensorIndex> plain(std::span<const TensorIndex> indices, Location location) {
  std::vector<TensorIndex> result(indices.begin(), indices.end());
  for (TensorIndex& i : result) {
    if (i.kind != TensorIndex::Kind::tensor) continue;
    if (!i.tensor.defined()) {
      i = Slice();
    } else if (i.tensor.dim() == 0 && is_mask(i.tensor)) {
      i = i.tensor.item<bool>(location);
    } else if (i.tensor.dim() == 0 && category_of(i.tensor.dtype()) == Category::integer) {
      i = i.tensor.item<int64_t>(location);
    }
  }
  return result;
}

int64_t consumed(const TensorIndex& i) {
  switch (i.kind) {
    case TensorIndex::Kind::integer:
    case TensorIndex::Kind::slice:
      return 1;
    case TensorIndex::Kind::tensor:
      return is_mask(i.tensor) ? i.tensor.dim() : 1;
    default:
      return 0;
  }
}

Parsed parse(const Tensor& self, std::span<const TensorIndex> indices, Location location) {
  int64_t used = 0, ellipses = 0;
  for (const TensorIndex& i : indices) {
    used += consumed(i);
    ellipses += i.kind == TensorIndex::Kind::ellipsis;
  }
  int64_t rank = self.dim(location);
  if (used > rank)
    fail("index", "indices", std::to_string(used) + " indices", "at most " + std::to_string(rank) + ", one a dim",
         location);
  if (ellipses > 1) fail("index", "indices", "several ellipses", "at most one", location);
  Parsed p{self, {}, false};
  int64_t d = 0;
  auto keep = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) p.positions.emplace_back();
    d += count;
  };
  for (const TensorIndex& i : indices) {
    switch (i.kind) {
      case TensorIndex::Kind::none:
        p.base = p.base.unsqueeze(d, location), keep(1);
        break;
      case TensorIndex::Kind::ellipsis:
        keep(rank - used);
        break;
      case TensorIndex::Kind::integer:
        p.base = p.base.select(d, i.integer, location);
        break;
      case TensorIndex::Kind::boolean:
        p.base = p.base.unsqueeze(d, location).slice(d, 0, i.integer.value ? 1 : 0, 1, location), keep(1);
        break;
      case TensorIndex::Kind::slice: {
        int64_t step = i.slice.step.value_or(1);
        if (step < 1) fail("index", "step", std::to_string(step), "a positive step", location);
        bool whole = !i.slice.start && !i.slice.stop && step == 1;
        if (!whole) p.base = p.base.slice(d, i.slice.start.value_or(0), i.slice.stop, step, location);
        keep(1);
        break;
      }
      case TensorIndex::Kind::tensor: {
        p.any = true;
        if (!is_mask(i.tensor)) {
          if (category_of(i.tensor.dtype()) != Category::integer)
            fail("index", "indices", "a tensor of " + std::string(name_of(i.tensor.dtype())), "integers or bools",
                 location);
          p.positions.push_back(i.tensor.to(kInt64, location)), ++d;
          break;
        }
        for (int64_t m = 0; m < i.tensor.dim(); ++m)
          if (i.tensor.size(m) != p.base.size(d + m))
            fail("index", "indices", "a mask of size " + std::to_string(i.tensor.size(m)),
                 std::to_string(p.base.size(d + m)) + ", the size of the dim", location);
        for (Tensor& t : positions_of(i.tensor, location)) p.positions.push_back(std::move(t)), ++d;
        break;
      }
    }
  }
  while (static_cast<int64_t>(p.positions.size()) < p.base.dim()) p.positions.emplace_back();
  return p;
}

/// Brings the selected dims together: they stay where they are if they are neighbours, else they come first.
struct Joined {
  Tensor base;  // selected dims are dims [first, first + count)
  int64_t first = 0, count = 0;
  // As a user's: a frozen function that indexes is not held to them.
  std::vector<Size> selected;
  Tensor linear;  // positions within the selected dims taken as one
};

Joined join(const Parsed& p, Location location) {
  const CallerLine line(location);
  Joined j;
  Ints order;
  bool neighbours = true;
  int64_t last = -1;
  std::vector<Tensor> positions;
  for (size_t d = 0; d < p.positions.size(); ++d) {
    if (!p.positions[d].defined()) continue;
    if (last >= 0 && static_cast<int64_t>(d) != last + 1) neighbours = false;
    last = static_cast<int64_t>(d);
    positions.push_back(p.positions[d]);
    j.selected.push_back(p.base.size(last));
  }
  j.count = static_cast<int64_t>(positions.size());
  j.first = neighbours ? last - j.count + 1 : 0;
  for (size_t d = 0; d < p.positions.size(); ++d)
    if (p.positions[d].defined()) order.push_back(static_cast<int64_t>(d));
  Ints all = order;
  for (int64_t d = 0; d < p.base.dim(); ++d)
    if (!p.positions[d].defined()) all.push_back(d);
  j.base = neighbours ? p.base : p.base.permute(all, location);
  Tensor outside;
  for (int64_t k = 0; k < j.count; ++k) {
    // A negative position counts from the end of its dim.
    const Size n = j.selected[k];
    Tensor wrapped = ingot::where(lt(positions[k], 0), add(positions[k], n), positions[k]);
    if (j.count > 1) {
      Tensor here = logical_or(ge(wrapped, n), lt(wrapped, 0));
      outside = k ? logical_or(outside, here) : here;
    }
    j.linear = k ? add(mul(j.linear, n), wrapped) : wrapped;
  }
  // A position out of range must not slip into a neighbouring row: it becomes one that no tensor has.
  if (outside.defined()) {
    Size beyond = j.selected[0];
    for (size_t k = 1; k < j.selected.size(); ++k) beyond = beyond * j.selected[k];
    j.linear = ingot::where(outside, beyond, j.linear);
  }
  return j;
}

Tensor select_positions(const Parsed& p, Location location) {
  Joined j = join(p, location);
  Tensor flat = j.count > 1 ? j.base.flatten(j.first, j.first + j.count - 1, location) : j.base;
  IntList shape{};
  for (int64_t d = 0; d < j.first; ++d) shape.add(flat.size(d));
  for (int64_t d = 0; d < j.linear.dim(); ++d) shape.add(j.linear.size(d));
  for (int64_t d = j.first + 1; d < flat.dim(); ++d) shape.add(flat.size(d));
  return flat.index_select(j.first, j.linear.reshape({-1}, location), location).view(shape, location);
}

/// True if the joined dims are one dim in memory: flattening them is a view then.
bool lie_together(const Joined& j) {
  IntArrayRef sizes = j.base.sizes(), strides = j.base.strides();
  for (int64_t d = j.first; d + 1 < j.first + j.count; ++d)
    if (strides[d] != strides[d + 1] * sizes[d + 1]) return false;
  return true;
}

/// Writes slices of the joined dims to their positions, in order.
void put_positions(const Parsed& p, const Tensor& value, bool accumulate, Location location) {
  Joined j = join(p, location);
  Ints shape, flat_shape;
  auto add = [&](int64_t size) { shape.push_back(size), flat_shape.push_back(size); };
  for (int64_t d = 0; d < j.first; ++d) add(j.base.size(d));
  for (int64_t s : j.linear.sizes()) shape.push_back(s);
  flat_shape.push_back(j.linear.numel());
  for (int64_t d = j.first + j.count; d < j.base.dim(); ++d) add(j.base.size(d));
  Tensor source = value.to(j.base.dtype(), location).expand(shape, location).reshape(flat_shape, location);
  Tensor index = j.linear.reshape({-1}, location);
  Tensor flat = j.count > 1 ? j.base.flatten(j.first, j.first + j.count - 1, location) : j.base;
  if (accumulate)
    flat.index_add_(j.first, index, source, 1, location);
  else
    flat.index_copy_(j.first, index, source, location);
  if (!lie_together(j)) j.base.copy_(flat.view(j.base.sizes(), location), location);
}

/// The one mask among the indices, where no other tensor is; a single value can then be written without positions.
const Tensor* only_mask(std::span<const TensorIndex> indices) {
  const Tensor* mask = nullptr;
  for (const TensorIndex& i : indices) {
    if (i.kind != TensorIndex::Kind::tensor) continue;
    if (mask || !is_mask(i.tensor)) return nullptr;
    mask = &i.tensor;
  }
  return mask;
}

/// The same value wherever the mask is true.
void fill_masked(const Tensor& self, std::span<const TensorIndex> indices, const Tensor& mask, const Tensor& value,
                 Location location) {
  // With slices in the mask's place, the other indices are views.
  std::vector<TensorIndex> views;
  int64_t dim = 0, after = 0;
  bool passed = false, ellipsis_before = false;
  for (const TensorIndex& i : indices) {
    if (i.kind == TensorIndex::Kind::tensor) {
      for (int64_t d = 0; d < mask.dim(); ++d) views.emplace_back(Slice());
      passed = true;
      continue;
    }
    views.push_back(i);
    if (i.kind == TensorIndex::Kind::integer) continue;
    if (i.kind == TensorIndex::Kind::ellipsis && !passed) ellipsis_before = true;
    ++(passed ? after : dim);
  }
  Parsed p = parse(self, views, location);
  if (ellipsis_before) dim = p.base.dim() - mask.dim() - after;
  Ints shape;
  for (int64_t d = 0; d < mask.dim(); ++d) {
    if (mask.size(d) != p.base.size(dim + d))
      fail("index_put_", "indices", "a mask of size " + std::to_string(mask.size(d)),
           std::to_string(p.base.size(dim + d)) + ", the size of the dim", location);
    shape.push_back(mask.size(d));
  }
  for (int64_t d = dim + mask.dim(); d < p.base.dim(); ++d) shape.push_back(1);
  p.base.masked_fill_(mask.to(kBool, location).reshape(shape, location),
                      value.to(p.base.dtype(), location).reshape({}, location), location);
}

/// Without the dims of size 1 in front, of which it may have more than what it is written to, as in PyTorch.
Tensor without_leading_ones(Tensor value, Location location) {
  while (value.defined() && value.dim() > 0 && value.size(0) == 1) value = value.select(0, 0, location);
  return value;
}

}  // namespace

TensorIndex::TensorIndex(const char* dots) : kind(Kind::ellipsis) {
  if (std::string_view(dots) != "...")
    fail("index", "indices", "\"" + std::string(dots) + "\"", "\"...\"", Location::none());
}

Tensor Tensor::index(const std::vector<TensorIndex>& indices, Location location) const {
  Parsed p = parse(*this, plain(indices, location), location);
  return p.any ? select_positions(p, location) : p.base;
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices, Location location) const {
  return index(std::vector<TensorIndex>(indices), location);
}

const Tensor& Tensor::index_put_(const std::vector<TensorIndex>& given, const OperandArg& value, bool accumulate,
                                 Location location) const {
  const std::vector<TensorIndex> indices = plain(given, location);
  const Tensor values =
      value.tensor ? without_leading_ones(*value.tensor, location) : scalar_tensor(value.value, dtype(), location);
  if (const Tensor* mask = only_mask(indices); mask && !accumulate && values.numel() == 1) {
    fill_masked(*this, indices, *mask, values, location);
    return *this;
  }
  Parsed p = parse(*this, indices, location);
  OperandArg written = value;
  if (written.tensor) written.tensor = &values;
  if (p.any)
    put_positions(p, values, accumulate, location);
  else if (accumulate)
    p.base.add_(written, 1, location);
  else
    written.tensor ? p.base.copy_(written, location) : p.base.fill_(written, location);
  return *this;
}
const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const OperandArg& value, bool accumulate,
                                 Location location) const {
  return index_put_(std::vector<TensorIndex>(indices), value, accumulate, location);
}

Tensor Tensor::operator[](PositionArg i) const { return select(0, i.value, i.location); }

}  // namespace ingot
