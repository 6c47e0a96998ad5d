#include "compile/frozen.h"

#include <algorithm>

#include "base/log.h"
#include "base/scratch_array.h"
#include "eager/dispatch.h"
#include "eager/random.h"
#include "runtime/storage.h"

namespace ingot::detail {
namespace {

constexpr size_t kMostGeneral = 8;

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
    identities[i] = runtime::InputIdentity::of(*impl.storage);
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
  publish(std::move(call));
}

void Freezer::publish(std::unique_ptr<FrozenCall> call) {
  ++published_;
  call->next = frozen_.load(std::memory_order_relaxed);
  frozen_.store(call.release(), std::memory_order_release);
}

namespace {

/// The call that the recorder has just run, ready to be repeated; null, with the reason, if it cannot be.
std::unique_ptr<FrozenCall> build(const Arguments& arguments, const trace::Recorder& recorder,
                                  std::span<const Tensor> result, std::vector<LeafGuard> result_rest,
                                  std::shared_ptr<const void> result_copy, std::string* refusal) {
  auto no = [&](const char* why) {
    *refusal = why;
    return nullptr;
  };
  if (recorder.broken()) return no("the callable asks for a value in the middle of the call");
  if (recorder.runs().size() > 1) return no("the call has more than one part");
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
    if (run.one_by_one)
      return no(recorder.function().background() ? "" : "the call did not run as one program");  // not yet, or never
    call->draws = run.draws;
    call->scalars = run.scalars;
    if (run.variant) {
      for (const trace::OutputTarget& target : run.variant->binding.outputs)
        if (target.kind == trace::OutputTarget::Kind::write_back)
          return no("the callable writes to tensors from outside");
        else if (target.kind == trace::OutputTarget::Kind::failed)
          return no("values that the call computes are checked");
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
  if (std::find(returned.begin(), returned.end(), false) != returned.end())
    return no("a tensor that the call computed escaped by another way than its result");
  call->result_rest = std::move(result_rest);
  call->result_copy = std::move(result_copy);
  return call;
}

/// True if leaf i is as it was seen but for the sizes of free dims; all dims are free where `free` is null.
bool fits(const LeafGuard& seen, const std::vector<bool>* free, const std::vector<Leaf>& leaves, size_t i) {
  const LeafGuard now(leaves, i);
  if (seen.kind != now.kind || seen.dtype != now.dtype || seen.defined != now.defined ||
      seen.requires_grad != now.requires_grad || seen.same_as != now.same_as || seen.bits != now.bits ||
      seen.text != now.text || seen.sizes.size() != now.sizes.size() || (seen.storage && seen.storage != now.storage))
    return false;
  for (size_t d = 0; free && d < seen.sizes.size(); ++d)
    if (!(*free)[d] && seen.sizes[d] != now.sizes[d]) return false;
  return trace::classify(seen.sizes, seen.strides) == trace::classify(now.sizes, now.strides);
}

}  // namespace

bool GeneralCall::holds(const LeafList& arguments, const eager::CodeLevel& now) const {
  const std::vector<Leaf>& leaves = arguments.items();
  if (level != now || leaves.size() != guards.size()) return false;
  bool any = false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!fits(guards[i], &free[i], leaves, i)) return false;
    any = any || std::find(free[i].begin(), free[i].end(), true) != free[i].end();
  }
  return any;
}

std::vector<std::shared_ptr<const GeneralCall>> Freezer::find_general(const LeafList& arguments,
                                                                      std::optional<Numerics> own) const {
  eager::NumericsScope scope(own);
  const eager::CodeLevel level = eager::code_level();
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const GeneralCall>> found;
  for (const auto& call : general_)
    if (call->holds(arguments, level)) found.push_back(call);
  return found;
}

namespace {

/// Runs the script of a call with the recorder. False, with nothing computed, where it would go another way.
bool run_script(const GeneralCall& call, const Arguments& arguments, trace::Recorder& recorder, bool counted,
                std::vector<Tensor>& results) {
  SmallVector<const TensorImpl*, 16> impls;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < arguments.guards.size(); ++i)
    if (arguments.guards[i].kind == Leaf::Kind::tensor) {
      tensors.push_back(arguments.tensors[i]);
      impls.push_back(arguments.tensors[i].impl());
    }
  recorder.keep_runs = true;
  recorder.forget_runs();
  recorder.begin(impls, counted);
  results.assign(call.result.size(), Tensor());
  try {
    if (!call.script.repeat(tensors, call.result, results)) {
      recorder.discard();
      return false;
    }
  } catch (const Error&) {
    recorder.discard();  // the callable is to throw it
    return false;
  }
  recorder.finish();
  return true;
}

}  // namespace

bool Freezer::repeat(const GeneralCall& call, const Arguments& arguments, trace::Recorder& recorder,
                     std::vector<Tensor>& results) {
  if (!run_script(call, arguments, recorder, true, results)) return false;
  constexpr size_t kMost = 256;  // sizes beyond these are repeated by the script each time
  std::string refusal;
  auto frozen = build(arguments, recorder, results, call.result_rest, call.result_copy, &refusal);
  std::lock_guard lock(mutex_);
  if (frozen && published_ < kMost && !refused()) {
    for (size_t i = 0; i < frozen->guards.size(); ++i) frozen->guards[i].storage = call.guards[i].storage;
    publish(std::move(frozen));
  }
  return true;
}

// A call with other sizes than those before: where a script foretells it, its sizes are free from now on.
void Freezer::learn(const Arguments& arguments, const FrozenCall& seen, trace::Recorder& recorder) {
  LeafList list;
  for (size_t i = 0; i < arguments.guards.size(); ++i) {
    const LeafGuard& g = arguments.guards[i];
    if (g.kind == Leaf::Kind::tensor)
      list.add(arguments.tensors[i]);
    else if (g.kind == Leaf::Kind::number)
      list.add_number(g.bits);
    else if (g.kind == Leaf::Kind::text)
      list.add_text(g.text);
    else
      list.add_length(g.bits);
  }
  const std::vector<Leaf>& leaves = list.items();
  for (auto& known : general_) {
    bool alike = known->level == seen.level && leaves.size() == known->guards.size();
    for (size_t i = 0; alike && i < leaves.size(); ++i) alike = fits(known->guards[i], nullptr, leaves, i);
    if (!alike) continue;
    std::vector<Tensor> results;
    std::string refusal;
    if (!run_script(*known, arguments, recorder, false, results)) continue;
    auto again = build(arguments, recorder, results, known->result_rest, known->result_copy, &refusal);
    if (!again || !difference(seen, *again).empty()) continue;
    auto freer = std::make_shared<GeneralCall>(*known);
    for (size_t i = 0; i < leaves.size(); ++i)
      for (size_t d = 0; d < freer->free[i].size(); ++d)
        if (seen.guards[i].sizes[d] != freer->guards[i].sizes[d]) freer->free[i][d] = true;
    known = std::move(freer);
    return;
  }
}

void Freezer::observe(const Arguments& arguments, trace::Recorder& recorder, const LeafList* result,
                      std::vector<eager::ScriptTensor> sources, std::shared_ptr<const void> result_copy) {
  std::lock_guard lock(mutex_);
  if (refused()) return;
  std::vector<Tensor> tensors;
  std::vector<LeafGuard> rest;
  for (size_t i = 0; result && i < result->items().size(); ++i)
    if (const Leaf& leaf = result->items()[i]; leaf.kind == Leaf::Kind::tensor)
      tensors.push_back(*leaf.tensor);
    else
      rest.emplace_back(result->items(), i);
  std::string refusal;
  auto call = build(arguments, recorder, tensors, std::move(rest), std::move(result_copy), &refusal);
  if (!call) {
    if (!refusal.empty()) refuse(std::move(refusal));
    return;
  }
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
    return learn(arguments, *seen_once_.back(), recorder);
  }
  if (std::string why = difference(**before, *call); !why.empty()) return refuse(std::move(why));
  if (recorder.script().only_here().empty() && general_.size() < kMostGeneral) {
    auto general = std::make_shared<GeneralCall>();
    general->guards = call->guards;
    for (size_t i = 0; i < general->guards.size(); ++i) {
      if (general->guards[i].storage != (*before)->guards[i].storage) general->guards[i].storage = 0;
      general->free.emplace_back(general->guards[i].sizes.size(), false);
    }
    general->level = call->level;
    general->script = recorder.script();
    general->result = std::move(sources);
    general->result_rest = call->result_rest;
    general->result_copy = call->result_copy;
    general_.push_back(std::move(general));
  }
  publish(std::move(call), **before);
  seen_once_.erase(before);
}

std::string Freezer::state() const {
  std::lock_guard lock(mutex_);
  if (refused()) return "refused: " + reason_;
  size_t count = 0;
  for (const FrozenCall* call = frozen_.load(std::memory_order_acquire); call; call = call->next) ++count;
  size_t sizes = 0;
  for (const auto& call : general_)
    for (const std::vector<bool>& dims : call->free)
      sizes += static_cast<size_t>(std::count(dims.begin(), dims.end(), true));
  return std::to_string(count) + " frozen, " + std::to_string(seen_once_.size()) + " seen once" +
         (sizes ? ", " + std::to_string(sizes) + " sizes free" : "");
}

}  // namespace ingot::detail
