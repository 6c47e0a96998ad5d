// One description of the fields of a struct of plain data, from which follow its walks, equality, hash and text.
#pragma once
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/for_each.h"
#include "base/hash.h"

namespace ingot {

template <class Class, class Member>
struct Field {
  std::string_view name;
  Member Class::*member;
};
template <class Class, class Member>
Field(const char*, Member Class::*) -> Field<Class, Member>;

#define INGOT_FIELD_POINTER(name) \
  ::ingot::Field { #name, &Self::name }
/// Inside of a struct: these of its fields describe it. What follows from them is left out. A template, so that who
/// includes the struct and does not ask does not pay for the tuple.
#define INGOT_SOME_FIELDS(TYPE, ...)                                     \
  template <class Self = TYPE>                                           \
  static constexpr auto fields() {                                       \
    return std::tuple{INGOT_FOR_EACH(INGOT_FIELD_POINTER, __VA_ARGS__)}; \
  }
/// All its fields: one that is left out does not compile.
#define INGOT_ALL_FIELDS(TYPE, ...)                                                               \
  static void all_fields(const TYPE& self) { [[maybe_unused]] const auto& [__VA_ARGS__] = self; } \
  INGOT_SOME_FIELDS(TYPE, __VA_ARGS__)

template <class T>
concept Described = requires {
  T::fields();
};
template <class T>
concept Text = std::is_convertible_v<const T&, std::string_view>;
template <class T>
concept Range = !Text<T> && requires(T & x) {
  x.begin();
  x.size();
};
/// An optional or a pointer.
template <class T>
concept MaybeOne = requires(const T& x) {
  *x;
  x.operator->();
};
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;
template <class T>
concept Pair = requires(T& x) {
  x.first;
  x.second;
};

/// Calls visit(name, field) for each field, in order.
template <class T, class F>
void for_each_field(T& x, F&& visit) {
  std::apply([&](const auto&... field) { (visit(field.name, x.*field.member), ...); },
             std::remove_const_t<T>::fields());
}

/// Calls visit(part) for every Part within x, in order.
template <class Part, class T, class F>
void for_each_part(T& x, F&& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, Part>) {
    visit(x);
  } else if constexpr (Described<Plain>) {
    for_each_field(x, [&](std::string_view, auto& field) { for_each_part<Part>(field, visit); });
  } else if constexpr (is_variant<Plain>) {
    std::visit([&](auto& one) { for_each_part<Part>(one, visit); }, x);
  } else if constexpr (Range<Plain>) {
    for (auto& element : x) for_each_part<Part>(element, visit);
  } else if constexpr (MaybeOne<Plain>) {
    if (x) for_each_part<Part>(*x, visit);
  }
}

/// Whether all fields are the same, of what pointers point to as well.
template <class T>
bool same_fields(const T& a, const T& b) {
  if constexpr (Described<T>) {
    return std::apply([&](const auto&... field) { return (same_fields(a.*field.member, b.*field.member) && ...); },
                      T::fields());
  } else if constexpr (is_variant<T>) {
    return a.index() == b.index() &&
           std::visit(
               [&](const auto& one) { return same_fields(one, std::get<std::remove_cvref_t<decltype(one)>>(b)); }, a);
  } else if constexpr (Range<T>) {
    if (a.size() != b.size()) return false;
    auto other = b.begin();
    for (const auto& element : a)
      if (!same_fields(element, *other++)) return false;
    return true;
  } else if constexpr (MaybeOne<T>) {
    return a && b ? &*a == &*b || same_fields(*a, *b) : !a && !b;
  } else {
    return a == b;
  }
}

/// Folds what x holds into the hash; what is the same has the same.
template <class T>
uint64_t hash_fields(const T& x, uint64_t seed = 0) {
  if constexpr (Described<T>) {
    for_each_field(x, [&](std::string_view, const auto& field) { seed = hash_fields(field, seed); });
  } else if constexpr (is_variant<T>) {
    seed = hash_combine(seed, x.index());
    std::visit([&](const auto& one) { seed = hash_fields(one, seed); }, x);
  } else if constexpr (Text<T>) {
    seed = hash_text(x, seed);
  } else if constexpr (Range<T>) {
    seed = hash_combine(seed, x.size());
    for (const auto& element : x) seed = hash_fields(element, seed);
  } else if constexpr (MaybeOne<T>) {
    seed = hash_combine(seed, x ? 1 : 0);
    if (x) seed = hash_fields(*x, seed);
  } else if constexpr (Pair<T>) {
    seed = hash_fields(x.second, hash_fields(x.first, seed));
  } else {
    seed = hash_combine(seed, static_cast<uint64_t>(x));
  }
  return seed;
}

}  // namespace ingot
