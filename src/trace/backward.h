// The way back through a compiled function: the derivatives of what a call left on the tape are recorded and computed
// as the call was.
#pragma once
#include <memory>

#include "eager/autograd/stretch.h"
#include "trace/recorder_pool.h"

namespace ingot::trace {

/// The engine runs the nodes of a call as ever, and what they call is recorded: its order and its sums are eager's,
/// hooks run, and a derivative of the derivative is one more recording's. Which gradients are wanted, and what they are
/// added to, are paths of the tree. No tensor is taken to come again in the next call.
class Backward : public std::enable_shared_from_this<Backward> {
 public:
  /// `function`: a function of its own beside the one that it is the way back of.
  explicit Backward(std::shared_ptr<Function> function) : function_(std::move(function)), recorders_(function_) {}
  const Function& function() const { return *function_; }
  /// Of one call. It keeps this.
  autograd::StretchPtr stretch();
  void clear() { recorders_.clear(); }

 private:
  class CallStretch;
  class CallPass;
  std::shared_ptr<Function> function_;
  RecorderPool recorders_;
};

}  // namespace ingot::trace
