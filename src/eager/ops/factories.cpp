#include "eager/ops/factories.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/float_environment.h"
#include "eager/call/batch.h"
#include "eager/call/call.h"
#include "eager/call/dispatch.h"
#include "eager/data.h"
#include "eager/ops/functions.h"
#include "ir/rules/rules.h"

namespace ingot {
namespace {

using eager::fail;

void check_sizes(const char* op, const Ints& sizes, Location location) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t s : sizes) empty |= s == 0;
  for (int64_t s : sizes) {
    if (s < 0) fail(op, "size", std::to_string(s), "no negative size", location);
    if (!empty && (__builtin_mul_overflow(count, s, &count) || count > ir::kMostElements))
      fail(op, "size", "more elements than an address space holds", "at most 2^59 elements", location);
  }
}

void check_dtype(const char* op, DType dtype, Location location) {
  if (category_of(dtype) == Category::complex)
    fail(op, "dtype", std::string(name_of(dtype)), "a dtype that holds data (complex does not yet)", location);
}

/// No sizes at all stand for a zero-dim tensor.
IntList given(const IntList& size) { return size.present() ? size : IntList(Ints()); }

Tensor counted(Scalar start, Scalar step, const SizeArg& count, const TensorOptions& options, Location location) {
  const DType dtype = *options.type;
  check_dtype("arange", dtype, location);
  detail::Call<2, 2> call(OpId::arange, location);
  call.operand(ScalarArg(start, location));
  call.operand(ScalarArg(step, location));
  call.size(count);
  call.attribute(dtype);
  return eager::as_asked(call.run(), options, location);
}

}  // namespace

Tensor empty(const IntList& size, TensorOptions options, Location location) {
  check_sizes("empty", size.numbers(), location);
  DType dtype = options.dtype_or(kFloat32);
  check_dtype("empty", dtype, location);
  // Recorded, it is a value of the call like any other: what is written to it is the call's own.
  if (eager::intercepted()) return full(given(size), 0, options.or_dtype(dtype), location);
  return eager::as_asked(eager::make_empty(dtype, size.numbers()), options, location);
}
Tensor zeros(const IntList& size, TensorOptions options, Location location) {
  return full(given(size), 0, options.or_dtype(kFloat32), location);
}
Tensor ones(const IntList& size, TensorOptions options, Location location) {
  return full(given(size), 1, options.or_dtype(kFloat32), location);
}
Tensor Tensor::new_empty(const IntList& size, TensorOptions options, Location location) const {
  return eager::sliced_like(empty(given(size), options.or_dtype(dtype(location)), location), *this);
}
Tensor Tensor::new_zeros(const IntList& size, TensorOptions options, Location location) const {
  return eager::sliced_like(full(given(size), 0, options.or_dtype(dtype(location)), location), *this);
}
Tensor Tensor::new_ones(const IntList& size, TensorOptions options, Location location) const {
  return eager::sliced_like(full(given(size), 1, options.or_dtype(dtype(location)), location), *this);
}
Tensor Tensor::new_full(const IntList& size, Scalar fill_value, TensorOptions options, Location location) const {
  return eager::sliced_like(full(given(size), fill_value, options.or_dtype(dtype(location)), location), *this);
}
Tensor scalar_tensor(Scalar value, TensorOptions options, Location location) {
  return full(IntList(Ints()), value, options.or_dtype(default_dtype(value.category())), location);
}
static Tensor filled_like(const char* op, const TensorArg& self, Scalar value, TensorOptions options) {
  const Tensor& like = self.tensor ? *self.tensor : Tensor();
  const detail::TensorImpl& impl = detail::checked_impl(like.impl(), op, self.location);
  return eager::sliced_like(
      full(eager::sizes_of(like, self.location), value, options.or_dtype(impl.dtype), self.location), like);
}
Tensor zeros_like(const TensorArg& self, TensorOptions options) { return filled_like("zeros_like", self, 0, options); }
Tensor ones_like(const TensorArg& self, TensorOptions options) { return filled_like("ones_like", self, 1, options); }
Tensor full_like(const TensorArg& self, Scalar fill_value, TensorOptions options) {
  return filled_like("full_like", self, fill_value, options);
}
Tensor empty_like(const TensorArg& self, TensorOptions options) {
  const Tensor& like = self.tensor ? *self.tensor : Tensor();
  const detail::TensorImpl& impl = detail::checked_impl(like.impl(), "empty_like", self.location);
  return eager::sliced_like(empty(eager::sizes_of(like, self.location), options.or_dtype(impl.dtype), self.location),
                            like);
}

Tensor arange(Scalar start, Scalar end, Scalar step, TensorOptions options, Location location) {
  const FloatEnvironment environment;
  Category category = std::max({start.category(), end.category(), step.category()});
  options = options.or_dtype(category == Category::floating ? kFloat32 : kInt64);
  check_dtype("arange", *options.type, location);
  double by = step.to_double(), count = 0;
  bool backwards = false;
  if (by == 0 || by != by) fail("arange", "step", std::to_string(by), "a step that is not zero", location);
  if (category == Category::floating) {
    count = std::ceil((end.to_double() - start.to_double()) / by);
    backwards = (end.to_double() < start.to_double()) != (by < 0) && end.to_double() != start.to_double();
  } else {
    int64_t from = start.to_int64_saturated(), to = end.to_int64_saturated(), s = step.to_int64_saturated();
    const __int128 span = static_cast<__int128>(to) - from;
    backwards = span != 0 && (span < 0) != (s < 0);
    count = static_cast<double>(span / s + (span % s != 0));
  }
  if (backwards || !(count >= 0))
    fail("arange", "end", std::to_string(end.to_double()), "an end that the step leads to", location);
  if (count >= static_cast<double>(ir::kMostElements))
    fail("arange", "end", std::to_string(end.to_double()), "fewer than 2^59 elements", location);
  return counted(start, step, static_cast<int64_t>(count), options, location);
}
Tensor arange(const Size& end, TensorOptions options, Location location) {
  if (end < 0) fail("arange", "end", std::to_string(end.value()), "an end that the step leads to", location);
  return counted(0, 1, end, options.or_dtype(kInt64), location);
}
Tensor arange(Scalar start, Scalar end, TensorOptions options, Location location) {
  return arange(start, end, 1, options, location);
}
Tensor arange(Scalar end, TensorOptions options, Location location) { return arange(0, end, 1, options, location); }

TensorData::TensorData(std::initializer_list<TensorData> items) : is_list_(true), items_(items) {
  sizes_.push_back(static_cast<int64_t>(items.size()));
  if (items_.empty()) return;
  type_ = items_[0].type_;
  for (const TensorData& item : items_) {
    type_ = promote(type_, item.type_);
    if (!(item.sizes_ == items_[0].sizes_))
      fail("tensor", "data", "lists of different lengths side by side", "lists of one length", Location::none());
  }
  for (int64_t s : items_[0].sizes_) sizes_.push_back(s);
}

void TensorData::set_elements(const void* data, size_t count) {
  const char* bytes = static_cast<const char*>(data);
  elements_.assign(bytes, bytes + count * static_cast<size_t>(size_of(type_)));
  sizes_.push_back(static_cast<int64_t>(count));
}

class TensorDataReader {
 public:
  static Tensor read(const TensorData& data, TensorOptions options, Location location) {
    DType dtype = options.dtype_or(data.type_);
    check_dtype("tensor", dtype, location);
    Tensor result = eager::make_empty(dtype, data.sizes_);
    char* at = eager::data_of(*result.impl());
    write(data, dtype, at);
    return eager::as_asked(std::move(result), options, location);
  }

 private:
  static void write(const TensorData& data, DType dtype, char*& at) {
    const auto write_one = [&](Scalar value) {
      eager::write_element(dtype, at, value);
      at += size_of(dtype);
    };
    if (!data.is_list_) return write_one(data.scalar_);
    for (const TensorData& item : data.items_) write(item, dtype, at);
    const std::vector<char>& elements = data.elements_;
    if (dtype == data.type_ || elements.empty()) {
      at = std::copy(elements.begin(), elements.end(), at);
      return;
    }
    const eager::WithoutInterceptors unseen;
    const int64_t count = data.sizes_[0];
    from_blob(at, {count}, dtype).copy_(from_blob(const_cast<char*>(elements.data()), {count}, data.type_));
    at += count * size_of(dtype);
  }
};

Tensor tensor(TensorData data, TensorOptions options, Location location) {
  return TensorDataReader::read(data, options, location);
}

static Tensor wrap(void* data, const IntList& sizes, const IntList& strides, std::function<void(void*)> deleter,
                   TensorOptions options, Location location) {
  check_sizes("from_blob", sizes.items(), location);
  DType dtype = options.dtype_or(kFloat32);
  check_dtype("from_blob", dtype, location);
  if (strides.present() && strides.items().size() != sizes.items().size())
    fail("from_blob", "strides", std::to_string(strides.items().size()) + " strides",
         std::to_string(sizes.items().size()) + ", as many as sizes", location);
  Ints steps = strides.present() ? strides.items() : eager::contiguous_strides(sizes.items());
  int64_t count = eager::count(sizes.items()), last = 0;
  for (size_t d = 0; d < steps.size(); ++d) {
    if (steps[d] < 0) fail("from_blob", "strides", std::to_string(steps[d]), "no negative stride", location);
    if (int64_t reach; count && (__builtin_mul_overflow(sizes.items()[d] - 1, steps[d], &reach) ||
                                 __builtin_add_overflow(last, reach, &last) || last > ir::kMostElements))
      fail("from_blob", "strides", std::to_string(steps[d]) + " at size " + std::to_string(sizes.items()[d]),
           "places within 2^59 elements", location);
  }
  if (!data && count > 0) fail("from_blob", "data", "a null pointer", "a pointer to the elements", location);
  struct Owner {
    void* data;
    std::function<void(void*)> deleter;
  };
  void (*release)(void*) = nullptr;
  Owner* owner = nullptr;
  if (deleter) {
    owner = new Owner{data, std::move(deleter)};
    release = [](void* p) {
      std::unique_ptr<Owner> held(static_cast<Owner*>(p));
      held->deleter(held->data);
    };
  }
  runtime::StoragePtr storage =
      runtime::Storage::adopt(data, count ? (last + 1) * size_of(dtype) : 0, release, owner, true);
  return eager::as_asked(eager::make_tensor(dtype, sizes.items(), steps, 0, storage.get()), options, location);
}
Tensor from_blob(void* data, const IntList& sizes, TensorOptions options, Location location) {
  return wrap(data, sizes, {}, nullptr, options, location);
}
Tensor from_blob(void* data, const IntList& sizes, std::function<void(void*)> deleter, TensorOptions options,
                 Location location) {
  return wrap(data, sizes, {}, std::move(deleter), options, location);
}
Tensor from_blob(void* data, const IntList& sizes, const IntList& strides, TensorOptions options, Location location) {
  return wrap(data, sizes, strides, nullptr, options, location);
}
Tensor from_blob(void* data, const IntList& sizes, const IntList& strides, std::function<void(void*)> deleter,
                 TensorOptions options, Location location) {
  return wrap(data, sizes, strides, std::move(deleter), options, location);
}

}  // namespace ingot
