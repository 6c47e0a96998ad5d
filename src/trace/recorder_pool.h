// The recorders of one function: each call in progress has its own.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "trace/lent_recorder.h"
#include "trace/recorder.h"

namespace ingot::trace {

/// Each recorder grows its own tree, programs are shared.
class RecorderPool {
 public:
  /// `backward`: see Recorder.
  explicit RecorderPool(std::shared_ptr<Function> function, std::shared_ptr<Backward> backward = nullptr)
      : function_(std::move(function)), backward_(std::move(backward)) {}
  ~RecorderPool() { delete first_.load(); }

  LentRecorder lend();
  void give_back(std::unique_ptr<Recorder> recorder);
  /// True for the one that was made first, which is lent before all others.
  bool is_first(const Recorder& recorder) const { return &recorder == first_made_; }
  /// Lets go of the others that are idle.
  void clear();

 private:
  std::shared_ptr<Function> function_;
  std::shared_ptr<Backward> backward_;
  Mutex mutex_;
  std::atomic<Recorder*> first_{nullptr};  // owned while it is here; lent without a lock
  std::atomic<const Recorder*> first_made_{nullptr};
  std::vector<std::unique_ptr<Recorder>> idle_;  // the latest used one last: its tree is the fullest
};

}  // namespace ingot::trace
