#include "eager/tensor.h"

#include <algorithm>
#include <limits>
#include <new>

#include "base/first_use.h"
#include "base/float_environment.h"
#include "base/free_list.h"
#include "base/half.h"
#include "eager/call/call.h"
#include "eager/data.h"

namespace ingot {

namespace detail {
namespace {

constinit thread_local FreeList<sizeof(TensorImpl), 256> free_list;

}  // namespace

TensorImpl* new_impl() { return new (free_list.take()) TensorImpl; }

void delete_impl(TensorImpl* impl) {
  impl->~TensorImpl();
  free_list.give(impl);
}

TensorImpl::~TensorImpl() {
  if (node || autograd) drop_autograd(*this);
  if (storage) storage->release();
}

TensorImpl& checked_impl(TensorImpl* impl, const char* op, Location location) {
  if (impl) return *impl;
  eager::fail(op, "self", "an undefined tensor", "a tensor", location);
}

}  // namespace detail

namespace {

eager::PendingDescription pending_description = nullptr;

int64_t checked_dim(const char* op, int64_t d, int64_t rank, Location location) {
  if (d >= -rank && d < rank) return d < 0 ? d + rank : d;
  eager::fail(op, "dim", std::to_string(d), "a dim of a tensor with " + std::to_string(rank) + " dims", location);
}

}  // namespace

namespace eager {

void set_pending_description(PendingDescription f) { pending_description = f; }

void materialize(const Tensor& tensor, const char* op, Location location) {
  detail::TensorImpl& impl = detail::checked_impl(tensor.impl(), op, location);
  flush(op, location);
  if (impl.storage) return;
  fail(op, "self",
       "a tensor whose value is still being recorded" + (pending_description ? pending_description(impl) : ""),
       "a call on the thread that records it", location);
}

Extent extent_of(const detail::TensorImpl& t) {
  const char* begin = data_of(t);
  int64_t last = 0;
  for (size_t d = 0; d < t.sizes.size(); ++d) {
    if (t.sizes[d] == 0) return {begin, begin};
    last += (t.sizes[d] - 1) * t.strides[d];
  }
  return {begin, begin + (last + 1) * size_of(t.dtype)};
}

bool same_places(const detail::TensorImpl& a, const detail::TensorImpl& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides && data_of(a) == data_of(b);
}

int64_t count(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

Ints contiguous_strides(std::span<const int64_t> sizes) {
  Ints strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

Tensor make_tensor(DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset,
                   runtime::Storage* storage) {
  detail::TensorImpl* impl = detail::new_impl();
  impl->dtype = dtype;
  impl->sizes.assign(sizes.begin(), sizes.end());
  impl->strides.assign(strides.begin(), strides.end());
  impl->offset = offset;
  impl->storage = storage;
  if (storage) storage->retain();
  return Tensor::of(impl);
}

Tensor make_empty(DType dtype, std::span<const int64_t> sizes) {
  runtime::StoragePtr storage = runtime::Storage::allocate(count(sizes) * size_of(dtype));
  detail::TensorImpl* impl = detail::new_impl();
  impl->dtype = dtype;
  impl->sizes.assign(sizes.begin(), sizes.end());
  impl->strides.resize(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    impl->strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  impl->storage = storage.detach();
  return Tensor::of(impl);
}

Scalar read_element(DType dtype, const char* at) {
  const FloatEnvironment environment;
  auto load = [at]<class T>(T value) {
    std::memcpy(&value, at, sizeof(T));
    return value;
  };
  switch (dtype) {
    case DType::f64:
      return load(double{});
    case DType::f32:
      return load(float{});
    case DType::f16:
      return f32_from_f16(load(uint16_t{}));
    case DType::bf16:
      return f32_from_bf16(load(uint16_t{}));
    case DType::i64:
      return load(int64_t{});
    case DType::i32:
      return load(int32_t{});
    case DType::i16:
      return load(int16_t{});
    case DType::i8:
      return load(int8_t{});
    case DType::u8:
      return load(uint8_t{});
    case DType::bool_:
      return load(uint8_t{}) != 0;
    default:
      throw Error("a tensor of " + std::string(name_of(dtype)) + " holds no data yet");
  }
}

void write_element(DType dtype, char* at, Scalar value) {
  const FloatEnvironment environment;
  auto store = [at]<class T>(T x) { std::memcpy(at, &x, sizeof(T)); };
  // From a float a number saturates at the range of the type, from an integer it wraps.
  auto integer = [&]<class T>(T) {
    int64_t wide = value.to_int64_saturated();
    if (value.category() == Category::floating)
      wide = std::clamp<int64_t>(wide, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    store(static_cast<T>(wide));
  };
  switch (dtype) {
    case DType::f64:
      return store(value.to<double>());
    case DType::f32:
      return store(value.to<float>());
    case DType::f16:
      return store(f16_from_f32(value.to<float>()));
    case DType::bf16:
      return store(bf16_from_f32(value.to<float>()));
    case DType::i64:
      return integer(int64_t{});
    case DType::i32:
      return integer(int32_t{});
    case DType::i16:
      return integer(int16_t{});
    case DType::i8:
      return integer(int8_t{});
    case DType::u8:
      return integer(uint8_t{});
    case DType::bool_:
      return store(static_cast<uint8_t>(value.to<bool>()));
    default:
      throw Error("a tensor of " + std::string(name_of(dtype)) + " holds no data yet");
  }
}

}  // namespace eager

Size Tensor::size(int64_t d, Location location) const {
  const auto& impl = get("size", location);
  return detail::size_of_dim(impl, checked_dim("size", d, static_cast<int64_t>(impl.sizes.size()), location));
}
int64_t Tensor::stride(int64_t d, Location location) const {
  const auto& impl = get("stride", location);
  detail::pin_layout(impl);
  return impl.strides[checked_dim("stride", d, static_cast<int64_t>(impl.sizes.size()), location)];
}
int64_t Tensor::numel(Location location) const {
  const auto& impl = get("numel", location);
  detail::pin_sizes(impl);
  return eager::count(impl.sizes);
}

bool Tensor::is_contiguous(Location location) const {
  const auto& impl = get("is_contiguous", location);
  detail::pin_layout(impl);
  int64_t step = 1;
  for (size_t d = impl.sizes.size(); d-- > 0;) {
    if (impl.sizes[d] == 0) return true;
    if (impl.sizes[d] != 1 && impl.strides[d] != step) {
      return eager::count(impl.sizes) == 0;  // an empty tensor is contiguous whatever its strides are
    }
    step *= impl.sizes[d];
  }
  return true;
}

bool Tensor::shares_storage(const Tensor& other) const {
  if (!impl_ || !other.impl_) return false;
  for (const Tensor* t : {this, &other})
    if (!t->impl_->storage) eager::materialize(*t, "shares_storage", Location::none());
  return impl_->storage == other.impl_->storage;
}

uint64_t Tensor::version(Location location) const {
  eager::materialize(*this, "version", location);
  return impl_->storage->version();
}

const void* Tensor::data_ptr(Location location) const {
  eager::materialize(*this, "data_ptr", location);
  eager::hand_out(*impl_, false);
  return eager::data_of(*impl_);
}
void* Tensor::mutable_data_ptr(Location location) const {
  eager::materialize(*this, "mutable_data_ptr", location);
  eager::hand_out(*impl_, true);
  impl_->storage->bump_version();
  return eager::data_of(*impl_);
}

static void check_type(const char* op, const detail::TensorImpl& impl, int cpp_type, Location location) {
  if (cpp_type < 0 ? is_half(impl.dtype) : static_cast<int>(impl.dtype) == cpp_type) return;
  std::string asked = cpp_type < 0 ? "a 16-bit float" : std::string(name_of(static_cast<DType>(cpp_type)));
  eager::fail(op, "", "a pointer to " + asked, "one to " + std::string(name_of(impl.dtype)) + ", the tensor's dtype",
              location);
}

const Tensor& TensorArg::get() const {
  static constinit FirstUse<const Tensor> undefined;
  return tensor ? *tensor : *undefined;
}

const void* Tensor::typed(int cpp_type, Location location) const {
  check_type("data_ptr", get("data_ptr", location), cpp_type, location);
  return data_ptr(location);
}
void* Tensor::typed_mutable(int cpp_type, Location location) const {
  check_type("mutable_data_ptr", get("mutable_data_ptr", location), cpp_type, location);
  return mutable_data_ptr(location);
}

Scalar Tensor::scalar(Location location) const {
  const auto& impl = get("item", location);
  if (int64_t n = eager::count(impl.sizes); n != 1)
    eager::fail("item", "self", "a tensor with " + std::to_string(n) + " elements", "exactly one element", location);
  eager::materialize(*this, "item", location);
  return eager::read_element(impl.dtype, eager::data_of(impl));
}

}  // namespace ingot
