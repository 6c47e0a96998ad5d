#include "trace/backward.h"

namespace ingot::trace {

class Backward::CallPass final : public autograd::Stretch::Pass {
 public:
  explicit CallPass(std::shared_ptr<Backward> backward)
      : backward_(std::move(backward)), recorder_(backward_->recorders_.lend()) {
    recorder_->begin({}, Purpose::gradients);
  }
  void compute() override { recorder_->compute("so far the way back goes at once"); }
  void finish() override { recorder_->finish(); }
  void abandon() override { recorder_->abandon(); }

 private:
  const std::shared_ptr<Backward> backward_;
  LentRecorder recorder_;
};

class Backward::CallStretch final : public autograd::Stretch {
 public:
  explicit CallStretch(std::shared_ptr<Backward> backward) : backward_(std::move(backward)) {}
  std::unique_ptr<Pass> begin() override { return std::make_unique<CallPass>(backward_); }

 private:
  const std::shared_ptr<Backward> backward_;
};

autograd::StretchPtr Backward::stretch() { return autograd::StretchPtr::take(new CallStretch(shared_from_this())); }

}  // namespace ingot::trace
