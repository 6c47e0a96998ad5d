// The level that holds on a thread.
#pragma once
#include <optional>

#include "compiler/code_level.h"
#include "eager/execute/numerics.h"

namespace ingot::eager {

/// What holds on this thread now.
compiler::CodeLevel code_level();

/// A level for this thread, while it lives; none: nothing changes.
class NumericsScope {
 public:
  explicit NumericsScope(std::optional<Numerics> level);
  ~NumericsScope();
  NumericsScope(const NumericsScope&) = delete;

 private:
  std::optional<Numerics> before_;
};

}  // namespace ingot::eager
