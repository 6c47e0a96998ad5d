// What happens at a flush: choose or compile the program of the segment, run it, and give the live tensors their
// memory.
#include <algorithm>

#include "base/module_path.h"
#include "base/overlap.h"
#include "base/scratch_array.h"
#include "eager/call/check_values.h"
#include "eager/data.h"
#include "eager/execute/execute.h"
#include "runtime/bound_program.h"
#include "runtime/memory/donation.h"
#include "runtime/memory/storage.h"
#include "runtime/thread_pool.h"
#include "trace/background.h"
#include "trace/build_graph.h"
#include "trace/differences.h"
#include "trace/recorder.h"
#include "trace/write_back.h"

namespace ingot::trace {
namespace {

/// Of one flush: the recompile limit counts compiled programs, of which several variants may make use.
constexpr size_t kMostVariants = 64;

using eager::WithoutInterceptors;

/// While it lives, errors name the line and the module of a recorded call, wherever the flush stands.
struct Place {
  CallerLine own{CallerLine::Own()};
  ModulePathScope module;
  explicit Place(const Node& node) : module(node.module) {}
};

char* data_of(const Tensor& tensor) { return eager::data_of(*tensor.impl()); }

}  // namespace

void Recorder::give_storage(detail::TensorImpl* impl, runtime::Storage* storage, int64_t offset) {
  storage->retain();
  impl->storage = storage;
  impl->offset = offset;
  impl->trace = 0;
}

void Recorder::find_live() {
  live_.clear();
  for (uint32_t v = 0; v < values_.size(); ++v)
    if (values_[v]->handle.impl()->references.load(std::memory_order_acquire) > 1) live_.push_back(v);
}

// What was written since it was bound, other than by the ops of this segment, may have been read before: another thread
// was at it. (A pointer that this call handed out has ended the segment.)
void Recorder::check_versions() const {
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
    const Place place(*user);
    throw Error(
        op + ": got a tensor from outside (" + slot_records_[s]->str() +
        ") that was written to after the op was recorded, by another thread or through a nested call; expected " +
        "tensors that nobody else writes while compiled function " + function_->name() + " is called" +
        place_of(user->location));
  }
}

void Recorder::run_segment(Node* node) {
  FlushPoint& point = *node->flush;
  check_versions();
  point_ = &point;
  ++node->hits;
  node->last_use = call_;
  find_live();
  if (live_.empty() && point.written_slots.empty() && !point.checks) {
    if (keep_runs) keep_run(nullptr);
    return;
  }
  // A whole tensor is written back: where its elements overlap, those that stayed would undo those that changed.
  for (uint32_t s : point.written_slots)
    if (const detail::TensorImpl& written = *slots_[s].impl(); elements_overlap(written.sizes, written.strides))
      return fall_back("elements of a tensor that is written overlap");
  if (!find_aliases(bound_.tensors().first(slots_.size()), point.written_slots, aliases_))
    return fall_back("a tensor that is written shares its storage with another tensor from outside");
  Variant* variant = nullptr;
  try {
    bool waits = false;
    variant = choose_variant(point, &waits);
    if (waits) {  // still compiling in the background
      resume_background();
      return run_one_by_one({});
    }
  } catch (const SizeOverflow& e) {
    return fall_back(e.what());
  }
  if (!variant) {
    if (segment_root_->compilations >= function_->recompile_limit() || point.variants.size() >= kMostVariants) {
      function_->note_limit(node->location);
      return run_one_by_one(function_->limit_reason());
    }
    variant = compile_variant(point);
  }
  if (!variant->settle()) return run_one_by_one({});
  if (!variant->fallback.empty()) return fall_back(variant->fallback);
  try {
    run_variant(*variant);
  } catch (const OutOfMemory& e) {
    const Place place(*path_.front());
    throw OutOfMemory(std::string(ir::info(path_.front()->op).name) + ": " + e.what() + " for compiled function " +
                      function_->name() + place_of(path_.front()->location));
  }
}

// `waits`: none is known to be right yet, but one that may be is being compiled.
Variant* Recorder::choose_variant(FlushPoint& point, bool* waits) {
  bool collected = false;
  const compiler::CodeLevel level = eager::code_level();
  for (auto& variant : point.variants) {
    if (variant->level != level || variant->live != live_ || variant->aliases != aliases_) continue;
    // Which sizes it is right for is known only with the program.
    if (!variant->settle()) {
      *waits = true;
      continue;
    }
    if (variant->shapes == shapes_) {
      *waits = false;
      return variant.get();
    }
    if (!collected) {
      collect_sites(path_, sites_);
      collected = true;
    }
    if (!holds(*variant)) continue;
    variant->shapes = shapes_;
    *waits = false;
    return variant.get();
  }
  return nullptr;
}

// True if the program is right for sites_; it is then bound to them.
bool Recorder::holds(Variant& variant) {
  std::vector<int64_t> symbols(static_cast<size_t>(variant.symbol_count), -1);
  for (size_t i = 0; i < sites_.size(); ++i) {
    int32_t symbol = variant.symbol_of[i];
    int64_t& expected = symbol < 0 ? variant.sites[i] : symbols[static_cast<size_t>(symbol)];
    if (expected < 0 && symbol >= 0) expected = sites_[i];
    if (expected != sites_[i]) return false;
  }
  if (!variant.entry) return true;
  // It is bound only where it holds.
  const runtime::LoadedProgram& loaded = *variant.entry->loaded;
  runtime::BoundProgramPtr bound = loaded.find(symbols);
  if (!bound) {
    const DimTable& dims = loaded.program().dims;
    std::vector<int64_t> values = dims.evaluate(symbols);
    for (const DimGuard& guard : dims.guards())
      if (!dims.holds(guard, values)) return false;
    bound = loaded.bind(symbols, std::move(values));
  }
  variant.symbols = std::move(symbols);
  variant.take(std::move(bound));
  return true;
}

// True once the program is there, or it is known that there is none; it is then bound to the latest sizes, for as many
// threads as there are now.
bool Variant::settle() {
  if (!entry || (bound && bound->threads == num_threads())) return true;
  if (!entry->ready.load(std::memory_order_acquire)) return false;
  if (entry->failure.empty()) {
    grant_direct_writes();
    take(entry->loaded->bind(symbols));
  } else {
    fallback = entry->failure;
    entry = nullptr;
  }
  return true;
}

void Variant::grant_direct_writes() {
  // What a program finds wrong it finds once it runs: nothing is to be written by then.
  for (const OutputTarget& target : binding.outputs)
    if (target.kind == OutputTarget::Kind::failed) return;
  for (size_t i = 0; i < binding.outputs.size(); ++i) {
    OutputTarget& target = binding.outputs[i];
    if (target.kind != OutputTarget::Kind::write_back || target.direct) continue;
    const auto input = std::find(binding.input_slots.begin(), binding.input_slots.end(), target.number);
    target.direct = input != binding.input_slots.end() &&
                    runtime::may_write_over(*entry->compiled->program, static_cast<uint32_t>(i),
                                            static_cast<uint32_t>(input - binding.input_slots.begin()));
  }
}

void Variant::take(runtime::BoundProgramPtr program) {
  bound = std::move(program);
  output_bytes.clear();
  for (Dim bytes : entry->compiled->output_bytes) output_bytes.push_back(DimTable::value_of(bytes, bound->values));
}

Variant* Recorder::compile_variant(FlushPoint& point) {
  fresh_ = true;
  collect_sites(path_, sites_);
  if (!point.variants.empty())
    function_->note_recompile(difference(path_, *point.variants.back(), live_, aliases_, sites_));
  point.history.push_back(sites_);
  auto variant = std::make_unique<Variant>();
  variant->level = eager::code_level();
  variant->live = live_;
  variant->aliases = aliases_;
  variant->sites = sites_;
  variant->symbol_of = assign_symbols(point.history, &variant->symbol_count);
  try {
    BuiltGraph built =
        build_graph({path_, live_, aliases_, point.written_slots, sites_, variant->symbol_of, variant->symbol_count});
    while (settle_symbols(built.graph.dims, sites_, variant->symbol_of, &variant->symbol_count))
      built =
          build_graph({path_, live_, aliases_, point.written_slots, sites_, variant->symbol_of, variant->symbol_count});
    variant->symbols.resize(static_cast<size_t>(variant->symbol_count));
    for (size_t i = 0; i < sites_.size(); ++i)
      if (int32_t s = variant->symbol_of[i]; s >= 0) variant->symbols[static_cast<size_t>(s)] = sites_[i];
    variant->binding = std::move(built.binding);
    for (size_t s = 0; s < slots_.size(); ++s)
      if (slot_records_[s]->constant) slots_[s].impl()->storage->mark_lasting();
    bool compiled_now = false;
    if (!built.graph.outputs.empty())
      variant->entry = function_->program(std::move(built.graph), static_cast<int64_t>(path_.size()), &compiled_now);
    if (compiled_now) ++segment_root_->compilations;
    variant->settle();
  } catch (const std::exception& e) {
    variant->entry = nullptr;
    variant->fallback = std::string("no program: ") + e.what();
    ++segment_root_->compilations;  // an attempt is limited as a program is
  }
  variant->shapes = shapes_;
  point.variants.push_back(std::move(variant));
  return point.variants.back().get();
}

void Recorder::run_variant(Variant& variant) {
  const SegmentBinding& binding = variant.binding;
  if (!host_checks_pass(variant)) return run_one_by_one("a check of values failed");
  size_t count = binding.input_slots.size();
  ScratchArray<void*, 32> inputs(count);
  ScratchArray<void*, 16> outputs(binding.outputs.size());
  ScratchArray<runtime::InputIdentity, 32> identities(count);
  for (size_t i = 0; i < count; ++i) {
    const Tensor& slot = slots_[binding.input_slots[i]];
    inputs[i] = data_of(slot);
    identities[i] = runtime::InputIdentity::of(*slot.impl()->storage);
  }
  std::vector<runtime::StoragePtr>& storages = storages_;
  storages.clear();
  storages.resize(binding.outputs.size());
  for (size_t i = 0; i < binding.outputs.size(); ++i) {
    const OutputTarget& target = binding.outputs[i];
    outputs[i] = target.kind == OutputTarget::Kind::write_back ? direct_memory(target, slots_[target.number]) : nullptr;
    if (outputs[i]) continue;
    storages[i] = runtime::Storage::allocate(variant.output_bytes[i]);
    outputs[i] = storages[i]->data();
  }
  if (variant.entry) {
    runtime::run_in_place(*variant.entry->loaded, *variant.bound, {inputs, identities, outputs, scalars_},
                          variant.output_bytes);
    variant.entry->hits.fetch_add(1, std::memory_order_relaxed);
  }
  for (size_t i = 0; i < binding.outputs.size(); ++i)
    if (binding.outputs[i].kind == OutputTarget::Kind::failed && *static_cast<const uint8_t*>(storages[i]->data()))
      return run_one_by_one("a check of values failed");

  if (keep_runs) keep_run(&variant);
  for (const LiveValue& live : binding.live) {
    OutputRecord& value = *values_[live.value];
    if (live.external) {
      const detail::TensorImpl& base = *slots_[live.number].impl();
      give_storage(value.handle.impl(), base.storage, value.meta.offset);
    } else {
      give_storage(value.handle.impl(), storages[live.number].get(), value.meta.offset);
      made_.push_back(storages[live.number]->id());
    }
  }
  for (size_t i = 0; i < binding.outputs.size(); ++i)
    if (binding.outputs[i].kind == OutputTarget::Kind::write_back)
      write_back(binding.outputs[i], slots_[binding.outputs[i].number], std::move(storages[i]));
  storages.clear();
  release_values();
}

eager::OpCall Recorder::call_of(const Node& node, std::vector<eager::Operand>& operands) const {
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
  return {node.op, node.inplace, operands, node.attrs, node.location};
}

// True if no value is where eager would refuse it, as far as that can be known before the program runs.
bool Recorder::host_checks_pass(const Variant& variant) {
  if (variant.binding.host_checks.empty()) return true;
  WithoutInterceptors direct;
  std::vector<eager::Operand> operands;
  for (const HostCheck& check : variant.binding.host_checks) {
    const Node& node = *path_[check.node];
    eager::OpCall call = call_of(node, operands);
    const size_t checked = check.operand;
    Tensor stand_in;
    if (check.sizes_only) {
      if (!eager::positions_have_room(call, eager::value_check(call), checked)) return false;
      continue;
    }
    if (check.counter >= 0) {
      // The ends of the arange say all.
      const Node& counter = *path_[static_cast<size_t>(check.counter)];
      int64_t start = static_cast<int64_t>(scalars_[counter.operands[0].id]);
      int64_t step = static_cast<int64_t>(scalars_[counter.operands[1].id]);
      int64_t length = counter.attrs[0].list[0].code;
      if (!length) continue;
      int64_t ends[] = {start, start + step * (length - 1)};
      stand_in = eager::make_empty(DType::i64, std::array<int64_t, 1>{2});
      std::memcpy(eager::data_of(*stand_in.impl()), ends, sizeof ends);
      operands[checked] = eager::Operand(stand_in);
    } else if (node.operands[checked].kind == OperandRecord::Kind::value) {
      const OutputRecord& view = *values_[node.operands[checked].id];
      stand_in = eager::make_tensor(view.meta.dtype, view.meta.sizes, view.meta.strides, view.meta.offset,
                                    slots_[static_cast<size_t>(view.root_slot)].impl()->storage);
      operands[checked] = eager::Operand(stand_in);
    }
    try {
      eager::check_operand(call, eager::value_check(call), checked);
    } catch (const Error&) {
      return false;
    }
  }
  return true;
}

void Recorder::keep_run(const Variant* variant) {
  SegmentRun& run = runs_.emplace_back();
  run.variant = variant;
  run.path = {point_->id, live_, aliases_, {}};
  collect_sites(path_, run.path.sites);
  run.slots = slots_;
  run.written = point_->written_slots;
  run.scalars = scalars_;
  for (uint32_t value : live_) run.live.push_back(values_[value]->handle);
  for (const Node* node : path_)
    if (ir::info(node->op).has(ir::kRandom))
      run.draws.push_back({node->operands[node->operands.size() - 2].id, eager::count(node->outputs[0].meta.sizes)});
  if (!variant) return;
  std::vector<eager::Operand> operands;
  for (const HostCheck& check : variant->binding.host_checks) {
    const Node& node = *path_[check.node];
    static_cast<void>(call_of(node, operands));
    const size_t checked = check.operand;
    if (check.sizes_only || check.counter >= 0 || operands[checked].kind != eager::Operand::Kind::tensor) continue;
    RunCheck& kept = run.checks.emplace_back();
    kept.op = node.op;
    kept.attrs = node.attrs;
    kept.checked = checked;
    kept.location = node.location;
    for (const eager::Operand& operand : operands) {
      if (operand.kind != eager::Operand::Kind::tensor) {
        kept.operands.emplace_back();
        continue;
      }
      const detail::TensorImpl& impl = *operand.tensor->impl();
      kept.operands.push_back(eager::make_tensor(impl.dtype, impl.sizes, impl.strides, 0, nullptr));
    }
    const OperandRecord& record = node.operands[checked];
    bool view = record.kind == OperandRecord::Kind::value;
    kept.slot = view ? static_cast<uint32_t>(values_[record.id]->root_slot) : record.id;
    if (view) kept.offset = values_[record.id]->meta.offset - slots_[kept.slot].impl()->offset;
  }
}

bool RunCheck::passes(const Tensor& slot) const {
  WithoutInterceptors direct;
  const detail::TensorImpl &shape = *operands[checked].impl(), &memory = *slot.impl();
  Tensor stand_in = eager::make_tensor(shape.dtype, shape.sizes, shape.strides, memory.offset + offset, memory.storage);
  SmallVector<eager::Operand, 8> list;
  for (size_t i = 0; i < operands.size(); ++i)
    list.push_back(i == checked ? eager::Operand(stand_in) : eager::Operand(operands[i]));
  const eager::OpCall call{op, false, list, attrs, location};
  try {
    eager::check_operand(call, eager::value_check(call), checked);
  } catch (const Error&) {
    return false;
  }
  return true;
}

void Recorder::fall_back(const std::string& reason) {
  function_->note_fallback(reason, path_.front()->op, path_.front()->location);
  run_one_by_one(reason);
}

void Recorder::run_one_by_one(std::string why) {
  if (keep_runs) {
    SegmentRun& run = runs_.emplace_back();
    run.one_by_one = true;
    run.why = std::move(why);
  }
  WithoutInterceptors direct;
  struct Release {
    Recorder* recorder;
    ~Release() { recorder->release_values(); }
  } release{this};
  std::vector<eager::Operand> operands;
  std::vector<Tensor> outputs;
  for (const Node* node : path_) {
    outputs.assign(node->outputs.size(), Tensor());
    const Place place(*node);
    eager::execute(call_of(*node, operands), outputs);
    if (node->inplace) continue;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const detail::TensorImpl& result = *outputs[i].impl();
      give_storage(node->outputs[i].handle.impl(), result.storage, result.offset);
      if (node->outputs[i].root_slot < 0) made_.push_back(result.storage->id());
    }
  }
}

// Values that became real, or that an error left without memory while somebody holds them, are no longer the tree's.
void Recorder::release_values() {
  for (OutputRecord* value : values_) {
    detail::TensorImpl* impl = value->handle.impl();
    if (impl && (impl->storage || impl->references.load(std::memory_order_acquire) > 1)) value->handle = Tensor();
  }
}

}  // namespace ingot::trace
