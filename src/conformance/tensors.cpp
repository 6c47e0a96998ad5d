#include "conformance/tensors.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "eager/data.h"

namespace ingot::conformance {
namespace {

/// Offset and strides of a view with gaps: dims in reverse order for every other tensor, every second element, an
/// offset.
Tensor strided_view(const CaseTensor& t, bool reversed) {
  size_t rank = t.shape.size();
  Ints strides(rank, 0);
  int64_t step = 2, offset = 3;
  for (size_t i = 0; i < rank; ++i) {
    size_t d = reversed ? i : rank - 1 - i;
    strides[d] = step;
    step *= std::max<int64_t>(t.shape[d], 1);
  }
  Tensor base = eager::make_empty(t.dtype, Ints{step + offset});
  std::memset(eager::data_of(*base.impl()), 1, (step + offset) * size_of(t.dtype));
  return base.as_strided(t.shape, strides, offset);
}

Tensor make_tensor(const CaseTensor& t, Storage storage, bool reversed) {
  Tensor result = storage == Storage::dense ? eager::make_empty(t.dtype, t.shape) : strided_view(t, reversed);
  const char* next = t.bytes.data();
  int64_t size = size_of(t.dtype);
  char* data = eager::data_of(*result.impl());
  eager::for_each_offset(*result.impl(), [&](int64_t offset) {
    std::memcpy(data + offset * size, next, size);
    next += size;
  });
  return result;
}

CaseTensor read_one(const Tensor& tensor) {
  eager::materialize(tensor, "conformance", Location());
  const ingot::detail::TensorImpl& t = *tensor.impl();
  CaseTensor result{t.dtype, t.sizes, {}, {}};
  int64_t size = size_of(t.dtype);
  result.bytes.reserve(eager::count(t.sizes) * size);
  const char* data = eager::data_of(t);
  eager::for_each_offset(t, [&](int64_t offset) { result.bytes.append(data + offset * size, size); });
  return result;
}
}  // namespace

Tensor make(const CaseTensor& t, Storage storage) { return make_tensor(t, storage, false); }

std::vector<CaseTensor> read(const std::vector<Tensor>& tensors) {
  std::vector<CaseTensor> results;
  for (const Tensor& t : tensors) results.push_back(read_one(t));
  return results;
}

Pool::Pool(Storage storage, const Case& c, const std::function<CaseTensor(const CaseTensor&)>& change) {
  // view and view_as refuse, as PyTorch's do, strides that their sizes cannot describe.
  const bool reversible = c.op.rfind("view", 0) != 0;
  for_each_tensor(c, [&](const CaseTensor& t) {
    if (numbers_.emplace(&t, tensors.size()).second)
      tensors.push_back(make_tensor(change ? change(t) : t, storage, reversible && tensors.size() % 2 == 0));
  });
}

const Tensor& Pool::find(const CaseTensor& t, const std::vector<Tensor>& among) const {
  auto found = numbers_.find(&t);
  if (found == numbers_.end()) throw Error("an argument that must be a tensor is none");
  return among[found->second];
}

}  // namespace ingot::conformance
