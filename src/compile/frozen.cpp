#include "compile/frozen.h"

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "base/hot.h"
#include "base/log.h"
#include "compile/module_watch.h"
#include "runtime/bound_program.h"
#include "trace/recorder.h"

namespace ingot::detail {
namespace {

constexpr size_t kMostSeen = 256, kMostGeneral = 16;
constexpr size_t kMostUntried = 4;   // scripts that foretold nothing yet: each holds the tensors that were captured
constexpr uint32_t kPatience = 256;  // fruitless observations before not every call is observed
constexpr uint32_t kHopeless = 8 * kPatience;
constexpr int64_t kProbe = 256;  // of calls that run eagerly, one is recorded, to see whether they still are slight
constexpr int kMostWrong = 3;    // a script that was wrong as often is dropped
constexpr int kMostTried = 2;    // scripts that one call is compared with
constexpr int64_t kMostWritten = 16 << 20;  // bytes that a call writes outside, which trying a script puts back

bool same_identities(const std::vector<LeafGuard>& a, const std::vector<LeafGuard>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const LeafGuard& x, const LeafGuard& y) { return x.same_identity(y); });
}

/// True if an argument of one of two calls is a tensor that the callable captures in the other.
bool argument_is_captured(const FrozenCall& a, const FrozenCall& b) {
  auto captures = [](const FrozenCall& call, const LeafGuard& argument) {
    auto is = [&](const FrozenTensor& t) {
      return t.source == FrozenTensor::Source::captured && t.storage == argument.storage && t.offset == argument.offset;
    };
    return argument.storage && (std::any_of(call.slots.begin(), call.slots.end(), is) ||
                                std::any_of(call.result.begin(), call.result.end(), is));
  };
  return std::any_of(a.guards.begin(), a.guards.end(), [&](const LeafGuard& g) { return captures(b, g); }) ||
         std::any_of(b.guards.begin(), b.guards.end(), [&](const LeafGuard& g) { return captures(a, g); });
}

/// What a call wrote to tensors from outside.
std::vector<Tensor> writes_of(const trace::Observation& observation) {
  std::vector<Tensor> writes;
  for (const trace::ObservedSegment& segment : observation.segments())
    writes.insert(writes.end(), segment.writes.begin(), segment.writes.end());
  return writes;
}

int64_t bytes_of(std::span<const Tensor> tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.numel() * size_of(tensor.dtype());
  return bytes;
}

/// The leaves that arguments were made of.
LeafList leaves_of(const Arguments& arguments) {
  LeafList list;
  for (size_t i = 0; i < arguments.guards.size(); ++i) {
    const LeafGuard& g = arguments.guards[i];
    if (g.kind == Leaf::Kind::tensor)
      list.add(arguments.tensors[i]);
    else if (g.kind == Leaf::Kind::number)
      list.add_number(g.bits);
    else if (g.kind == Leaf::Kind::text)
      list.add_text(g.text, true);
    else
      list.add_length(g.bits);
  }
  return list;
}

}  // namespace

INGOT_HOT const FrozenCall* Freezer::find(const LeafList& arguments, const CallKey& key) {
  const FrozenCall* call = table_.find(arguments, key);
  return call && !call->current() ? bound_anew(*call) : call;
}

// What is cut for another number of threads gives the same bits, but leaves processors idle or has too many pieces.
const FrozenCall* Freezer::bound_anew(const FrozenCall& call) {
  auto copy = std::make_shared<FrozenCall>(call);
  copy->bound = call.entry->loaded->bind(call.bound->symbols);
  return put(copy, &call) ? copy.get() : &call;
}

bool Freezer::put(FrozenTable::Call call, const FrozenCall* instead) {
  FrozenTable::Garbage garbage;
  std::lock_guard lock(mutex_);
  return !refused_.load(std::memory_order_relaxed) && table_.put(std::move(call), instead, garbage);
}

// Primes: calls that differ in turn are all observed.
int64_t Freezer::observed_every() const {
  if (refused_.load(std::memory_order_relaxed)) return std::numeric_limits<int64_t>::max();
  const uint32_t fruitless = fruitless_.load(std::memory_order_relaxed);
  if (fruitless < kPatience) return 1;
  if (fruitless < 2 * kPatience) return 7;
  if (fruitless < kHopeless) return 61;
  return fruitless < 2 * kHopeless ? 509 : 4093;
}

Freezer::Way Freezer::way(bool may_be_eager) {
  const int64_t every = observed_every();
  if (every == 1) return Way::observed;
  const int64_t turn = passed_.fetch_add(1, std::memory_order_relaxed);
  const bool observed = turn % every == 0 && !refused_.load(std::memory_order_relaxed);
  if (!observed && may_be_eager && slight_and_hopeless() && turn % kProbe != 0) return Way::eager;
  not_eager_.fetch_add(1, std::memory_order_relaxed);
  return observed ? Way::observed : Way::recorded;
}

INGOT_HOT bool Freezer::eager_at_once() {
  if (!slight_and_hopeless() || knows()) return false;
  const int64_t turn = passed_.load(std::memory_order_relaxed);
  if (turn % kProbe == 0 || turn % observed_every() == 0) return false;
  passed_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Freezer::note_slight(bool slight) {
  if (slight_.load(std::memory_order_relaxed) != slight) slight_.store(slight, std::memory_order_relaxed);
}

bool Freezer::hopeless() const {
  return refused_.load(std::memory_order_relaxed) || fruitless_.load(std::memory_order_relaxed) >= kHopeless;
}

void Freezer::note_obstacle(std::string reason) {
  fruitless_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  if (reason == reason_) return;
  if (log_enabled(Topic::guards)) log(Topic::guards, "not frozen: " + reason);
  reason_ = std::move(reason);
}

/// Destroyed without the lock: it may hold the user's tensors.
struct Freezer::Learnt {
  FrozenTable::Garbage calls;
  std::vector<std::shared_ptr<FrozenCall>> seen;
  std::vector<General> general;
  std::shared_ptr<const ModuleWatch> watch;
};

Freezer::Learnt Freezer::forget() {
  Learnt learnt;
  table_.clear(learnt.calls);
  learnt.seen.swap(seen_once_);
  learnt.general.swap(general_);
  learnt.watch.swap(watch_);
  count_free();
  return learnt;
}

// What was learnt before is not believed any more either.
void Freezer::refuse(std::string reason) {
  note_obstacle(std::move(reason));
  Learnt learnt;
  std::lock_guard lock(mutex_);
  refused_.store(true, std::memory_order_relaxed);
  learnt = forget();
}

std::vector<std::shared_ptr<const GeneralCall>> Freezer::find_general(const LeafList& arguments,
                                                                      const CallKey& key) const {
  std::vector<General> found;
  if (!free_.load(std::memory_order_relaxed)) return found;
  std::lock_guard lock(mutex_);
  for (const General& call : general_)
    if (call->holds(arguments, key)) found.push_back(call);
  return found;
}

void Freezer::count_free() {
  free_ = static_cast<size_t>(
      std::count_if(general_.begin(), general_.end(), [](const General& call) { return call->any_free; }));
}

void Freezer::note_use(const GeneralCall& call) const {
  call.latest.store(uses_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

bool Freezer::repeat(const GeneralCall& call, const Arguments& arguments, trace::Recorder& recorder,
                     std::vector<Tensor>& results) {
  if (!call.repeat(arguments, recorder, results)) return false;
  note_use(call);
  std::string refusal;
  auto frozen = build_frozen_call(arguments, call.key, recorder.observation(), results, call.form, &refusal);
  if (frozen) {
    call.give_identities(*frozen, arguments);
    put(std::move(frozen), nullptr);
  }
  return true;
}

void Freezer::remember(std::shared_ptr<FrozenCall> call, const std::string& sizes_only) {
  let_go_of_inputs(*call);
  std::shared_ptr<FrozenCall> dropped;
  std::lock_guard lock(mutex_);
  sizes_only_ = sizes_only;
  if (seen_once_.size() < kMostSeen) {
    seen_once_.push_back(std::move(call));
    return;
  }
  // Any: of more calls than there is room for, taken in turn, each would go before it comes again.
  next_place_ = hash_combine(next_place_, call->hash);
  dropped = std::exchange(seen_once_[next_place_ % kMostSeen], std::move(call));
}

/// Its script is kept, to foretell calls of other sizes.
void Freezer::keep(const FrozenCall& call, eager::Script script, std::vector<eager::ScriptTensor> sources) {
  auto general = std::make_shared<GeneralCall>();
  general->key = call.key;
  general->watch = call.watch;
  general->guards = call.guards;
  for (const LeafGuard& guard : call.guards) general->free.emplace_back(guard.tensor.sizes.size(), false);
  general->script = std::move(script);
  general->result = std::move(sources);
  general->form = call.form;
  note_use(*general);
  General dropped;
  std::lock_guard lock(mutex_);
  if (general_.size() < kMostGeneral && general_.size() - free_ < kMostUntried) {
    general_.push_back(std::move(general));
  } else {
    auto oldest = std::min_element(general_.begin(), general_.end(), [](const General& a, const General& b) {
      return std::pair(a->any_free, a->latest.load()) < std::pair(b->any_free, b->latest.load());
    });
    dropped = std::exchange(*oldest, std::move(general));
  }
  count_free();
}

// A call with other sizes than those before: where a script foretells it, its sizes are free from now on.
Freezer::General Freezer::learn(const Arguments& arguments, const FrozenCall& seen, trace::Recorder& recorder,
                                std::string* sizes_only) {
  const LeafList list = leaves_of(arguments);
  std::vector<General> alike;
  {
    std::lock_guard lock(mutex_);
    for (const General& known : general_)
      if (known->watch == seen.watch && known->is_like(list, seen.key)) alike.push_back(known);
  }
  std::sort(alike.begin(), alike.end(), [](const General& a, const General& b) { return a->latest > b->latest; });
  const std::vector<Tensor> writes = writes_of(recorder.observation());
  int tried = 0;
  for (const General& known : alike) {
    std::vector<Tensor> results;
    std::string refusal;
    try {
      if (!known->try_out(arguments, recorder, writes, results)) {
        *sizes_only = "a size went through a plain number (int64_t n = x.size(0)), or decided what is computed";
        continue;
      }
    } catch (const Error&) {
      continue;  // memory ran out, or another thread wrote: the user's own call was right
    }
    auto again = build_frozen_call(arguments, seen.key, recorder.observation(), results, known->form, &refusal);
    std::shared_ptr<GeneralCall> freer;
    if (again && difference(seen, *again).empty()) {
      freer = std::make_shared<GeneralCall>(*known);
      freer->free_sizes(seen.guards);
      note_use(*freer);
    } else if (++known->wrong < kMostWrong) {
      if (++tried == kMostTried) break;
      continue;
    }
    std::lock_guard lock(mutex_);
    auto place = std::find(general_.begin(), general_.end(), known);
    if (place != general_.end() && freer) *place = freer;
    if (place != general_.end() && !freer) general_.erase(place);
    count_free();
    if (freer) return freer;
    if (++tried == kMostTried) break;
  }
  return nullptr;
}

void Freezer::observe(const Arguments& arguments, const CallKey& key, trace::Recorder& recorder,
                      ObservedResult result) {
  std::vector<Tensor> tensors;
  ResultForm form{{}, std::move(result.copy)};
  for (size_t i = 0; result.leaves && i < result.leaves->items().size(); ++i) {
    const Leaf& leaf = result.leaves->items()[i];
    if (leaf.borrowed) return note_obstacle("the result refers to a text that it does not own");
    if (leaf.kind == Leaf::Kind::tensor)
      tensors.push_back(*leaf.tensor());
    else
      form.rest.emplace_back(result.leaves->items(), i);
  }
  if (arguments.watch && !arguments.watch->unchanged())
    return note_obstacle("a tensor or module of the function was replaced during the call");
  const std::shared_ptr<const ModuleWatch> watch = see_modules(recorder.observation().modules());
  std::string refusal;
  auto call = build_frozen_call(arguments, key, recorder.observation(), tensors, std::move(form), &refusal);
  if (!call) {
    if (!refusal.empty()) note_obstacle(std::move(refusal));
    return;
  }
  call->watch = watch;
  // Arguments that share memory in another way make another call, where that decides what is written.
  auto like = [&](const FrozenCall& other) {
    return other.hash == call->hash && other.key == call->key &&
           (other.sharing == call->sharing || other.path.aliases == call->path.aliases) &&
           std::equal(other.guards.begin(), other.guards.end(), call->guards.begin(), call->guards.end(),
                      [](const LeafGuard& a, const LeafGuard& b) { return a.equal_but_storage(b); });
  };
  auto seen_before = [&]() -> std::shared_ptr<FrozenCall> {
    std::lock_guard lock(mutex_);
    std::shared_ptr<FrozenCall> found;
    for (const auto& seen : seen_once_)
      if (like(*seen)) {
        if (same_identities(seen->guards, call->guards)) return seen;
        if (!found) found = seen;
      }
    return found;
  };
  auto learnt = [&](const FrozenCall* instead) {
    fruitless_ = fruitless_ / 2;
    put(call, instead);
  };
  // It was frozen for one tensor and comes with another one.
  {
    std::unique_lock lock(mutex_);
    const FrozenCall* known = table_.first(
        call->hash, [&](const FrozenCall& other) { return like(other) && difference(other, *call).empty(); });
    if (known) {
      keep_common_identities(call->guards, known->guards);
      lock.unlock();
      return learnt(known);
    }
  }
  std::string sizes_only = recorder.observation().script().only_here();
  if (sizes_only.empty() && bytes_of(writes_of(recorder.observation())) > kMostWritten)
    sizes_only = "the callable writes more than " + std::to_string(kMostWritten >> 20) + " MiB to tensors from outside";
  const bool repeatable = sizes_only.empty();
  eager::Script script = recorder.observation().take_script();
  if (std::shared_ptr<FrozenCall> before = seen_before()) {
    if (std::string why = difference(*before, *call); !why.empty()) {
      if (!argument_is_captured(*before, *call)) return refuse(std::move(why));
      fruitless_.fetch_add(1, std::memory_order_relaxed);
      return remember(std::move(call), {});
    }
    keep_common_identities(call->guards, before->guards);
    {
      std::lock_guard lock(mutex_);
      std::erase(seen_once_, before);
    }
    learnt(nullptr);
    if (repeatable) keep(*call, std::move(script), std::move(result.sources));
    return;
  }
  if (General general = learn(arguments, *call, recorder, &sizes_only)) {
    general->give_identities(*call, arguments);
    return learnt(nullptr);
  }
  fruitless_.fetch_add(1, std::memory_order_relaxed);
  if (repeatable) keep(*call, std::move(script), std::move(result.sources));
  remember(std::move(call), sizes_only);
}

void Freezer::clear() {
  Learnt learnt;
  std::lock_guard lock(mutex_);
  learnt = forget();
}

std::shared_ptr<const ModuleWatch> Freezer::see_modules() { return see_modules({}); }

// Calls that were frozen before one ran further modules are learnt anew: all share one watch.
std::shared_ptr<const ModuleWatch> Freezer::see_modules(const ModuleWatch::Modules& called) {
  Learnt learnt;
  std::lock_guard lock(mutex_);
  ModuleWatch::Modules all = watch_ ? watch_->called() : ModuleWatch::Modules();
  const size_t before = all.size();
  for (const std::weak_ptr<nn::Module>& one : called)
    if (const std::shared_ptr<nn::Module> module = one.lock(); module && !(watch_ && watch_->watches(module.get())))
      all.push_back(one);
  if (all.size() == before && (watch_ ? watch_->unchanged() : !function_.show)) return watch_;
  learnt = forget();
  if (!function_.show && all.empty()) return nullptr;
  return watch_ = std::make_shared<const ModuleWatch>(function_, all);
}

std::string Freezer::state() const {
  std::lock_guard lock(mutex_);
  const size_t count = table_.entries();
  if (refused_.load(std::memory_order_relaxed) || (!count && !reason_.empty())) return "refused: " + reason_;
  size_t sizes = 0;
  for (const auto& call : general_)
    for (const std::vector<bool>& dims : call->free)
      sizes += static_cast<size_t>(std::count(dims.begin(), dims.end(), true));
  return std::to_string(count) + " frozen, " + std::to_string(seen_once_.size()) + " seen once" +
         (sizes ? ", " + std::to_string(sizes) + " sizes free" : "") +
         (sizes_only_.empty() || seen_once_.empty()
              ? ""
              : "; calls hold for the sizes that were seen twice only: " + sizes_only_) +
         (reason_.empty() ? "" : "; a call was not frozen: " + reason_);
}

void Freezer::add_to(Statistics& statistics) const {
  std::lock_guard lock(mutex_);
  statistics.frozen_entries = static_cast<int64_t>(table_.entries());
  statistics.frozen_bytes = table_.bytes();
  statistics.frozen_evictions = table_.evictions();
  const int64_t not_eager = not_eager_.load(std::memory_order_relaxed);
  statistics.eager_calls = passed_.load(std::memory_order_relaxed) - not_eager;
  statistics.calls += statistics.eager_calls;
}

}  // namespace ingot::detail
