// How much one recorder may record.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "trace/function.h"
#include "trace/trace_tree.h"

namespace ingot::trace {

/// A function that goes another way in every call would fill memory with paths that are of no use. Where the tree is
/// full, new paths run eagerly, branches that were never taken again are cut before the next call, and from then on
/// recording takes a small part of the time only.
class RecordingLimits {
 public:
  static constexpr size_t kMostNodes = 32768;

  RecordingLimits(TraceTree& tree, Function& function) : tree_(tree), function_(function) {}

  /// `call`: its number.
  void begin_call(int64_t call);
  /// `passed`: it ran eagerly, at least its end.
  void end_call(bool passed);
  /// True where many calls in a row left what is recorded: this one is not to be compared with it.
  bool pass_over() const;
  /// False where a call that is not in the tree is to run eagerly.
  bool may_record();
  /// True if this call has recorded something.
  bool has_recorded() const { return tree_.size() > size_before_; }

 private:
  void make_room();

  TraceTree& tree_;
  Function& function_;
  size_t size_before_ = 0;
  bool full_ = false, crowded_ = false;
  int64_t call_ = 0, strangers_ = 0;  // calls in a row that left what is recorded
  std::chrono::steady_clock::time_point started_;
  double spent_ = 0, spent_recording_ = 0;  // seconds, once crowded
};

}  // namespace ingot::trace
