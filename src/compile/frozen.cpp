#include "compile/frozen.h"

#include <algorithm>

#include "base/log.h"
#include "base/scratch_array.h"
#include "eager/dispatch.h"
#include "eager/random.h"
#include "runtime/storage.h"

namespace ingot::detail {
namespace {

std::string difference(const FrozenCall& a, const FrozenCall& b) {
  if (a.entry != b.entry || a.bound != b.bound) return "two calls with equal arguments ran different programs";
  if (a.draws != b.draws) return "two calls with equal arguments drew differently many random numbers";
  std::vector<uint64_t> expected = a.scalars;
  for (const trace::RunDraw& draw : a.draws) {
    bool again = a.scalars[draw.seed + 1] == b.scalars[draw.seed + 1] && draw.count > 0;
    if (again) return "the random numbers start anew in each call";
    for (size_t s : {draw.seed, draw.seed + 1}) expected[s] = b.scalars[s];
  }
  if (expected != b.scalars) return "a scalar changed between two calls with equal arguments";
  if (!(a.slots == b.slots)) return "the function used another captured tensor at its second call";
  if (!(a.result == b.result)) return "the result is put together differently at the second call";
  for (size_t i = 0; i < a.result_rest.size(); ++i)
    if (a.result_rest[i].bits != b.result_rest[i].bits || a.result_rest[i].text != b.result_rest[i].text)
      return "a number or text in the result changed between two calls with equal arguments";
  return {};
}

}  // namespace

LeafGuard::LeafGuard(const std::vector<Leaf>& leaves, size_t i)
    : kind(leaves[i].kind), bits(leaves[i].bits), text(leaves[i].text) {
  if (kind != Leaf::Kind::tensor || !leaves[i].tensor->defined()) return;
  const TensorImpl& impl = *leaves[i].tensor->impl();
  defined = true;
  dtype = impl.dtype;
  requires_grad = impl.requires_grad;
  sizes = impl.sizes;
  strides = impl.strides;
  storage = impl.storage ? impl.storage->id() : 0;
  for (size_t j = 0; j < i && same_as < 0; ++j)
    if (leaves[j].kind == Leaf::Kind::tensor && leaves[j].tensor->impl() == &impl) same_as = static_cast<int32_t>(j);
}

bool LeafGuard::holds(const std::vector<Leaf>& leaves, size_t i) const {
  const Leaf& leaf = leaves[i];
  if (leaf.kind != kind) return false;
  if (kind == Leaf::Kind::text) return leaf.text == text;
  if (kind != Leaf::Kind::tensor) return leaf.bits == bits;
  if (!leaf.tensor->defined()) return !defined;
  const TensorImpl& impl = *leaf.tensor->impl();
  size_t rank = sizes.size();
  if (!defined || impl.dtype != dtype || impl.requires_grad != requires_grad || !impl.storage ||
      impl.sizes.size() != rank)
    return false;
  const int64_t *want = sizes.data(), *have = impl.sizes.data();
  const int64_t *want_strides = strides.data(), *have_strides = impl.strides.data();
  for (size_t d = 0; d < rank; ++d)
    if (want[d] != have[d] || want_strides[d] != have_strides[d]) return false;
  return (!storage || impl.storage->id() == storage) &&
         (same_as < 0 || leaves[static_cast<size_t>(same_as)].tensor->impl() == &impl);
}

bool LeafGuard::equal_but_storage(const LeafGuard& other) const {
  return kind == other.kind && dtype == other.dtype && defined == other.defined &&
         requires_grad == other.requires_grad && same_as == other.same_as && sizes == other.sizes &&
         strides == other.strides && bits == other.bits && text == other.text;
}

Arguments::Arguments(const LeafList& list) {
  const std::vector<Leaf>& leaves = list.items();
  for (size_t i = 0; i < leaves.size(); ++i) {
    guards.emplace_back(leaves, i);
    tensors.push_back(leaves[i].kind == Leaf::Kind::tensor ? *leaves[i].tensor : Tensor());
  }
}

bool FrozenCall::holds(const LeafList& arguments, const eager::CodeLevel& now) const {
  if (level != now) return false;
  const std::vector<Leaf>& leaves = arguments.items();
  if (leaves.size() != guards.size()) return false;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (!guards[i].holds(leaves, i)) return false;
  for (const trace::RunCheck& check : checks)
    if (!check.passes(slot(check.slot, arguments))) return false;
  return true;
}

const Tensor& FrozenCall::slot(size_t number, const LeafList& arguments) const {
  const FrozenTensor& t = slots[number];
  return t.source == FrozenTensor::Source::argument ? *arguments.items()[t.number].tensor : t.captured;
}

void FrozenCall::run(const LeafList& arguments, std::span<Tensor> results) const {
  ScratchArray<runtime::Storage*, 16> storages(output_bytes.size());
  std::fill(storages.begin(), storages.end(), nullptr);
  ScratchArray<TensorImpl*, 16> made(live.size());
  std::fill(made.begin(), made.end(), nullptr);
  auto make = [&](size_t i) {
    TensorImpl* impl = new_impl();
    const trace::LiveValue& where = binding.live[i];
    impl->dtype = live[i].dtype;
    impl->sizes = live[i].sizes;
    impl->strides = live[i].strides;
    impl->offset = live[i].offset;
    runtime::Storage*& storage = storages[where.external ? 0 : where.number];
    if (where.external) {
      const TensorImpl& base = *slot(where.number, arguments).impl();
      impl->storage = base.storage;
      impl->storage->retain();
      impl->offset += base.offset;
    } else if (storage) {
      impl->storage = storage;
      impl->storage->retain();
    } else {
      impl->storage = storage = runtime::Storage::allocate(output_bytes[where.number]).detach();
    }
    return impl;
  };
  for (size_t i = 0; i < result.size(); ++i) {
    const FrozenTensor& t = result[i];
    if (t.source == FrozenTensor::Source::live) {
      TensorImpl*& impl = made[t.number];
      if (!impl) impl = make(t.number);
      results[i] = Tensor::of(impl);
    } else {
      results[i] = t.source == FrozenTensor::Source::argument ? *arguments.items()[t.number].tensor : t.captured;
    }
  }
  // Each random op takes its draws as the callable would.
  ScratchArray<uint64_t, 32> fresh(draws.empty() ? 0 : scalars.size());
  std::copy_n(scalars.begin(), fresh.size(), fresh.begin());
  for (const trace::RunDraw& draw : draws) {
    eager::Draws taken = eager::take_draws(draw.count);
    fresh[draw.seed] = taken.seed;
    fresh[draw.seed + 1] = taken.offset;
  }
  if (!entry) return;
  size_t count = binding.input_slots.size();
  ScratchArray<void*, 32> inputs(count);
  ScratchArray<void*, 16> outputs(storages.size());
  ScratchArray<runtime::InputIdentity, 32> identities(count);
  for (size_t i = 0; i < count; ++i) {
    const TensorImpl& impl = *slot(binding.input_slots[i], arguments).impl();
    inputs[i] = static_cast<char*>(impl.storage->data()) + impl.offset * size_of(impl.dtype);
    identities[i] = {impl.storage->id(), impl.storage->version()};
  }
  for (size_t i = 0; i < storages.size(); ++i) outputs[i] = storages[i]->data();
  entry->compiled->loaded().run(
      *bound, {inputs, identities, outputs,
               draws.empty() ? std::span<const uint64_t>(scalars) : std::span<const uint64_t>(fresh)});
  entry->hits.fetch_add(1, std::memory_order_relaxed);
}

Freezer::~Freezer() {
  for (const FrozenCall* call = frozen_.load(); call;) {
    const FrozenCall* next = call->next;
    delete call;
    call = next;
  }
}

const FrozenCall* Freezer::find(const LeafList& arguments, std::optional<Numerics> own) const {
  eager::NumericsScope scope(own);
  const eager::CodeLevel level = eager::code_level();
  for (const FrozenCall* call = frozen_.load(std::memory_order_acquire); call; call = call->next)
    if (call->holds(arguments, level)) return call;
  return nullptr;
}

void Freezer::refuse(std::string reason) {
  if (log_enabled(Topic::guards)) log(Topic::guards, "not frozen: " + reason);
  reason_ = std::move(reason);
  refused_.store(true, std::memory_order_relaxed);
  seen_once_.clear();
}

// The two calls agree: what both saw of an argument's identity stays guarded, the rest may be any tensor.
void Freezer::publish(std::unique_ptr<FrozenCall> call, const FrozenCall& before) {
  for (size_t i = 0; i < call->guards.size(); ++i)
    if (call->guards[i].storage != before.guards[i].storage) call->guards[i].storage = 0;
  call->next = frozen_.load(std::memory_order_relaxed);
  frozen_.store(call.release(), std::memory_order_release);
}

void Freezer::observe(const Arguments& arguments, const trace::Recorder& recorder, const LeafList* result,
                      std::shared_ptr<const void> result_copy) {
  std::lock_guard lock(mutex_);
  if (refused()) return;
  if (recorder.broken()) return refuse("the callable asks for a value in the middle of the call");
  if (recorder.runs().size() > 1) return refuse("the call has more than one part");
  auto call = std::make_unique<FrozenCall>();
  call->guards = arguments.guards;
  {
    eager::NumericsScope scope(recorder.function().numerics());
    call->level = eager::code_level();
  }
  auto source_of = [&](const Tensor& t) {
    FrozenTensor source;
    for (size_t i = 0; i < arguments.tensors.size(); ++i)
      if (t.defined() && arguments.tensors[i].is_same(t)) {
        source.number = i;
        return source;
      }
    source.source = FrozenTensor::Source::captured;
    source.captured = t;
    return source;
  };
  std::vector<Tensor> live;
  if (!recorder.runs().empty()) {
    const trace::SegmentRun& run = recorder.runs()[0];
    if (run.one_by_one) {
      if (!recorder.function().background()) refuse("the call did not run as one program");
      return;
    }
    call->draws = run.draws;
    call->scalars = run.scalars;
    if (run.variant) {
      for (const trace::OutputTarget& target : run.variant->binding.outputs)
        if (target.kind == trace::OutputTarget::Kind::write_back)
          return refuse("the callable writes to tensors from outside");
        else if (target.kind == trace::OutputTarget::Kind::failed)
          return refuse("values that the call computes are checked");
      call->checks = run.checks;
      call->entry = run.variant->entry;
      call->bound = run.variant->bound;
      call->binding = run.variant->binding;
      call->output_bytes = run.variant->output_bytes;
      for (const Tensor& t : run.slots) call->slots.push_back(source_of(t));
      live = run.live;
      for (size_t i = 0; i < live.size(); ++i) {
        const TensorImpl& impl = *live[i].impl();
        const trace::LiveValue& where = call->binding.live[i];
        int64_t base = where.external ? run.slots[where.number].impl()->offset : 0;
        call->live.push_back({impl.dtype, impl.sizes, impl.strides, impl.offset - base});
      }
    }
  }
  std::vector<bool> returned(live.size(), false);
  if (result)
    for (size_t i = 0; i < result->items().size(); ++i) {
      const Leaf& leaf = result->items()[i];
      if (leaf.kind != Leaf::Kind::tensor) {
        call->result_rest.emplace_back(result->items(), i);
        continue;
      }
      auto found = std::find_if(live.begin(), live.end(), [&](const Tensor& t) { return t.is_same(*leaf.tensor); });
      if (found == live.end()) {
        call->result.push_back(source_of(*leaf.tensor));
        continue;
      }
      FrozenTensor source;
      source.source = FrozenTensor::Source::live;
      source.number = static_cast<size_t>(found - live.begin());
      returned[source.number] = true;
      call->result.push_back(std::move(source));
    }
  if (std::find(returned.begin(), returned.end(), false) != returned.end())
    return refuse("a tensor that the call computed escaped by another way than its result");
  call->result_copy = std::move(result_copy);

  auto like = [&](const FrozenCall& other) {
    return other.level == call->level &&
           std::equal(other.guards.begin(), other.guards.end(), call->guards.begin(), call->guards.end(),
                      [](const LeafGuard& a, const LeafGuard& b) { return a.equal_but_storage(b); });
  };
  for (const FrozenCall* known = frozen_.load(); known; known = known->next)
    if (like(*known) && difference(*known, *call).empty()) return publish(std::move(call), *known);
  auto before = std::find_if(seen_once_.begin(), seen_once_.end(), [&](auto& seen) { return like(*seen); });
  if (before == seen_once_.end()) {
    seen_once_.push_back(std::move(call));
    return;
  }
  if (std::string why = difference(**before, *call); !why.empty()) return refuse(std::move(why));
  publish(std::move(call), **before);
  seen_once_.erase(before);
}

std::string Freezer::state() const {
  std::lock_guard lock(mutex_);
  if (refused()) return "refused: " + reason_;
  size_t count = 0;
  for (const FrozenCall* call = frozen_.load(std::memory_order_acquire); call; call = call->next) ++count;
  return std::to_string(count) + " frozen, " + std::to_string(seen_once_.size()) + " seen once";
}

}  // namespace ingot::detail
