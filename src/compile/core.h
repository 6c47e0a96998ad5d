// What stands behind a CompiledFunction, free of its types.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "compile/compile.h"
#include "compile/frozen.h"
#include "trace/recorder.h"

namespace ingot::detail {

class CompiledCore {
 public:
  explicit CompiledCore(const CompileOptions& options);
  ~CompiledCore();
  /// Its clear() is part of clear_caches() as long as it lives.
  static std::shared_ptr<CompiledCore> make(const CompileOptions& options);

  /// A recorder for one call; calls at the same time have their own. Each grows its own tree, programs are shared.
  LentRecorder lend();
  void give_back(std::unique_ptr<trace::Recorder> recorder);
  /// True for the one recorder whose calls the freezer observes: calls recorded in one tree can be compared.
  bool observed(const trace::Recorder& recorder) const { return &recorder == first_made_; }
  /// Where nothing is being recorded and the level of numerics is the function's, it may be its callable alone.
  bool may_be_eager() const;

  CompileMode mode() const { return mode_; }
  trace::Function& function() const { return *function_; }
  Freezer& freezer() { return freezer_; }
  const Freezer& freezer() const { return freezer_; }
  Statistics statistics() const;
  /// Lets go of what calls can learn and record again.
  void clear();

 private:
  CompileMode mode_;
  std::shared_ptr<trace::Function> function_;
  Freezer freezer_;
  Mutex mutex_;
  std::atomic<trace::Recorder*> first_{nullptr};  // owned while it is here; lent before all others, without a lock
  std::atomic<const trace::Recorder*> first_made_{nullptr};
  std::vector<std::unique_ptr<trace::Recorder>> idle_;  // the latest used one last: its tree is the fullest
};

}  // namespace ingot::detail
