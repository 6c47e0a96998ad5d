// The leaves of arguments and results: tensors, numbers and texts, through vectors, maps, tuples, optionals and
// described structs.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/for_each.h"
#include "base/small_vector.h"
#include "eager/tensor.h"

/// Describes a struct for compile(), after its definition and in its namespace: INGOT_FIELDS(Batch, x, y).
#define INGOT_FIELDS(Type, ...)                                                                                        \
  [[maybe_unused]] inline auto ingot_fields(Type& s) { return std::tie(INGOT_FOR_EACH(INGOT_FIELD_OF, __VA_ARGS__)); } \
  [[maybe_unused]] inline auto ingot_fields(const Type& s) {                                                           \
    return std::tie(INGOT_FOR_EACH(INGOT_FIELD_OF, __VA_ARGS__));                                                      \
  }
#define INGOT_FIELD_OF(name) s.name

namespace ingot::detail {

/// One leaf; borrowed.
struct Leaf {
  enum class Kind : uint8_t { tensor, number, text, length } kind = Kind::tensor;
  bool borrowed = false;     // a text that its argument or result does not own
  const void* at = nullptr;  // a tensor; the characters of a text
  // A number (long ones are several leaves; what type it has, the call's signature says), a length, that of a text.
  uint64_t bits = 0;

  const Tensor* tensor() const { return static_cast<const Tensor*>(at); }
  std::string_view text() const {
    return kind == Kind::text ? std::string_view(static_cast<const char*>(at), bits) : std::string_view();
  }
};

class LeafList {
 public:
  void add(const Tensor& t) { leaves_.push_back({Leaf::Kind::tensor, false, &t, 0}); }
  void add_number(uint64_t bits) { leaves_.push_back({Leaf::Kind::number, false, nullptr, bits}); }
  /// A number of this many bytes, all of which count.
  void add_number(const void* value, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 8) {
      uint64_t bits = 0;
      std::memcpy(&bits, static_cast<const char*>(value) + at, bytes - at < 8 ? bytes - at : 8);
      add_number(bits);
    }
  }
  void add_text(std::string_view text, bool borrowed) {
    leaves_.push_back({Leaf::Kind::text, borrowed, text.data(), text.size()});
  }
  void add_length(size_t n) { leaves_.push_back({Leaf::Kind::length, false, nullptr, n}); }
  void clear() { leaves_.clear(); }
  std::span<const Leaf> items() const { return leaves_; }

 private:
  SmallVector<Leaf, 16> leaves_;
};

template <class T>
concept Described = requires(const T& t) {
  ingot_fields(t);
};
// Not what merely converts to a text: it could hold more than that.
template <class T>
inline constexpr bool is_text =
    std::is_same_v<T, const char*> || std::is_same_v<T, char*> || std::is_same_v<T, std::string_view>;
template <class A>
inline constexpr bool is_text<std::basic_string<char, std::char_traits<char>, A>> = true;
template <class T>
concept Text = is_text<T>;
template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Stands for a combination of types by its address. Not const: what is never written may be folded into one.
template <class... T>
inline char signature_of = 0;

/// What compile() can look into. The primary template is for what it cannot.
template <class T>
struct Leaves {
  static constexpr bool known = false;
};

/// Instantiated for each argument, so that the compiler's message names the type.
template <class T>
struct Capture {
  static_assert(Leaves<T>::known,
                "ingot::compile: an argument of this type cannot be captured; pass tensors, numbers, strings, vectors, "
                "maps, tuples, optionals, or describe the struct with INGOT_FIELDS(Type, members...)");
};

template <>
struct Leaves<Tensor> {
  static constexpr bool known = true;
  static void collect(const Tensor& t, LeafList& out) { out.add(t); }
  template <class Next>
  static void assign(Tensor& t, Next& next) {
    t = next();
  }
};
template <>
struct Leaves<TensorArg> {
  static constexpr bool known = true;
  static void collect(const TensorArg& x, LeafList& out) { out.add(x.get()); }
};
template <Number T>
struct Leaves<T> {
  static constexpr bool known = true;
  // The 80 bits of x87 end in bytes that mean nothing.
  static constexpr size_t kBytes =
      std::is_same_v<T, long double> && std::numeric_limits<T>::digits == 64 ? 10 : sizeof(T);
  static void collect(const T& value, LeafList& out) { out.add_number(&value, kBytes); }
  template <class Next>
  static void assign(T&, Next&) {}
};
template <>
struct Leaves<Size> {
  static constexpr bool known = true;
  static void collect(const Size& size, LeafList& out) { out.add_number(static_cast<uint64_t>(int64_t{size})); }
  template <class Next>
  static void assign(Size&, Next&) {}
};
template <>
struct Leaves<Scalar> {
  static constexpr bool known = true;
  static void collect(const Scalar& s, LeafList& out) {
    out.add_length(static_cast<size_t>(s.category()));
    const double number = s.to_double();
    out.add_number(&number, sizeof number);
    out.add_number(static_cast<uint64_t>(s.to_int64_saturated()));
  }
  template <class Next>
  static void assign(Scalar&, Next&) {}
};
template <Text T>
struct Leaves<T> {
  static constexpr bool known = true;
  static void collect(const T& text, LeafList& out) {
    if constexpr (std::is_pointer_v<T>) {
      out.add_length(text != nullptr);
      if (!text) return;
    }
    out.add_text(text, std::is_trivially_destructible_v<T>);
  }
  template <class Next>
  static void assign(T&, Next&) {}
};
template <>
struct Leaves<std::nullopt_t> {
  static constexpr bool known = true;
  static void collect(const std::nullopt_t&, LeafList& out) { out.add_length(0); }
};
template <class T>
struct Leaves<std::optional<T>> {
  static constexpr bool known = Leaves<T>::known;
  static void collect(const std::optional<T>& value, LeafList& out) {
    out.add_length(value.has_value());
    if (value) Leaves<T>::collect(*value, out);
  }
  template <class Next>
  static void assign(std::optional<T>& value, Next& next) {
    if (value) Leaves<T>::assign(*value, next);
  }
};

template <class List, class T>
struct ListLeaves {
  static constexpr bool known = Leaves<T>::known;
  static void collect(const List& list, LeafList& out) {
    out.add_length(list.size());
    for (const auto& item : list) Leaves<T>::collect(item, out);
  }
  template <class Next>
  static void assign(List& list, Next& next) {
    for (auto&& item : list) Leaves<T>::assign(item, next);
  }
};
template <class T, class A>
struct Leaves<std::vector<T, A>> : ListLeaves<std::vector<T, A>, T> {};
template <class A>
struct Leaves<std::vector<bool, A>> {
  static constexpr bool known = true;
  static void collect(const std::vector<bool, A>& list, LeafList& out) {
    out.add_length(list.size());
    for (bool item : list) out.add_number(item);
  }
  template <class Next>
  static void assign(std::vector<bool, A>&, Next&) {}
};
template <class T, size_t N>
struct Leaves<std::array<T, N>> : ListLeaves<std::array<T, N>, T> {};

// Keys count, in their order. (One that hashes them has no order that its copy has as well.)
template <class K, class T, class C, class A>
struct Leaves<std::map<K, T, C, A>> {
  using Map = std::map<K, T, C, A>;
  static constexpr bool known = (Number<K> || Text<K>)&&Leaves<T>::known;
  static void collect(const Map& map, LeafList& out) {
    out.add_length(map.size());
    for (const auto& [key, item] : map) {
      Leaves<K>::collect(key, out);
      Leaves<T>::collect(item, out);
    }
  }
  template <class Next>
  static void assign(Map& map, Next& next) {
    for (auto& [key, item] : map) Leaves<T>::assign(item, next);
  }
};

// Tuples, pairs, and structs through the tuple of their fields.
template <class Tuple, class... T>
struct TupleLeaves {
  static constexpr bool known = (Leaves<T>::known && ...);
  static void collect(const Tuple& tuple, LeafList& out) {
    std::apply([&](const auto&... items) { (Leaves<T>::collect(items, out), ...); }, tuple);
  }
  template <class Next>
  static void assign(Tuple& tuple, Next& next) {
    std::apply([&](auto&... items) { (Leaves<T>::assign(items, next), ...); }, tuple);
  }
};
template <class... T>
struct Leaves<std::tuple<T...>> : TupleLeaves<std::tuple<T...>, T...> {};
template <class A, class B>
struct Leaves<std::pair<A, B>> : TupleLeaves<std::pair<A, B>, A, B> {};

template <class Tied>
struct FieldLeaves;
template <class... T>
struct FieldLeaves<std::tuple<T&...>> : TupleLeaves<std::tuple<T&...>, std::remove_const_t<T>...> {};
template <Described T>
struct Leaves<T> {
  using Fields = FieldLeaves<decltype(ingot_fields(std::declval<T&>()))>;
  static constexpr bool known = Fields::known;
  static void collect(const T& value, LeafList& out) {
    FieldLeaves<decltype(ingot_fields(value))>::collect(ingot_fields(value), out);
  }
  template <class Next>
  static void assign(T& value, Next& next) {
    auto fields = ingot_fields(value);
    Fields::assign(fields, next);
  }
};

template <class T>
void collect_leaves(const T& value, LeafList& out) {
  Leaves<T>::collect(value, out);
}

}  // namespace ingot::detail
