#include "compile/frozen_call.h"

#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "base/hot.h"
#include "base/scratch_array.h"
#include "eager/call/dispatch.h"
#include "eager/ops/generator.h"
#include "runtime/bound_program.h"
#include "runtime/memory/donation.h"
#include "runtime/memory/storage.h"
#include "runtime/thread_pool.h"
#include "trace/write_back.h"

namespace ingot::detail {

LeafGuard::LeafGuard(std::span<const Leaf> leaves, size_t i)
    : kind(leaves[i].kind), bits(leaves[i].bits), text(leaves[i].text()) {
  if (kind != Leaf::Kind::tensor || !leaves[i].tensor()->defined()) return;
  const TensorImpl& impl = *leaves[i].tensor()->impl();
  tensor = eager::TensorGuard(impl);
  if (impl.storage) storage = impl.storage->id(), offset = impl.offset;
  for (size_t j = 0; j < i && same_as < 0; ++j)
    if (leaves[j].kind == Leaf::Kind::tensor && leaves[j].tensor()->impl() == &impl) same_as = static_cast<int32_t>(j);
}

bool LeafGuard::holds(std::span<const Leaf> leaves, size_t i) const {
  const Leaf& leaf = leaves[i];
  if (leaf.kind != kind) return false;
  if (kind == Leaf::Kind::text) return leaf.text() == text;
  if (kind != Leaf::Kind::tensor) return leaf.bits == bits;
  if (!leaf.tensor()->defined()) return !tensor.facts.tensor();
  const TensorImpl& impl = *leaf.tensor()->impl();
  if (!tensor.equals(impl)) return false;
  return identity_holds(impl) && (same_as < 0 || leaves[static_cast<size_t>(same_as)].tensor()->impl() == &impl);
}

bool LeafGuard::identity_holds(const TensorImpl& impl) const {
  return !storage || (impl.storage->id() == storage && impl.offset == offset);
}

bool LeafGuard::equal_but_storage(const LeafGuard& other) const {
  return kind == other.kind && tensor == other.tensor && same_as == other.same_as && bits == other.bits &&
         text == other.text;
}

void keep_common_identities(std::vector<LeafGuard>& guards, const std::vector<LeafGuard>& others) {
  for (size_t i = 0; i < guards.size(); ++i)
    if (!guards[i].same_identity(others[i])) guards[i].forget_identity();
}

uint64_t hash_of(const LeafList& list) {
  uint64_t hash = list.items().size();
  for (const Leaf& leaf : list.items()) {
    const uint64_t kind = static_cast<uint64_t>(leaf.kind);
    if (leaf.kind == Leaf::Kind::text) {
      hash = hash_text(leaf.text(), hash ^ kind);
    } else if (leaf.kind != Leaf::Kind::tensor) {
      hash = hash_combine(hash ^ kind, leaf.bits);
    } else if (leaf.tensor()->defined()) {
      const TensorImpl& impl = *leaf.tensor()->impl();
      hash ^= 1 + static_cast<uint64_t>(impl.dtype);
      for (size_t d = 0; d < impl.sizes.size(); ++d)
        hash = hash_mix(hash ^ static_cast<uint64_t>(impl.sizes[d]) ^ 0x9e3779b97f4a7c15ull,
                        static_cast<uint64_t>(impl.strides[d]) ^ 0xe7037ed1a0b428dbull);
    }
  }
  return hash;
}

Arguments::Arguments(const LeafList& list, std::shared_ptr<const ModuleWatch> held)
    : hash(hash_of(list)), watch(std::move(held)) {
  const std::span<const Leaf> leaves = list.items();
  for (size_t i = 0; i < leaves.size(); ++i) {
    guards.emplace_back(leaves, i);
    tensors.push_back(leaves[i].kind == Leaf::Kind::tensor ? *leaves[i].tensor() : Tensor());
  }
}

INGOT_HOT bool FrozenCall::holds(const LeafList& arguments, const CallKey& now) const {
  if (key != now) return false;
  const std::span<const Leaf> leaves = arguments.items();
  if (leaves.size() != guards.size()) return false;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (!guards[i].holds(leaves, i)) return false;
  for (const trace::SlotCheck& check : checks)
    if (!check.passes(slot(check.slot, arguments))) return false;
  // A captured tensor that requires grad by now would put the call on the tape.
  if (key.gradients)
    for (const FrozenTensor& s : slots)
      if (s.source == FrozenTensor::Source::captured && s.captured.requires_grad() && !s.tracked) return false;
  return written.empty() || same_aliases(arguments);
}

// Where something is written, what else is the same memory decides what the call does.
bool FrozenCall::same_aliases(const LeafList& arguments) const {
  ScratchArray<const TensorImpl*, 32> impls(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) impls[i] = slot(i, arguments).impl();
  std::vector<uint32_t> aliases;
  return trace::find_aliases(impls, written, aliases) && aliases == path.aliases;
}

bool FrozenCall::current() const { return !bound || bound->threads == num_threads(); }

INGOT_HOT const Tensor& FrozenCall::slot(size_t number, const LeafList& arguments) const {
  const FrozenTensor& t = slots[number];
  return t.source == FrozenTensor::Source::argument ? *arguments.items()[t.number].tensor() : t.captured;
}

INGOT_HOT bool FrozenCall::run(const LeafList& arguments, std::span<Tensor> results) const {
  ScratchArray<runtime::Storage*, 16> storages(output_bytes.size());
  std::fill(storages.begin(), storages.end(), nullptr);
  ScratchArray<TensorImpl*, 16> made(live.size());
  std::fill(made.begin(), made.end(), nullptr);
  auto storage_of = [&](const trace::LiveValue& where) {
    if (where.external) {
      runtime::Storage* storage = slot(where.number, arguments).impl()->storage;
      storage->retain();
      return storage;
    }
    runtime::Storage*& storage = storages[where.number];
    if (storage)
      storage->retain();
    else
      storage = runtime::Storage::allocate(output_bytes[where.number]).detach();
    return storage;
  };
  auto make = [&](size_t i) {
    const trace::LiveValue& where = binding.live[i];
    runtime::Storage* storage = storage_of(where);
    TensorImpl* impl = new_impl();
    impl->storage = storage;
    impl->dtype = live[i].dtype;
    impl->sizes = live[i].sizes;
    impl->strides = live[i].strides;
    impl->offset = live[i].offset + (where.external ? slot(where.number, arguments).impl()->offset : 0);
    return impl;
  };
  for (size_t i = 0; i < result.size(); ++i) {
    const FrozenTensor& t = result[i];
    if (t.source == FrozenTensor::Source::live) {
      TensorImpl*& impl = made[t.number];
      results[i] = impl ? Tensor::of(impl) : Tensor::first(impl = make(t.number));
    } else {
      results[i] = t.source == FrozenTensor::Source::argument ? *arguments.items()[t.number].tensor() : t.captured;
    }
  }
  // Each random op takes its draws as the callable would.
  ScratchArray<uint64_t, 32> fresh(draws.empty() ? 0 : scalars.size());
  std::copy_n(scalars.begin(), fresh.size(), fresh.begin());
  for (const trace::SegmentDraw& draw : draws) {
    eager::Draws taken = eager::take_draws(draw.count);
    fresh[draw.seed] = taken.seed;
    fresh[draw.seed + 1] = taken.offset;
  }
  if (!entry) return true;
  ScratchArray<void*, 16> outputs(storages.size());
  for (size_t i = 0; i < storages.size(); ++i) outputs[i] = storages[i] ? storages[i]->data() : nullptr;
  const auto numbers = draws.empty() ? std::span<const uint64_t>(scalars) : std::span<const uint64_t>(fresh);
  if (!run_program(arguments, outputs, numbers)) {
    std::fill(results.begin(), results.end(), Tensor());
    return false;
  }
  entry->hits.fetch_add(1, std::memory_order_relaxed);
  return true;
}

INGOT_HOT bool FrozenCall::run_program(const LeafList& arguments, std::span<void*> outputs,
                                       std::span<const uint64_t> numbers) const {
  const size_t count = binding.input_slots.size();
  ScratchArray<void*, 32> inputs(count);
  ScratchArray<runtime::InputIdentity, 32> identities(bound->asks_identities() ? count : 0);
  for (size_t i = 0; i < count; ++i) {
    const TensorImpl& impl = *slot(binding.input_slots[i], arguments).impl();
    inputs[i] = static_cast<char*>(impl.storage->data()) + impl.offset * size_of(impl.dtype);
    if (identities.size()) identities[i] = runtime::InputIdentity::of(*impl.storage);
  }
  if (written.empty() && !refuses) {
    entry->loaded->run(*bound, {inputs, identities, outputs, numbers});
    return true;
  }
  // What is written back lies in memory of its own until then, unless the program writes it where it belongs. (One
  // that may refuse does not.)
  using Kind = trace::OutputTarget::Kind;
  std::vector<runtime::StoragePtr> temporary(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const trace::OutputTarget& target = binding.outputs[i];
    if (target.kind != Kind::write_back && target.kind != Kind::failed) continue;
    if (target.kind == Kind::write_back) outputs[i] = trace::donated_memory(target, slot(target.number, arguments));
    if (outputs[i]) continue;
    temporary[i] = runtime::Storage::allocate(output_bytes[i]);
    outputs[i] = temporary[i]->data();
  }
  const runtime::CallData data{inputs, identities, outputs, numbers};
  if (written.empty())
    entry->loaded->run(*bound, data);
  else
    runtime::run_in_place(*entry->loaded, *bound, data, output_bytes);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (binding.outputs[i].kind == Kind::failed && *static_cast<const uint8_t*>(outputs[i])) return false;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const trace::OutputTarget& target = binding.outputs[i]; target.kind == Kind::write_back)
      for (uint32_t s : written)
        if (trace::first_alias(path.aliases[s]) == target.number)
          trace::write_back(target, slot(s, arguments), std::move(temporary[i]));
  return true;
}

int64_t FrozenCall::bytes() const {
  auto of = [](const auto& list) { return static_cast<int64_t>(list.size() * sizeof(list[0])); };
  int64_t bytes = static_cast<int64_t>(sizeof *this) + of(guards) + of(binding.input_slots) + of(binding.outputs) +
                  of(binding.live) + of(binding.host_checks) + of(slots) + of(scalars) + of(draws) + of(output_bytes) +
                  of(live) + of(result) + of(form.rest) + of(checks) + of(path.live) + of(path.aliases) +
                  of(path.sites) + of(written);
  for (const LeafGuard& guard : guards) bytes += static_cast<int64_t>(guard.text.size());
  for (const trace::SlotCheck& check : checks) bytes += of(check.attrs) + of(check.operands);
  return bytes;
}

namespace {

std::vector<std::pair<size_t, int64_t>> sharing_of(const std::vector<LeafGuard>& guards) {
  std::vector<std::pair<size_t, int64_t>> sharing;
  std::unordered_map<uint64_t, size_t> first;
  for (size_t i = 0; i < guards.size(); ++i) {
    const size_t other = guards[i].storage ? first.try_emplace(guards[i].storage, i).first->second : i;
    sharing.emplace_back(other, guards[i].offset - guards[other].offset);
  }
  return sharing;
}

}  // namespace

std::shared_ptr<FrozenCall> build_frozen_call(const Arguments& arguments, const CallKey& key,
                                              const trace::Observation& observation, std::span<const Tensor> result,
                                              ResultForm form, std::string* refusal) {
  auto no = [&](std::string why) {
    *refusal = std::move(why);
    return nullptr;
  };
  if (!observation.break_reason().empty()) return no("the call is computed in parts: " + observation.break_reason());
  if (observation.segments().size() > 1) return no("the call is computed in parts");
  auto call = std::make_shared<FrozenCall>();
  call->hash = arguments.hash;
  call->key = key;
  call->guards = arguments.guards;
  call->sharing = sharing_of(arguments.guards);
  call->watch = arguments.watch;
  bool own_numbers = false;
  auto source_of = [&](const Tensor& t) {
    FrozenTensor source;
    for (size_t i = 0; i < arguments.tensors.size(); ++i)
      if (t.defined() && arguments.tensors[i].is_same(t)) {
        source.number = i;
        return source;
      }
    source.source = FrozenTensor::Source::captured;
    source.captured = t;
    source.tracked = t.defined() && t.requires_grad();
    if (t.defined() && t.impl()->storage) {
      source.storage = t.impl()->storage->id();
      source.offset = t.impl()->offset;
      own_numbers = own_numbers || observation.is_new(*t.impl()->storage);
    }
    return source;
  };
  std::vector<Tensor> live;
  if (!observation.segments().empty()) {
    const trace::ObservedSegment& seen = observation.segments()[0];
    if (seen.one_by_one) return no(seen.why.empty() ? "" : "the call did not run as one program: " + seen.why);
    call->draws = seen.draws;
    call->scalars = seen.scalars;
    call->path = seen.path;
    if (seen.variant) {
      call->refuses = std::ranges::any_of(seen.variant->binding.outputs, [](const trace::OutputTarget& target) {
        return target.kind == trace::OutputTarget::Kind::failed;
      });
      // What was drawn before a refusal would be drawn again.
      if (call->refuses && !seen.draws.empty())
        return no("values that the call computes are checked, as positions or divisors, and it draws random numbers");
      call->checks = seen.checks;
      call->entry = seen.variant->entry;
      call->bound = seen.variant->bound;
      call->binding = seen.variant->binding;
      call->output_bytes = seen.variant->output_bytes;
      call->written = seen.written;
      for (const Tensor& t : seen.slots) call->slots.push_back(source_of(t));
      live = seen.live;
      for (size_t i = 0; i < live.size(); ++i) {
        const TensorImpl& impl = *live[i].impl();
        const trace::LiveValue& where = call->binding.live[i];
        int64_t base = where.external ? seen.slots[where.number].impl()->offset : 0;
        call->live.push_back({impl.dtype, impl.sizes, impl.strides, impl.offset - base});
      }
    }
  }
  std::vector<bool> returned(live.size(), false);
  for (const Tensor& tensor : result) {
    auto found = std::find_if(live.begin(), live.end(), [&](const Tensor& t) { return t.is_same(tensor); });
    if (found == live.end()) {
      call->result.push_back(source_of(tensor));
      continue;
    }
    FrozenTensor source;
    source.source = FrozenTensor::Source::live;
    source.number = static_cast<size_t>(found - live.begin());
    returned[source.number] = true;
    call->result.push_back(std::move(source));
  }
  if (own_numbers)
    return no("a tensor is made outside the ops while the callable runs (tensor(...), from_blob, a file)");
  if (std::find(returned.begin(), returned.end(), false) != returned.end())
    return no("a tensor that the call computed escaped by another way than its result");
  call->form = std::move(form);
  return call;
}

void let_go_of_inputs(FrozenCall& call) {
  for (FrozenTensor& slot : call.slots) slot.captured = Tensor();
}

std::string difference(const FrozenCall& a, const FrozenCall& b) {
  const bool same_program = a.entry && a.entry == b.entry && a.bound && b.bound && a.bound->symbols == b.bound->symbols;
  if (!same_program && a.path != b.path) return "two calls with equal arguments called other ops";
  if (a.draws != b.draws) return "two calls with equal arguments drew differently many random numbers";
  std::vector<uint64_t> expected = a.scalars;
  for (const trace::SegmentDraw& draw : a.draws)
    for (size_t s : {draw.seed, draw.seed + 1}) expected[s] = b.scalars[s];
  if (expected != b.scalars) return "a scalar changed between two calls with equal arguments";
  // Sizes and strides of inputs are part of the path, or of the program with its symbols.
  if (!(a.slots == b.slots)) return "the function used another captured tensor at its second call";
  const bool same_result =
      std::equal(a.result.begin(), a.result.end(), b.result.begin(), b.result.end(),
                 [](const FrozenTensor& x, const FrozenTensor& y) { return x == y && x.captured.is_same(y.captured); });
  if (!same_result) return "the result is put together differently at the second call";
  const bool same_rest = std::equal(a.form.rest.begin(), a.form.rest.end(), b.form.rest.begin(), b.form.rest.end(),
                                    [](const LeafGuard& x, const LeafGuard& y) { return x.equal_but_storage(y); });
  if (!same_rest) return "a number or text in the result changed between two calls with equal arguments";
  return {};
}

}  // namespace ingot::detail
