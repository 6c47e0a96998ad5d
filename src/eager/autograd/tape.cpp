#include "eager/autograd/tape.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "eager/autograd/op_node.h"
#include "eager/call/call.h"
#include "eager/data.h"
#include "ir/traits.h"

namespace ingot::autograd {

constinit LastingTape lasting_tape;
namespace {

using eager::OpCall;
using eager::Operand;

/// A view that gradients go through. What looks at memory rather than at the tensor (detach) does not.
bool is_differentiable_view(const OpCall& call) {
  const ir::OpInfo& op = ir::info(call.op);
  return op.kind == ir::OpKind::view && !call.derivative && op.gradient != ir::Gradient::none;
}

void link_view(const OpCall& call, const Tensor& view) {
  Meta& meta = meta_of(view);
  meta.parent = *call.operands[0].tensor;
  meta.view = call.op;
  meta.attrs.assign(call.attrs.begin(), call.attrs.end());
  const Tensor& base = base_of(view);
  meta.seen = base.impl()->autograd ? base.impl()->autograd->history : 0;
}

bool is_leaf(const Tensor& t) { return t.impl()->requires_grad && !t.impl()->node; }

/// What is a view of memory (as_strided) looks at what lies behind a view, not at the view: it is one of a tensor on
/// the way to the base, up to the first leaf, that has all its elements.
class OfItsElements {
 public:
  explicit OfItsElements(const OpCall& call) : call_(&call) {
    if (!ir::has_trait(call.op, ir::kOfMemory) || call.derivative || call.inplace) return;
    const Tensor* base = call.operands[0].tensor;
    while (!is_of_elements(call, *base) && !is_leaf(*base) && base->impl()->autograd &&
           base->impl()->autograd->parent.defined())
      base = &base->impl()->autograd->parent;
    base_ = Operand(*base);
    changed_ = call;
    changed_->operands = {&base_, 1};
    call_ = &*changed_;
  }
  const OpCall& call() const { return *call_; }

 private:
  const OpCall* call_;
  std::optional<OpCall> changed_;
  Operand base_;
};

/// The call with a name for each of its scalars: its derivative has the same ones.
class NamedScalars {
 public:
  explicit NamedScalars(const OpCall& call) : call_(&call) {
    auto has_none = [](const Operand& o) { return o.kind == Operand::Kind::scalar && !o.special && !o.origin; };
    if (std::none_of(call.operands.begin(), call.operands.end(), has_none)) return;
    for (const Operand& o : call.operands)
      if (operands_.push_back(o); has_none(o)) operands_.back().origin = next_scalar();
    changed_ = call;
    changed_->operands = operands_;
    call_ = &*changed_;
  }
  const OpCall& call() const { return *call_; }

 private:
  const OpCall* call_;
  std::optional<OpCall> changed_;
  InlineVector<Operand, 6> operands_;
};

/// The nodes behind one that is a tensor's from now on, but not behind the one before: none of them holds the tensor.
void part_from(const Tensor& base, const Node& now, uint64_t before) {
  std::vector<Node*> open;
  std::unordered_set<Node*> met;
  auto reach = [&](const Node& node) {
    for (const Edge& edge : node.edges)
      if (edge.node && edge.node->sequence > before && met.insert(edge.node.get()).second)
        open.push_back(edge.node.get());
  };
  reach(now);
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    node->part_from(base);
    reach(*node);
  }
}

thread_local const std::string* frozen_function = nullptr;

}  // namespace

uint64_t next_scalar() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

const std::string* set_frozen_function(const std::string* name) { return std::exchange(frozen_function, name); }

TapeState::TapeState(const Tensor& written)
    : base_(base_of(written).impl()),
      node_(base_->node),
      output_(base_->output),
      requires_grad_(base_->requires_grad) {}

void TapeState::restore() const {
  if (base_->node == node_.get()) return;
  const Tensor base = Tensor::of(base_);
  set_node(base, node_, output_);
  ++meta_of(base).history;  // its views look again
  base_->requires_grad = requires_grad_;
}

void Tape::call(const OpCall& call, std::span<Tensor> outputs) {
  bool tracked = false;
  for (const Operand& o : call.operands) tracked |= o.is_tensor() && is_tracked(*o.tensor);
  const bool recorded =
      tracked && (call.derivative || call.inplace || ir::info(call.op).gradient != ir::Gradient::none);
  if (recorded && frozen_function)
    throw Error("compiled function " + *frozen_function + ": " +
                ir::name_of_call(call.op, call.derivative, call.inplace) +
                ": got an operand that requires grad, and a frozen function writes no tape; expected a NoGradGuard "
                "around the call, or CompileMode::checked" +
                place_of(call.location));
  if (recorded) return call.inplace ? record_write(call, outputs) : record(call, outputs);
  proceed(call, outputs);
  // What a frozen function gives is made without it the next time: tensors of their own.
  if (!call.inplace && !frozen_function && is_differentiable_view(call))
    link_view(OfItsElements(call).call(), outputs[0]);
}

Tensor Tape::handle_of(const Tensor& tensor, Location location) const {
  // Who looks on shall know of the handle: it is made by a call.
  if (!eager::interceptor(eager::Stage::observe)) {
    const ingot::detail::TensorImpl& impl = *tensor.impl();
    if (impl.storage) return eager::make_tensor(impl.dtype, impl.sizes, impl.strides, impl.offset, impl.storage);
    if (eager::Interceptor* recorder = eager::interceptor(eager::Stage::record))
      if (Tensor handle = recorder->another_handle(impl); handle.defined()) return handle;
  }
  const Operand operand(tensor);
  Tensor handle;
  proceed({OpId::detach, false, {&operand, 1}, {}, location}, {&handle, 1});
  return handle;
}

void Tape::record(const OpCall& given, std::span<Tensor> outputs) {
  const NamedScalars named(given);
  const OfItsElements elements(named.call());
  const OpCall& call = elements.call();
  check_elements(call);
  proceed(named.call(), outputs);
  if (std::none_of(outputs.begin(), outputs.end(), [](const Tensor& t) { return is_floating(t.impl()->dtype); }))
    return;
  OpNode* node = new OpNode(call, outputs);
  NodePtr made = NodePtr::take(node);
  node->save(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_floating(outputs[i].impl()->dtype)) continue;
    set_node(outputs[i], i + 1 == outputs.size() ? std::move(made) : made, static_cast<uint32_t>(i));
    outputs[i].impl()->requires_grad = true;
  }
  if (is_differentiable_view(call)) link_view(call, outputs[0]);
}

void Tape::record_write(const OpCall& given, std::span<Tensor> outputs) {
  const NamedScalars named(given);
  const OpCall& call = named.call();
  const Tensor& self = *call.operands[0].tensor;
  const Tensor base = base_of(self);
  const std::string_view name = ir::info(call.op).name;
  if (!is_floating(self.impl()->dtype))
    eager::fail(name, "self", std::string(name_of(self.impl()->dtype)) + " for a result that requires grad",
                "a floating-point tensor to write it to", call.location);
  for (const Tensor* t = &self;; t = &t->impl()->autograd->parent) {
    if (is_leaf(*t))
      eager::fail(name, "self", t == &self ? "a leaf that requires grad" : "a view of a leaf that requires grad",
                  "another tensor, or a NoGradGuard around the in-place op", call.location);
    if (t->is_same(base)) break;
  }
  if (self.impl()->requires_grad && !base.impl()->requires_grad)
    eager::fail(name, "self", "a view of a tensor that detach_() took off the tape since",
                "a view of what it is now, or a NoGradGuard around the in-place op", call.location);
  const bool view = !self.is_same(base);
  OpNode* node = new OpNode(call, {&self, 1}, &base);
  NodePtr made = NodePtr::take(node);
  // Before the write: what was saved is there also where a recorded write turns out to be refused.
  if (base.impl()->saved.exchange(false, std::memory_order_relaxed)) {
    made->part_from(base);
    part_from(base, *made, base.impl()->node ? base.impl()->node->sequence : 0);
  }
  proceed(call, outputs);
  node->save({&self, 1});
  if (view) made = view_write_node(self, CountedPtr<OpNode>(node));
  set_node(base, std::move(made));
  ++meta_of(base).history;
  base.impl()->requires_grad = true;
  if (view) refresh(self);
}

}  // namespace ingot::autograd
