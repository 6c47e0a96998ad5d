// The level of numerics as code generation sees it.
#pragma once
#include <optional>
#include <string>

#include "base/program.h"
#include "eager/numerics.h"

namespace ingot::eager {

/// What generated code depends on beside its graph.
struct CodeLevel {
  Target target;  // the host's, without bf16_dot under strict
  Numerics numerics = Numerics::default_;
  std::string str() const { return target.str() + " " + std::string(name_of(numerics)); }
  friend bool operator==(const CodeLevel&, const CodeLevel&) = default;
};
/// What holds on this thread now.
CodeLevel code_level();

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
