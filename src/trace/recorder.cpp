#include "trace/recorder.h"

#include <pthread.h>

#include <algorithm>

#include "base/first_use.h"
#include "base/log.h"
#include "base/module_path.h"
#include "base/mutex.h"
#include "base/overlap.h"
#include "eager/call/check_values.h"
#include "eager/call/infer.h"
#include "eager/data.h"
#include "runtime/memory/storage.h"
#include "trace/differences.h"

namespace ingot::trace {
namespace {

std::atomic<uint64_t> next_segment{1};
constexpr const char* kTooManyPaths = "the paths of the function are too many to be recorded";

// All recorders, for the message about a tensor that was recorded elsewhere.
constinit Mutex registry_mutex;
constinit FirstUse<std::vector<Recorder*>> registry;

bool writes_overlap(const eager::OpCall& call) {
  if (!call.inplace) return false;
  const detail::TensorImpl& self = *call.operands[0].tensor->impl();
  return elements_overlap(self.sizes, self.strides);
}

// Calls that a graph of values cannot say. This depends on nothing but what replay compares.
const char* why_not_recorded(const eager::OpCall& call) {
  if (ir::info(call.op).has(ir::kMayBreak)) return "the shape depends on data";
  return writes_overlap(call) ? "a write to elements that overlap" : nullptr;
}

}  // namespace

Recorder::Recorder(std::shared_ptr<Function> function)
    : Interceptor(eager::Stage::record), function_(std::move(function)) {
  static constinit FirstUse<const bool> described;
  described.get([] {
    eager::set_pending_description([](const detail::TensorImpl& impl) {
      std::string name = name_of_segment(impl.trace);
      return name.empty() ? " (the call that recorded it ended with an error)" : " by " + name;
    });
    return true;
  });
  std::lock_guard lock(registry_mutex);
  registry->push_back(this);
}

Recorder::~Recorder() {
  function_->trace_nodes.fetch_sub(static_cast<int64_t>(nodes_) - 1, std::memory_order_relaxed);
  std::lock_guard lock(registry_mutex);
  std::erase(*registry, this);
}

std::string Recorder::name_of_segment(uint64_t segment) {
  std::lock_guard lock(registry_mutex);
  for (const Recorder* r : *registry)
    if (r->segment_.load(std::memory_order_relaxed) == segment)
      return "compiled function " + r->function_->name() + " on thread " +
             std::to_string(r->thread_.load(std::memory_order_relaxed));
  return {};
}

void Recorder::begin(std::span<const detail::TensorImpl* const> arguments, bool counted) {
  arguments_.assign(arguments.begin(), arguments.end());
  made_.clear();
  handed_out_.clear();
  thread_.store(static_cast<uint64_t>(pthread_self()), std::memory_order_relaxed);
  passthrough_ = fresh_ = ended_well_ = false;
  break_reason_.clear();
  runs_.clear();
  ++call_;
  recorded_now_ = 0;
  if (full_) make_room();
  if (crowded_) started_ = std::chrono::steady_clock::now();
  start_segment(&root_);
  numerics_.emplace(function_->numerics());
  outer_ = eager::set_interceptor(stage(), this);
  writer_.reset();
  if (keep_runs) {
    last_storage_ = runtime::Storage::adopt(nullptr, 0)->id();
    writer_.emplace(arguments, segment_.load(std::memory_order_relaxed));
  }
  outer_observer_ = eager::set_interceptor(eager::Stage::observe, writer_ ? &*writer_ : nullptr);
  counted_ = counted;
  if (counted_) function_->calls.fetch_add(1, std::memory_order_relaxed);
  if (crowded_ && strangers_ >= kStrangers && call_ % kProbe != 0) pass_through(kTooManyPaths);
}

void Recorder::leave() {
  if (counted_ && (fresh_ || !ended_well_)) function_->misses.fetch_add(1, std::memory_order_relaxed);
  clear_segment();
  if (crowded_) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    spent_ += seconds;
    if (recorded_now_) spent_recording_ += seconds;
    strangers_ = passthrough_ ? strangers_ + 1 : 0;
  }
  segment_.store(0, std::memory_order_relaxed);
  eager::set_interceptor(stage(), outer_);
  eager::set_interceptor(eager::Stage::observe, outer_observer_);
  numerics_.reset();
}

void Recorder::start_segment(Node* root) {
  segment_.store(next_segment.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  segment_root_ = cursor_ = root;
  clear_segment();
}

void Recorder::clear_segment() {
  shapes_ = 0;
  path_.clear();
  values_.clear();
  slot_records_.clear();
  slots_.clear();
  bound_.clear();
  versions_.clear();
  scalars_.clear();
}

void Recorder::finish() {
  struct Leave {
    Recorder* recorder;
    ~Leave() { recorder->leave(); }
  } leave{this};
  if (!passthrough_ && !path_.empty()) run_segment(flush_node("end of the call", Location::none()));
  ended_well_ = true;
}

void Recorder::abandon() {
  struct Leave {
    Recorder* recorder;
    ~Leave() { recorder->leave(); }
  } leave{this};
  if (path_.empty()) return;
  check_versions();
  run_one_by_one("the callable threw");
}

// A recorded call costs about what two small eager ops do, and an op in it half of one (docs/frozen.md).
bool Recorder::slight() const {
  constexpr size_t kFewOps = 3;
  constexpr int64_t kFewElements = 1024;
  auto is_short = [](const Ints& sizes) {
    int64_t elements = 1;
    for (int64_t size : sizes) elements *= std::min(size, kFewElements + 1);
    return sizes.size() <= 6 && elements <= kFewElements;
  };
  auto is_light = [&](const Node* node) {
    return std::all_of(node->slots.begin(), node->slots.end(),
                       [&](const SlotRecord& s) { return is_short(s.sizes); }) &&
           std::all_of(node->outputs.begin(), node->outputs.end(),
                       [&](const OutputRecord& o) { return is_short(o.meta.sizes); });
  };
  return !passthrough_ && segment_root_ == &root_ && path_.size() <= kFewOps &&
         std::all_of(path_.begin(), path_.end(), is_light);
}

void Recorder::note_break(const std::string& reason, Location location) {
  if (!keep_runs || !break_reason_.empty()) return;
  location = caller_line(location);
  break_reason_ = reason + (location.line ? " at " + location.str() : std::string());
}

void Recorder::flush(const char* reason, Location location) {
  note_break(reason, location);
  if (passthrough_ || path_.empty()) return;
  location = caller_line(location);
  function_->note_break(reason, std::string(ir::info(path_.back()->op).name),
                        location.line ? location : path_.back()->location);
  end_segment(reason, location);
}

void Recorder::hand_out(const detail::TensorImpl& tensor, bool writable) {
  if (passthrough_) return;
  const char* data = static_cast<const char*>(tensor.storage->data());
  handed_out_.push_back({data, data + tensor.storage->bytes(), writable});
}

// Through a pointer that can be written, any op over the memory may see or miss a write that is not announced; one that
// can only be read shows what in-place ops have done.
bool Recorder::reaches_handed_out(const eager::OpCall& call) const {
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const eager::Operand& operand = call.operands[i];
    if (operand.kind != eager::Operand::Kind::tensor) continue;
    const detail::TensorImpl& impl = *operand.tensor->impl();
    const runtime::Storage* storage = impl.storage;
    if (!storage && impl.trace == segment_.load(std::memory_order_relaxed) && values_[impl.value]->root_slot >= 0)
      storage = slots_[static_cast<size_t>(values_[impl.value]->root_slot)].impl()->storage;  // a pending view
    if (!storage) continue;
    const char *begin = static_cast<const char*>(storage->data()), *end = begin + storage->bytes();
    for (const HandedOut& memory : handed_out_)
      if ((memory.writable || (call.inplace && i == 0)) && begin < memory.end && memory.begin < end) return true;
  }
  return false;
}

std::vector<Tensor> Recorder::call(const eager::OpaqueCall& call) {
  note_break("custom op " + call.name, call.location);
  const Location location = caller_line(call.location);
  if (!passthrough_) {
    function_->note_break("a custom op runs between two programs", call.name, location);
    if (!path_.empty()) end_segment(call.name.c_str(), location);
  }
  const eager::WithoutInterceptors unseen;
  std::vector<Tensor> results = call.body();
  for (const Tensor& made : results)
    if (made.defined() && made.impl()->storage) made_.push_back(made.impl()->storage->id());
  return results;
}

void Recorder::end_segment(const char* reason, Location location) {
  struct Start {
    Recorder* recorder;
    Node* root;
    ~Start() { recorder->start_segment(root); }
  } start{this, flush_node(reason, location)};
  run_segment(start.root);
}

int32_t Recorder::root_slot(const OperandRecord& operand) const {
  return operand.kind == OperandRecord::Kind::slot ? static_cast<int32_t>(operand.id) : values_[operand.id]->root_slot;
}

Node* Recorder::flush_node(const char* reason, Location location) {
  for (auto& child : cursor_->children)
    if (child->event == Node::Event::flush) return child.get();
  auto node = std::make_unique<Node>();
  node->event = Node::Event::flush;
  node->location = location;
  node->module = reason;
  node->flush = std::make_unique<FlushPoint>();
  for (const Node* n : path_)
    if (int32_t slot; n->inplace && (slot = root_slot(n->operands[0])) >= 0) {
      auto& written = node->flush->written_slots;
      if (std::find(written.begin(), written.end(), static_cast<uint32_t>(slot)) == written.end())
        written.push_back(static_cast<uint32_t>(slot));
    }
  std::vector<eager::Operand> operands;
  for (const Node* n : path_)
    node->flush->checks |= eager::value_check(call_of(*n, operands)).kind != eager::ValueCheck::Kind::none;
  note_node();
  cursor_->children.push_back(std::move(node));
  return cursor_->children.back().get();
}

bool Recorder::is_constant(const detail::TensorImpl& impl) const {
  return std::find(arguments_.begin(), arguments_.end(), &impl) == arguments_.end() &&
         std::find(made_.begin(), made_.end(), impl.storage->id()) == made_.end();
}

// Compares without side effects but for bound_ beyond slots_, which a later comparison cuts.
bool Recorder::matches(const Node& node, const eager::OpCall& call) {
  if (node.event != Node::Event::op || node.op != call.op || node.inplace != call.inplace ||
      node.operands.size() != call.operands.size() || node.attrs.size() != call.attrs.size() || writes_overlap(call))
    return false;
  uint64_t segment = segment_.load(std::memory_order_relaxed);
  bound_.cut(static_cast<uint32_t>(slots_.size()));
  size_t next_binding = 0;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const OperandRecord& record = node.operands[i];
    const eager::Operand& operand = call.operands[i];
    switch (record.kind) {
      case OperandRecord::Kind::none:
        if (operand.kind != eager::Operand::Kind::none) return false;
        break;
      case OperandRecord::Kind::scalar:
        if (operand.kind != eager::Operand::Kind::scalar || operand.category != record.category || operand.special)
          return false;
        break;
      case OperandRecord::Kind::special:
        if (operand.special != record.id || operand.category != record.category) return false;
        break;
      case OperandRecord::Kind::value: {
        if (operand.kind != eager::Operand::Kind::tensor) return false;
        const detail::TensorImpl* impl = operand.tensor->impl();
        if (impl->trace != segment || impl->value != record.id) return false;
        break;
      }
      case OperandRecord::Kind::slot: {
        if (operand.kind != eager::Operand::Kind::tensor) return false;
        detail::TensorImpl* impl = operand.tensor->impl();
        if (record.id < bound_.size()) {
          if (bound_[record.id] != impl) return false;
        } else {
          if (impl->trace == segment || !node.slots[next_binding].holds(*impl)) return false;
          // A tensor that has its slot already is another path: "x op x" is not "x op y".
          if (bound_.find(impl) != SlotTable::kNone) return false;
          ++next_binding;
          bound_.add(impl);
        }
        break;
      }
    }
  }
  for (size_t i = 0; i < node.attrs.size(); ++i) {
    const ir::Attr &a = node.attrs[i], &b = call.attrs[i];
    if (a.kind != b.kind || a.integer != b.integer || a.list.size() != b.list.size()) return false;
    if (!(node.size_attrs >> i & 1) && !(a.list == b.list)) return false;
  }
  return true;
}

namespace {

// True if as_strided reads no more than the tensor that it is called on; else it looks at a storage, which no value is.
bool stays_inside(const eager::OpCall& call) {
  const detail::TensorImpl& self = *call.operands[0].tensor->impl();
  const Dims &sizes = call.attrs[0].list, &strides = call.attrs[1].list;
  int64_t elements = 1, last = call.attrs[2].present() ? call.attrs[2].list[0].code : 0;
  if (sizes.size() != strides.size()) return false;
  for (size_t d = self.sizes.size(); d-- > 0; elements *= self.sizes[d])
    if (self.sizes[d] != 1 && self.strides[d] != elements) return false;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (int64_t reach; __builtin_mul_overflow(std::max<int64_t>(sizes[d].code - 1, 0), strides[d].code, &reach) ||
                       __builtin_add_overflow(last, reach, &last))
      return false;
  return self.offset == 0 && last < elements;
}

}  // namespace

void Recorder::call(const eager::OpCall& call, std::span<Tensor> outputs) {
  if (passthrough_) return proceed(call, outputs);
  if (!handed_out_.empty() && reaches_handed_out(call)) {
    flush("the callable holds a pointer to the memory", call.location);
    proceed(call, outputs);
    if (!call.inplace && ir::info(call.op).kind != ir::OpKind::view)
      for (const Tensor& output : outputs) made_.push_back(output.impl()->storage->id());
    return;
  }
  if (ir::info(call.op).has(ir::kOfMemory) && !stays_inside(call)) {
    flush("as_strided reads memory beyond its tensor", call.location);
    return proceed(call, outputs);
  }
  for (auto& child : cursor_->children)
    if (matches(*child, call)) return advance(child.get(), call, outputs);
  if (const char* reason = why_not_recorded(call)) {
    flush(reason, call.location);
    return proceed(call, outputs);
  }
  if (!cursor_->children.empty() && segment_root_->compilations >= function_->recompile_limit()) {
    function_->note_limit(caller_line(call.location));
    pass_through(function_->limit_reason());
    return proceed(call, outputs);
  }
  if (!may_record()) {
    pass_through(kTooManyPaths);
    return proceed(call, outputs);
  }
  advance(record(call), call, outputs);
}

// The rest of the call is eager.
void Recorder::pass_through(std::string why) {
  struct FromHere {  // also where one of the recorded ops fails now
    Recorder* recorder;
    ~FromHere() {
      recorder->clear_segment();
      recorder->passthrough_ = recorder->fresh_ = true;
    }
  } from_here{this};
  check_versions();
  run_one_by_one(std::move(why));
}

bool Recorder::may_record() {
  // One long path is not cut short; many of them are.
  if (nodes_ >= kMostNodes && 2 * recorded_now_ < nodes_) {
    if (!full_) function_->note_full(kMostNodes);
    full_ = true;
    return false;
  }
  return !crowded_ || recorded_now_ > 0 || spent_recording_ < kRecordingShare * spent_;
}

void Recorder::make_room() {
  const int64_t before = static_cast<int64_t>(nodes_);
  nodes_ = prune(root_, 0);
  if (2 * nodes_ > kMostNodes) nodes_ = prune(root_, median_use(root_));
  function_->trace_nodes.fetch_add(static_cast<int64_t>(nodes_) - before, std::memory_order_relaxed);
  function_->drop_unused_programs();
  full_ = false;
  crowded_ = true;
  spent_ = spent_recording_ = 0;
}

void Recorder::note_node() {
  ++nodes_, ++recorded_now_;
  fresh_ = true;
  function_->trace_nodes.fetch_add(1, std::memory_order_relaxed);
}

void Recorder::advance(Node* node, const eager::OpCall& call, std::span<Tensor> outputs) {
  // First what may refuse the call, which the callable may catch: nothing of it is then recorded.
  if (node->has_sizes() || node->shapes_in != shapes_) refresh_shapes(node, call);
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
    } else if (record.kind == OperandRecord::Kind::slot && binding < node->slots.size() &&
               node->slots[binding].slot == record.id && record.id == slots_.size()) {
      slots_.push_back(*call.operands[i].tensor);
      versions_.push_back(slots_.back().impl()->storage->version());
      slot_records_.push_back(&node->slots[binding]);
      ++binding;
    }
  }
  shapes_ = node->shapes_out;

  uint64_t segment = segment_.load(std::memory_order_relaxed);
  if (node->inplace) {
    outputs[0] = *call.operands[0].tensor;
  } else {
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      OutputRecord& output = node->outputs[i];
      detail::TensorImpl* impl = output.handle.impl();
      if (!impl || impl->references.load(std::memory_order_relaxed) != 1) {
        impl = detail::new_impl();
        output.handle = Tensor::of(impl);
        impl->dtype = output.meta.dtype;
        impl->sizes = output.meta.sizes;
        impl->strides = output.meta.strides;
        impl->offset = output.meta.offset;
      }
      impl->trace = segment;
      impl->value = node->first_value + static_cast<uint32_t>(i);
      outputs[i] = output.handle;
      values_.push_back(&output);
    }
  }
  path_.push_back(node);
  cursor_ = node;
}

// Whether an operand from before this node is other than when its outputs were inferred.
bool Recorder::follows_from_change(const Node& node) const {
  return std::any_of(node.operands.begin(), node.operands.end(), [&](const OperandRecord& operand) {
    if (operand.kind == OperandRecord::Kind::value) return values_[operand.id]->changed > node.inferred;
    return operand.kind == OperandRecord::Kind::slot && operand.id < slot_records_.size() &&
           slot_records_[operand.id]->changed > node.inferred;
  });
}

// Takes over this call's sizes; where what the outputs follow from differs, they are inferred again.
void Recorder::refresh_shapes(Node* node, const eager::OpCall& call) {
  bool own = false;  // sizes that this node brings in
  for (SlotRecord& slot : node->slots) {
    const detail::TensorImpl& impl = *bound_[slot.slot];
    const bool moved = slot.offset != impl.offset;
    slot.offset = impl.offset;  // also of a slot that only a path recorded later views
    if (slot.same_layout(impl) && !(moved && slot.viewed)) continue;
    own = true;
    slot.sizes = impl.sizes;
    slot.strides = impl.strides;
    slot.changed = ++changes_;
  }
  for (size_t i = 0; i < node->attrs.size(); ++i)
    if (node->size_attrs >> i & 1 && !(node->attrs[i].list == call.attrs[i].list)) {
      own = true;
      node->attrs[i].list = call.attrs[i].list;
    }
  if (!own && node->shapes_in == shapes_) return;
  if (own || !node->inferred || follows_from_change(*node)) {
    // Until the metas are right again the node matches no arrival.
    node->shapes_in = ~uint64_t{0}, node->inferred = 0;
    infer_again(*node, call);
    node->inferred = changes_;
  }
  node->shapes_in = shapes_;
  node->shapes_out = node->has_sizes() ? ++next_shapes_ : shapes_;
}

void Recorder::infer_again(Node& node, const eager::OpCall& call) {
  metas_.resize(node.outputs.size());
  eager::infer_outputs(call, metas_);
  for (size_t i = 0; i < metas_.size(); ++i) {
    OutputRecord& output = node.outputs[i];
    if (output.meta == metas_[i]) continue;
    std::swap(output.meta, metas_[i]);
    output.changed = ++changes_;
    if (node.inplace) continue;
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

Node* Recorder::record(const eager::OpCall& call) {
  const ir::OpInfo& row = ir::info(call.op);
  auto node = std::make_unique<Node>();
  node->event = Node::Event::op;
  node->op = call.op;
  node->inplace = call.inplace;
  node->first_value = static_cast<uint32_t>(values_.size());
  node->location = caller_line(call.location);
  node->module = module_path();
  node->attrs.assign(call.attrs.begin(), call.attrs.end());
  for (size_t i = 0; i < call.attrs.size(); ++i) {
    ir::ArgKind kind = row.attribute(static_cast<int>(i)).kind;
    if (kind == ir::ArgKind::size || kind == ir::ArgKind::sizes) node->size_attrs |= 1u << i;
  }
  uint64_t segment = segment_.load(std::memory_order_relaxed);
  uint32_t scalar = static_cast<uint32_t>(scalars_.size());
  bound_.cut(static_cast<uint32_t>(slots_.size()));
  for (const eager::Operand& operand : call.operands) {
    OperandRecord record;
    if (operand.special) {
      record = {OperandRecord::Kind::special, operand.category, operand.special};
    } else if (operand.kind == eager::Operand::Kind::scalar) {
      record = {OperandRecord::Kind::scalar, operand.category, scalar++};
    } else if (operand.kind == eager::Operand::Kind::tensor) {
      detail::TensorImpl* impl = operand.tensor->impl();
      if (impl->trace == segment) {
        record = {OperandRecord::Kind::value, Category::floating, impl->value};
      } else {
        if (!impl->storage) fail_foreign(*impl, call);
        uint32_t slot = bound_.find(impl);
        if (slot == SlotTable::kNone) {
          slot = bound_.size();
          bound_.add(impl);
          node->slots.emplace_back(*impl, slot, is_constant(*impl));
        }
        record = {OperandRecord::Kind::slot, Category::floating, slot};
      }
    }
    node->operands.push_back(record);
  }
  std::vector<eager::OutputMeta> metas(static_cast<size_t>(row.outputs));
  eager::infer_outputs(call, metas);  // throws what the user did wrong; nothing is recorded then
  for (eager::OutputMeta& meta : metas) {
    OutputRecord& output = node->outputs.emplace_back();
    output.meta = std::move(meta);
    if (!output.meta.alias || node->inplace) continue;
    const OperandRecord& base = node->operands[0];
    if (base.kind == OperandRecord::Kind::value)
      output.root_slot = values_[base.id]->root_slot;
    else
      output.root_slot = static_cast<int32_t>(base.id);
    if (output.root_slot < 0) continue;
    size_t slot = static_cast<size_t>(output.root_slot);
    (slot < slot_records_.size() ? *slot_records_[slot] : node->slots[slot - slot_records_.size()]).viewed = true;
  }
  node->shapes_in = shapes_;
  node->shapes_out = node->has_sizes() ? ++next_shapes_ : shapes_;
  node->inferred = changes_;
  if (!cursor_->children.empty()) note_fork(call);
  note_node();
  cursor_->children.push_back(std::move(node));
  return cursor_->children.back().get();
}

void Recorder::note_fork(const eager::OpCall& call) {
  function_->note_recompile(difference(*cursor_->children.back(), call, slots_));
}

void Recorder::fail_foreign(const detail::TensorImpl& impl, const eager::OpCall& call) const {
  std::string owner = name_of_segment(impl.trace);
  const std::string where = place_of(call.location);
  std::string op(ir::info(call.op).name);
  if (owner.empty())
    throw Error(op + ": the tensor was never computed: the compiled call that recorded it ended with an error" + where);
  throw Error(op + ": the tensor is still being recorded by " + owner +
              "; ask for its value there, or let that call return, before another thread uses it" + where);
}

}  // namespace ingot::trace
