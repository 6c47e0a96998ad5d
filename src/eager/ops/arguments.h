// What functions and methods take: numbers, lists of sizes, tensors and scalars with the caller's line.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/export.h"
#include "base/small_vector.h"
#include "eager/ops/generator.h"
#include "eager/size.h"

namespace ingot {

class Tensor;

namespace detail {
/// A truth value that no number is taken for, nor it for a number.
template <class T>
concept Flag = std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>> || std::is_same_v<T, std::nullopt_t>;
}  // namespace detail

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
  Scalar(const Size& s) : Scalar(static_cast<int64_t>(s)) {}
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
  /// As a C++ number; a float becomes an integer as in a cast of a tensor.
  template <class T>
  constexpr T to() const {
    if constexpr (std::is_same_v<T, bool>) return category_ == Category::floating ? number_ != 0 : integer_ != 0;
    if constexpr (std::is_floating_point_v<T>)
      return category_ == Category::floating ? static_cast<T>(number_) : static_cast<T>(integer_);
    return static_cast<T>(to_int64_saturated());
  }
  /// LibTorch's names of these.
  constexpr double toDouble() const { return to<double>(); }
  constexpr float toFloat() const { return to<float>(); }
  constexpr int toInt() const { return to<int>(); }
  constexpr int64_t toLong() const { return to<int64_t>(); }
  constexpr bool toBool() const { return to<bool>(); }

 private:
  Category category_;
  int64_t integer_ = 0;
  double number_ = 0;
};

namespace detail {
/// Whether it lies in [lowest, end) without its fraction; NaN does not.
INGOT_API bool holds(const Scalar& value, double lowest, double end);
/// Whether it becomes a T without a change but for its fraction and precision. Negative integers wrap in unsigned
/// types, as in LibTorch.
template <class T>
bool holds(const Scalar& value) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) return true;
  const double number = value.to_double();
  if constexpr (std::is_floating_point_v<T>)
    return !(number > static_cast<double>(Limits::max()) || number < static_cast<double>(Limits::lowest())) ||
           number - number != 0;
  // One above the highest is a power of two, which a double holds.
  const double end = 2.0 * static_cast<double>(Limits::max() / 2 + 1);
  return holds(value, std::is_unsigned_v<T> ? 1 - end : static_cast<double>(Limits::lowest()), end);
}
[[noreturn]] INGOT_API void fail_item(const Scalar& value, double lowest, double highest, Location location);
}  // namespace detail

/// A word that names a choice: text, and nothing that is taken for it (a literal 0 is no null pointer here).
struct Word {
  std::string_view text;
  template <class T>
  requires std::is_convertible_v<const T&, std::string_view> Word(const T& word) : text(word) {}
  operator std::string_view() const { return text; }
};

/// Sizes or strides of a tensor, borrowed from it.
class IntArrayRef : public std::span<const int64_t> {
 public:
  using std::span<const int64_t>::span;
  IntArrayRef(const Ints& ints) : std::span<const int64_t>(ints.data(), ints.size()) {}
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  friend bool operator==(IntArrayRef a, IntArrayRef b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  friend bool operator==(IntArrayRef a, std::initializer_list<int64_t> b) {
    return a == IntArrayRef(b.begin(), b.size());
  }
  friend bool operator==(IntArrayRef a, const std::vector<int64_t>& b) { return a == IntArrayRef(b.data(), b.size()); }
};
INGOT_API std::ostream& operator<<(std::ostream& out, IntArrayRef sizes);

/// A list of sizes or dims as an argument: {2, 3}, a vector, one number; or absent (nothing, {} or std::nullopt).
class IntList {
 public:
  IntList() = default;
  IntList(std::nullopt_t) {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) IntList(T one) : present_(true) {
    items_.push_back(static_cast<int64_t>(one));
  }
  IntList(const Size& one) : present_(true) { add(one); }
  IntList(std::initializer_list<SizeArg> items) : present_(true) {
    for (const SizeArg& item : items) add(item);
  }
  IntList(std::span<const int64_t> items) : items_(items), present_(true) {}
  IntList(const Ints& items) : items_(items), present_(true) {}
  IntList(const std::vector<int64_t>& items) : items_(items.begin(), items.end()), present_(true) {}
  template <size_t N>
  IntList(const std::array<int64_t, N>& items) : items_(items.begin(), items.end()), present_(true) {}
  bool present() const { return present_; }
  /// The numbers, as what they are now: a function that is frozen holds for these only.
  const Ints& items() const {
    for (size_t i = 0; i < origins_.size(); ++i)
      if (origins_[i]) detail::pinned(items_[i], origins_[i]);
    return items_;
  }
  /// The numbers, and where they come from: as many origins, or none.
  const Ints& numbers() const { return items_; }
  const SmallVector<uint64_t, 6>& origins() const { return origins_; }
  void add(const SizeArg& item) {
    present_ = true;
    if (item.origin || !origins_.empty()) {
      origins_.resize(items_.size());
      origins_.push_back(item.origin);
    }
    items_.push_back(item.value);
  }

 private:
  Ints items_;
  SmallVector<uint64_t, 6> origins_;
  bool present_ = false;
};

/// A tensor argument and the line that gave it. Absent: nothing, {} or std::nullopt. Borrowed until the end of the
/// call.
struct TensorArg {
  const Tensor* tensor = nullptr;
  Location location = Location::none();
  TensorArg() = default;
  TensorArg(std::nullopt_t) {}
  TensorArg(const Tensor& t, Location l = Location()) : tensor(&t), location(l) {}
  /// The tensor, or an undefined one.
  INGOT_API const Tensor& get() const;
};

/// A scalar argument and the line that gave it.
struct ScalarArg {
  Scalar value = 0;
  uint64_t origin = 0;  // of a size
  bool present = false;
  Location location = Location::none();
  ScalarArg() = default;
  ScalarArg(std::nullopt_t) {}
  ScalarArg(Scalar v, Location l = Location()) : value(v), present(true), location(l) {}
  ScalarArg(const Size& s, Location l = Location())
      : value(s.value()), origin(s.origin()), present(true), location(l) {}
  template <class T>
  requires std::is_arithmetic_v<T> ScalarArg(T v, Location l = Location()) : value(v), present(true), location(l) {}
};

/// A tensor or a scalar in the same place.
struct OperandArg {
  const Tensor* tensor = nullptr;
  Scalar value = 0;
  uint64_t origin = 0;  // of a size
  bool is_scalar = false;
  Location location = Location::none();
  OperandArg() = default;
  OperandArg(std::nullopt_t) {}
  OperandArg(const Tensor& t, Location l = Location()) : tensor(&t), location(l) {}
  OperandArg(const TensorArg& t) : tensor(t.tensor), location(t.location) {}
  OperandArg(const ScalarArg& s) : value(s.value), origin(s.origin), is_scalar(s.present), location(s.location) {}
  OperandArg(Scalar v, Location l = Location()) : value(v), is_scalar(true), location(l) {}
  OperandArg(const Size& s, Location l = Location())
      : value(s.value()), origin(s.origin()), is_scalar(true), location(l) {}
  template <class T>
  requires std::is_arithmetic_v<T> OperandArg(T v, Location l = Location()) : value(v), is_scalar(true), location(l) {}
};

/// A position in the first dim, for x[i].
struct PositionArg {
  int64_t value;
  Location location;
  template <class T>
  requires std::is_integral_v<T> PositionArg(T v, Location l = Location())
      : value(static_cast<int64_t>(v)), location(l) {}
  PositionArg(const Size& s, Location l = Location()) : value(s), location(l) {}
};

/// A list of tensors: {a, b}, a vector or a span. Borrowed until the end of the call.
struct TensorList {
  const Tensor* data = nullptr;
  size_t size = 0;
  Location location = Location::none();
  TensorList(Location l = Location()) : location(l) {}
  TensorList(std::initializer_list<Tensor> items, Location l = Location()) : size(items.size()), location(l) {
    data = items.begin();  // lives until the end of the full expression, as the call does
  }
  TensorList(const std::vector<Tensor>& items, Location l = Location());
  TensorList(std::span<const Tensor> items, Location l = Location());
};

/// nonzero(x, as_tuple): a tensor for each dim.
struct AsTuple {};
inline constexpr AsTuple as_tuple;

/// What a factory makes: ingot::dtype(kInt64), or just kInt64; ingot::requires_grad() for a leaf that gradients go to.
struct TensorOptions {
  std::optional<DType> type;
  bool tracked = false;
  TensorOptions() = default;
  TensorOptions(DType d) : type(d) {}
  TensorOptions(std::optional<DType> d) : type(d) {}
  TensorOptions dtype(DType d) const {
    TensorOptions o(*this);
    o.type = d;
    return o;
  }
  TensorOptions requires_grad(bool on = true) const {
    TensorOptions o(*this);
    o.tracked = on;
    return o;
  }
  operator std::optional<DType>() const { return type; }
  DType dtype_or(DType fallback) const { return type.value_or(fallback); }
  /// The same where a dtype was given, else of this one.
  TensorOptions or_dtype(DType fallback) const { return dtype(dtype_or(fallback)); }
};
inline TensorOptions dtype(DType d) { return TensorOptions(d); }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }

/// The dtype that holds a C++ type.
template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_arithmetic_v<T>, "ingot: no dtype holds this C++ type");
  if constexpr (std::is_same_v<T, bool>) return DType::bool_;
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::f32 : DType::f64;
  if constexpr (std::is_unsigned_v<T>) static_assert(sizeof(T) == 1, "ingot: unsigned dtypes have 8 bits");
  if constexpr (sizeof(T) == 1) return std::is_unsigned_v<T> ? DType::u8 : DType::i8;
  return sizeof(T) == 2 ? DType::i16 : sizeof(T) == 4 ? DType::i32 : DType::i64;
}

}  // namespace ingot
