#include "compile/compile.h"

#include <algorithm>

#include "base/hot.h"
#include "base/thread_object.h"
#include "compile/core.h"
#include "compile/module_watch.h"
#include "eager/autograd/autograd.h"
#include "eager/autograd/tape.h"
#include "eager/call/batch.h"
#include "eager/execute/numerics.h"
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

constinit thread_local ThreadObject<ThreadLeaves> thread_leaves;

CallKey call_key(const void* signature, std::optional<Numerics> own) {
  eager::NumericsScope scope(own);
  return {signature, eager::code_level(), GradMode::is_enabled(), eager::interceptor(eager::Stage::autocast)};
}

}  // namespace

INGOT_HOT ArgumentLeaves::ArgumentLeaves() : ArgumentLeaves(*thread_leaves) {}
INGOT_HOT ArgumentLeaves::ArgumentLeaves(ThreadLeaves& mine) : depth_(mine.depth), list_(mine.next()) { ++depth_; }
INGOT_HOT ArgumentLeaves::~ArgumentLeaves() {
  list_.clear();
  --depth_;
}

INGOT_HOT CompiledCall::CompiledCall(CompiledCore& core, const LeafList& arguments, const void* signature)
    : core_(core), signature_(signature) {
  if (eager::Batch::current()) return;  // its tensors may be slices, which have no memory: the callable runs as it is
  eager::Interceptor* outer = eager::interceptor(eager::Stage::record);
  std::optional<Numerics> own = core.function().numerics();
  const bool same_level = !own || *own == numerics();
  if (outer && core.mode() == CompileMode::checked) {
    if (same_level) return;  // inlined into what is being recorded
    outer->flush("a function with a level of numerics of its own is called", Location::none());
  }
  std::shared_ptr<const ModuleWatch> watch;
  if (core.mode() == CompileMode::frozen) {
    outer_frozen_.enter(core.function().name());
    // Its program runs at once: no op of it passes the chain, so it cannot become part of what is being recorded.
    if (outer) outer->flush("a frozen function is called", Location::none());
    Freezer& freezer = core.freezer();
    bool seen = false;
    if (signature && freezer.knows()) {
      const CallKey key = call_key(signature, own);
      if (run_frozen(arguments, key)) return;
      watch = freezer.see_modules();
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
    if (wants_result_ && !seen) watch = freezer.see_modules();
  }
  SmallVector<const TensorImpl*, 16> tensors;
  for (const Leaf& leaf : arguments.items())
    if (leaf.kind == Leaf::Kind::tensor) tensors.push_back(leaf.tensor()->impl());
  recorder_ = core.lend();
  wants_result_ = wants_result_ && core.observed(*recorder_);
  if (wants_result_ && !arguments_) arguments_ = std::make_unique<Arguments>(arguments, watch);
  recorder_->begin(tensors, wants_result_ ? trace::Purpose::observed : trace::Purpose::results);
}

INGOT_HOT bool CompiledCall::run_frozen(const LeafList& arguments, const CallKey& key) {
  reading_.emplace();
  const FrozenCall* call = core_.freezer().find(arguments, key);
  if (!call || (call->watch && !call->watch->unchanged())) {
    reading_.reset();
    return false;
  }
  std::span<Tensor> results(few_results_, std::min(call->result.size(), std::size(few_results_)));
  if (call->result.size() > results.size()) {
    many_results_.resize(call->result.size());
    results = many_results_;
  }
  if (!call->run(arguments, results)) {
    many_results_.clear();
    reading_.reset();
    return false;
  }
  core_.function().frozen_calls.fetch_add(1, std::memory_order_relaxed);
  done_ = true;
  form_ = call->form.copy.get();
  return true;
}

bool CompiledCall::repeat(std::shared_ptr<const GeneralCall> call) {
  trace::LentRecorder recorder = core_.lend();
  done_ = core_.freezer().repeat(*call, *arguments_, *recorder, many_results_);
  if (!done_) return false;
  core_.function().repeated_calls.fetch_add(1, std::memory_order_relaxed);
  form_ = call->form.copy.get();
  general_ = std::move(call);
  return true;
}

INGOT_HOT CompiledCall::~CompiledCall() = default;

void CompiledCall::InFrozen::enter(const std::string& name) {
  outer_ = autograd::set_frozen_function(&name);
  entered_ = true;
}
INGOT_HOT CompiledCall::InFrozen::~InFrozen() {
  if (entered_) autograd::set_frozen_function(outer_);
}

INGOT_HOT Tensor CompiledCall::operator()() {
  return std::move(many_results_.empty() ? few_results_[next_result_++] : many_results_[next_result_++]);
}

const void* CompiledCall::frozen_result() const { return form_; }

void CompiledCall::finish(const LeafList* result, std::shared_ptr<const void> copy) {
  if (!recorder_) return;
  std::vector<eager::ScriptTensor> sources;  // known while the call is recorded
  if (wants_result_ && result)
    for (const Leaf& leaf : result->items())
      if (leaf.kind == Leaf::Kind::tensor) sources.push_back(recorder_->observation().script().source(*leaf.tensor()));
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

INGOT_HOT bool CompiledHandle::eager_at_once() const {
  return core_->mode() == CompileMode::frozen && core_->may_be_eager() && core_->freezer().eager_at_once();
}

CompiledHandle::CompiledHandle(const CompileOptions& options) : core_(CompiledCore::make(options)) {}
void CompiledHandle::watch(WatchedFunction function) { core_->freezer().watch(function); }
Explanation CompiledHandle::explain() const { return detail::explain(*core_); }
Explanation CompiledHandle::profile(const std::function<void()>& calls) const {
  runtime::Profile profile;
  calls();
  return detail::explain(*core_, &profile);
}
Statistics CompiledHandle::stats() const { return core_->statistics(); }

}  // namespace ingot::detail
