// Records the ops of one call at a time and replays them against the tree; computes at flushes.
//
// A call is cut into segments by its flushes. After a flush everything that is still alive is real memory, and the next
// segment sees it as outside.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eager/call/dispatch.h"
#include "eager/execute/numerics.h"
#include "trace/call_memory.h"
#include "trace/function.h"
#include "trace/observation.h"
#include "trace/recording_limits.h"
#include "trace/segment.h"
#include "trace/segment_runner.h"
#include "trace/trace_tree.h"

namespace ingot::trace {

class Backward;

/// What a call is made for: its results; also its observation; or that alone, and then it is not counted; or gradients.
enum class Purpose : uint8_t { results, observed, trial, gradients };

class Recorder final : public eager::Interceptor {
 public:
  /// `backward`: what computes the derivatives of what its calls leave on the tape; null: the engine, node by node.
  explicit Recorder(std::shared_ptr<Function> function, std::shared_ptr<Backward> backward = nullptr);

  /// Starts a call on this thread and becomes its interceptor. Tensors among the call's arguments are told from
  /// captured ones.
  void begin(std::span<const detail::TensorImpl* const> arguments, Purpose purpose = Purpose::results);
  /// Computes what was recorded so far: a flush that nobody asked for. The reason is for logs.
  void compute(const char* reason);
  /// Ends the call: computes what is alive. Throws what eager would have thrown where a check fails.
  void finish();
  /// Ends a call that threw: the recorded ops run one by one, so that their effects are eager's.
  void abandon();
  /// Ends a call as if it had not begun: what was recorded is forgotten.
  void discard() { leave(); }

  void call(const eager::OpCall& call, std::span<Tensor> outputs) override;
  /// A function of the user's runs now, between what was recorded before it and after it, and what it does is not
  /// recorded.
  std::vector<Tensor> call(const eager::OpaqueCall& call) override;
  void flush(const char* reason, Location location) override;
  void hand_out(const detail::TensorImpl& tensor, bool writable) override;
  uint64_t writes_to(const detail::TensorImpl& tensor) const override { return segment_.writes_to(tensor); }
  void on_refusal(std::function<void()> undo) override {
    if (!passthrough_) segment_.on_refusal(std::move(undo));
  }

  Tensor another_handle(const detail::TensorImpl& tensor) override {
    return tensor.trace == segment_.id() ? segment_.another_handle(tensor.value) : Tensor();
  }
  bool will_own_memory(const detail::TensorImpl& tensor) const override {
    return tensor.trace == segment_.id() && segment_.will_own_memory(tensor.value);
  }

  const Segment& segment() const { return segment_; }
  /// Of the call in progress or the latest, which began with the purpose of being observed.
  Observation& observation() { return *observation_; }
  void forget_observation();
  /// True if the call in progress is so little up to here that fusing it does not pay for recording it: a few ops on
  /// short tensors.
  bool slight() const;

 private:
  void leave();
  void call_at_once(const eager::OpCall& call, std::span<Tensor> outputs);
  void leave_known_paths(const eager::OpCall& call, std::span<Tensor> outputs);
  void end_segment(const char* reason, Location location);
  void pass_through(std::string why);
  bool reaches_handed_out(const eager::OpCall& call) const;

  std::shared_ptr<Function> function_;
  TraceTree tree_;
  RecordingLimits limits_;
  Segment segment_;
  CallMemory memory_;
  SegmentRunner runner_;
  int64_t calls_ = 0;

  // The call in progress.
  std::optional<Observation> observation_;
  eager::Interceptor* outer_ = nullptr;
  eager::Interceptor* outer_observer_ = nullptr;
  std::optional<eager::NumericsScope> numerics_;  // the function's own level
  bool counted_ = true;
  bool passthrough_ = false;  // the rest of the call is eager
  bool ended_well_ = false;
};

}  // namespace ingot::trace
