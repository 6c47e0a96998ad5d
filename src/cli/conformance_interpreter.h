// Runs what the API dispatches through the reference interpreter.
#pragma once
#include "eager/dispatch.h"

namespace ingot::cli {

/// While it lives, every op of this thread is computed by the reference, one at a time; no kernel is made.
class InterpretedScope : public eager::Interceptor {
 public:
  InterpretedScope();
  ~InterpretedScope() override;
  InterpretedScope(const InterpretedScope&) = delete;
  void call(const eager::OpCall& call, std::span<Tensor> outputs) override;
  void flush(const char* reason, Location location) override {}

 private:
  eager::Interceptor* previous_;
};

}  // namespace ingot::cli
