// What stands behind a CompiledFunction, free of its types.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "compile/frozen.h"
#include "trace/backward.h"
#include "trace/recorder_pool.h"

namespace ingot::detail {

class CompiledCore {
 public:
  explicit CompiledCore(const CompileOptions& options);
  ~CompiledCore();
  /// Its clear() is part of clear_caches() as long as it lives.
  static std::shared_ptr<CompiledCore> make(const CompileOptions& options);

  /// A recorder for one call; calls at the same time have their own.
  trace::LentRecorder lend() { return recorders_->lend(); }
  /// True for the one recorder whose calls the freezer observes: calls recorded in one tree can be compared.
  bool observed(const trace::Recorder& recorder) const { return recorders_->is_first(recorder); }
  /// Where nothing is being recorded and the level of numerics is the function's, it may be its callable alone.
  bool may_be_eager() const;

  CompileMode mode() const { return mode_; }
  trace::Function& function() const { return *function_; }
  const trace::Function& backward() const { return backward_->function(); }
  Freezer& freezer() { return freezer_; }
  const Freezer& freezer() const { return freezer_; }
  Statistics statistics() const;
  /// Lets go of what calls can learn and record again.
  void clear();

 private:
  CompileMode mode_;
  std::shared_ptr<trace::Function> function_;
  std::shared_ptr<trace::Backward> backward_;  // tapes keep it, too
  Freezer freezer_;
  std::optional<trace::RecorderPool> recorders_;
};

}  // namespace ingot::detail
