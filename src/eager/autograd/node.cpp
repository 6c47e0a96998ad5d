#include "eager/autograd/node.h"

#include "base/free_list.h"
#include "base/module_path.h"
#include "eager/autograd/op_node.h"
#include "eager/autograd/stretch.h"
#include "eager/call/call.h"
#include "eager/call/dispatch.h"
#include "runtime/memory/storage.h"

namespace ingot::autograd {
namespace {

std::atomic<uint64_t> sequences{1};
// Those that wait while another one is destroyed on this thread; null: none is. One pointer: room for
// thread-locals is scarce.
thread_local Discarded* discarded = nullptr;
constinit thread_local FreeList<sizeof(Meta), 4096> free_metas;

thread_local const Location* backward_line = nullptr;  // a pointer: room for thread-locals is scarce

}  // namespace

void Discarded::discard(Discarded* object) {
  static char beyond;
  Discarded* const end = reinterpret_cast<Discarded*>(&beyond);
  const bool outermost = !discarded;
  object->next_ = outermost ? end : discarded;
  discarded = object;
  if (!outermost) return;
  while (discarded != end) delete std::exchange(discarded, discarded->next_);
  discarded = nullptr;
}

void add_reference(Stretch& stretch) { stretch.references_.add(); }
void drop_reference(Stretch& stretch) {
  if (stretch.references_.drop()) delete &stretch;
}

uint64_t next_sequence() { return sequences.load(std::memory_order_relaxed); }

Node::Node() : sequence(sequences.fetch_add(1, std::memory_order_relaxed)), module(kept_module_path()) {}

void* Meta::operator new(size_t) { return free_metas.take(); }
void Meta::operator delete(void* block) { free_metas.give(block); }

Meta& meta_of(const Tensor& tensor) {
  ingot::detail::TensorImpl* impl = tensor.impl();
  if (!impl->autograd) impl->autograd = new Meta;
  return *impl->autograd;
}

Mutex& gradient_lock(const Tensor& leaf) {
  static constinit Mutex locks[64];
  return locks[(reinterpret_cast<uintptr_t>(leaf.impl()) >> 6) % std::size(locks)];
}

void set_gradient(const Tensor& tensor, Tensor gradient) {
  Tensor& grad = meta_of(tensor).grad;
  const Tensor before = std::exchange(grad, std::move(gradient));
  auto real = [](const Tensor& t) { return t.defined() && !t.impl()->trace; };
  eager::Interceptor* recorder = eager::interceptor(eager::Stage::record);
  if (recorder && real(tensor))
    recorder->on_refusal([tensor, kept = real(before) ? before : Tensor()] {
      const std::lock_guard lock(gradient_lock(tensor));
      meta_of(tensor).grad = kept;
    });
}

void keep_gradient(const Tensor& tensor) {
  const ingot::detail::TensorImpl& impl = *tensor.impl();
  impl.node->hooks.push_back({0, impl.output, [kept = std::weak_ptr(impl.autograd->retained)](const Tensor& g) {
                                if (std::shared_ptr<Tensor> to = kept.lock())
                                  *to = to->defined() ? to->add(g) : g.clone();
                                return Tensor();
                              }});
}

void set_node(const Tensor& tensor, NodePtr node, uint32_t output) {
  ingot::detail::TensorImpl& impl = *tensor.impl();
  const bool retains = impl.autograd && impl.autograd->retained && impl.node && node;
  const uint32_t output_before = std::exchange(impl.output, output);
  const NodePtr before = NodePtr::take(std::exchange(impl.node, node.detach()));
  if (!retains) return;
  std::erase_if(before->hooks, [&](const NumberedHook& h) { return !h.id && h.output == output_before; });
  keep_gradient(tensor);
}

const Tensor& base_of(const Tensor& tensor) {
  const Tensor* base = &tensor;
  while (base->impl()->autograd && base->impl()->autograd->parent.defined()) base = &base->impl()->autograd->parent;
  return *base;
}

void refresh(const Tensor& tensor) {
  const Tensor& base = base_of(tensor);
  const uint64_t history = base.impl()->autograd ? base.impl()->autograd->history : 0;
  std::vector<const Tensor*> stale;
  for (const Tensor* t = &tensor; t != &base; t = &t->impl()->autograd->parent) {
    if (t->impl()->autograd->seen == history) break;
    stale.push_back(t);
  }
  for (size_t i = stale.size(); i-- > 0;) {
    const Tensor& view = *stale[i];
    Meta& meta = *view.impl()->autograd;
    meta.seen = history;
    view.impl()->requires_grad = meta.parent.impl()->requires_grad;
    set_node(view, view.impl()->requires_grad ? view_node(view) : NodePtr());
  }
}

BackwardLine::BackwardLine(Location line) : line_(line), outer_(std::exchange(backward_line, &line_)) {}
BackwardLine::~BackwardLine() { backward_line = outer_; }
Location BackwardLine::current() { return backward_line ? *backward_line : Location::none(); }

std::string lines_of(const Node& node) {
  const ModulePathScope path(*node.module);
  std::string lines = place_of(node.location);
  const Location backward = BackwardLine::current();
  if (!backward.line) return lines;
  const std::string second = "backward() at " + backward.str();
  if (lines.empty()) return " (" + second + ")";
  return lines.insert(lines.size() - 1, "; " + second);
}

std::string type_text(DType dtype, const Ints& sizes) {
  std::string s = std::string(name_of(dtype)) + "[";
  for (size_t i = 0; i < sizes.size(); ++i) s += (i ? ", " : "") + std::to_string(sizes[i]);
  return s + "]";
}

void fail_used(const Node& node, Location used) {
  std::string of;
  for (const Node::Output& output : node.outputs)
    of += (of.empty() ? " of " : ", ") + type_text(output.dtype, output.sizes);
  throw Error(
      "backward: " + node.name() + of + ": its saved tensors are gone: the tape was used by an earlier backward()" +
      (used.line ? ", at " + used.str() : std::string()) + "; expected retain_graph = true there" + lines_of(node));
}

void check_gradient(const char* what, const Tensor& gradient, const Node::Output& output, Location location) {
  const ingot::detail::TensorImpl& given = *gradient.impl();
  if (given.dtype == output.dtype && given.sizes == output.sizes) return;
  eager::fail(what, "gradient", type_text(given.dtype, given.sizes),
              type_text(output.dtype, output.sizes) + ", that of the tensor whose gradient it is", location);
}

Tensor after_hooks(const std::vector<NumberedHook>& hooks, uint32_t output, Tensor gradient, const Node::Output& like,
                   bool retain) {
  for (const NumberedHook& hook : hooks) {
    if (hook.output != output || (!hook.id && !retain)) continue;
    Tensor changed = hook.hook(gradient);
    if (!changed.defined()) continue;
    check_gradient("hook", changed, like, BackwardLine::current());
    gradient = std::move(changed);
  }
  return gradient;
}

}  // namespace ingot::autograd

namespace ingot::detail {
void drop_autograd(TensorImpl& impl) {
  impl.requires_grad = false;
  if (impl.autograd) autograd::Discarded::discard(std::exchange(impl.autograd, nullptr));
  const autograd::NodePtr node = autograd::NodePtr::take(std::exchange(impl.node, nullptr));
}
}  // namespace ingot::detail
