// Outputs of a program that may be the memory of one of its inputs: what is written in place.
#pragma once
#include <cstdint>
#include <span>

#include "base/program.h"
#include "runtime/program_runner.h"

namespace ingot::runtime {

/// True if this output may be written over this input, of the same sizes and strides, while the program runs: all who
/// read the input come before who writes the output first, or it is that step itself, which may. (Steps run in order
/// where they touch inputs and outputs, see BoundProgram.)
bool may_write_over(const Program& program, uint32_t output, uint32_t input);

/// Runs the program. Where memory is checked (INGOT_CHECK_MEMORY), a call that writes over inputs is judged, too.
void run_in_place(const LoadedProgram& program, const BoundProgram& bound, const CallData& data,
                  std::span<const int64_t> output_bytes);

/// Runs the program with outputs in memory of their own, then as `data` has it, and compares their bytes: throws
/// InternalError if what is written over an input comes out otherwise.
void run_judged(const LoadedProgram& program, const BoundProgram& bound, const CallData& data,
                std::span<const int64_t> output_bytes);

}  // namespace ingot::runtime
