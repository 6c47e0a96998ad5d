// Outputs of a program that may be the memory of one of its inputs: what is written in place.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/program.h"
#include "runtime/program_runner.h"

namespace ingot::runtime {

/// Which outputs of a program may be written over which inputs, of the same sizes and strides, while it runs: all who
/// read the input come before who writes the output first, or it is that step itself, which may. A copy of the input to
/// the same places is no write: it does nothing then. (Steps run in order where they touch inputs and outputs, see
/// BoundProgram.)
class Donations {
 public:
  explicit Donations(const Program& program);
  /// Why an output may not be written over an input; empty if it may.
  std::string refusal(uint32_t output, uint32_t input) const;

 private:
  static constexpr uint32_t kNone = ~0u;
  struct Use {
    uint32_t buffer = kNone, step = kNone;
    uint32_t after = kNone;  // of an output: the step that writes it next
  };
  std::string step_text(uint32_t step) const;

  const Program& program_;
  std::vector<Use> outputs_, inputs_;  // the step that writes it first; the last that reads it
};

/// Runs the program. Where memory is checked (INGOT_CHECK_MEMORY), a call that writes over inputs is judged, too.
void run_in_place(const LoadedProgram& program, const BoundProgram& bound, const CallData& data,
                  std::span<const int64_t> output_bytes);

/// Runs the program with outputs in memory of their own, then as `data` has it, and compares their bytes: throws
/// InternalError if what is written over an input comes out otherwise.
void run_judged(const LoadedProgram& program, const BoundProgram& bound, const CallData& data,
                std::span<const int64_t> output_bytes);

}  // namespace ingot::runtime
