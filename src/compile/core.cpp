#include "compile/core.h"

#include <algorithm>

#include "base/first_use.h"
#include "base/thread_object.h"
#include "compile/module_watch.h"
#include "eager/autograd/autograd.h"
#include "eager/autograd/tape.h"
#include "eager/call/dispatch.h"
#include "eager/execute/caches.h"
#include "eager/execute/code_level.h"
#include "ir/passes/pipeline.h"
#include "runtime/memory/allocator.h"
#include "runtime/profiler.h"

namespace ingot::detail {

struct ThreadLeaves {
  std::vector<std::unique_ptr<LeafList>> lists;
  size_t depth = 0;
  LeafList& next() {
    if (depth == lists.size()) lists.push_back(std::make_unique<LeafList>());
    return *lists[depth];
  }
};

namespace {

std::atomic<int64_t> unnamed{0};

constinit thread_local ThreadObject<ThreadLeaves> thread_leaves;

/// All functions, for clear_caches().
struct Functions {
  Mutex mutex;
  std::vector<std::weak_ptr<CompiledCore>> list;

  static Functions& all() {
    static constinit FirstUse<Functions> functions;
    return *functions;
  }
  static void clear() {
    std::vector<std::shared_ptr<CompiledCore>> cores;
    {
      std::lock_guard lock(all().mutex);
      for (const auto& function : all().list)
        if (auto core = function.lock()) cores.push_back(std::move(core));
    }
    for (const auto& core : cores) core->clear();
  }
};

}  // namespace

CompiledCore::CompiledCore(const CompileOptions& options)
    : mode_(options.mode),
      function_(std::make_shared<trace::Function>(options.name.empty() ? "#" + std::to_string(++unnamed) : options.name,
                                                  options.disable, options.recompile_limit, options.background,
                                                  options.numerics, options.pack_weights_only)) {
  static_cast<void>(compiler::disabled_stages(options.disable));  // throws for a name of none
}

// What its calls needed at once is no measure any more of what to keep for the calls to come.
CompiledCore::~CompiledCore() {
  freezer_.clear();
  idle_.clear();
  delete first_.load();
  function_.reset();
  runtime::forget_peak();
}

std::shared_ptr<CompiledCore> CompiledCore::make(const CompileOptions& options) {
  auto core = std::make_shared<CompiledCore>(options);
  Functions& all = Functions::all();
  std::lock_guard lock(all.mutex);
  eager::set_clear_functions(Functions::clear);
  if (all.list.size() == all.list.capacity()) std::erase_if(all.list, [](const auto& f) { return f.expired(); });
  all.list.push_back(core);
  return core;
}

void CompiledCore::clear() {
  freezer_.clear();
  std::vector<std::unique_ptr<trace::Recorder>> idle;
  std::lock_guard lock(mutex_);
  idle.swap(idle_);
}

bool CompiledCore::may_be_eager() const {
  const std::optional<Numerics> own = function_->numerics();
  return !eager::interceptor(eager::Stage::record) && (!own || *own == numerics());
}

LentRecorder CompiledCore::lend() {
  auto lent = [&](trace::Recorder* recorder) { return LentRecorder(recorder, GiveBack{this}); };
  if (trace::Recorder* first = first_.exchange(nullptr, std::memory_order_acquire)) return lent(first);
  std::lock_guard lock(mutex_);
  if (!first_made_) {
    auto first = std::make_unique<trace::Recorder>(function_);
    first_made_ = first.get();
    return lent(first.release());
  }
  if (idle_.empty()) return lent(std::make_unique<trace::Recorder>(function_).release());
  std::unique_ptr<trace::Recorder> recorder = std::move(idle_.back());
  idle_.pop_back();
  return lent(recorder.release());
}

// Past the bound, as after a time of very many threads, what a tree holds is recorded again when it is needed.
void CompiledCore::give_back(std::unique_ptr<trace::Recorder> recorder) {
  constexpr size_t kMostIdle = 64;
  recorder->forget_observation();
  if (recorder.get() == first_made_) return first_.store(recorder.release(), std::memory_order_release);
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(recorder));
}

void GiveBack::operator()(trace::Recorder* recorder) const {
  core->give_back(std::unique_ptr<trace::Recorder>(recorder));
}

Statistics CompiledCore::statistics() const {
  Statistics statistics = function_->statistics();
  freezer_.add_to(statistics);
  return statistics;
}

ArgumentLeaves::ArgumentLeaves() : ArgumentLeaves(*thread_leaves) {}
ArgumentLeaves::ArgumentLeaves(ThreadLeaves& mine) : depth_(mine.depth), list_(mine.next()) { ++depth_; }
ArgumentLeaves::~ArgumentLeaves() {
  list_.clear();
  --depth_;
}

namespace {

CallKey call_key(const void* signature, std::optional<Numerics> own) {
  eager::NumericsScope scope(own);
  return {signature, eager::code_level(), GradMode::is_enabled()};
}

}  // namespace

CompiledCall::CompiledCall(CompiledCore& core, const LeafList& arguments, const void* signature)
    : core_(core), signature_(signature) {
  eager::Interceptor* outer = eager::interceptor(eager::Stage::record);
  std::optional<Numerics> own = core.function().numerics();
  const bool same_level = !own || *own == numerics();
  if (outer && core.mode() == CompileMode::checked) {
    if (same_level) return;  // inlined into what is being recorded
    outer->flush("a function with a level of numerics of its own is called", Location::none());
  }
  std::shared_ptr<const ModuleWatch> watch;
  if (core.mode() == CompileMode::frozen) {
    outer_frozen_ = autograd::set_frozen_function(&core.function().name());
    // Its program runs at once: no op of it passes the chain, so it cannot become part of what is being recorded.
    if (outer) outer->flush("a frozen function is called", Location::none());
    Freezer& freezer = core.freezer();
    bool seen = false;
    if (signature && freezer.knows()) {
      const CallKey key = call_key(signature, own);
      if (run_frozen(arguments, key)) return;
      watch = freezer.see_module();
      seen = true;
      for (auto& general : freezer.find_general(arguments, key)) {
        if (general->watch != watch) continue;
        if (!arguments_) arguments_ = std::make_unique<Arguments>(arguments, watch);
        if (repeat(std::move(general))) return;
      }
    }
    // A scalar that is always another, in a call of an op or two: to record it again and again gains nothing.
    const bool may_be_eager = core.may_be_eager();
    const Freezer::Way way = freezer.way(may_be_eager);
    if (way == Freezer::Way::eager) return;
    hopeless_ = may_be_eager && freezer.hopeless();
    wants_result_ = way == Freezer::Way::observed;
    if (wants_result_ && !signature) {
      freezer.note_obstacle("the callable returns a reference");
      wants_result_ = false;
    }
    if (wants_result_ && !seen) watch = freezer.see_module();
  }
  SmallVector<const TensorImpl*, 16> tensors;
  for (const Leaf& leaf : arguments.items())
    if (leaf.kind == Leaf::Kind::tensor) tensors.push_back(leaf.tensor->impl());
  recorder_ = core.lend();
  wants_result_ = wants_result_ && core.observed(*recorder_);
  if (wants_result_ && !arguments_) arguments_ = std::make_unique<Arguments>(arguments, watch);
  recorder_->begin(tensors, wants_result_ ? trace::Purpose::observed : trace::Purpose::results);
}

bool CompiledCall::run_frozen(const LeafList& arguments, const CallKey& key) {
  reading_.emplace();
  const FrozenCall* call = core_.freezer().find(arguments, key);
  if (!call || (call->watch && !call->watch->unchanged())) {
    reading_.reset();
    return false;
  }
  core_.function().frozen_calls.fetch_add(1, std::memory_order_relaxed);
  std::span<Tensor> results(few_results_, std::min(call->result.size(), std::size(few_results_)));
  if (call->result.size() > results.size()) {
    many_results_.resize(call->result.size());
    results = many_results_;
  }
  call->run(arguments, results);
  done_ = true;
  form_ = call->form.copy.get();
  return true;
}

bool CompiledCall::repeat(std::shared_ptr<const GeneralCall> call) {
  LentRecorder recorder = core_.lend();
  done_ = core_.freezer().repeat(*call, *arguments_, *recorder, many_results_);
  if (!done_) return false;
  form_ = call->form.copy.get();
  general_ = std::move(call);
  return true;
}

CompiledCall::~CompiledCall() {
  if (core_.mode() == CompileMode::frozen) autograd::set_frozen_function(outer_frozen_);
}

Tensor CompiledCall::operator()() {
  return std::move(many_results_.empty() ? few_results_[next_result_++] : many_results_[next_result_++]);
}

const void* CompiledCall::frozen_result() const { return form_; }

void CompiledCall::finish(const LeafList* result, std::shared_ptr<const void> copy) {
  if (!recorder_) return;
  std::vector<eager::ScriptTensor> sources;  // known while the call is recorded
  if (wants_result_ && result)
    for (const Leaf& leaf : result->items())
      if (leaf.kind == Leaf::Kind::tensor) sources.push_back(recorder_->observation().script().source(*leaf.tensor));
  if (hopeless_) core_.freezer().note_slight(recorder_->slight());  // of what is still being recorded
  recorder_->finish();
  if (wants_result_)
    core_.freezer().observe(*arguments_, call_key(signature_, core_.function().numerics()), *recorder_,
                            {result, std::move(sources), std::move(copy)});
}

void CompiledCall::abandon() {
  if (recorder_) recorder_->abandon();
}

FrozenScope::FrozenScope(const CompiledHandle& handle)
    : outer_(autograd::set_frozen_function(&handle.core().function().name())) {}
FrozenScope::~FrozenScope() { autograd::set_frozen_function(outer_); }

bool CompiledHandle::eager_at_once() const {
  return core_->mode() == CompileMode::frozen && core_->may_be_eager() && core_->freezer().eager_at_once();
}

CompiledHandle::CompiledHandle(const CompileOptions& options) : core_(CompiledCore::make(options)) {}
void CompiledHandle::watch(WatchedFunction function) { core_->freezer().watch(function); }
Explanation CompiledHandle::explain() const { return core_->explain(); }
Explanation CompiledHandle::profile(const std::function<void()>& calls) const {
  runtime::Profile profile;
  calls();
  return core_->explain(&profile);
}
Statistics CompiledHandle::stats() const { return core_->statistics(); }

}  // namespace ingot::detail
