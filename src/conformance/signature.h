// Functions of the API with their arguments as PyTorch writes them: "self, dim=-1, keepdim=false". What a case must
// give follows from the types of their C++ parameters.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "conformance/functions.h"
#include "eager/ops/factories.h"

namespace ingot::conformance {

/// What a case gives for a parameter; borrowed from the case, or from a signature that has a default.
struct Given {
  CaseValue::Kind kind;
  const CaseValue* value;
  std::span<const CaseValue> items;  // of a list
  Given(const CaseValue& v) : kind(v.kind), value(&v), items(v.items) {}
  Given(std::span<const CaseValue> list) : kind(CaseValue::Kind::list), value(nullptr), items(list) {}
  bool is(CaseValue::Kind k) const { return kind == k; }
};

/// Names in order, with defaults as JSON (a word needs no quotes). "*tensors" takes all that stand from there on, or
/// one list. Names behind those of the C++ parameters change no result.
class Signature {
 public:
  explicit Signature(const char* text);
  using Takes = bool (*)(const Given&);
  /// Whether each argument of the case has a place, and each parameter an argument that it takes.
  bool fits(const Case& c, std::span<const Takes> parameters) const;
  /// What the case gives, or the default; null where there is none.
  Given given(const Case& c, size_t i) const;

 private:
  struct Name {
    std::string name;
    CaseValue otherwise;
    bool required, rest;
  };
  const CaseValue* find(const Case& c, size_t i) const;
  std::vector<Name> names_;
  size_t positional_;  // names that may be given by position
};

namespace parameter {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T, class... Others>
inline constexpr bool is_one_of = (std::is_same_v<T, Others> || ...);

bool is_number(const Given& v);
bool is_list(const Given& v, bool (*takes)(const Given&));

template <class T>
bool takes(const Given& v) {
  using Kind = CaseValue::Kind;
  // A tensor in the place of a number: its value is read.
  const bool is_value = v.is(Kind::tensor) && v.value->tensor.shape.empty();
  if constexpr (std::is_same_v<T, bool>)
    return v.is(Kind::boolean);
  else if constexpr (is_one_of<T, int64_t, SizeArg>)
    return v.is(Kind::integer) || is_value;
  else if constexpr (std::is_same_v<T, double>)
    return (is_number(v) && !v.is(Kind::boolean)) || is_value;
  else if constexpr (std::is_same_v<T, Scalar>)
    return is_number(v);
  else if constexpr (std::is_same_v<T, ScalarArg>)
    return is_number(v) || v.is(Kind::null);
  else if constexpr (std::is_same_v<T, OperandArg>)
    return is_number(v) || v.is(Kind::tensor) || v.is(Kind::null);
  else if constexpr (is_one_of<T, Tensor, TensorArg>)
    return v.is(Kind::tensor) || v.is(Kind::null);
  else if constexpr (std::is_same_v<T, TensorList>)
    return is_list(v, takes<Tensor>);
  else if constexpr (std::is_same_v<T, IntList>)
    return v.is(Kind::integer) || v.is(Kind::null) || is_list(v, takes<int64_t>);
  else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
    return is_list(v, takes<int64_t>);
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return is_list(v, takes<double>);
  else if constexpr (std::is_same_v<T, Word>)
    return v.is(Kind::text);
  else if constexpr (std::is_same_v<T, TensorOptions>)
    return v.is(Kind::dtype) || v.is(Kind::null);
  else if constexpr (std::is_same_v<T, Location>)
    return true;
  else {
    static_assert(is_optional<T>, "a parameter of this type takes nothing of a case");
    return v.is(Kind::null) || takes<typename T::value_type>(v);
  }
}

/// What an argument borrows from until the end of the call.
struct Held {
  Given given;
  Tensor tensor;
  std::vector<Tensor> tensors;
};

Scalar number(const Given& v, const Arguments& a);

template <class T>
T get(Held& held, const Arguments& a) {
  using Kind = CaseValue::Kind;
  const Given& v = held.given;
  if constexpr (std::is_same_v<T, bool>)
    return v.value->integer != 0;
  else if constexpr (is_one_of<T, int64_t, double>)
    return number(v, a).template to<T>();
  else if constexpr (std::is_same_v<T, SizeArg>)
    return number(v, a).template to<int64_t>();
  else if constexpr (std::is_same_v<T, Scalar>)
    return number(v, a);
  else if constexpr (is_one_of<T, Tensor, TensorArg, OperandArg, ScalarArg>) {
    if (v.is(Kind::null)) return T();
    if constexpr (!std::is_same_v<T, ScalarArg>) {
      if (v.is(Kind::tensor)) return held.tensor = a.make(v.value->tensor);
    }
    if constexpr (is_one_of<T, OperandArg, ScalarArg>) return number(v, a);
    throw Error("an argument that must be a tensor is none");
  } else if constexpr (std::is_same_v<T, TensorList>) {
    for (const CaseValue& item : v.items) held.tensors.push_back(a.make(item.tensor));
    return held.tensors;
  } else if constexpr (is_one_of<T, IntList, std::vector<int64_t>, std::vector<double>>) {
    if constexpr (std::is_same_v<T, IntList>) {
      if (v.is(Kind::null)) return T();
      if (v.is(Kind::integer)) return v.value->integer;
    }
    using Item = std::conditional_t<std::is_same_v<T, std::vector<double>>, double, int64_t>;
    std::vector<Item> items;
    for (const CaseValue& item : v.items) items.push_back(number(item, a).template to<Item>());
    return items;
  } else if constexpr (std::is_same_v<T, Word>)
    return v.value->text;
  else if constexpr (std::is_same_v<T, TensorOptions>)
    return v.is(Kind::null) ? T() : T(v.value->dtype);
  else if constexpr (std::is_same_v<T, Location>)
    return Location::none();
  else
    return v.is(Kind::null) ? T() : T(get<typename T::value_type>(held, a));
}

}  // namespace parameter

inline std::vector<Tensor> results(const Tensor& one) { return {one}; }
inline std::vector<Tensor> results(std::vector<Tensor> all) { return all; }
inline std::vector<Tensor> results(bool value) { return {scalar_tensor(value, kBool)}; }
template <class... T>
std::vector<Tensor> results(const std::tuple<T...>& all) {
  return std::apply([](const T&... each) { return std::vector<Tensor>{each...}; }, all);
}

namespace detail {
template <class... P, class F, size_t... I>
Function bound(F f, const char* text, May may, std::index_sequence<I...>) {
  auto signature = std::make_shared<const Signature>(text);
  return {[f, signature](const Arguments& a) {
            parameter::Held held[] = {{signature->given(a.given(), I), {}, {}}...};
            return results(f(parameter::get<std::decay_t<P>>(held[I], a)...));
          },
          [signature](const Case& c) {
            static constexpr Signature::Takes kTakes[] = {parameter::takes<std::decay_t<P>>...};
            return signature->fits(c, kTakes);
          },
          may};
}
template <class R, class... P>
Function bound(R (*f)(P...), const char* text, May may) {
  return bound<P...>(f, text, may, std::index_sequence_for<P...>());
}
}  // namespace detail

/// A function; of an overloaded one F says which: call<Tensor(const TensorArg&)>(median, "self").
template <class F>
Function call(F* f, const char* signature, May may = May::nothing) {
  return detail::bound(f, signature, may);
}
/// A method.
template <class R, class... P>
Function call(R (Tensor::*method)(P...) const, const char* signature, May may = May::nothing) {
  auto f = [method](const Tensor& self, P... more) -> R { return (self.*method)(more...); };
  return detail::bound<Tensor, P...>(f, signature, may, std::make_index_sequence<sizeof...(P) + 1>());
}

}  // namespace ingot::conformance
