// New tensors: from the caller's data, of given sizes, by example.
#pragma once
#include <functional>
#include <initializer_list>
#include <vector>

#include "eager/tensor.h"

namespace ingot {

/// What stands between the braces of tensor({{1, 2}, {3, 4}}): a number, or a list of these. Integers give i64,
/// floating point numbers f32, bools bool; a vector keeps its element type.
class INGOT_API TensorData {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> TensorData(T value)
      : scalar_(value), type_(default_dtype(Scalar(value).category())) {}
  TensorData(std::initializer_list<TensorData> items);
  template <class T>
  requires std::is_arithmetic_v<T> TensorData(const std::vector<T>& items) : type_(dtype_of<T>()), is_list_(true) {
    if constexpr (std::is_same_v<T, bool>) {  // whose elements are bits
      const std::vector<char> bytes(items.begin(), items.end());
      set_elements(bytes.data(), items.size());
    } else {
      set_elements(items.data(), items.size());
    }
  }

 private:
  friend class TensorDataReader;
  void set_elements(const void* data, size_t count);
  Scalar scalar_ = 0;
  DType type_ = DType::f32;
  bool is_list_ = false;
  std::vector<TensorData> items_;
  std::vector<char> elements_;  // of a vector, in place of items
  Ints sizes_;
};

/// A tensor with these values.
INGOT_API Tensor tensor(TensorData data, TensorOptions options = {}, Location location = Location());

/// A tensor over memory that the caller keeps alive; with `deleter`, over memory that is given back with the last
/// reference.
INGOT_API Tensor from_blob(void* data, const IntList& sizes, TensorOptions options = {},
                           Location location = Location());
INGOT_API Tensor from_blob(void* data, const IntList& sizes, std::function<void(void*)> deleter,
                           TensorOptions options = {}, Location location = Location());
INGOT_API Tensor from_blob(void* data, const IntList& sizes, const IntList& strides, TensorOptions options = {},
                           Location location = Location());
INGOT_API Tensor from_blob(void* data, const IntList& sizes, const IntList& strides, std::function<void(void*)> deleter,
                           TensorOptions options = {}, Location location = Location());

/// Not initialised.
INGOT_API Tensor empty(const IntList& size, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor empty_like(const TensorArg& self, TensorOptions options = {});
INGOT_API Tensor zeros(const IntList& size, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor zeros_like(const TensorArg& self, TensorOptions options = {});
INGOT_API Tensor ones(const IntList& size, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor ones_like(const TensorArg& self, TensorOptions options = {});
INGOT_API Tensor full_like(const TensorArg& self, Scalar fill_value, TensorOptions options = {});
INGOT_API Tensor scalar_tensor(Scalar value, TensorOptions options = {}, Location location = Location());
/// Integers where all three are, else f32.
INGOT_API Tensor arange(Scalar end, TensorOptions options = {}, Location location = Location());
/// i64 (or another dtype) 0, 1, ... for each position of a dim: arange(x.size(1)).
INGOT_API Tensor arange(const Size& end, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor arange(Scalar start, Scalar end, TensorOptions options = {}, Location location = Location());
INGOT_API Tensor arange(Scalar start, Scalar end, Scalar step, TensorOptions options = {},
                        Location location = Location());

}  // namespace ingot
