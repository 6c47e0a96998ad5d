#include "trace/recorder_pool.h"

#include <mutex>

namespace ingot::trace {

LentRecorder RecorderPool::lend() {
  auto lent = [&](Recorder* recorder) { return LentRecorder(recorder, GiveBack{this}); };
  if (Recorder* first = first_.exchange(nullptr, std::memory_order_acquire)) return lent(first);
  std::lock_guard lock(mutex_);
  if (!first_made_) {
    auto first = std::make_unique<Recorder>(function_, backward_);
    first_made_ = first.get();
    return lent(first.release());
  }
  if (idle_.empty()) return lent(std::make_unique<Recorder>(function_, backward_).release());
  std::unique_ptr<Recorder> recorder = std::move(idle_.back());
  idle_.pop_back();
  return lent(recorder.release());
}

// Past the bound, as after a time of very many threads, what a tree holds is recorded again when it is needed.
void RecorderPool::give_back(std::unique_ptr<Recorder> recorder) {
  constexpr size_t kMostIdle = 64;
  recorder->forget_observation();
  if (recorder.get() == first_made_) return first_.store(recorder.release(), std::memory_order_release);
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(recorder));
}

void RecorderPool::clear() {
  std::vector<std::unique_ptr<Recorder>> idle;
  std::lock_guard lock(mutex_);
  idle.swap(idle_);
}

}  // namespace ingot::trace
