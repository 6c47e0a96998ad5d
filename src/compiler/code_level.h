// The level of numerics as code generation sees it.
#pragma once
#include <string>

#include "base/numerics.h"
#include "base/program.h"

namespace ingot::compiler {

/// What generated code depends on beside its graph.
struct CodeLevel {
  Target target;  // the host's, without bf16_dot under strict
  Numerics numerics = Numerics::default_;
  std::string str() const { return target.str() + " " + std::string(name_of(numerics)); }
  friend bool operator==(const CodeLevel&, const CodeLevel&) = default;
};

}  // namespace ingot::compiler
