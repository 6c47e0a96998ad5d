#include "eager/func.h"

#include <algorithm>
#include <map>
#include <string>
#include <typeinfo>

#include "eager/call/batch.h"
#include "eager/nn/gather.h"
#include "eager/ops/checks.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

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
TensorFunction jacfwd(TensorFunction function) {
  return [function = std::move(function)](const Tensor& given) {
    const EnableGradGuard enable;
    eager::present_floating("jacfwd", "input", {given, Location::none()});
    const bool create_graph = given.requires_grad();
    const Tensor own = eager::sliced(given), x = create_graph ? own.view_as(own) : own.detach().requires_grad_();
    const Tensor value = function(x);
    eager::present_floating("jacfwd", "function", {value, Location::none()});
    std::vector<int64_t> sizes(value.sizes().begin(), value.sizes().end());
    sizes.insert(sizes.end(), x.sizes().begin(), x.sizes().end());
    // The gradient is linear in its weights: its derivative by these, times a vector, is the jacobian's product with
    // it.
    const Tensor weights = eager::sliced(zeros_like(value.detach())).detach().requires_grad_();
    const Tensor gradient =
        value.requires_grad() ? autograd::grad({value}, {x}, {weights}, true, true, true)[0] : Tensor();
    if (!gradient.defined() || x.numel() == 0) return zeros(sizes, value.dtype());
    std::vector<Tensor> columns;
    for (int64_t k = 0; k < x.numel(); ++k) {
      const Tensor one = zeros({x.numel()}, x.dtype());
      one.select(0, k).fill_(1);
      const Tensor column =
          autograd::grad({gradient}, {weights}, {one.view(x.sizes().vec())}, true, create_graph, true)[0];
      columns.push_back(column.defined() ? column : zeros_like(value.detach()));
    }
    return stack(columns, -1).reshape(sizes);
  };
}
TensorFunction hessian(TensorFunction function) {
  return [function = std::move(function)](const Tensor& x) {
    return autograd::functional::hessian(function, TensorArg(x, Location::none()), x.defined() && goes_on(x));
  };
}

std::pair<Tensor, TensorFunction> vjp(const TensorFunction& function, const TensorArg& primal) {
  const EnableGradGuard enable;
  const Tensor given = eager::sliced(eager::present_floating("vjp", "primal", primal));
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

std::pair<StateDict, StateDict> stack_module_state(const std::vector<nn::Module*>& modules, Location location) {
  auto refuse = [&](const std::string& got, const char* expected) {
    eager::fail("stack_module_state", "modules", got, expected, location);
  };
  if (modules.empty()) refuse("none", "one at least");
  nn::Module& first = *modules[0];
  for (nn::Module* module : modules) {
    if (typeid(*module) != typeid(first)) refuse("modules of several types", "modules of one type");
    if (module->is_training() != first.is_training())
      refuse("modules in training and in evaluation", "all in training, or all in evaluation");
  }
  const NoGradGuard no_grad;
  auto stacked = [&](nn::Module::NamedTensors (nn::Module::*named)()) {
    std::vector<nn::Module::NamedTensors> each;
    for (nn::Module* module : modules) each.push_back((module->*named)());
    StateDict result;
    for (size_t i = 0; i < each[0].size(); ++i) {
      const auto& [name, like] = each[0][i];
      std::vector<Tensor> all;
      for (const nn::Module::NamedTensors& tensors : each) {
        if (tensors.size() != each[0].size() || tensors[i].first != name)
          refuse("modules with other tensors than the first", "tensors of the same names");
        if (tensors[i].second.requires_grad() != like.requires_grad())
          refuse("\"" + name + "\" with and without a gradient", "tensors that all require grad, or none");
        all.push_back(tensors[i].second);
      }
      result[name] = stack(all);
      if (like.requires_grad()) result[name].requires_grad_();
    }
    return result;
  };
  return {stacked(&nn::Module::named_parameters), stacked(&nn::Module::named_buffers)};
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
