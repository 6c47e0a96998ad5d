// A program with its sizes: drivers in order, where each buffer lies, and where threads must wait.
#pragma once
#include <memory>
#include <vector>

#include "base/program.h"
#include "runtime/step_driver.h"

namespace ingot::runtime {

/// A phase of a step, in order of the program.
struct BoundPhase {
  const StepDriver* driver = nullptr;
  uint32_t step = 0;
  int number = 0;
  bool single = false;          // run by the caller's thread, all such phases in order
  bool barrier_before = false;  // a phase since the last barrier, shared by threads, touches what this one touches
};

/// A buffer in the arena: of the program, or (numbered after those) what a step needs for itself.
struct ArenaBuffer {
  uint32_t buffer;
  int64_t offset, bytes;
};

class BoundProgram {
 public:
  BoundProgram(const Program& program, std::span<const int64_t> symbols, int threads,
               std::span<const uint32_t> first_scalars,
               const std::function<const LoadedKernel&(const KernelPtr&)>& kernel);

  std::vector<int64_t> symbols;
  int threads;                  // that the process allowed when it was bound
  std::vector<int64_t> values;  // of the program's expressions
  std::vector<std::unique_ptr<StepDriver>> steps;
  std::vector<BoundPhase> phases;
  std::vector<uint32_t> weight_steps;  // those that prepare
  std::vector<ArenaBuffer> arena;
  int64_t arena_bytes = 0;
  int useful_threads = 1;

 private:
  void plan_memory(const Program& program);
  void plan_barriers(const Program& program);
};

}  // namespace ingot::runtime
