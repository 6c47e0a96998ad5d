#include "runtime/drivers/combine.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/error.h"

namespace ingot::runtime {
namespace {

template <class T>
constexpr bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  return false;
}

// Each: the identity of an empty result, and a combined with b.
struct Sum {
  template <class T>
  static constexpr T empty() {
    return T(0);
  }
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
    else
      return a + b;
  }
};
struct Factors {
  template <class T>
  static constexpr T empty() {
    return T(1);
  }
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(std::make_unsigned_t<T>(a) * std::make_unsigned_t<T>(b));
    else
      return a * b;
  }
};
// NaN wins, -0 < +0.
struct Maximum {
  template <class T>
  static constexpr T empty() {
    if constexpr (std::is_floating_point_v<T>)
      return -std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::lowest();
  }
  template <class T>
  static bool beats(T b, T a) {
    return b > a;
  }  // strictly; zeros are equal
  template <class T>
  static T apply(T a, T b) {
    if (is_nan(a)) return a;
    if constexpr (std::is_floating_point_v<T>)
      if (a == b) return std::signbit(a) ? b : a;
    return is_nan(b) || b > a ? b : a;
  }
};
struct Minimum {
  template <class T>
  static constexpr T empty() {
    if constexpr (std::is_floating_point_v<T>)
      return std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::max();
  }
  template <class T>
  static bool beats(T b, T a) {
    return b < a;
  }
  template <class T>
  static T apply(T a, T b) {
    if (is_nan(a)) return a;
    if constexpr (std::is_floating_point_v<T>)
      if (a == b) return std::signbit(a) ? a : b;
    return is_nan(b) || b < a ? b : a;
  }
};
struct Any {
  template <class T>
  static constexpr T empty() {
    return 0;
  }
  template <class T>
  static T apply(T a, T b) {
    return a | b;
  }
};
struct All {
  template <class T>
  static constexpr T empty() {
    return 1;
  }
  template <class T>
  static T apply(T a, T b) {
    return a & b;
  }
};

template <class Op, class T>
AccumulatorOps plain() {
  AccumulatorOps ops{.value_bytes = sizeof(T)};
  ops.combine = [](char* a_values, const char* b_values, char*, const char*, int64_t count) {
    T* a = reinterpret_cast<T*>(a_values);
    const T* b = reinterpret_cast<const T*>(b_values);
    for (int64_t i = 0; i < count; ++i) a[i] = Op::apply(a[i], b[i]);
  };
  ops.empty = [](char* value, char*) { *reinterpret_cast<T*>(value) = Op::template empty<T>(); };
  return ops;
}

// The first extreme value's index; the first NaN wins. Lanes interleave, so "first" is told by the indices.
template <class Op, class T>
AccumulatorOps indexed() {
  AccumulatorOps ops{.value_bytes = sizeof(T), .indexed = true};
  ops.combine = [](char* a_values, const char* b_values, char* a_indices, const char* b_indices, int64_t count) {
    T* a = reinterpret_cast<T*>(a_values);
    const T* b = reinterpret_cast<const T*>(b_values);
    int64_t* ia = reinterpret_cast<int64_t*>(a_indices);
    const int64_t* ib = reinterpret_cast<const int64_t*>(b_indices);
    for (int64_t i = 0; i < count; ++i) {
      bool a_nan = is_nan(a[i]), b_nan = is_nan(b[i]);
      bool tie = a_nan == b_nan && (a_nan || a[i] == b[i]);
      bool take = tie ? ib[i] < ia[i] : b_nan || (!a_nan && Op::beats(b[i], a[i]));
      a[i] = take ? b[i] : a[i];
      ia[i] = take ? ib[i] : ia[i];
    }
  };
  ops.empty = [](char* value, char* index) {
    *reinterpret_cast<T*>(value) = Op::template empty<T>();
    *reinterpret_cast<int64_t*>(index) = INT64_MAX;
  };
  return ops;
}

template <class T>
AccumulatorOps numeric(Combiner combiner) {
  switch (combiner) {
    case Combiner::sum:
      return plain<Sum, T>();
    case Combiner::prod:
      return plain<Factors, T>();
    case Combiner::max:
      return plain<Maximum, T>();
    case Combiner::min:
      return plain<Minimum, T>();
    case Combiner::argmax:
      return indexed<Maximum, T>();
    case Combiner::argmin:
      return indexed<Minimum, T>();
    case Combiner::any:
    case Combiner::all:
      break;
  }
  INGOT_CHECK(false, "any and all combine masks");
  return {};
}

}  // namespace

AccumulatorOps accumulator_ops(Combiner combiner, DType type) {
  switch (type) {
    case DType::f32:
      return numeric<float>(combiner);
    case DType::f64:
      return numeric<double>(combiner);
    case DType::i32:
      return numeric<int32_t>(combiner);
    case DType::i64:
      return numeric<int64_t>(combiner);
    case DType::bool_:
      if (combiner == Combiner::any || combiner == Combiner::max) return plain<Any, uint8_t>();
      if (combiner == Combiner::all || combiner == Combiner::min) return plain<All, uint8_t>();
      break;
    default:
      break;
  }
  INGOT_CHECK(false, "no such reduction of " + std::string(name_of(type)));
  return {};
}

}  // namespace ingot::runtime
