#include "eager/autograd/autograd.h"

#include "eager/autograd/engine.h"
#include "eager/autograd/tape.h"
#include "eager/call/batch.h"
#include "eager/call/call.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot {
namespace {

thread_local bool detects_anomalies = false;
std::atomic<int64_t> next_hook{1};

/// A tensor that has something of the tape of its own.
const Tensor& owner(const Tensor& t, const char* op, Location location) {
  if (eager::is_slice(ingot::detail::checked_impl(t.impl(), op, location))) eager::fail_slice(op, location);
  return t;
}

/// One for each output, or none at all.
void check_count(const char* op, const char* argument, const std::vector<Tensor>& gradients, size_t outputs,
                 Location location) {
  if (!gradients.empty() && gradients.size() != outputs)
    eager::fail(op, argument, std::to_string(gradients.size()),
                std::to_string(outputs) + ", one for each output, or none at all", location);
}

/// A slice of a vmap is on the tape as the whole that stands behind it.
const Tensor& taped(const Tensor& t) {
  return t.defined() && eager::is_slice(*t.impl()) ? taped(t.impl()->autograd->whole) : t;
}

/// In a vmap, what a slice gives hangs on that slice alone: one pass over wholes gives the gradients of all slices.
std::vector<Tensor> run_backward_of_slices(autograd::BackwardRequest request) {
  const eager::Batch* batch = eager::Batch::current();
  if (!batch) return run_backward(request);
  const auto held = [&](const Tensor& t) { return batch->holds(t); };
  const eager::InterceptorScope around(eager::Stage::batch, batch->outer());
  const auto slices = [&](std::vector<Tensor> wholes) {
    for (Tensor& t : wholes)
      if (t.defined()) t = batch->slice_of(t);
    return wholes;
  };
  if (std::any_of(request.roots.begin(), request.roots.end(), held)) {
    if (!std::all_of(request.inputs.begin(), request.inputs.end(), held))
      eager::fail("grad", "inputs",
                  "a tensor that is the same for all slices of a vmap, and an output that each has its own of",
                  "inputs that are slices, as func::grad makes them", request.location);
    request.gradients.resize(request.roots.size());
    for (size_t i = 0; i < request.roots.size(); ++i) {
      Tensor &root = request.roots[i], &gradient = request.gradients[i];
      const bool of_one = root.numel() == 1;
      root = batch->whole_of(root);
      if (gradient.defined())
        gradient = batch->whole_of(gradient);
      else if (of_one)
        gradient = ones_like(TensorArg(root, request.location));
    }
    for (Tensor& t : request.inputs) t = batch->whole_of(t);
    return slices(run_backward_of_slices(std::move(request)));
  }
  // None of the roots leads to a slice.
  for (Tensor& t : request.inputs)
    if (held(t)) t = batch->whole_of(t);
  if (std::none_of(request.gradients.begin(), request.gradients.end(), held))
    return run_backward_of_slices(std::move(request));
  // The same tape for each slice's gradient: a pass each.
  std::vector<std::vector<Tensor>> gradients(request.inputs.size());
  const bool keep = std::exchange(request.keep, true);
  std::vector<Tensor> wholes = request.gradients;
  for (Tensor& t : wholes)
    if (t.defined()) t = batch->whole_of(t);
  const int64_t count = batch->size();
  for (int64_t b = 0; b < count; ++b) {
    request.keep = keep || b + 1 < count;
    for (size_t i = 0; i < wholes.size(); ++i)
      if (wholes[i].defined()) request.gradients[i] = wholes[i].select(0, b, request.location);
    const std::vector<Tensor> one = run_backward_of_slices(request);
    for (size_t i = 0; i < one.size(); ++i)
      if (one[i].defined()) gradients[i].push_back(one[i]);
  }
  std::vector<Tensor> stacked;
  for (const std::vector<Tensor>& list : gradients)
    stacked.push_back(list.empty() ? Tensor() : stack(TensorList(list, request.location)));
  return slices(std::move(stacked));
}

std::vector<autograd::NumberedHook>& hooks_of(const Tensor& t) {
  return t.impl()->node ? t.impl()->node->hooks : autograd::meta_of(t).hooks;
}

}  // namespace

bool GradMode::is_enabled() { return eager::interceptor(eager::Stage::autograd) != nullptr; }
void GradMode::set_enabled(bool on) {
  eager::set_interceptor(eager::Stage::autograd, on ? &autograd::tape() : nullptr);
}

bool autograd::AnomalyMode::is_enabled() { return detects_anomalies; }
void autograd::AnomalyMode::set_enabled(bool on) { detects_anomalies = on; }

void autograd::backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients,
                        std::optional<bool> retain_graph, bool create_graph, const std::vector<Tensor>& inputs,
                        Location location) {
  for (const Tensor& t : roots)
    if (eager::is_slice(ingot::detail::checked_impl(t.impl(), "backward", location)))
      eager::fail_slice("backward", location);
  check_count("backward", "gradients", gradients, roots.size(), location);
  for (const Tensor& t : inputs)
    if (!t.requires_grad())
      eager::fail("backward", "inputs", "a tensor that does not require grad", "tensors that do", location);
  run_backward({roots, gradients, retain_graph.value_or(create_graph), create_graph, true, inputs, location});
}

std::vector<Tensor> autograd::grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                   const std::vector<Tensor>& grad_outputs, std::optional<bool> retain_graph,
                                   bool create_graph, bool allow_unused, Location location) {
  for (const std::vector<Tensor>* list : {&outputs, &inputs})
    for (const Tensor& t : *list) ingot::detail::checked_impl(t.impl(), "grad", location);
  check_count("grad", "grad_outputs", grad_outputs, outputs.size(), location);
  if (inputs.empty()) eager::fail("grad", "inputs", "none", "tensors that require grad", location);
  for (const Tensor& t : inputs)
    if (!t.requires_grad())
      eager::fail("grad", "inputs", "a tensor that does not require grad", "tensors that do", location);
  std::vector<Tensor> gradients = run_backward_of_slices(
      {outputs, grad_outputs, retain_graph.value_or(create_graph), create_graph, false, inputs, location});
  for (size_t i = 0; i < gradients.size() && !allow_unused; ++i)
    if (!gradients[i].defined())
      eager::fail("grad", "inputs", "number " + std::to_string(i) + ", which the outputs were not made from",
                  "inputs of the outputs, or allow_unused = true", location);
  return gradients;
}

bool Tensor::requires_grad() const { return impl_ && autograd::is_tracked(taped(*this)); }

const Tensor& Tensor::requires_grad_(bool on, Location location) const {
  ingot::detail::TensorImpl& impl = ingot::detail::checked_impl(impl_, "requires_grad_", location);
  if (!is_leaf() && !on)
    eager::fail("requires_grad_", "self", "a tensor that an op made", "a leaf; detach() gives one", location);
  if (on && !is_floating(impl.dtype))
    eager::fail("requires_grad_", "self", std::string(name_of(impl.dtype)), "a floating-point dtype", location);
  taped(*this).impl()->requires_grad = on;
  return *this;
}

bool Tensor::is_leaf() const { return !requires_grad() || !taped(*this).impl()->node; }

Tensor Tensor::grad() const {
  return impl_ && impl_->autograd ? impl_->autograd->retained ? *impl_->autograd->retained : impl_->autograd->grad
                                  : Tensor();
}
Tensor& Tensor::mutable_grad(Location location) const {
  return autograd::meta_of(owner(*this, "mutable_grad", location)).grad;
}
void Tensor::set_grad(const Tensor& gradient, Location location) const {
  ingot::detail::TensorImpl& impl = *owner(*this, "set_grad", location).impl();
  if (gradient.defined()) autograd::check_gradient("set_grad", gradient, {impl.dtype, impl.sizes}, location);
  autograd::set_gradient(*this, gradient);
}

autograd::GradFn Tensor::grad_fn() const {
  return requires_grad() && impl_->node ? autograd::GradFn(impl_->node) : autograd::GradFn();
}

void Tensor::backward(const TensorArg& gradient, std::optional<bool> retain_graph, bool create_graph,
                      const std::vector<Tensor>& inputs, Location location) const {
  autograd::backward({*this}, {gradient.get()}, retain_graph, create_graph, inputs, location);
}

void Tensor::retain_grad(Location location) const {
  owner(*this, "retain_grad", location);
  if (!requires_grad())
    eager::fail("retain_grad", "self", "a tensor that does not require grad", "one that does", location);
  if (is_leaf() || retains_grad()) return;
  autograd::meta_of(*this).retained = std::make_shared<Tensor>();
  autograd::keep_gradient(*this);
}
bool Tensor::retains_grad() const { return impl_ && impl_->autograd && impl_->autograd->retained; }

int64_t Tensor::add_hook(autograd::Hook hook, Location location) const {
  owner(*this, "register_hook", location);
  if (!requires_grad())
    eager::fail("register_hook", "self", "a tensor that does not require grad", "one that does", location);
  const int64_t id = next_hook++;
  // Before the one that keeps its gradient, which is the last one's result.
  auto& hooks = hooks_of(*this);
  const auto kept = std::find_if(hooks.begin(), hooks.end(), [&](const autograd::NumberedHook& h) {
    return h.id == 0 && h.output == impl_->output;
  });
  hooks.insert(kept, {id, impl_->output, std::move(hook)});
  return id;
}
void Tensor::remove_hook(int64_t id, Location location) const {
  ingot::detail::checked_impl(impl_, "remove_hook", location);
  std::erase_if(hooks_of(*this), [id](const autograd::NumberedHook& h) { return h.id == id; });
  if (impl_->autograd) std::erase_if(impl_->autograd->accumulated, [id](const auto& h) { return h.first == id; });
}
int64_t Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook, Location location) const {
  owner(*this, "register_post_accumulate_grad_hook", location);
  if (!requires_grad() || !is_leaf())
    eager::fail("register_post_accumulate_grad_hook", "self", "a tensor that is no leaf, or does not require grad",
                "a leaf that requires grad", location);
  autograd::meta_of(*this).accumulated.emplace_back(next_hook++, std::move(hook));
  return autograd::meta_of(*this).accumulated.back().first;
}

const Tensor& Tensor::detach_(Location location) const {
  ingot::detail::TensorImpl& impl = *owner(*this, "detach_", location).impl();
  // Of a view, too: whether a result is one inside, as that of index(), the user need not know. Views of this tensor
  // stay on the tape; they look at its own history from here on, which goes on from where they saw it.
  if (autograd::is_tracked(*this); impl.autograd && impl.autograd->parent.defined()) {
    impl.autograd->history = impl.autograd->seen;
    impl.autograd->parent = {};
  }
  autograd::set_node(*this, {});
  impl.requires_grad = false;
  return *this;
}

}  // namespace ingot
