// Derivatives of functions as functions, and calls of modules with other parameters, under PyTorch's names
// (torch.func).
//
//   auto loss = [&](const StateDict& p) { return F::mse_loss(func::functional_call(net, p, x), y); };
//   StateDict gradients = func::grad(loss)(parameters);
#pragma once
#include <functional>
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
/// The second derivatives of a function that gives one element, [input's dims..., input's dims...].
INGOT_API TensorFunction hessian(TensorFunction function);
/// What the function gives, and the function v -> v times its jacobian, for any number of v.
INGOT_API std::pair<Tensor, TensorFunction> vjp(const TensorFunction& function, const TensorArg& primal);
/// What the function gives, and its jacobian times the tangent, which is like the primal. Two backward passes.
INGOT_API std::pair<Tensor, Tensor> jvp(const TensorFunction& function, const TensorArg& primal,
                                        const TensorArg& tangent);

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
