// A call's scalars as kernels have them.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/dtype.h"
#include "base/error.h"

namespace ingot::runtime {

/// Truncates; out of range saturates, NaN gives 0.
template <class I>
I saturated(double x) {
  if (std::isnan(x)) return 0;
  constexpr double low = static_cast<double>(std::numeric_limits<I>::min());
  if (x < low) return std::numeric_limits<I>::min();
  if (x >= -low) return std::numeric_limits<I>::max();
  return static_cast<I>(x);
}

/// The bits of a number, f64 or i64, as the kernel's register type.
template <class T>
uint64_t converted(T x, DType type) {
  constexpr bool floating = std::is_same_v<T, double>;
  switch (type) {
    case DType::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(x));
    case DType::f64:
      return std::bit_cast<uint64_t>(static_cast<double>(x));
    case DType::i32:
      if constexpr (floating) return static_cast<uint32_t>(saturated<int32_t>(x));
      return static_cast<uint32_t>(x);
    case DType::i64:
      if constexpr (floating) return static_cast<uint64_t>(saturated<int64_t>(x));
      return static_cast<uint64_t>(x);
    case DType::bool_:
      return x != 0;
    default:
      INGOT_CHECK(false, "a scalar has a register type");
      return 0;
  }
}

}  // namespace ingot::runtime
