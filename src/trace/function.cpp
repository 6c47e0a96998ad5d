#include "trace/function.h"

#include <algorithm>

#include "base/log.h"
#include "eager/execute/numerics.h"
#include "ir/graph.h"
#include "runtime/thread_pool.h"
#include "trace/background.h"

namespace ingot::trace {
namespace {

std::string at(Location location) { return location.line ? " (" + location.str() + ")" : std::string(); }

std::string shapes_text(const ir::Graph& graph, const DimTable& dims) {
  std::string text;
  for (const ir::InputInfo& input : graph.inputs) {
    const ir::TensorType& type = graph.type(input.value);
    if (!text.empty()) text += ", ";
    text += std::string(name_of(type.dtype)) + "[";
    for (size_t i = 0; i < type.shape.size(); ++i) text += (i ? ", " : "") + dims.str(type.shape[i]);
    text += "]";
  }
  return text;
}

// What must hold of inputs beyond their dtypes and shapes.
std::string guards_text(const ir::Graph& graph, const DimTable& dims) {
  std::vector<std::string> guards;
  DimTable table = dims;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::InputInfo& input = graph.inputs[i];
    if (input.strides == ir::contiguous_strides(table, graph.type(input.value).shape)) continue;
    std::string strides;
    for (Dim stride : input.strides) strides += (strides.empty() ? "" : ", ") + dims.str(stride);
    guards.push_back("strides of input " + std::to_string(i) + " == [" + strides + "]");
  }
  for (const DimGuard& guard : dims.guards()) guards.push_back(dims.str(guard));
  std::string text;
  for (size_t i = 0; i < guards.size(); ++i)
    if (std::find(guards.begin(), guards.begin() + static_cast<std::ptrdiff_t>(i), guards[i]) ==
        guards.begin() + static_cast<std::ptrdiff_t>(i))
      text += (text.empty() ? "" : ", ") + guards[i];
  return text;
}

}  // namespace

Function::Function(std::string name, std::vector<std::string> disabled_passes, int recompile_limit, bool background,
                   std::optional<Numerics> numerics, bool pack_weights_only)
    : name_(std::move(name)),
      disabled_passes_(std::move(disabled_passes)),
      numerics_(numerics),
      recompile_limit_(recompile_limit),
      background_(background),
      pack_weights_only_(pack_weights_only) {}

void CacheEntry::note_writes(std::vector<Write> writes) {
  std::lock_guard lock(mutex_);
  if (writes == writes_) return;
  writes_ = std::move(writes);
  if (!log_enabled(Topic::writes)) return;
  for (const Write& write : writes_)
    log(Topic::writes, "output " + std::to_string(write.output) + " of the program for " + shapes +
                           (write.input < 0 ? std::string() : ", which is input " + std::to_string(write.input)) +
                           (write.apart.empty() ? ": written in place" : ": written apart and copied: " + write.apart));
}

std::vector<Write> CacheEntry::writes() const {
  std::lock_guard lock(mutex_);
  return writes_;
}

std::shared_ptr<CacheEntry> Function::program(ir::Graph graph, std::vector<uint32_t> saved_outputs, int64_t ops,
                                              bool* fresh) {
  const compiler::Settings settings{.level = eager::code_level(),
                                    .disabled = disabled_passes_,
                                    .saved_outputs = std::move(saved_outputs),
                                    .threads = num_threads(),
                                    .pack_weights_only = pack_weights_only_};
  const std::string key = compiler::key_of(graph, settings);
  std::shared_ptr<CacheEntry> entry;
  {
    std::lock_guard lock(mutex_);
    if (cache_.size() >= kMostPrograms && !cache_.contains(key)) {
      drop_unused();
      if (cache_.size() >= kMostPrograms)
        throw Error("the function holds " + std::to_string(kMostPrograms) + " programs, its most");
    }
    auto& place = cache_[key];
    *fresh = !place;
    if (!place) {
      place = std::make_shared<CacheEntry>();
      place->key = key;
    }
    entry = place;
  }
  if (!background_) {
    NoFork whole;
    std::call_once(entry->once, [&] { compile(*entry, std::move(graph), settings, ops); });
  } else if (*fresh) {
    compile_in_background([self = shared_from_this(), entry, graph = std::move(graph), settings, ops]() mutable {
      self->compile(*entry, std::move(graph), settings, ops);
    });
  }
  return entry;
}

void Function::compile(CacheEntry& entry, ir::Graph graph, const compiler::Settings& settings, int64_t ops) {
  try {
    compiler::ReadyProgram ready = compiler::compile(entry.key, std::move(graph), settings, name_);
    const compiler::CompiledGraph& compiled = *ready.compiled;
    entry.shapes = shapes_text(compiled.graph, compiled.graph.dims);
    entry.guards = guards_text(compiled.graph, compiled.program->dims);
    entry.compiled = ready.compiled;
    entry.loaded = std::move(ready.loaded);
    if (log_enabled(Topic::cache))
      log(Topic::cache,
          name_ + ": new program for " + entry.shapes + ", " + std::to_string(entry.key.size()) + " bytes of key");
    if (log_enabled(Topic::guards))
      log(Topic::guards, name_ + ": inputs " + entry.shapes +
                             (entry.guards.empty() ? "; nothing else about their sizes" : " where " + entry.guards));
    std::lock_guard lock(mutex_);
    ++statistics_.compilations;
    statistics_.ops_traced += ops;
    statistics_.kernels += static_cast<int64_t>(compiled.kernels().size());
    for (const Step& step : compiled.program->steps) statistics_.host_steps += step.is<HostStep>();
    statistics_.compile_ms += ready.milliseconds;
    if (auto place = cache_.find(entry.key); place != cache_.end()) order_.push_back(place->second);
  } catch (const std::exception& e) {
    entry.failure = std::string("no program: ") + e.what();
  }
  entry.ready.store(true, std::memory_order_release);
}

void Function::drop_unused_programs() {
  std::lock_guard lock(mutex_);
  drop_unused();
}

void Function::drop_unused() {
  // What this table and the order of compilation hold does not count. Until it is ready, another thread writes to it.
  std::erase_if(cache_, [](const auto& place) {
    const std::shared_ptr<CacheEntry>& entry = place.second;
    return entry->ready.load(std::memory_order_acquire) && entry.use_count() == (entry->compiled ? 2 : 1);
  });
  std::erase_if(order_, [](const std::shared_ptr<CacheEntry>& entry) { return entry.use_count() == 1; });
}

void Function::note_full(size_t nodes) {
  if (full_.exchange(true)) return;
  warn("compiled function " + name_ + " has recorded " + std::to_string(nodes) +
       " ops of different paths, its most; paths that were never taken again are forgotten, and new ones run eagerly "
       "most of the time");
}

int64_t Function::count(std::vector<Notice>& list, Notice notice, int64_t* total) {
  ++*total;
  for (Notice& known : list)
    if (known.reason == notice.reason && known.op == notice.op && known.location.line == notice.location.line &&
        std::string_view(known.location.file) == notice.location.file) {
      return ++known.count;
    }
  notice.count = 1;
  if (list.size() >= kMostNotices) return 0;
  list.push_back(std::move(notice));
  return 1;
}

void Function::note_break(const std::string& reason, const std::string& op, Location location) {
  int64_t times = 0;
  {
    std::lock_guard lock(mutex_);
    times = count(breaks_, {reason, op, location}, &statistics_.graph_breaks);
  }
  // One in a loop is said at its first, tenth, hundredth time.
  if (!log_enabled(Topic::breaks) || times == 0) return;
  int64_t told = 1;
  while (told < times) told *= 10;
  if (told != times) return;
  log(Topic::breaks, name_ + ": graph break: " + reason + " (" + op + ", " + location.str() + ")" +
                         (times > 1 ? ", " + std::to_string(times) + " times" : ""));
}

void Function::note_fallback(const std::string& reason, OpId op, Location location) {
  std::lock_guard lock(mutex_);
  std::string name(ir::info(op).name);
  // Said once for each reason, whatever the log topics: a fallback is never silent.
  if (count(fallbacks_, {reason, name, location}, &statistics_.fallbacks) == 1)
    warn("compiled function " + name_ + " runs op by op from " + name + " on: " + reason + at(location));
}

void Function::note_recompile(Recompile recompile) {
  if (log_enabled(Topic::recompiles))
    log(Topic::recompiles, name_ + ": " + recompile.guard + ": was " + recompile.before + ", is " + recompile.after +
                               " (" + recompile.op + " at " + recompile.location.str() + ")");
  std::lock_guard lock(mutex_);
  if (recompiles_.size() < kMostNotices) recompiles_.push_back(std::move(recompile));
}

void Function::note_limit(Location location) {
  std::lock_guard lock(mutex_);
  if (!statistics_.recompile_limit_hits++)
    warn("compiled function " + name_ + " met its recompile limit of " + std::to_string(recompile_limit_) +
         "; paths that it has not seen run eagerly from now on (see CompileOptions::recompile_limit)" + at(location));
}

Statistics Function::statistics() const {
  std::lock_guard lock(mutex_);
  Statistics s = statistics_;
  s.cache_entries = static_cast<int64_t>(order_.size());
  s.trace_nodes = trace_nodes.load(std::memory_order_relaxed);
  const int64_t known = frozen_calls.load(std::memory_order_relaxed);
  s.frozen_calls = known + repeated_calls.load(std::memory_order_relaxed);
  s.calls = calls.load(std::memory_order_relaxed) + known;
  s.hits = s.calls - misses.load(std::memory_order_relaxed);
  return s;
}
std::vector<std::shared_ptr<CacheEntry>> Function::entries() const {
  std::lock_guard lock(mutex_);
  return order_;
}
std::vector<Notice> Function::breaks() const {
  std::lock_guard lock(mutex_);
  return breaks_;
}
std::vector<Notice> Function::fallbacks() const {
  std::lock_guard lock(mutex_);
  return fallbacks_;
}
std::vector<Recompile> Function::recompiles() const {
  std::lock_guard lock(mutex_);
  return recompiles_;
}

}  // namespace ingot::trace
