// Functions with a derivative of their own.
//
//   struct Cube : autograd::Function<Cube> {
//     static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
//       ctx->save_for_backward({x});
//       return x * x * x;
//     }
//     static std::vector<Tensor> backward(autograd::AutogradContext* ctx, const std::vector<Tensor>& gradients) {
//       Tensor x = ctx->get_saved_variables()[0];
//       return {3 * x * x * gradients[0]};
//     }
//   };
//   Tensor y = Cube::apply(x);
#pragma once
#include <any>
#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "eager/autograd/autograd.h"

namespace ingot::autograd {

using tensor_list = std::vector<Tensor>;

/// A value of any type, which the names of LibTorch read. Each throws Error where it holds something else.
class INGOT_API SavedValue : public std::any {
 public:
  SavedValue() = default;
  template <class T>
  requires(!std::is_base_of_v<std::any, std::remove_cvref_t<T>>) SavedValue(T&& value)
      : std::any(std::forward<T>(value)) {}
  /// Any integer, float or truth value.
  double toDouble(Location location = Location()) const;
  int64_t toInt(Location location = Location()) const;
  bool toBool(Location location = Location()) const;
  Tensor toTensor(Location location = Location()) const;
};

/// What forward leaves for backward.
class INGOT_API AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  /// Operands and results; they must not be written to in place until backward has run.
  void save_for_backward(tensor_list tensors) { to_save_ = std::move(tensors); }
  /// Throws Error where one was written to, and after they were let go of.
  tensor_list get_saved_variables() const;
  /// Anything else.
  std::map<std::string, SavedValue> saved_data;
  /// Results that have no gradient.
  void mark_non_differentiable(tensor_list tensors) { constant_ = std::move(tensors); }
  /// Arguments that forward wrote to in place and returns.
  void mark_dirty(tensor_list tensors) { dirty_ = std::move(tensors); }
  /// Whether backward sees zeros where no gradient arrived (the default), or undefined tensors.
  void set_materialize_grads(bool on) { materialize_ = on; }
  /// Whether the gradient of argument `i` is wanted.
  bool needs_input_grad(size_t i) const { return i < wanted_.size() && wanted_[i]; }

 private:
  friend struct FunctionNode;
  tensor_list to_save_, constant_, dirty_;
  bool materialize_ = true;
  std::vector<bool> wanted_;  // by argument
  struct FunctionNode* node_ = nullptr;
};

namespace detail {
using Forward = std::function<tensor_list(AutogradContext*)>;
using Backward = tensor_list (*)(AutogradContext*, const tensor_list&);
/// `arguments`: the tensors among them, those of lists one by one, undefined for others. Runs `forward` outside of the
/// tape, and puts its results on it. `backward` may be null: a gradient that arrives is then an Error.
INGOT_API void apply_function(const std::string& name, const tensor_list& arguments, Backward backward,
                              const Forward& forward, tensor_list* results, Location location);
template <class T>
concept IsTensor = std::is_convertible_v<const T&, const Tensor&>;
template <class T>
concept MayHoldTensor = requires(const T& t) {
  { t.has_value() } -> std::same_as<bool>;
  { *t } -> std::convertible_to<const Tensor&>;
};
template <class T>
concept IsTensorList = std::ranges::input_range<const T> &&
    (IsTensor<std::ranges::range_value_t<const T>> || MayHoldTensor<std::ranges::range_value_t<const T>>);
template <class T>
void put_argument(tensor_list& list, const T& argument) {
  if constexpr (IsTensor<T>) {
    list.push_back(argument);
  } else if constexpr (MayHoldTensor<T>) {
    list.push_back(argument.has_value() ? static_cast<const Tensor&>(*argument) : Tensor());
  } else if constexpr (IsTensorList<T>) {
    for (const auto& element : argument) put_argument(list, element);
  } else {
    list.emplace_back();
  }
}
template <class F>
concept HasBackward = requires(AutogradContext* context, const tensor_list& gradients) {
  { F::backward(context, gradients) } -> std::convertible_to<tensor_list>;
};
INGOT_API std::string type_name(const char* mangled);
}  // namespace detail

/// Base of functions that say themselves what their derivative is: F::forward(AutogradContext*, arguments...) gives a
/// tensor or a list of them, F::backward(AutogradContext*, gradients) a gradient for each argument, undefined for those
/// that are no tensors. An argument may be a std::optional<Tensor>, and each tensor of a list counts as an argument. A
/// gradient of a shape that the argument broadcasts to is summed, and one of another dtype is cast. Neither is recorded
/// on the tape, unless backward() runs with create_graph: then backward is.
template <class F>
struct Function {
  /// Errors and anomaly mode name the caller's line; of more than six arguments they cannot.
  template <class A>
  static auto apply(A&& a, Location location = Location()) {
    return run(location, std::forward<A>(a));
  }
  template <class A, class B>
  static auto apply(A&& a, B&& b, Location location = Location()) {
    return run(location, std::forward<A>(a), std::forward<B>(b));
  }
  template <class A, class B, class C>
  static auto apply(A&& a, B&& b, C&& c, Location location = Location()) {
    return run(location, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
  }
  template <class A, class B, class C, class D>
  static auto apply(A&& a, B&& b, C&& c, D&& d, Location location = Location()) {
    return run(location, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d));
  }
  template <class A, class B, class C, class D, class E>
  static auto apply(A&& a, B&& b, C&& c, D&& d, E&& e, Location location = Location()) {
    return run(location, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
               std::forward<E>(e));
  }
  template <class A, class B, class C, class D, class E, class G>
  static auto apply(A&& a, B&& b, C&& c, D&& d, E&& e, G&& g, Location location = Location()) {
    return run(location, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
               std::forward<E>(e), std::forward<G>(g));
  }
  template <class... Args>
  requires(sizeof...(Args) == 0 || sizeof...(Args) > 6) static auto apply(Args&&... args) {
    return run(Location::none(), std::forward<Args>(args)...);
  }

 private:
  template <class... Args>
  static auto run(Location location, Args&&... args) {
    using Result = std::decay_t<decltype(F::forward(std::declval<AutogradContext*>(), std::forward<Args>(args)...))>;
    static_assert(std::is_same_v<Result, Tensor> || std::is_same_v<Result, tensor_list>,
                  "ingot::autograd::Function: forward returns a Tensor or a std::vector<Tensor>");
    tensor_list arguments, results;
    (detail::put_argument(arguments, args), ...);
    detail::Backward backward = nullptr;
    if constexpr (detail::HasBackward<F>)
      backward = [](AutogradContext* context, const tensor_list& gradients) -> tensor_list {
        return F::backward(context, gradients);
      };
    detail::apply_function(
        detail::type_name(typeid(F).name()), arguments, backward,
        [&](AutogradContext* context) -> tensor_list {
          if constexpr (std::is_same_v<Result, Tensor>)
            return {F::forward(context, std::forward<Args>(args)...)};
          else
            return F::forward(context, std::forward<Args>(args)...);
        },
        &results, location);
    if constexpr (std::is_same_v<Result, Tensor>)
      return std::move(results[0]);
    else
      return results;
  }
};

}  // namespace ingot::autograd
