// Writes the tape: stands in the chain of every thread on which gradients are recorded.
#pragma once
#include "eager/autograd/node.h"
#include "eager/call/dispatch.h"

namespace ingot::autograd {

class Tape final : public eager::Interceptor {
 public:
  constexpr Tape() : Interceptor(eager::Stage::autograd) {}
  void call(const eager::OpCall& call, std::span<Tensor> outputs) override;
  /// A function of the user's is not differentiated; the ops inside of it are.
  std::vector<Tensor> call(const eager::OpaqueCall& call) override { return proceed(call); }

  /// Another handle of a tensor, which leads nowhere: as detach() behind this stage, but no op that would be recorded.
  Tensor handle_of(const Tensor& tensor, Location location) const;

 private:
  void record(const eager::OpCall& call, std::span<Tensor> outputs);
  void record_write(const eager::OpCall& call, std::span<Tensor> outputs);
};

/// What the tape has of a tensor before a write, for a write that is found later not to have been done.
class TapeState {
 public:
  /// Of the tensor behind this one, which must be there when it is restored.
  explicit TapeState(const Tensor& written);
  void restore() const;

 private:
  ingot::detail::TensorImpl* base_;  // no handle: it would make the tensor one that somebody holds
  NodePtr node_;
  uint32_t output_;
  bool requires_grad_;
};

/// The frozen function that this thread calls, by name; null: none. What would be put on the tape there is refused with
/// an Error: the function is not run again, so no tape could be written. Returns the one before.
const std::string* set_frozen_function(const std::string* name);

/// A name for a scalar (eager::Operand::origin) that no other one has.
uint64_t next_scalar();

/// Never destroyed: threads may call while a process ends.
union LastingTape {
  Tape tape;
  constexpr LastingTape() : tape() {}
  ~LastingTape() {}
};
extern constinit LastingTape lasting_tape;
/// The one of the process; it has no state. Where it stands, gradients are recorded.
inline Tape& tape() { return lasting_tape.tape; }

}  // namespace ingot::autograd
