#include "compile/core.h"

#include <algorithm>

#include "base/first_use.h"
#include "eager/call/dispatch.h"
#include "eager/execute/caches.h"
#include "eager/execute/numerics.h"
#include "ir/passes/pipeline.h"
#include "runtime/memory/allocator.h"

namespace ingot::detail {
namespace {

std::atomic<int64_t> unnamed{0};

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

Statistics CompiledCore::statistics() const {
  Statistics statistics = function_->statistics();
  freezer_.add_to(statistics);
  return statistics;
}

}  // namespace ingot::detail
