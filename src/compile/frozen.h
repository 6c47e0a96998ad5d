// Frozen mode: after two checked calls that agree, only the arguments are looked at and the program runs.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "compile/compile.h"
#include "compile/frozen_table.h"
#include "compile/general_call.h"

namespace ingot::detail {

/// What the callable gave back in a call that was observed.
struct ObservedResult {
  const LeafList* leaves = nullptr;          // null: nothing
  std::vector<eager::ScriptTensor> sources;  // of its tensors
  std::shared_ptr<const void> copy;
};

/// What is known of one function. Calls are observed by one thread at a time, with one recorder: what that thread
/// learns serves all.
class Freezer {
 public:
  /// False: neither find nor find_general has anything to give.
  bool knows() const { return !table_.empty() || free_.load(std::memory_order_relaxed); }
  /// Before any call.
  void watch(WatchedFunction function) { function_ = function; }
  /// What the fields of the function hold now, where it is a module, and of those that calls of it were seen to run;
  /// null without any. What was learnt while they held something else is forgotten.
  std::shared_ptr<const ModuleWatch> see_modules();
  /// The frozen call for these arguments, or null. Takes no lock; within a ReadSection, as long as it is used.
  const FrozenCall* find(const LeafList& arguments, const CallKey& key);
  /// What becomes of a call that was not found. The longer nothing came of it, the fewer calls are observed; where
  /// nothing comes of it at all, calls that may be eager are, if those before them were slight.
  enum class Way : uint8_t { observed, recorded, eager };
  Way way(bool may_be_eager);
  /// True, and the call is counted, if that is its way whatever its arguments are.
  bool eager_at_once();
  /// True where no call is frozen, or none was for long: recording pays then only by what is fused.
  bool hopeless() const;
  /// Told of recorded calls where that is so.
  void note_slight(bool slight);
  /// Told of a checked call that ended well. May repeat it with the recorder.
  void observe(const Arguments& arguments, const CallKey& key, trace::Recorder& recorder, ObservedResult result);
  /// Calls that may be repeated for these arguments, of sizes that were not seen yet.
  std::vector<std::shared_ptr<const GeneralCall>> find_general(const LeafList& arguments, const CallKey& key) const;
  /// Repeats it and freezes it for these sizes. False, with nothing computed, where it would go another way.
  bool repeat(const GeneralCall& call, const Arguments& arguments, trace::Recorder& recorder,
              std::vector<Tensor>& results);
  /// Something about a call keeps it from being frozen.
  void note_obstacle(std::string reason);
  /// Forgets what was learnt, but not that the function is refused.
  void clear();
  std::string state() const;
  void add_to(Statistics& statistics) const;

 private:
  using General = std::shared_ptr<const GeneralCall>;
  int64_t observed_every() const;
  bool slight_and_hopeless() const { return slight_.load(std::memory_order_relaxed) && hopeless(); }
  void refuse(std::string reason);
  bool put(FrozenTable::Call call, const FrozenCall* instead);
  const FrozenCall* bound_anew(const FrozenCall& call);
  void remember(std::shared_ptr<FrozenCall> call, const std::string& sizes_only);
  void keep(const FrozenCall& call, eager::Script script, std::vector<eager::ScriptTensor> sources);
  General learn(const Arguments& arguments, const FrozenCall& seen, trace::Recorder& recorder, std::string* sizes_only);
  void note_use(const GeneralCall& call) const;
  void count_free();

  struct Learnt;
  Learnt forget();
  std::shared_ptr<const ModuleWatch> see_modules(const std::vector<std::weak_ptr<nn::Module>>& called);

  WatchedFunction function_;
  std::shared_ptr<const ModuleWatch> watch_;  // of what was learnt
  FrozenTable table_;                         // writers hold mutex_
  std::atomic<bool> refused_{false};
  std::atomic<uint32_t> fruitless_{0};             // observations of which nothing came
  std::atomic<int64_t> passed_{0}, not_eager_{0};  // calls that were not all observed; those of them not run eagerly
  std::atomic<bool> slight_{false};
  mutable std::atomic<uint64_t> uses_{0};
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<FrozenCall>> seen_once_;
  std::vector<General> general_;
  std::atomic<size_t> free_{0};  // of general_, those that hold for other sizes
  uint64_t next_place_ = 0;      // in seen_once_, once that is full
  std::string sizes_only_;       // why the latest call that was seen once holds for its sizes only
  std::string reason_;           // why calls are not frozen, or some call was not
};

}  // namespace ingot::detail
