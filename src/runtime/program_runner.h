// Loaded programs: kernels in memory, sizes bound, steps run in one parallel region.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/program.h"
#include "runtime/code/kernel_cache.h"
#include "runtime/memory/storage.h"

namespace ingot::runtime {

struct BoundSegment;
class KeptValues;
class StepForms;
struct RunState;
struct StepState;
struct WeightSlot;

/// The data of one call. Outputs are allocated by the caller, as dense as the program's arguments say.
struct CallData {
  std::span<void* const> inputs;
  std::span<const InputIdentity> identities;  // one an input, or empty: see BoundProgram::asks_identities
  std::span<void* const> outputs;
  std::span<const uint64_t> scalars;  // floating: bits of f64, else i64 (Program::scalars)
};

/// A program for one tuple of sizes: every expression evaluated, the arena planned, the steps' launches worked out.
class BoundProgram;
using BoundProgramPtr = std::shared_ptr<const BoundProgram>;

/// May be used by many threads at once.
class LoadedProgram {
 public:
  /// Loads the kernels that the kernel cache does not hold yet. `pack_weights_only`: weights that it finds packed are
  /// not wanted in memory as they lie (Storage::give_back_pages).
  explicit LoadedProgram(std::shared_ptr<const Program> program, bool pack_weights_only = false);
  ~LoadedProgram();
  const Program& program() const { return *program_; }

  /// The program for these values of its symbols. The last used ones are remembered.
  BoundProgramPtr bind(std::span<const int64_t> symbols) const;
  /// The same where the program's guards hold for them, else null.
  BoundProgramPtr bind_where_it_holds(std::span<const int64_t> symbols) const;
  /// Runs all steps; when it returns, outputs are written. `bound` comes from this object's bind. `in_place`: outputs
  /// may be inputs; nothing is written to these before all memory is there.
  void run(const BoundProgram& bound, const CallData& data, bool in_place = false) const;

  int64_t arena_bytes(const BoundProgram& bound) const;
  /// Times that a weight was packed to be kept, over all steps.
  int64_t weight_packs() const;
  /// What became of a step's weight in its latest run, or that it reads nothing but weights; empty where it has none,
  /// or reads it as it lies.
  std::string weight(size_t step) const;

 private:
  /// What is remembered, or null.
  BoundProgramPtr find(std::span<const int64_t> symbols) const;
  /// With the values of all expressions.
  BoundProgramPtr bind(std::span<const int64_t> symbols, std::vector<int64_t> values) const;
  std::unique_ptr<RunState> acquire(int64_t arena_bytes) const;
  void give_back(std::unique_ptr<RunState> state) const;
  void run_phases(const BoundProgram& bound, const BoundSegment& segment, RunState& state, int64_t scratch) const;
  StepState state_of(uint32_t step, RunState& state) const;

  struct Bindings;
  std::shared_ptr<const Program> program_;
  std::vector<LoadedKernelPtr> kernels_;
  std::unique_ptr<const StepForms> forms_;
  std::vector<uint32_t> first_scalars_;  // of each step, in RunState::scalars
  std::unique_ptr<const KeptValues> kept_;
  std::unique_ptr<Bindings> bindings_;
  std::unique_ptr<WeightSlot[]> weights_;         // one a step
  mutable std::atomic<RunState*> idle_{nullptr};  // the state that most runs find
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<RunState>> more_idle_;
};

}  // namespace ingot::runtime
