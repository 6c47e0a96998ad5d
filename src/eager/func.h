// Derivatives of functions as functions, and calls of modules with other parameters, under PyTorch's names
// (torch.func).
//
//   auto loss = [&](const StateDict& p) { return F::mse_loss(func::functional_call(net, p, x), y); };
//   StateDict gradients = func::grad(loss)(parameters);
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "eager/autograd/functional.h"
#include "eager/nn/module.h"

namespace ingot::func {

using TensorFunction = std::function<Tensor(const Tensor&)>;
using StateFunction = std::function<Tensor(const StateDict&)>;

// The functions below take a function of one tensor of a floating dtype, or of named ones, that gives a tensor. What it
// is called with are tensors of their own: gradients of others stay as they are. Where derivatives are asked for of
// what they give, as by grad(grad(f)), it has a tape. Errors are those of autograd::functional, whose backward passes
// these are.

/// The gradient of a function that gives one element.
INGOT_API TensorFunction grad(TensorFunction function);
INGOT_API std::function<StateDict(const StateDict&)> grad(StateFunction function);
/// The gradient, and what the function gives.
INGOT_API std::function<std::pair<Tensor, Tensor>(const Tensor&)> grad_and_value(TensorFunction function);
INGOT_API std::function<std::pair<StateDict, Tensor>(const StateDict&)> grad_and_value(StateFunction function);
/// The jacobian, [output's dims..., input's dims...]: one backward pass an element of the output.
INGOT_API TensorFunction jacrev(TensorFunction function);
/// The same, one pass an element of the input, over the tape of one backward pass.
INGOT_API TensorFunction jacfwd(TensorFunction function);
/// The second derivatives of a function that gives one element, [input's dims..., input's dims...].
INGOT_API TensorFunction hessian(TensorFunction function);
/// What the function gives, and the function v -> v times its jacobian, for any number of v.
INGOT_API std::pair<Tensor, TensorFunction> vjp(const TensorFunction& function, const TensorArg& primal);
/// What the function gives, and its jacobian times the tangent, which is like the primal. Two backward passes.
INGOT_API std::pair<Tensor, Tensor> jvp(const TensorFunction& function, const TensorArg& primal,
                                        const TensorArg& tangent);

namespace detail {
/// Of one argument: a tensor, or named ones.
template <class F>
concept OfMore = !std::is_invocable_v<F&, const Tensor&> && !std::is_invocable_v<F&, const StateDict&>;
/// `derive` of the function of its first argument that the others leave.
template <class F, class Derive>
auto of_first(F function, Derive derive) {
  return [=](const auto& first, const auto&... rest) {
    using First = std::decay_t<decltype(first)>;
    const std::function<Tensor(const First&)> one = [&](const First& own) { return function(own, rest...); };
    return derive(one)(first);
  };
}
}  // namespace detail

/// Of a function of more arguments: the same functions of all of them, derived by the first.
template <detail::OfMore F>
auto grad(F function) {
  return detail::of_first(std::move(function), [](const auto& one) { return grad(one); });
}
template <detail::OfMore F>
auto grad_and_value(F function) {
  return detail::of_first(std::move(function), [](const auto& one) { return grad_and_value(one); });
}
template <detail::OfMore F>
auto jacrev(F function) {
  return detail::of_first(std::move(function), [](const TensorFunction& one) { return jacrev(one); });
}
template <detail::OfMore F>
auto jacfwd(F function) {
  return detail::of_first(std::move(function), [](const TensorFunction& one) { return jacfwd(one); });
}
template <detail::OfMore F>
auto hessian(F function) {
  return detail::of_first(std::move(function), [](const TensorFunction& one) { return hessian(one); });
}

/// Which dim is that of the batch: one for all arguments (or results), or one for each; nullopt: none.
class INGOT_API BatchDims {
 public:
  BatchDims(int64_t dim);
  BatchDims(std::nullopt_t);
  BatchDims(std::initializer_list<std::optional<int64_t>> each);

 private:
  friend class VmapRun;
  std::vector<std::optional<int64_t>> dims_;
  bool each_ = false;
};

struct VmapOptions {
  BatchDims in_dims, out_dims;
  std::string randomness;
  std::optional<int64_t> chunk_size;
  Location location;
};

/// A call of what vmap() gives.
class INGOT_API VmapRun {
 public:
  /// A tensor of argument (or result) `number`.
  struct Leaf {
    Tensor* tensor;
    size_t number;
  };
  VmapRun(const VmapOptions& options, std::vector<Leaf> arguments, size_t count);
  ~VmapRun();
  VmapRun(const VmapRun&) = delete;
  /// Makes the arguments slices of the next part of the batch; false at its end.
  bool next();
  /// The function gave this for them.
  void end(const std::vector<Leaf>& results);
  /// Makes the last results those of the whole batch.
  void finish(const std::vector<Leaf>& results);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

namespace detail {
INGOT_API void add_leaves(Tensor& t, size_t number, std::vector<VmapRun::Leaf>& all);
INGOT_API void add_leaves(StateDict& state, size_t number, std::vector<VmapRun::Leaf>& all);
template <class T>
void add_leaves(std::vector<T>& list, size_t number, std::vector<VmapRun::Leaf>& all) {
  for (T& item : list) add_leaves(item, number, all);
}
/// Numbers and the like are the same for all slices.
template <class T>
requires std::is_arithmetic_v<T>
void add_leaves(T&, size_t, std::vector<VmapRun::Leaf>&) {}
/// Each part of a tuple has a number of its own.
template <class Tuple>
std::vector<VmapRun::Leaf> leaves_of_each(Tuple& tuple) {
  std::vector<VmapRun::Leaf> all;
  std::apply([&, number = size_t{0}](auto&... parts) mutable { (add_leaves(parts, number++, all), ...); }, tuple);
  return all;
}
template <class T>
std::vector<VmapRun::Leaf> leaves_of(T& result) {
  std::vector<VmapRun::Leaf> all;
  add_leaves(result, 0, all);
  return all;
}
template <class... T>
std::vector<VmapRun::Leaf> leaves_of(std::tuple<T...>& results) {
  return leaves_of_each(results);
}
template <class A, class B>
std::vector<VmapRun::Leaf> leaves_of(std::pair<A, B>& results) {
  return leaves_of_each(results);
}
}  // namespace detail

/// What vmap() gives: called with arguments that have a dim more each.
template <class F>
class Vmapped {
 public:
  Vmapped(F function, VmapOptions options) : function_(std::move(function)), options_(std::move(options)) {}
  template <class... Args>
  auto operator()(const Args&... args) const {
    std::tuple<Args...> own(args...);
    using Result = std::decay_t<decltype(std::apply(function_, own))>;
    static_assert(!std::is_void_v<Result>, "the function of vmap gives tensors");
    std::optional<Result> result;
    VmapRun run(options_, detail::leaves_of_each(own), sizeof...(Args));
    while (run.next()) {
      result.emplace(std::apply(function_, own));
      run.end(detail::leaves_of(*result));
    }
    run.finish(detail::leaves_of(*result));
    return std::move(*result);
  }

 private:
  F function_;
  VmapOptions options_;
};

/// A function of one slice as a function of all: `function` takes tensors, StateDicts, vectors of tensors and numbers,
/// and gives tensors, or a tuple or pair of such. It is called once, with tensors that stand for every slice along dim
/// `in_dims` of the arguments; what it gives has the batch as dim `out_dims`, nullopt: it is the same for all slices.
/// The values are those of a call for each slice. It may call all ops of the table, and functions made of them; what a
/// slice alone decides (item(), a shape that hangs on values), a write of a slice to a tensor that is the same for all,
/// a custom op, or a Function of the user's own that is derived, is an Error. Gradients go through it, and
/// vmap(grad(f)) gives the gradient of each sample. `randomness`: "error", or numbers that are "different" or the
/// "same" for all slices. `chunk_size`: so many slices at a time. Throws Error for dims that the arguments do not have,
/// for batches of different sizes, and where nothing has a batch.
template <class F>
Vmapped<F> vmap(F function, BatchDims in_dims = 0, BatchDims out_dims = 0, Word randomness = "error",
                std::optional<int64_t> chunk_size = {}, Location location = Location()) {
  return {std::move(function),
          {std::move(in_dims), std::move(out_dims), std::string(randomness.text), chunk_size, location}};
}

namespace detail {
/// While it lives, tensors of a module are others.
class INGOT_API Replaced {
 public:
  Replaced(nn::Module& module, const StateDict& tensors, Location location);
  ~Replaced();
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  std::vector<std::pair<Tensor*, Tensor>> before_;
};
}  // namespace detail

/// The parameters and the buffers of several modules of one type by their names, each stacked along a new first dim:
/// what vmap over functional_call takes to call all of them at once. Parameters are leaves, apart from those of the
/// modules. Throws Error for no modules, and where they differ in type, in training or evaluation, in their names, or
/// in what requires grad.
INGOT_API std::pair<StateDict, StateDict> stack_module_state(const std::vector<nn::Module*>& modules,
                                                             Location location = Location());
template <class M>
requires std::is_base_of_v<nn::HandleBase, M> std::pair<StateDict, StateDict> stack_module_state(
    const std::vector<M>& modules, Location location = Location()) {
  std::vector<nn::Module*> all;
  for (const M& module : modules) all.push_back(&*module);
  return stack_module_state(all, location);
}

/// Calls a module with these tensors in place of parameters and buffers, by the names that state_dict() has for them;
/// others stay what they are. Tied ones are replaced together. For the length of the call the module is one with these
/// tensors: whoever calls it meanwhile, on another thread, sees them, and what it writes to a buffer is written to the
/// given one. Throws Error for a name that the module does not have, and for an undefined tensor.
template <class M, class... Rest>
requires std::is_base_of_v<nn::HandleBase, M>
auto functional_call(const M& module, const StateDict& parameters_and_buffers, const TensorArg& x, Rest&&... rest) {
  const detail::Replaced replaced(*module, parameters_and_buffers, x.location);
  return module(x, std::forward<Rest>(rest)...);
}

}  // namespace ingot::func
