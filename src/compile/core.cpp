#include "compile/core.h"

#include <algorithm>

#include "base/thread_object.h"
#include "eager/dispatch.h"
#include "ir/passes/pipeline.h"
#include "runtime/profiler.h"

namespace ingot::detail {
namespace {

std::atomic<int64_t> unnamed{0};

struct ThreadLeaves {
  std::vector<std::unique_ptr<LeafList>> lists;
  size_t depth = 0;
};
constinit thread_local ThreadObject<ThreadLeaves> thread_leaves;

}  // namespace

CompiledCore::CompiledCore(const CompileOptions& options)
    : mode_(options.mode),
      function_(std::make_shared<trace::Function>(options.name.empty() ? "#" + std::to_string(++unnamed) : options.name,
                                                  options.disable, options.recompile_limit, options.background,
                                                  options.numerics)) {
  static_cast<void>(ir::disabled_passes(options.disable));  // throws for the name of no pass
}

std::unique_ptr<trace::Recorder> CompiledCore::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<trace::Recorder> recorder = std::move(idle_.back());
      idle_.pop_back();
      return recorder;
    }
  }
  return std::make_unique<trace::Recorder>(function_);
}

void CompiledCore::give_back(std::unique_ptr<trace::Recorder> recorder) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(recorder));
}

ArgumentLeaves::ArgumentLeaves() {
  ThreadLeaves& mine = *thread_leaves;
  if (mine.depth == mine.lists.size()) mine.lists.push_back(std::make_unique<LeafList>());
  list_ = mine.lists[mine.depth++].get();
  list_->clear();
}
ArgumentLeaves::~ArgumentLeaves() {
  list_->clear();
  --thread_leaves->depth;
}

CompiledCall::CompiledCall(CompiledCore& core, const LeafList& arguments) : core_(core) {
  eager::Interceptor* outer = eager::current_interceptor();
  std::optional<Numerics> own = core.function().numerics();
  bool same_level = !own || *own == numerics();
  if (outer && core.mode() == CompileMode::checked) {
    if (same_level) return;  // inlined into what is being recorded
    outer->flush("a function with a level of numerics of its own is called", Location::none());
  }
  if (core.mode() == CompileMode::frozen) {
    if (outer) outer->flush("a frozen function is called", Location::none());
    if (const FrozenCall* call = core.freezer().find(arguments, own)) {
      core.function().calls.fetch_add(1, std::memory_order_relaxed);
      std::span<Tensor> results(few_results_, std::min(call->result.size(), std::size(few_results_)));
      if (call->result.size() > results.size()) {
        many_results_.resize(call->result.size());
        results = many_results_;
      }
      call->run(arguments, results);
      done_ = true;
      form_ = call->result_copy.get();
      return;
    }
    wants_result_ = !core.freezer().refused();
    if (wants_result_) {
      arguments_ = std::make_unique<Arguments>(arguments);
      for (auto& general : core.freezer().find_general(arguments, own))
        if (repeat(std::move(general))) return;
    }
  }
  SmallVector<const TensorImpl*, 16> tensors;
  for (const Leaf& leaf : arguments.items())
    if (leaf.kind == Leaf::Kind::tensor) tensors.push_back(leaf.tensor->impl());
  recorder_ = core.take();
  recorder_->keep_runs = wants_result_;
  recorder_->begin(tensors);
}

bool CompiledCall::repeat(std::shared_ptr<const GeneralCall> call) {
  std::unique_ptr<trace::Recorder> recorder = core_.take();
  done_ = core_.freezer().repeat(*call, *arguments_, *recorder, many_results_);
  recorder->forget_runs();
  core_.give_back(std::move(recorder));
  if (!done_) return false;
  form_ = call->result_copy.get();
  general_ = std::move(call);
  return true;
}

CompiledCall::~CompiledCall() {
  if (!recorder_) return;
  recorder_->forget_runs();
  core_.give_back(std::move(recorder_));
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
      if (leaf.kind == Leaf::Kind::tensor) sources.push_back(recorder_->script().source(*leaf.tensor));
  recorder_->finish();
  if (wants_result_) core_.freezer().observe(*arguments_, *recorder_, result, std::move(sources), std::move(copy));
}

void CompiledCall::abandon() {
  if (recorder_) recorder_->abandon();
}

CompiledHandle::CompiledHandle(const CompileOptions& options) : core_(std::make_shared<CompiledCore>(options)) {}
Explanation CompiledHandle::explain() const { return core_->explain(); }
Explanation CompiledHandle::profile(const std::function<void()>& calls) const {
  runtime::Profile profile;
  calls();
  return core_->explain(&profile);
}
Statistics CompiledHandle::stats() const { return core_->function().statistics(); }

}  // namespace ingot::detail
