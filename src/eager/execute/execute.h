// Executing a call: views at once, elementwise ops by their kernel, everything else as a program of one op.
#pragma once
#include <cstdint>
#include <memory>

#include "eager/call/dispatch.h"

namespace ingot::eager {

/// What eager execution of this process has compiled so far.
struct EagerStatistics {
  int64_t pointwise_kernels = 0;  // elementwise ops, one for each key and access
  int64_t programs = 0;           // other ops
  int64_t fallbacks = 0;          // calls that ran on the scalar executor because no code could be made
};
EagerStatistics eager_statistics();

/// Executes now, on this thread, whoever stands in its chain. Throws Error for what the user got wrong.
void execute(const OpCall& call, std::span<Tensor> outputs);
/// Runs an elementwise call; false where it is outside what one kernel can do, and execute_program takes it.
bool execute_pointwise(const OpCall& call, const OutputMeta& meta, Tensor& output);
/// Runs any call but a view. With call.inplace the result is written through operand 0.
void execute_program(const OpCall& call, std::span<const OutputMeta> metas, std::span<Tensor> outputs);

/// Bounds of what eager execution keeps: programs of one op, and kernels of elementwise ops. Past the latter, new
/// elementwise calls are programs.
inline constexpr size_t kMostEagerPrograms = 4096, kMostPointwiseKernels = 16384;
struct EagerProgramFigures {
  int64_t programs = 0, evictions = 0;
};
EagerProgramFigures eager_program_figures();
void clear_eager_programs();

namespace statistics {
void count_pointwise();
void count_program();
/// Says the reason once, and counts.
void count_fallback(std::string_view reason);
}  // namespace statistics

}  // namespace ingot::eager
