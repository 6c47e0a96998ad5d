// Tensor: a handle to a strided view of a storage. Copies share.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/export.h"
#include "base/small_vector.h"

namespace ingot {

class Tensor;
namespace runtime {
class Storage;
}

/// A number with its category. Any integer or float type, and bool, converts.
class Scalar {
 public:
  constexpr Scalar(bool v) : category_(Category::boolean), integer_(v), number_(v) {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) constexpr Scalar(T v)
      : category_(Category::integer), integer_(static_cast<int64_t>(v)), number_(static_cast<double>(v)) {}
  template <class T>
  requires(std::is_floating_point_v<T>) constexpr Scalar(T v)
      : category_(Category::floating), number_(static_cast<double>(v)) {}
  constexpr Category category() const { return category_; }
  constexpr double to_double() const { return number_; }
  /// Truncated; out of range saturates, NaN gives 0.
  constexpr int64_t to_int64_saturated() const {
    if (category_ != Category::floating) return integer_;
    if (number_ != number_) return 0;
    if (number_ >= 9223372036854775808.0) return INT64_MAX;
    if (number_ < -9223372036854775808.0) return INT64_MIN;
    return static_cast<int64_t>(number_);
  }

 private:
  Category category_;
  int64_t integer_ = 0;
  double number_ = 0;
};

namespace detail {

/// What a Tensor refers to. `trace` and `value` are the tracer's: the recording that produced the tensor, and its
/// number there.
struct INGOT_API TensorImpl {
  std::atomic<int32_t> references{0};
  DType dtype = DType::f32;
  bool requires_grad = false;
  Ints sizes, strides;
  int64_t offset = 0;                   // elements
  runtime::Storage* storage = nullptr;  // owned; null while the tensor is pending
  uint64_t trace = 0;                   // 0: not part of a recording
  uint32_t value = 0;
  ~TensorImpl();
};
INGOT_API TensorImpl* new_impl();              // from a free list of this thread
INGOT_API void delete_impl(TensorImpl* impl);  // references is 0

}  // namespace detail

}  // namespace ingot
