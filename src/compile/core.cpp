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

CompiledCore::CompiledCore(const CompileOptions& options) : mode_(options.mode) {
  static_cast<void>(compiler::disabled_stages(options.disable));  // throws for a name of none
  const std::string name = options.name.empty() ? "#" + std::to_string(++unnamed) : options.name;
  function_ = std::make_shared<trace::Function>(name, options.disable, options.recompile_limit, options.background,
                                                options.numerics, options.pack_weights_only);
  // Gradients are what they would be without it: of the level of numerics that holds where backward() is called.
  backward_ = std::make_shared<trace::Backward>(std::make_shared<trace::Function>(
      "backward of " + name, options.disable, options.recompile_limit, options.background));
  recorders_.emplace(function_, backward_);
}

// What its calls needed at once is no measure any more of what to keep for the calls to come.
CompiledCore::~CompiledCore() {
  freezer_.clear();
  recorders_.reset();
  backward_.reset();
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
  recorders_->clear();
  backward_->clear();
}

bool CompiledCore::may_be_eager() const {
  const std::optional<Numerics> own = function_->numerics();
  return !eager::interceptor(eager::Stage::record) && (!own || *own == numerics());
}

Statistics CompiledCore::statistics() const {
  Statistics statistics = function_->statistics();
  freezer_.add_to(statistics);
  return statistics;
}

}  // namespace ingot::detail
