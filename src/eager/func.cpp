#include "eager/func.h"

#include <algorithm>
#include <map>
#include <string>

#include "eager/nn/gather.h"
#include "eager/ops/checks.h"
#include "eager/ops/factories.h"

namespace ingot::func {
namespace {

using autograd::functional::Tensors;

/// Whether what is derived of this tensor is to be derived again.
bool goes_on(const Tensor& x) { return GradMode::is_enabled() && x.requires_grad(); }

/// A gradient is that of one element.
const Tensor& one_element(const Tensor& output) {
  if (output.defined() && output.numel() != 1)
    eager::fail("grad", "function", eager::shape_text(output) + " as its result", "one element", Location::none());
  return output;
}

/// The gradient, and what the function gives.
std::pair<StateDict, Tensor> derived(const StateFunction& function, const StateDict& state) {
  Tensors inputs;
  bool create_graph = false;
  for (const auto& [name, tensor] : state) {
    inputs.push_back(tensor);
    create_graph = create_graph || (tensor.defined() && goes_on(tensor));
  }
  const auto of_list = [&](const Tensors& list) {
    StateDict own;
    size_t i = 0;
    for (const auto& [name, tensor] : state) own[name] = list[i++];
    return Tensors{one_element(function(own))};
  };
  auto [values, list] = autograd::functional::vjp(of_list, inputs, {}, create_graph, false, Location::none());
  StateDict gradients;
  size_t i = 0;
  for (const auto& [name, tensor] : state) gradients[name] = list[i++];
  return {std::move(gradients), values[0]};
}

std::pair<Tensor, Tensor> derived(const TensorFunction& function, const Tensor& x) {
  auto [value, gradient] = autograd::functional::vjp([&](const Tensor& own) { return one_element(function(own)); },
                                                     TensorArg(x, Location::none()), {}, x.defined() && goes_on(x));
  return {gradient, value};
}

}  // namespace

TensorFunction grad(TensorFunction function) {
  return [function = std::move(function)](const Tensor& x) { return derived(function, x).first; };
}
std::function<StateDict(const StateDict&)> grad(StateFunction function) {
  return [function = std::move(function)](const StateDict& state) { return derived(function, state).first; };
}
std::function<std::pair<Tensor, Tensor>(const Tensor&)> grad_and_value(TensorFunction function) {
  return [function = std::move(function)](const Tensor& x) { return derived(function, x); };
}
std::function<std::pair<StateDict, Tensor>(const StateDict&)> grad_and_value(StateFunction function) {
  return [function = std::move(function)](const StateDict& state) { return derived(function, state); };
}
TensorFunction jacrev(TensorFunction function) {
  return [function = std::move(function)](const Tensor& x) {
    return autograd::functional::jacobian(function, TensorArg(x, Location::none()), x.defined() && goes_on(x));
  };
}
TensorFunction hessian(TensorFunction function) {
  return [function = std::move(function)](const Tensor& x) {
    return autograd::functional::hessian(function, TensorArg(x, Location::none()), x.defined() && goes_on(x));
  };
}

std::pair<Tensor, TensorFunction> vjp(const TensorFunction& function, const TensorArg& primal) {
  const EnableGradGuard enable;
  const Tensor& given = eager::present_floating("vjp", "primal", primal);
  const bool create_graph = given.requires_grad();
  const Tensor x = create_graph ? given.view_as(given) : given.detach().requires_grad_();
  const Tensor value = function(x);
  return {create_graph ? value : value.detach(), [x, value, create_graph](const Tensor& v) {
            if (!value.requires_grad()) return zeros_like(x.detach());
            const Tensor product = autograd::grad({value}, {x}, {v}, true, create_graph, true)[0];
            return product.defined() ? product : zeros_like(x.detach());
          }};
}
std::pair<Tensor, Tensor> jvp(const TensorFunction& function, const TensorArg& primal, const TensorArg& tangent) {
  return autograd::functional::jvp(function, primal, tangent, primal.tensor && goes_on(*primal.tensor));
}

detail::Replaced::Replaced(nn::Module& module, const StateDict& tensors, Location location) {
  std::map<ingot::detail::TensorImpl*, Tensor> others;  // of tied ones one name is enough
  const std::vector<nn::detail::Slot> slots = nn::detail::Gather(module).slots;
  for (const auto& given : tensors) {
    const auto slot = std::find_if(slots.begin(), slots.end(), [&](const auto& s) { return s.name == given.first; });
    if (slot == slots.end())
      eager::fail("functional_call", "parameters_and_buffers", "\"" + given.first + "\"",
                  "names of parameters and buffers of the module", location);
    ingot::detail::checked_impl(given.second.impl(), "functional_call", location);
    others[slot->tensor->impl()] = given.second;
  }
  before_.reserve(slots.size());  // nothing fails between the first one and the last
  for (const nn::detail::Slot& s : slots)
    if (const auto other = others.find(s.tensor->impl()); other != others.end()) {
      before_.emplace_back(s.tensor, *s.tensor);
      *s.tensor = other->second;
    }
}
detail::Replaced::~Replaced() {
  for (auto& [tensor, own] : before_) *tensor = std::move(own);
}

}  // namespace ingot::func
