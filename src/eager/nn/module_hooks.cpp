// Hooks of modules.
#include <algorithm>
#include <any>
#include <atomic>

#include "base/function_scope.h"
#include "eager/autograd/function.h"
#include "eager/call/call.h"
#include "eager/call/dispatch.h"
#include "eager/nn/module.h"

namespace ingot::nn {

/// Of one module. Never changed: a change is another one, so a call goes on with those that it began with.
struct detail::Hooks {
  template <class Hook>
  using Numbered = std::vector<std::pair<int64_t, Hook>>;
  Numbered<ForwardPreHook> before;
  Numbered<ForwardHook> after;
  Numbered<BackwardHook> backward;

  template <class F>
  void for_each_kind(F f) {
    f(before), f(after), f(backward);
  }
};

namespace {

std::atomic<int64_t> next_hook{1};

template <class Hook>
int64_t add(std::shared_ptr<const detail::Hooks>& hooks, detail::Hooks::Numbered<Hook> detail::Hooks::*kind,
            Hook hook) {
  auto changed = hooks ? std::make_shared<detail::Hooks>(*hooks) : std::make_shared<detail::Hooks>();
  const int64_t id = next_hook++;
  ((*changed).*kind).emplace_back(id, std::move(hook));
  hooks = std::move(changed);
  return id;
}

void check_count(const char* module, const char* hook, const std::vector<Tensor>& given, size_t expected,
                 Location location) {
  if (!given.empty() && given.size() != expected)
    eager::fail(module, hook, std::to_string(given.size()) + " tensors",
                std::to_string(expected) + " in place of those that it is given, or none", location);
}

/// While hooks run: lines and functions are the user's own.
struct OfTheUser {
  const CallerLine line{CallerLine::Own()};
  const FunctionScope function{CalledFunction()};
};

}  // namespace

int64_t Module::add_hook(ForwardPreHook hook) { return add(hooks_, &detail::Hooks::before, std::move(hook)); }
int64_t Module::add_hook(ForwardHook hook) { return add(hooks_, &detail::Hooks::after, std::move(hook)); }
int64_t Module::add_hook(BackwardHook hook) { return add(hooks_, &detail::Hooks::backward, std::move(hook)); }

void Module::remove_hook(int64_t id) {
  if (!hooks_) return;
  auto changed = std::make_shared<detail::Hooks>(*hooks_);
  size_t removed = 0, left = 0;
  changed->for_each_kind([&](auto& list) {
    removed += std::erase_if(list, [id](const auto& hook) { return hook.first == id; });
    left += list.size();
  });
  if (removed) hooks_ = left ? std::move(changed) : nullptr;
}

/// The way back through one call: what went into forward and what came out each passed a node.
struct HookedCall::Backward {
  std::shared_ptr<Module> module;
  std::shared_ptr<const detail::Hooks> hooks;
  const char* type;
  Location line;
  size_t inputs = 0;
  std::vector<size_t> tracked;     // of the inputs, those that require grad
  std::vector<uint64_t> versions;  // theirs, before forward
  bool reached = false;
  std::vector<Tensor> grad_outputs;

  /// The gradients of the inputs that require grad, as the hooks have them.
  std::vector<Tensor> call(std::vector<Tensor> gradients) {
    if (!reached) return gradients;
    std::vector<Tensor> grad_inputs(tracked.empty() ? 0 : inputs);
    for (size_t i = 0; i < tracked.size(); ++i) grad_inputs[tracked[i]] = std::move(gradients[i]);
    const OfTheUser own;
    for (const auto& [id, hook] : hooks->backward) {
      std::vector<Tensor> changed = hook(*module, grad_inputs, grad_outputs);
      check_count(type, "backward hook", changed, grad_inputs.size(), line);
      if (!changed.empty()) grad_inputs = std::move(changed);
    }
    grad_outputs.clear();
    reached = false;
    for (size_t i = 0; i < tracked.size(); ++i) gradients[i] = std::move(grad_inputs[tracked[i]]);
    return gradients;
  }

  /// The tensors, as results of a node that does `backward` to their gradients.
  static std::vector<Tensor> pass(const std::shared_ptr<Backward>& call, std::vector<Tensor> tensors,
                                  autograd::detail::Backward backward) {
    std::vector<Tensor> results;
    autograd::detail::apply_function(
        std::string(call->type) + "Hook", tensors, backward,
        [&](autograd::AutogradContext* context) {
          context->set_materialize_grads(false);
          context->saved_data["call"] = call;
          return tensors;
        },
        &results, call->line);
    return results;
  }
  static Backward& of(const autograd::AutogradContext& context) {
    return *std::any_cast<const std::shared_ptr<Backward>&>(context.saved_data.at("call"));
  }
};

HookedCall::HookedCall(const std::shared_ptr<Module>& module, std::vector<Tensor> inputs, bool gives_tensor,
                       Location location)
    : module_(module), hooks_(module->hooks_), inputs_(std::move(inputs)) {
  if (!gives_tensor && (!hooks_->after.empty() || !hooks_->backward.empty()))
    eager::fail(module->type_, "hook", "a result that is no tensor",
                "one that is, for forward and backward hooks; pre-hooks alone do without", location);
  for (const auto& [id, hook] : hooks_->before) {
    const OfTheUser own;
    std::vector<Tensor> changed = hook(*module_, inputs_);
    check_count(module_->type_, "forward pre-hook", changed, inputs_.size(), location);
    if (!changed.empty()) inputs_ = std::move(changed);
  }
  if (hooks_->backward.empty() || !GradMode::is_enabled()) return;
  backward_ = std::make_shared<Backward>();
  backward_->module = module_, backward_->hooks = hooks_, backward_->type = module_->type_, backward_->line = location;
  backward_->inputs = inputs_.size();
  std::vector<Tensor> tracked;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].requires_grad()) {
      backward_->tracked.push_back(i);
      tracked.push_back(inputs_[i]);
    }
  if (tracked.empty()) return;
  tracked = Backward::pass(backward_, std::move(tracked),
                           [](autograd::AutogradContext* context, const std::vector<Tensor>& gradients) {
                             return Backward::of(*context).call(gradients);
                           });
  for (size_t i = 0; i < tracked.size(); ++i) {
    backward_->versions.push_back(eager::writes_to(*tracked[i].impl()));
    inputs_[backward_->tracked[i]] = std::move(tracked[i]);
  }
}

Tensor HookedCall::result_of(Tensor output) {
  // Forward got another handle: who holds the argument would not see on the tape what was written to it.
  for (size_t i = 0; backward_ && i < backward_->tracked.size(); ++i)
    if (eager::writes_to(*inputs_[backward_->tracked[i]].impl()) != backward_->versions[i])
      eager::fail(module_->type_, "backward hook", "a forward that writes to its argument in place",
                  "one that does not, where a module has backward hooks", backward_->line);
  for (const auto& [id, hook] : hooks_->after) {
    const OfTheUser own;
    if (Tensor changed = hook(*module_, inputs_, output); changed.defined()) output = std::move(changed);
  }
  if (!backward_ || !output.requires_grad()) return output;
  return Backward::pass(backward_, {std::move(output)},
                        [](autograd::AutogradContext* context, const std::vector<Tensor>& gradients) {
                          Backward& call = Backward::of(*context);
                          call.grad_outputs = gradients;
                          call.reached = true;
                          if (call.tracked.empty()) call.call({});
                          return gradients;
                        })[0];
}

Tensor HookedCall::call(const std::shared_ptr<Module>& module, const TensorArg& x,
                        Tensor (*forward)(Module& module, const TensorArg& x)) {
  HookedCall call(module, {x.get()}, true, x.location);
  return call.result_of(forward(*module, TensorArg(call.input(0), x.location)));
}

void HookedCall::refuse(const Module& module, Location location) {
  eager::fail(module.type_, "hook", "a call whose first argument is no tensor", "one that hooks can see", location);
}

}  // namespace ingot::nn
