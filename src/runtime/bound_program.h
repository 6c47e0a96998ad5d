// A program with its sizes: drivers in order, where each buffer lies, and where threads must wait.
#pragma once
#include <memory>
#include <vector>

#include "base/program.h"
#include "runtime/drivers/step_driver.h"
#include "runtime/step_forms.h"

namespace ingot::runtime {

/// A phase of a step, in order of the program.
struct BoundPhase {
  uint32_t step = 0;
  int number = 0;
  bool single = false;          // run by the caller's thread, all such phases in order
  bool barrier_before = false;  // a phase since the last barrier, shared by threads, touches what this one touches
};

/// A buffer in the arena: of the program, or (numbered after those) what a step needs for itself.
struct ArenaBuffer {
  uint32_t buffer;
  int64_t offset, room;  // room: of BoundProgram::bytes, or a little more (see arena_room)
};

/// Phases that run together: once, or once for each slice.
struct BoundSegment {
  size_t first_phase, end_phase;
  int64_t number;      // of the program's segments; -1: once
  bool single = true;  // all of them are
};

/// What follows from the steps' sizes taken together.
struct Schedule {
  std::vector<BoundPhase> phases;
  std::vector<BoundSegment> segments;  // all of the phases, in order
  std::vector<uint32_t> weight_steps;  // those that prepare
  bool keeps_values = false;           // of weights alone
  std::vector<ArenaBuffer> arena;
  int64_t arena_bytes = 0;
};

/// A step's driver, which may be that of other steps and of another binding.
struct BoundStep {
  const StepDriver* driver = nullptr;
  uint64_t asked = 0;   // the sizes from which it follows (see BindContext)
  uint32_t memory = 0;  // that holds it, of BoundProgram::memories
  friend bool operator==(const BoundStep& a, const BoundStep& b) { return a.driver == b.driver; }
  const StepDriver* operator->() const { return driver; }
  const StepDriver& operator*() const { return *driver; }
};

class BoundProgram {
 public:
  /// Steps of one form share a driver; what does not follow from sizes that differ is shared with `like`, the same
  /// program for others, if it is given. `constants`: one a form.
  BoundProgram(const Program& program, const StepForms& forms, std::span<const int64_t> symbols,
               std::vector<int64_t> values, int threads, const KernelTable& kernels, std::span<StepConstants> constants,
               const BoundProgram* like);

  const std::vector<int64_t> symbols;
  const std::vector<int64_t> values;  // of the program's expressions
  const int threads;                  // that the process allowed when it was bound
  int useful_threads = 1;
  int fresh_steps = 0;  // not shared with `like`
  std::vector<BoundStep> steps;
  std::vector<std::shared_ptr<DriverMemory>> memories;  // its own, then those of drivers that it shares
  std::shared_ptr<const Schedule> schedule;

  /// Of a buffer in the arena.
  int64_t bytes(const Program& program, uint32_t buffer) const {
    const size_t own = program.buffers.size();
    return buffer < own ? DimTable::value_of(program.buffers[buffer].bytes, values) : steps[buffer - own]->shared_bytes;
  }
  /// Whether running it asks for CallData::identities.
  bool asks_identities() const { return !schedule->weight_steps.empty() || schedule->keeps_values; }

 private:
  static uint32_t own_buffer(const Program& program, uint32_t step) {
    return static_cast<uint32_t>(program.buffers.size()) + step;
  }
  void plan_memory(const Program& program, Schedule& to) const;
  void plan_barriers(const Program& program, Schedule& to) const;
};

}  // namespace ingot::runtime
