#include "trace/recording_limits.h"

namespace ingot::trace {
namespace {

constexpr double kRecordingShare = 0.1;
// After so many strangers in a row, only every kProbe-th call is compared with the tree.
constexpr int64_t kStrangers = 8, kProbe = 16;

}  // namespace

void RecordingLimits::begin_call(int64_t call) {
  call_ = call;
  if (full_) make_room();
  size_before_ = tree_.size();
  if (crowded_) started_ = std::chrono::steady_clock::now();
}

void RecordingLimits::end_call(bool passed) {
  if (!crowded_) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  spent_ += seconds;
  if (has_recorded()) spent_recording_ += seconds;
  strangers_ = passed ? strangers_ + 1 : 0;
}

bool RecordingLimits::pass_over() const { return crowded_ && strangers_ >= kStrangers && call_ % kProbe != 0; }

bool RecordingLimits::may_record() {
  // One long path is not cut short; many of them are.
  if (tree_.size() >= kMostNodes && 2 * (tree_.size() - size_before_) < tree_.size()) {
    if (!full_) function_.note_full(kMostNodes);
    full_ = true;
    return false;
  }
  return !crowded_ || has_recorded() || spent_recording_ < kRecordingShare * spent_;
}

void RecordingLimits::make_room() {
  tree_.prune(0);
  if (2 * tree_.size() > kMostNodes) tree_.prune(tree_.median_use());
  function_.drop_unused_programs();
  full_ = false;
  crowded_ = true;
  spent_ = spent_recording_ = 0;
}

}  // namespace ingot::trace
