#include "trace/segment.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "base/first_use.h"
#include "base/mutex.h"
#include "eager/autograd/node.h"
#include "eager/data.h"
#include "runtime/memory/storage.h"
#include "trace/recordable.h"

namespace ingot::trace {

void give_storage(detail::TensorImpl& tensor, runtime::Storage& storage, int64_t offset) {
  storage.retain();
  tensor.storage = &storage;
  tensor.offset = offset;
  tensor.trace = 0;
}

namespace {

std::atomic<uint64_t> next_id{1};

/// Whether somebody has it beside the tree.
bool is_held(const detail::TensorImpl& t) { return t.references.load(std::memory_order_acquire) > 1; }
bool is_held(const Tensor& t) { return is_held(*t.impl()); }

// Those of all recorders, for the message about a tensor that was recorded elsewhere.
constinit Mutex registry_mutex;
constinit FirstUse<std::vector<const Segment*>> registry;

}  // namespace

Segment::Segment(const std::string& function) : function_(function) {
  static constinit FirstUse<const bool> described;
  described.get([] {
    eager::set_pending_description([](const detail::TensorImpl& impl) {
      std::string owner = owner_of(impl.trace);
      return owner.empty() ? " (the call that recorded it ended with an error)" : " by " + owner;
    });
    return true;
  });
  std::lock_guard lock(registry_mutex);
  registry->push_back(this);
}

Segment::~Segment() {
  std::lock_guard lock(registry_mutex);
  std::erase(*registry, this);
}

std::string Segment::owner_of(uint64_t id) {
  std::lock_guard lock(registry_mutex);
  for (const Segment* segment : *registry)
    if (segment->id() == id)
      return "compiled function " + segment->function_ + " on thread " +
             std::to_string(segment->thread_.load(std::memory_order_relaxed));
  return {};
}

void Segment::start(Node* root) {
  thread_.store(static_cast<uint64_t>(pthread_self()), std::memory_order_relaxed);
  id_.store(next_id.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  root_ = cursor_ = root;
  clear();
}

void Segment::clear() {
  shapes_ = 0;
  path_.clear();
  values_.clear();
  other_handles_.clear();
  slot_records_.clear();
  slots_.clear();
  bound_.clear();
  versions_.clear();
  scalars_.clear();
  scalar_origins_.clear();
  scalar_numbers_.clear();
  value_writes_.clear();
  slot_writes_.clear();
  written_slots_.clear();
  before_writes_.clear();
  undo_.clear();
}

// Without side effects but for bound_ beyond slots_, which the next comparison cuts: a call may be none of the
// children. What differs is told by what is returned alone, so that a call that fits pays nothing for it.
CallMismatch Segment::compare(const Node& node, const eager::OpCall& call) {
  using Part = CallMismatch::Part;
  if (node.event != Node::Event::op || node.op != call.op || node.inplace != call.inplace ||
      node.derivative != call.derivative)
    return {Part::op};
  if (node.operands.size() != call.operands.size() || node.attrs.size() != call.attrs.size()) return {Part::operands};
  if (call.inplace && writes_overlap(call)) return {Part::overlap};
  const uint64_t segment = id();
  bound_.cut(static_cast<uint32_t>(slots_.size()));
  size_t next_binding = 0;
  for (uint32_t i = 0; i < node.operands.size(); ++i) {
    const OperandRecord& record = node.operands[i];
    const eager::Operand& operand = call.operands[i];
    switch (record.kind) {
      case OperandRecord::Kind::none:
        if (operand.kind != eager::Operand::Kind::none) return {Part::operand, i};
        break;
      case OperandRecord::Kind::scalar:
        if (operand.kind != eager::Operand::Kind::scalar || operand.category != record.category || operand.special)
          return {Part::operand, i};
        break;
      case OperandRecord::Kind::repeated:
        if (operand.kind != eager::Operand::Kind::scalar || !operand.origin ||
            operand.origin != scalar_origins_[record.id])
          return {Part::operand, i};
        break;
      case OperandRecord::Kind::special:
        if (operand.special != record.id || operand.category != record.category) return {Part::operand, i};
        break;
      case OperandRecord::Kind::value: {
        if (operand.kind != eager::Operand::Kind::tensor) return {Part::operand, i};
        const detail::TensorImpl* impl = operand.tensor->impl();
        if (impl->trace != segment || impl->value != record.id) return {Part::operand, i};
        break;
      }
      case OperandRecord::Kind::slot: {
        if (operand.kind != eager::Operand::Kind::tensor) return {Part::operand, i};
        detail::TensorImpl* impl = operand.tensor->impl();
        if (record.id < bound_.size()) {
          if (bound_[record.id] != impl) return {Part::operand, i};
        } else {
          if (impl->trace == segment || !node.slots[next_binding].holds(*impl)) return {Part::operand, i};
          // A tensor that has its slot already is another path: "x op x" is not "x op y".
          if (bound_.find(impl) != SlotTable::kNone) return {Part::operand, i};
          ++next_binding;
          bound_.add(impl);
        }
        break;
      }
    }
  }
  for (uint32_t i = 0; i < node.attrs.size(); ++i) {
    const ir::Attr &a = node.attrs[i], &b = call.attrs[i];
    if (a.kind != b.kind || a.integer != b.integer || a.list.size() != b.list.size()) return {Part::attribute, i};
    if (!(i < 64 && node.size_attrs >> i & 1) && !(a.list == b.list)) return {Part::attribute, i};
  }
  return {};
}

void Segment::advance(Node* node, const eager::OpCall& call, std::span<Tensor> outputs) {
  size_t binding = 0;
  for (size_t i = 0; i < node->operands.size(); ++i) {
    const OperandRecord& record = node->operands[i];
    if (record.kind == OperandRecord::Kind::scalar) {
      const eager::Operand& operand = call.operands[i];
      uint64_t bits;
      if (operand.category == Category::floating)
        std::memcpy(&bits, &operand.number, 8);
      else
        bits = static_cast<uint64_t>(operand.integer);
      scalars_.push_back(bits);
      scalar_origins_.push_back(operand.origin);
    } else if (record.kind == OperandRecord::Kind::slot && binding < node->slots.size() &&
               node->slots[binding].slot == record.id && record.id == slots_.size()) {
      slots_.push_back(*call.operands[i].tensor);
      versions_.push_back(slots_.back().impl()->storage->version());
      slot_records_.push_back(&node->slots[binding]);
      ++binding;
    }
  }
  shapes_ = node->shapes_out;

  const uint64_t segment = id();
  if (node->inplace) {
    note_write(node->operands[0]);
    if (eager::interceptor(eager::Stage::autograd)) before_writes_.emplace_back(path_.size(), *call.operands[0].tensor);
    outputs[0] = *call.operands[0].tensor;
  } else {
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      OutputRecord& output = node->outputs[i];
      detail::TensorImpl* impl = output.handle.impl();
      if (!impl || impl->references.load(std::memory_order_acquire) != 1) {
        impl = detail::new_impl();
        output.handle = Tensor::of(impl);
        impl->dtype = output.meta.dtype;
        impl->sizes = output.meta.sizes;
        impl->strides = output.meta.strides;
        impl->offset = output.meta.offset;
      } else if (impl->node || impl->autograd || impl->requires_grad) {
        detail::drop_autograd(*impl);  // of the call before
      }
      impl->trace = segment;
      impl->value = node->first_value + static_cast<uint32_t>(i);
      // The tree's reference is the only one, so nobody counts at the same time: an atomic addition is not needed, and
      // costs more than all that is compared.
      impl->references.store(2, std::memory_order_relaxed);
      outputs[i] = Tensor::adopt(impl);
      values_.push_back(&output);
    }
  }
  path_.push_back(node);
  cursor_ = node;
}

int32_t Segment::root_slot(const OperandRecord& operand) const {
  return operand.kind == OperandRecord::Kind::slot ? static_cast<int32_t>(operand.id) : values_[operand.id]->root_slot;
}

const runtime::Storage* Segment::storage_of(const detail::TensorImpl& impl) const {
  if (impl.storage || impl.trace != id()) return impl.storage;
  const int32_t slot = values_[impl.value]->root_slot;
  return slot < 0 ? nullptr : slots_[static_cast<size_t>(slot)].impl()->storage;
}

eager::OpCall Segment::call_of(const Node& node, std::vector<eager::Operand>& operands) const {
  operands.clear();
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const OperandRecord& record = node.operands[i];
    switch (record.kind) {
      case OperandRecord::Kind::none:
        operands.emplace_back();
        break;
      case OperandRecord::Kind::value:
        operands.emplace_back(values_[record.id]->handle);
        break;
      case OperandRecord::Kind::slot:
        operands.emplace_back(slots_[record.id]);
        break;
      case OperandRecord::Kind::special:
        operands.push_back(special_operand(node.op, i, record));
        break;
      case OperandRecord::Kind::repeated:
      case OperandRecord::Kind::scalar: {
        eager::Operand& scalar = operands.emplace_back();
        scalar.kind = eager::Operand::Kind::scalar;
        scalar.category = record.category;
        if (record.category == Category::floating) {
          std::memcpy(&scalar.number, &scalars_[record.id], 8);
        } else {
          scalar.integer = static_cast<int64_t>(scalars_[record.id]);
          scalar.number = static_cast<double>(scalar.integer);
        }
        break;
      }
    }
  }
  return {node.op, node.inplace, operands, node.attrs, node.location, node.derivative};
}

bool Segment::follows_from_change(const Node& node) const {
  return std::any_of(node.operands.begin(), node.operands.end(), [&](const OperandRecord& operand) {
    if (operand.kind == OperandRecord::Kind::value) return values_[operand.id]->changed > node.inferred;
    return operand.kind == OperandRecord::Kind::slot && operand.id < slot_records_.size() &&
           slot_records_[operand.id]->changed > node.inferred;
  });
}

std::optional<uint32_t> Segment::find_scalar(uint64_t origin) {
  for (size_t i = scalar_numbers_.size(); i < scalar_origins_.size(); ++i)
    scalar_numbers_.emplace(scalar_origins_[i] ? scalar_origins_[i] : ~uint64_t{i}, static_cast<uint32_t>(i));
  auto found = scalar_numbers_.find(origin);
  if (!origin || found == scalar_numbers_.end()) return std::nullopt;
  return found->second;
}

void Segment::note_write(const OperandRecord& to) {
  const int32_t slot = root_slot(to);
  if (slot < 0) {
    const uint32_t root = values_[to.id]->root_value;
    if (value_writes_.size() <= root) value_writes_.resize(root + 1);
    ++value_writes_[root];
    return;
  }
  if (slot_writes_.size() < slots_.size()) slot_writes_.resize(slots_.size());
  if (!slot_writes_[static_cast<size_t>(slot)]++) written_slots_.push_back(static_cast<uint32_t>(slot));
}

// Two slots may be one memory.
uint64_t Segment::writes_to(const detail::TensorImpl& impl) const {
  const runtime::Storage* storage = storage_of(impl);
  if (!storage) return impl.trace == id() ? writes_to_value(values_[impl.value]->root_value) : 0;
  uint64_t writes = storage->version();
  for (uint32_t slot : written_slots_)
    if (slots_[slot].impl()->storage == storage) writes += slot_writes_[slot];
  return writes;
}

void Segment::drop_tapes() {
  for (size_t v = values_.size(); v-- > 0;) {
    detail::TensorImpl* impl = values_[v]->handle.impl();
    if (impl && (impl->node || impl->autograd) && impl->references.load(std::memory_order_acquire) == 1)
      detail::drop_autograd(*impl);
  }
}

void Segment::undo_from(size_t first) {
  for (; !before_writes_.empty() && before_writes_.back().first >= first; before_writes_.pop_back())
    before_writes_.back().second.restore();
  for (; !undo_.empty() && undo_.back().first >= first; undo_.pop_back()) undo_.back().second();
  undo_.clear();
}

bool Segment::will_own_memory(uint32_t value) const {
  const OutputRecord& output = *values_[value];
  if (output.root_slot >= 0 || output.root_value != value) return false;
  auto handle_is_held = [](const Tensor& t) { return is_held(t); };
  if (std::ranges::any_of(output.other_handles, handle_is_held)) return false;
  return std::none_of(values_.begin() + value + 1, values_.end(), [&](const OutputRecord* later) {
    return later->root_slot < 0 && later->root_value == value &&
           (is_held(later->handle) || std::ranges::any_of(later->other_handles, handle_is_held));
  });
}

Tensor Segment::another_handle(uint32_t value) {
  OutputRecord& output = *values_[value];
  auto found = std::ranges::find_if(output.other_handles, [](const Tensor& t) { return !is_held(t); });
  if (found == output.other_handles.end()) {
    // What somebody still holds of a call that ended with an error is no longer the tree's.
    std::erase_if(output.other_handles, [&](const Tensor& t) { return t.impl()->trace != id(); });
    detail::TensorImpl* made = detail::new_impl();
    made->dtype = output.meta.dtype;
    made->sizes = output.meta.sizes;
    made->strides = output.meta.strides;
    made->offset = output.meta.offset;
    found = output.other_handles.insert(output.other_handles.end(), Tensor::of(made));
  }
  detail::TensorImpl* impl = found->impl();
  impl->trace = id();
  impl->value = value;
  impl->references.store(2, std::memory_order_relaxed);  // as in advance()
  other_handles_.emplace_back(&output, impl);
  return Tensor::adopt(impl);
}

void Segment::find_live(std::vector<uint32_t>& live) const {
  live.clear();
  for (uint32_t v = 0; v < values_.size(); ++v)
    if (is_held(values_[v]->handle)) live.push_back(v);
  const size_t by_first = live.size();
  for (const auto& [output, impl] : other_handles_)
    if (is_held(*impl)) live.push_back(impl->value);
  if (live.size() == by_first) return;
  std::ranges::sort(live);
  live.erase(std::unique(live.begin(), live.end()), live.end());
}

void Segment::find_unseen(std::span<const uint32_t> live, std::vector<int32_t>& kept,
                          std::vector<uint32_t>& unseen) const {
  auto held = [](const detail::TensorImpl& t) { return t.references.load(std::memory_order_acquire) - 1; };
  for (const auto& [output, impl] : other_handles_) kept[impl->value] -= held(*impl);
  auto owns_memory = [&](uint32_t v) { return values_[v]->root_slot < 0 && values_[v]->root_value == v; };
  for (uint32_t v : live)
    if (values_[v]->root_slot < 0 && !owns_memory(v)) kept[values_[v]->root_value] = -1;  // it has a view
  unseen.clear();
  for (uint32_t v : live)
    if (owns_memory(v) && kept[v] == held(*values_[v]->handle.impl())) unseen.push_back(v);
}

std::vector<Tensor> Segment::writes() const {
  std::vector<Tensor> writes;
  for (const Node* node : path_) {
    if (!node->inplace) continue;
    const OperandRecord& to = node->operands[0];
    const int32_t slot = root_slot(to);
    if (slot < 0) continue;
    const Tensor& whole = slots_[static_cast<size_t>(slot)];
    if (to.kind == OperandRecord::Kind::slot) {
      writes.push_back(whole);
      continue;
    }
    const auto& view = values_[to.id]->meta;
    writes.push_back(eager::make_tensor(view.dtype, view.sizes, view.strides, view.offset, whole.impl()->storage));
  }
  return writes;
}

// What was written since it was bound, other than by the ops of this segment, may have been read before: another thread
// was at it. (A pointer that this call handed out has ended the segment.)
void Segment::check_versions() const {
  for (size_t s = 0; s < slots_.size(); ++s) {
    const detail::TensorImpl& slot = *slots_[s].impl();
    if (slot.storage->version() == versions_[s]) continue;
    const eager::Extent extent = eager::extent_of(slot);
    if (!slot.storage->written_since(versions_[s], extent.begin, extent.end)) continue;
    const Node* user = path_.front();
    for (const Node* node : path_)
      for (const SlotRecord& bound : node->slots)
        if (bound.slot == s) user = node;  // it bound the tensor
    const std::string op(ir::info(user->op).name);
    const NodeScope scope(*user);
    throw Error(
        op + ": got a tensor from outside (" + slot_records_[s]->str() +
        ") that was written to after the op was recorded, by another thread or through a nested call; expected " +
        "tensors that nobody else writes while compiled function " + function_ + " is called" +
        place_of(user->location));
  }
}

void Segment::release_values() {
  for (const auto& [output, impl] : other_handles_) {
    if (!is_held(*impl)) continue;
    if (const detail::TensorImpl* first = output->handle.impl(); first && first->storage) {
      give_storage(*impl, *first->storage, first->offset);
      impl->strides = first->strides;
    }
    std::erase_if(output->other_handles, [impl = impl](const Tensor& t) { return t.impl() == impl; });
  }
  other_handles_.clear();
  for (OutputRecord* value : values_) {
    detail::TensorImpl* impl = value->handle.impl();
    if (impl && (impl->storage || impl->references.load(std::memory_order_acquire) > 1)) value->handle = Tensor();
  }
}

}  // namespace ingot::trace
