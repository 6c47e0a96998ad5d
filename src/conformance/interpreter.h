// Runs what the API dispatches through the reference interpreter.
#pragma once
#include "eager/call/dispatch.h"
#include "ir/reference.h"

namespace ingot::conformance {

/// While it lives, every op of this thread is computed by the reference, one at a time; no kernel is made. With
/// `passes` it is what the pipeline makes of the op that is computed.
class InterpretedScope : public eager::Interceptor {
 public:
  explicit InterpretedScope(bool passes);
  ~InterpretedScope() override;
  InterpretedScope(const InterpretedScope&) = delete;
  using Interceptor::call;
  void call(const eager::OpCall& call, std::span<Tensor> outputs) override;

 private:
  void give_view(const eager::OpCall& call, const ir::ReferenceTensor& expected, std::span<Tensor> outputs);

  bool passes_;
  eager::Interceptor* previous_;
};

}  // namespace ingot::conformance
