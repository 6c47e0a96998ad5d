// Sizes as a user gets and gives them: numbers that remember which tensor they came from.
#pragma once
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <utility>

#include "base/export.h"

namespace ingot {

template <class T>
concept PlainInteger = std::integral<T> && !std::same_as<T, bool>;

class Size;
namespace detail {
enum class SizeOperator : uint8_t { add, subtract, multiply, divide, remainder };
/// Throws Error for a division by zero; divides as C++ does.
INGOT_API Size combine(SizeOperator op, const Size& a, const Size& b);
INGOT_API bool size_equal(const Size& a, const Size& b);
INGOT_API bool size_less(const Size& a, const Size& b);
/// The number, noted as one that must stay as it is.
INGOT_API int64_t pinned(int64_t value, uint64_t origin);
}  // namespace detail

/// A size of a tensor, as Tensor::size gives it. It counts like an int64_t and converts to one. While a frozen function
/// is observed it records its arithmetic, so that the function is not run again for other sizes: what is computed from
/// sizes and given to ops may change with them. A comparison holds the function to its outcome, a conversion to a plain
/// number to that number.
class Size {
 public:
  constexpr Size() = default;
  /// `origin`: a number of the recording; 0 for a plain number.
  static constexpr Size of(int64_t value, uint64_t origin = 0) {
    Size s;
    s.value_ = value;
    s.origin_ = origin;
    return s;
  }
  operator int64_t() const { return origin_ ? detail::pinned(value_, origin_) : value_; }
  constexpr int64_t value() const { return value_; }  // looked at in passing: holds nobody to it
  constexpr uint64_t origin() const { return origin_; }

  Size operator-() const { return of(0) - *this; }
  Size& operator++() { return *this = *this + 1; }
  Size& operator--() { return *this = *this - 1; }
  Size operator++(int) { return std::exchange(*this, *this + 1); }
  Size operator--(int) { return std::exchange(*this, *this - 1); }

#define INGOT_SIZE_OPERATOR(sign, name)                                          \
  friend Size operator sign(const Size& a, const Size& b) {                      \
    return detail::combine(detail::SizeOperator::name, a, b);                    \
  }                                                                              \
  template <PlainInteger T>                                                      \
  friend Size operator sign(const Size& a, T b) {                                \
    return a sign of(static_cast<int64_t>(b));                                   \
  }                                                                              \
  template <PlainInteger T>                                                      \
  friend Size operator sign(T a, const Size& b) {                                \
    return of(static_cast<int64_t>(a)) sign b;                                   \
  }                                                                              \
  friend Size& operator sign##=(Size& a, const Size& b) { return a = a sign b; } \
  template <PlainInteger T>                                                      \
  friend Size& operator sign##=(Size& a, T b) {                                  \
    return a = a sign b;                                                         \
  }
  INGOT_SIZE_OPERATOR(+, add)
  INGOT_SIZE_OPERATOR(-, subtract)
  INGOT_SIZE_OPERATOR(*, multiply)
  INGOT_SIZE_OPERATOR(/, divide)
  INGOT_SIZE_OPERATOR(%, remainder)
#undef INGOT_SIZE_OPERATOR

#define INGOT_SIZE_COMPARISON(sign, expression)                                  \
  friend bool operator sign(const Size& a, const Size& b) { return expression; } \
  template <PlainInteger T>                                                      \
  friend bool operator sign(const Size& a, T b) {                                \
    return a sign of(static_cast<int64_t>(b));                                   \
  }                                                                              \
  template <PlainInteger T>                                                      \
  friend bool operator sign(T a, const Size& b) {                                \
    return of(static_cast<int64_t>(a)) sign b;                                   \
  }
  INGOT_SIZE_COMPARISON(==, detail::size_equal(a, b))
  INGOT_SIZE_COMPARISON(!=, !detail::size_equal(a, b))
  INGOT_SIZE_COMPARISON(<, detail::size_less(a, b))
  INGOT_SIZE_COMPARISON(>, detail::size_less(b, a))
  INGOT_SIZE_COMPARISON(<=, !detail::size_less(b, a))
  INGOT_SIZE_COMPARISON(>=, !detail::size_less(a, b))
#undef INGOT_SIZE_COMPARISON

 private:
  int64_t value_ = 0;
  uint64_t origin_ = 0;
};
INGOT_API std::ostream& operator<<(std::ostream& out, const Size& size);

/// A size as an argument: a plain integer or a Size.
struct SizeArg {
  int64_t value = 0;
  uint64_t origin = 0;
  constexpr SizeArg() = default;
  template <PlainInteger T>
  constexpr SizeArg(T v) : value(static_cast<int64_t>(v)) {}
  constexpr SizeArg(const Size& s) : value(s.value()), origin(s.origin()) {}
};

}  // namespace ingot
