// The level of numerics.
#pragma once
#include <optional>

#include "base/export.h"
#include "base/numerics.h"

namespace ingot {
namespace compiler {
struct CodeLevel;
}

/// Sets the level for all threads, eager code and compiled functions that have none of their own. A function that was
/// compiled under another level is compiled again when it is next called.
INGOT_API void set_numerics(Numerics level);
/// The level that holds here: inside a compiled function with a level of its own, that one.
INGOT_API Numerics numerics();

namespace eager {

/// What generated code depends on, on this thread now (compiler/code_level.h).
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

}  // namespace eager

}  // namespace ingot
