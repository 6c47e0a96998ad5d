// What all recordings of one compiled function share: options, programs, figures, and the log of what went otherwise.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/program.h"
#include "compiler/compiler.h"
#include "trace/statistics.h"

namespace ingot::trace {

/// Something that happened, as often as `count` says; one entry for each reason and place.
struct Notice {
  std::string reason;
  std::string op;  // at which it happened
  Location location = Location::none();
  int64_t count = 0;
};

/// Why a program was compiled although there was one: the first guard that failed, with what it held and what it met.
struct Recompile {
  std::string guard, before, after;
  std::string op;  // at which it was noticed
  Location location = Location::none();
};

/// A tensor from outside that a program writes: in place, or apart, and then copied.
struct Write {
  uint32_t output = 0;  // of the program
  int64_t input = -1;   // the same tensor as the program reads it; -1: it does not
  std::string apart;    // why; empty: in place
  friend bool operator==(const Write&, const Write&) = default;
};

/// A program in the cache of a function. One graph has one, whichever flushes and recorders came to it.
struct CacheEntry {
  std::string key;     // of the program
  std::string shapes;  // inputs, symbols written s0, s1, ...
  std::string guards;  // on sizes
  compiler::CompiledGraphPtr compiled;
  std::unique_ptr<runtime::LoadedProgram> loaded;
  std::string failure;  // why there is none
  std::atomic<int64_t> hits{0};
  std::once_flag once;
  std::atomic<bool> ready{false};  // compiled or failure is set

  /// Those of the latest flush that asked; all who run one program write alike, but for tensors that are not dense.
  void note_writes(std::vector<Write> writes);
  std::vector<Write> writes() const;

 private:
  mutable Mutex mutex_;
  std::vector<Write> writes_;
};

class Function : public std::enable_shared_from_this<Function> {
 public:
  Function(std::string name, std::vector<std::string> disabled_passes, int recompile_limit, bool background = false,
           std::optional<Numerics> numerics = {}, bool pack_weights_only = false);

  const std::string& name() const { return name_; }
  /// Its own level, if it has one.
  std::optional<Numerics> numerics() const { return numerics_; }
  int recompile_limit() const { return recompile_limit_; }
  bool background() const { return background_; }

  /// The program of this graph at the level that holds now. The first who asks compiles it and the others wait; in the
  /// background, nobody waits. `saved_outputs`: as compiler::Settings has them.
  std::shared_ptr<CacheEntry> program(ir::Graph graph, std::vector<uint32_t> saved_outputs, int64_t ops, bool* fresh);

  /// `op`: at which it happened, or after which a value was asked for.
  void note_break(const std::string& reason, const std::string& op, Location location);
  void note_fallback(const std::string& reason, OpId op, Location location);
  void note_recompile(Recompile recompile);
  void note_limit(Location location);
  /// Some recorder's tree has no room for new paths.
  void note_full(size_t nodes);
  /// Forgets the programs that no recorded path leads to.
  void drop_unused_programs();
  std::string limit_reason() const { return "its recompile limit of " + std::to_string(recompile_limit_) + " is met"; }

  Statistics statistics() const;
  std::vector<std::shared_ptr<CacheEntry>> entries() const;
  std::vector<Notice> breaks() const;
  std::vector<Notice> fallbacks() const;
  std::vector<Recompile> recompiles() const;

  std::atomic<int64_t> calls{0};
  std::atomic<int64_t> misses{0};          // calls that recorded or compiled something, or ended with an error
  std::atomic<int64_t> frozen_calls{0};    // not among the calls
  std::atomic<int64_t> repeated_calls{0};  // frozen ones at other sizes, among the calls
  std::atomic<int64_t> trace_nodes{0};     // in the trees of all recorders

  static constexpr size_t kMostPrograms = 1024;
  static constexpr size_t kMostNotices = 256;  // of each kind: the first ones are kept

 private:
  void compile(CacheEntry& entry, ir::Graph graph, const compiler::Settings& settings, int64_t ops);
  void drop_unused();
  /// How often it has been noted; 0 where there is no room for it.
  static int64_t count(std::vector<Notice>& list, Notice notice, int64_t* total);

  std::string name_;
  std::vector<std::string> disabled_passes_;
  std::optional<Numerics> numerics_;
  int recompile_limit_;
  bool background_, pack_weights_only_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<CacheEntry>> cache_;
  std::vector<std::shared_ptr<CacheEntry>> order_;  // of compilation
  std::vector<Notice> breaks_, fallbacks_;
  std::vector<Recompile> recompiles_;
  Statistics statistics_;
  std::atomic<bool> full_{false};
};

}  // namespace ingot::trace
