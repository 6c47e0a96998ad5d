#include "trace/trace_tree.h"

#include <algorithm>

#include "base/module_path.h"
#include "eager/call/batch.h"
#include "eager/call/check_values.h"
#include "eager/call/infer.h"
#include "trace/differences.h"
#include "trace/flush_point.h"

namespace ingot::trace {
namespace {

[[noreturn]] void fail_foreign(const detail::TensorImpl& impl, const eager::OpCall& call) {
  if (eager::is_slice(impl)) eager::fail_slice(ir::info(call.op).name, call.location);
  std::string owner = Segment::owner_of(impl.trace);
  const std::string where = place_of(call.location);
  std::string op(ir::info(call.op).name);
  if (owner.empty())
    throw Error(op + ": the tensor was never computed: the compiled call that recorded it ended with an error" + where);
  throw Error(op + ": the tensor is still being recorded by " + owner +
              "; ask for its value there, or let that call return, before another thread uses it" + where);
}

}  // namespace

TraceTree::TraceTree(Function& function) : function_(function) {}
TraceTree::~TraceTree() { function_.trace_nodes.fetch_sub(static_cast<int64_t>(size_) - 1, std::memory_order_relaxed); }

Node* TraceTree::add(std::unique_ptr<Node> node, Node& parent) {
  ++size_;
  function_.trace_nodes.fetch_add(1, std::memory_order_relaxed);
  parent.children.push_back(std::move(node));
  return parent.children.back().get();
}

Node* TraceTree::record(const eager::OpCall& call, Segment& segment, const CallMemory& memory) {
  // What the latest of those beside it has other: asked first, since a comparison binds tensors, too.
  const auto& siblings = segment.cursor()->children;
  const CallMismatch mismatch = siblings.empty() ? CallMismatch() : segment.compare(*siblings.back(), call);
  auto node = std::make_unique<Node>();
  node->event = Node::Event::op;
  node->op = call.op;
  node->inplace = call.inplace;
  node->derivative = call.derivative;
  node->first_value = static_cast<uint32_t>(segment.values().size());
  node->location = caller_line(call.location);
  node->function = called_function();
  node->module = module_path();
  node->attrs.assign(call.attrs.begin(), call.attrs.end());
  for (size_t i = 0; i < std::min<size_t>(call.attrs.size(), 64); ++i)
    if (ir::holds_sizes(ir::info(call.op), i)) node->size_attrs |= uint64_t{1} << i;
  uint32_t scalar = static_cast<uint32_t>(segment.scalars().size());
  const size_t slots = segment.slots().size();
  SlotTable& bound = segment.bound();
  bound.cut(static_cast<uint32_t>(slots));
  for (const eager::Operand& operand : call.operands) {
    OperandRecord record;
    if (operand.special) {
      record = {OperandRecord::Kind::special, operand.category, operand.special};
    } else if (operand.kind == eager::Operand::Kind::scalar) {
      const std::optional<uint32_t> known = call.derivative ? segment.find_scalar(operand.origin) : std::nullopt;
      record = {known ? OperandRecord::Kind::repeated : OperandRecord::Kind::scalar, operand.category,
                known ? *known : scalar++};
    } else if (operand.kind == eager::Operand::Kind::tensor) {
      detail::TensorImpl* impl = operand.tensor->impl();
      if (impl->trace == segment.id()) {
        record = {OperandRecord::Kind::value, Category::floating, impl->value};
      } else {
        if (!impl->storage) fail_foreign(*impl, call);
        uint32_t slot = bound.find(impl);
        if (slot == SlotTable::kNone) {
          slot = bound.size();
          bound.add(impl);
          node->slots.emplace_back(*impl, slot, memory.is_captured(*impl));
        }
        record = {OperandRecord::Kind::slot, Category::floating, slot};
      }
    }
    node->operands.push_back(record);
  }
  std::vector<eager::OutputMeta> metas(static_cast<size_t>(ir::output_count(call.op, call.derivative)));
  eager::infer_outputs(call, metas);  // throws what the user did wrong; nothing is recorded then
  for (eager::OutputMeta& meta : metas) {
    OutputRecord& output = node->outputs.emplace_back();
    output.meta = std::move(meta);
    output.root_value = node->first_value + static_cast<uint32_t>(node->outputs.size() - 1);
    if (!output.meta.alias || node->inplace) continue;
    output.root_slot = segment.root_slot(node->operands[0]);
    if (output.root_slot < 0) {
      output.root_value = segment.values()[node->operands[0].id]->root_value;
      continue;
    }
    const size_t slot = static_cast<size_t>(output.root_slot);
    (slot < slots ? segment.slot_record(slot) : node->slots[slot - slots]).viewed = true;
  }
  node->shapes_in = segment.shapes();
  node->shapes_out = node->has_sizes() ? ++next_shapes_ : node->shapes_in;
  node->inferred = changes_;
  if (!siblings.empty()) function_.note_recompile(difference(*siblings.back(), call, mismatch));
  return add(std::move(node), *segment.cursor());
}

Node* TraceTree::flush_node(const Segment& segment, const char* reason, Location location) {
  for (auto& child : segment.cursor()->children)
    if (child->event == Node::Event::flush) return child.get();
  auto node = std::make_unique<Node>();
  node->event = Node::Event::flush;
  node->location = location;
  node->module = reason;
  node->flush = std::make_unique<FlushPoint>();
  for (const Node* n : segment.path())
    if (int32_t slot; n->inplace && (slot = segment.root_slot(n->operands[0])) >= 0) {
      auto& written = node->flush->written_slots;
      if (std::find(written.begin(), written.end(), static_cast<uint32_t>(slot)) == written.end())
        written.push_back(static_cast<uint32_t>(slot));
    }
  std::vector<eager::Operand> operands;
  for (const Node* n : segment.path())
    node->flush->checks |= !eager::value_checks(segment.call_of(*n, operands)).empty();
  return add(std::move(node), *segment.cursor());
}

void TraceTree::take_sizes(Node& node, const eager::OpCall& call, Segment& segment) {
  bool own = false;  // sizes that this node brings in
  for (SlotRecord& slot : node.slots) {
    const detail::TensorImpl& impl = *segment.bound()[slot.slot];
    const bool moved = slot.offset != impl.offset;
    slot.offset = impl.offset;  // also of a slot that only a path recorded later views
    if (slot.same_layout(impl) && !(moved && slot.viewed)) continue;
    own = true;
    slot.sizes = impl.sizes;
    slot.strides = impl.strides;
    slot.changed = ++changes_;
  }
  for (size_t i = 0; i < node.attrs.size(); ++i)
    if (i < 64 && node.size_attrs >> i & 1 && !(node.attrs[i].list == call.attrs[i].list)) {
      own = true;
      node.attrs[i].list = call.attrs[i].list;
    }
  if (!own && node.shapes_in == segment.shapes()) return;
  if (own || !node.inferred || segment.follows_from_change(node)) {
    // Until the metas are right again the node matches no arrival.
    node.shapes_in = ~uint64_t{0}, node.inferred = 0;
    infer_again(node, call);
    node.inferred = changes_;
  }
  node.shapes_in = segment.shapes();
  node.shapes_out = node.has_sizes() ? ++next_shapes_ : node.shapes_in;
}

void TraceTree::infer_again(Node& node, const eager::OpCall& call) {
  metas_.resize(node.outputs.size());
  eager::infer_outputs(call, metas_);
  for (size_t i = 0; i < metas_.size(); ++i) {
    OutputRecord& output = node.outputs[i];
    if (output.meta == metas_[i]) continue;
    std::swap(output.meta, metas_[i]);
    output.changed = ++changes_;
    if (node.inplace) continue;
    output.other_handles.clear();
    detail::TensorImpl* impl = output.handle.impl();
    if (impl && impl->references.load(std::memory_order_relaxed) == 1) {
      impl->sizes = output.meta.sizes;
      impl->strides = output.meta.strides;
      impl->offset = output.meta.offset;
    } else {
      output.handle = Tensor();  // somebody holds it with the sizes of before
    }
  }
}

void TraceTree::prune(int64_t since) {
  struct Visit {
    Node* node;
    size_t child;
    bool keep;
  };
  std::vector<Visit> visits{{&root_, 0, true}};
  size_t left = 1;
  while (true) {
    Visit& visit = visits.back();
    if (visit.child < visit.node->children.size()) {
      Node* child = visit.node->children[visit.child].get();
      visits.push_back({child, 0, child->event == Node::Event::flush && child->hits > 1 && child->last_use >= since});
      continue;
    }
    const bool keep = visit.keep;
    visits.pop_back();
    if (visits.empty()) break;
    Visit& parent = visits.back();
    if (keep) {
      parent.keep = true;
      ++parent.child, ++left;
    } else {
      parent.node->children.erase(parent.node->children.begin() + static_cast<std::ptrdiff_t>(parent.child));
    }
  }
  function_.trace_nodes.fetch_add(static_cast<int64_t>(left) - static_cast<int64_t>(size_), std::memory_order_relaxed);
  size_ = left;
}

int64_t TraceTree::median_use() const {
  std::vector<int64_t> uses;
  std::vector<const Node*> pending{&root_};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (node->event == Node::Event::flush) uses.push_back(node->last_use);
    for (const auto& child : node->children) pending.push_back(child.get());
  }
  if (uses.empty()) return 0;
  auto middle = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 2);
  std::nth_element(uses.begin(), middle, uses.end());
  return *middle;
}

}  // namespace ingot::trace
