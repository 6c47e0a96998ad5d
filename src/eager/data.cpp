#include "eager/data.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/float_environment.h"
#include "base/half.h"
#include "eager/call/batch.h"
#include "eager/call/call.h"

namespace ingot::eager {
namespace {

PendingDescription pending_description = nullptr;

}  // namespace

void set_pending_description(PendingDescription f) { pending_description = f; }

void materialize(const Tensor& tensor, const char* op, Location location) {
  detail::TensorImpl& impl = detail::checked_impl(tensor.impl(), op, location);
  if (is_slice(impl)) fail_slice(op, location);
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
  return Tensor::first(impl);
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
  return Tensor::first(impl);
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

}  // namespace ingot::eager
