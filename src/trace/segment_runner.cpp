#include "trace/segment_runner.h"

#include <algorithm>
#include <cstring>

#include "base/overlap.h"
#include "base/scratch_array.h"
#include "eager/call/check_values.h"
#include "eager/data.h"
#include "eager/execute/execute.h"
#include "eager/execute/numerics.h"
#include "runtime/bound_program.h"
#include "runtime/memory/donation.h"
#include "trace/background.h"
#include "trace/backward.h"
#include "trace/build_graph.h"
#include "trace/differences.h"
#include "trace/write_back.h"

namespace ingot::trace {
namespace {

/// Of one flush: the recompile limit counts compiled programs, of which several variants may make use.
constexpr size_t kMostVariants = 64;

/// A fresh storage counts the writes that made it, as eager's does: what was saved before one of them is known by it.
void note_writes(runtime::Storage& storage, uint64_t writes) {
  while (storage.version() < writes) storage.bump_version();
}

}  // namespace

SegmentRunner::SegmentRunner(Function& function, Segment& segment, CallMemory& memory,
                             std::shared_ptr<Backward> backward)
    : function_(function), segment_(segment), memory_(memory), backward_(std::move(backward)) {}

void SegmentRunner::begin_call(int64_t call, Observation* observation) {
  call_ = call;
  observation_ = observation;
  compiled_ = false;
  first_node_ = autograd::next_sequence();
  stretch_ = {};
}

// What of the tape the user can come to: by what is alive, or by what was written.
void SegmentRunner::join_tape(const FlushPoint& point) {
  joined_.clear();
  if (!backward_) return;
  auto join = [&](const detail::TensorImpl& tensor) {
    if (!tensor.node || tensor.node->sequence < first_node_) return;
    if (stretch_ && tensor.node->stretch == stretch_) return;
    if (!stretch_) stretch_ = backward_->stretch();
    autograd::join(tensor.node, first_node_, stretch_, joined_);
  };
  for (uint32_t v : live_) join(*segment_.values()[v]->handle.impl());
  for (uint32_t s : point.written_slots) join(*autograd::base_of(segment_.slots()[s]).impl());
}

// A value saved by an earlier segment's node is no value of this one.
void SegmentRunner::find_unseen() {
  unseen_.clear();
  if (joined_.empty() || live_.empty()) return;
  kept_.assign(segment_.values().size(), 0);
  for (const autograd::Node* node : joined_) node->count_kept(segment_.id(), kept_);
  segment_.find_unseen(live_, kept_, unseen_);
}

void SegmentRunner::run(Node& flush) {
  FlushPoint& point = *flush.flush;
  segment_.check_versions();
  ++flush.hits;
  flush.last_use = call_;
  if (!point.checks) segment_.forget_tapes();
  segment_.drop_tapes();
  segment_.find_live(live_);
  if (live_.empty() && point.written_slots.empty() && !point.checks) {
    if (observation_) observation_->note_segment(segment_, point, {}, {}, nullptr);
    return;
  }
  join_tape(point);
  find_unseen();
  // A whole tensor is written back: where its elements overlap, those that stayed would undo those that changed.
  for (uint32_t s : point.written_slots)
    if (const detail::TensorImpl& written = *segment_.slots()[s].impl();
        elements_overlap(written.sizes, written.strides))
      return fall_back("elements of a tensor that is written overlap");
  if (!find_aliases(segment_.bound().tensors().first(segment_.slots().size()), point.written_slots, aliases_) ||
      !reads_come_first(point))
    return fall_back("a tensor that is written shares its storage with another tensor from outside");
  Variant* variant = nullptr;
  try {
    bool waits = false;
    variant = choose(point, &waits);
    if (waits) {  // still compiling in the background
      resume_background();
      return run_one_by_one({});
    }
  } catch (const SizeOverflow& e) {  // of a size that only the program computes
    return fall_back(e.what());
  }
  if (!variant) {
    if (point.variants.size() >= kMostVariants || !segment_.root()->may_compile(function_.recompile_limit())) {
      function_.note_limit(flush.location);
      return run_one_by_one(function_.limit_reason());
    }
    variant = compile(point);
  }
  if (!variant->bind_if_ready()) return run_one_by_one({});
  if (!variant->fallback.empty()) return fall_back(variant->fallback);
  try {
    run_program(*variant, point);
  } catch (const OutOfMemory& e) {
    segment_.undo_from(0);  // nothing was done, unless the ops ran one by one, which has undone what was not
    const Node& first = *segment_.path().front();
    const NodeScope scope(first);
    throw OutOfMemory(std::string(ir::info(first.op).name) + ": " + e.what() + " for compiled function " +
                      function_.name() + place_of(first.location));
  }
}

// True if nobody reads written memory through a tensor that looks at it differently, once it is written.
bool SegmentRunner::reads_come_first(const FlushPoint& point) const {
  const auto elsewhere = [&](int32_t slot) {
    return slot >= 0 && aliases_[static_cast<size_t>(slot)] & kSeenElsewhere;
  };
  if (std::ranges::none_of(aliases_, [](uint32_t alias) { return alias & kSeenElsewhere; })) return true;
  bool written = false;
  for (const Node* node : segment_.path()) {
    written |= node->inplace && elsewhere(segment_.root_slot(node->operands[0]));
    if (!written) continue;
    for (const OperandRecord& operand : node->operands) {
      if (operand.kind != OperandRecord::Kind::slot && operand.kind != OperandRecord::Kind::value) continue;
      const int32_t slot = segment_.root_slot(operand);
      if (elsewhere(slot) &&
          std::ranges::find(point.written_slots, static_cast<uint32_t>(slot)) == point.written_slots.end())
        return false;
    }
  }
  return true;
}

// `waits`: none is known to be right yet, but one that may be is being compiled.
Variant* SegmentRunner::choose(FlushPoint& point, bool* waits) {
  bool collected = false;
  const compiler::CodeLevel level = eager::code_level();
  for (auto& variant : point.variants) {
    if (variant->level != level || variant->live != live_ || variant->unseen != unseen_ || variant->aliases != aliases_)
      continue;
    // Which sizes it is right for is known only with the program.
    if (!variant->bind_if_ready()) {
      *waits = true;
      continue;
    }
    // The same sizes as before have the same number: none of them is looked at.
    if (variant->shapes == segment_.shapes()) {
      *waits = false;
      return variant.get();
    }
    if (!collected) {
      collect_sites(segment_.path(), sites_);
      collected = true;
    }
    if (!variant->bind_to(sites_)) continue;
    variant->shapes = segment_.shapes();
    *waits = false;
    return variant.get();
  }
  return nullptr;
}

Variant* SegmentRunner::compile(FlushPoint& point) {
  compiled_ = true;
  collect_sites(segment_.path(), sites_);
  if (!point.variants.empty())
    function_.note_recompile(difference(segment_.path(), *point.variants.back(), live_, unseen_, aliases_, sites_));
  point.history.push_back(sites_);
  auto variant = std::make_unique<Variant>();
  variant->level = eager::code_level();
  variant->live = live_;
  variant->unseen = unseen_;
  variant->aliases = aliases_;
  variant->sites = sites_;
  variant->symbol_of = assign_symbols(point.history, &variant->symbol_count);
  try {
    auto build = [&] {
      return build_graph({segment_.path(), live_, unseen_, aliases_, point.written_slots, sites_, variant->symbol_of,
                          variant->symbol_count});
    };
    BuiltGraph built = build();
    while (pin_symbols(built.graph.dims, sites_, variant->symbol_of, &variant->symbol_count)) built = build();
    variant->symbols.resize(static_cast<size_t>(variant->symbol_count));
    for (size_t i = 0; i < sites_.size(); ++i)
      if (int32_t s = variant->symbol_of[i]; s >= 0) variant->symbols[static_cast<size_t>(s)] = sites_[i];
    variant->binding = std::move(built.binding);
    for (size_t s = 0; s < segment_.slots().size(); ++s)
      if (segment_.slot_record(s).captured) segment_.slots()[s].impl()->storage->mark_lasting();
    bool compiled_now = false;
    std::vector<uint32_t> saved;
    for (uint32_t i = 0; i < variant->binding.outputs.size(); ++i)
      if (variant->binding.outputs[i].unseen) saved.push_back(i);
    if (!built.graph.outputs.empty())
      variant->entry = function_.program(std::move(built.graph), std::move(saved),
                                         static_cast<int64_t>(segment_.path().size()), &compiled_now);
    if (compiled_now) ++segment_.root()->compilations;
    variant->bind_if_ready();
  } catch (const std::exception& e) {
    variant->entry = nullptr;
    variant->fallback = std::string("no program: ") + e.what();
    ++segment_.root()->compilations;  // an attempt is limited as a program is
  }
  variant->shapes = segment_.shapes();
  point.variants.push_back(std::move(variant));
  return point.variants.back().get();
}

void SegmentRunner::run_program(Variant& variant, const FlushPoint& point) {
  const SegmentBinding& binding = variant.binding;
  const std::span<const Tensor> slots = segment_.slots();
  if (!host_checks_pass(variant)) return run_one_by_one("a check of values failed");
  size_t count = binding.input_slots.size();
  ScratchArray<void*, 32> inputs(count);
  ScratchArray<void*, 16> outputs(binding.outputs.size());
  ScratchArray<runtime::InputIdentity, 32> identities(variant.entry && variant.bound->asks_identities() ? count : 0);
  for (size_t i = 0; i < count; ++i) {
    const Tensor& slot = slots[binding.input_slots[i]];
    inputs[i] = eager::data_of(*slot.impl());
    if (identities.size()) identities[i] = runtime::InputIdentity::of(*slot.impl()->storage);
  }
  storages_.clear();
  storages_.resize(binding.outputs.size());
  for (size_t i = 0; i < binding.outputs.size(); ++i) {
    const OutputTarget& target = binding.outputs[i];
    outputs[i] = target.kind == OutputTarget::Kind::write_back ? donated_memory(target, slots[target.number]) : nullptr;
    if (outputs[i]) continue;
    storages_[i] = runtime::Storage::allocate(variant.output_bytes[i]);
    outputs[i] = storages_[i]->data();
  }
  if (variant.entry) {
    const runtime::CallData data{inputs, identities, outputs, segment_.scalars()};
    if (point.written_slots.empty())
      variant.entry->loaded->run(*variant.bound, data);
    else
      runtime::run_in_place(*variant.entry->loaded, *variant.bound, data, variant.output_bytes);
    variant.entry->hits.fetch_add(1, std::memory_order_relaxed);
  }
  for (size_t i = 0; i < binding.outputs.size(); ++i)
    if (binding.outputs[i].kind == OutputTarget::Kind::failed && *static_cast<const uint8_t*>(storages_[i]->data()))
      return run_one_by_one("a check of values failed");

  if (observation_) observation_->note_segment(segment_, point, live_, aliases_, &variant);
  for (const LiveValue& live : binding.live) {
    OutputRecord& value = *segment_.values()[live.value];
    if (live.external) {
      const detail::TensorImpl& base = *slots[live.number].impl();
      give_storage(*value.handle.impl(), *base.storage, value.meta.offset);
    } else {
      give_storage(*value.handle.impl(), *storages_[live.number], value.meta.offset);
      if (const OutputTarget& target = binding.outputs[live.number]; target.unseen)
        value.handle.impl()->strides = target.strides(value.meta.sizes);
      note_writes(*storages_[live.number], segment_.writes_to_value(value.root_value));
      memory_.note_made(*storages_[live.number]);
    }
  }
  defer(variant);
  for (size_t i = 0; i < binding.outputs.size(); ++i)
    if (const OutputTarget& target = binding.outputs[i]; target.kind == OutputTarget::Kind::write_back)
      for (uint32_t s : point.written_slots)
        if (first_alias(aliases_[s]) == target.number)
          write_back(target, slots[s], std::move(storages_[i]), segment_.writes_to_slot(s));
  storages_.clear();
  segment_.release_values();
}

// What the tape would have kept of these values, it computes when it reads them.
void SegmentRunner::defer(const Variant& variant) {
  if (variant.binding.deferred.empty()) return;
  std::vector<autograd::DeferredPtr> by_value(segment_.values().size());
  for (const DeferredValue& value : variant.binding.deferred) {
    const BoundRecipe& recipe = variant.recipes[value.recipe];
    std::vector<Tensor> from;
    for (uint32_t output : variant.entry->compiled->recipes[value.recipe].from) {
      const eager::OutputMeta& lies = variant.recipes_read[output];
      from.push_back(eager::make_tensor(lies.dtype, lies.sizes, lies.strides, 0, storages_[output].get()));
    }
    std::vector<uint64_t> scalars;
    for (uint32_t number : recipe.scalars) scalars.push_back(segment_.scalars()[number]);
    by_value[value.value] = std::make_shared<const autograd::Deferred>(recipe.ops, std::move(from), std::move(scalars));
  }
  for (autograd::Node* node : joined_) node->defer(segment_.id(), by_value);
}

// True if no value is where eager would refuse it, as far as that can be known before the program runs.
bool SegmentRunner::host_checks_pass(const Variant& variant) const {
  if (variant.binding.host_checks.empty()) return true;
  const eager::WithoutInterceptors without_chain;
  std::vector<eager::Operand> operands;
  for (const HostCheck& check : variant.binding.host_checks) {
    const Node& node = *segment_.path()[check.node];
    eager::OpCall call = segment_.call_of(node, operands);
    const size_t checked = check.operand;
    Tensor stand_in;
    if (check.sizes_only) {
      if (!eager::positions_have_room(call, eager::value_check(call, checked))) return false;
      continue;
    }
    if (check.counter >= 0) {
      // The ends of the arange say all.
      const Node& counter = *segment_.path()[static_cast<size_t>(check.counter)];
      int64_t start = static_cast<int64_t>(segment_.scalars()[counter.operands[0].id]);
      int64_t step = static_cast<int64_t>(segment_.scalars()[counter.operands[1].id]);
      int64_t length = counter.attrs[0].list[0].code;
      if (!length) continue;
      int64_t ends[] = {start, start + step * (length - 1)};
      stand_in = eager::make_empty(DType::i64, std::array<int64_t, 1>{2});
      std::memcpy(eager::data_of(*stand_in.impl()), ends, sizeof ends);
      operands[checked] = eager::Operand(stand_in);
    } else if (node.operands[checked].kind == OperandRecord::Kind::value) {
      const OutputRecord& view = *segment_.values()[node.operands[checked].id];
      stand_in = eager::make_tensor(view.meta.dtype, view.meta.sizes, view.meta.strides, view.meta.offset,
                                    segment_.slots()[static_cast<size_t>(view.root_slot)].impl()->storage);
      operands[checked] = eager::Operand(stand_in);
    }
    try {
      eager::check_operand(call, eager::value_check(call, checked));
    } catch (const Error&) {
      return false;
    }
  }
  return true;
}

void SegmentRunner::fall_back(const std::string& reason) {
  const Node& first = *segment_.path().front();
  function_.note_fallback(reason, first.op, first.location);
  run_one_by_one(reason);
}

void SegmentRunner::run_one_by_one(std::string why) {
  if (observation_) observation_->note_one_by_one(std::move(why));
  const eager::WithoutInterceptors without_chain;
  struct Release {
    Segment& segment;
    ~Release() { segment.release_values(); }
  } release{segment_};
  std::vector<eager::Operand> operands;
  std::vector<Tensor> outputs;
  struct Restore {  // from the op that is refused on, if one is
    Segment& segment;
    size_t done = 0;
    ~Restore() { segment.undo_from(done); }
  } restore{segment_};
  for (const Node* node : segment_.path()) {
    outputs.assign(node->outputs.size(), Tensor());
    const NodeScope scope(*node);
    eager::execute(segment_.call_of(*node, operands), outputs);
    ++restore.done;
    if (node->inplace) continue;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const detail::TensorImpl& result = *outputs[i].impl();
      give_storage(*node->outputs[i].handle.impl(), *result.storage, result.offset);
      if (node->outputs[i].root_slot < 0) memory_.note_made(*result.storage);
    }
  }
}

}  // namespace ingot::trace
