// What a program computes of weights alone, as a batch norm's scale and shift: kept between runs.
#pragma once
#include <span>
#include <vector>

#include "base/program.h"
#include "runtime/drivers/run_state.h"

namespace ingot::runtime {

/// Which steps make the values of a program's buffers of Place::kept, and where these lie. Each run state keeps them
/// until it meets a weight in another state, other memory, or another scalar that those steps read.
class KeptValues {
 public:
  /// `first_scalars` of each step, in RunState::scalars.
  KeptValues(const Program& program, std::span<const uint32_t> first_scalars);
  bool any() const { return bytes_ > 0; }
  /// Whether the step has nothing else to do: it is left out where KeptMemory::current.
  bool makes(uint32_t step) const { return makes_[step]; }

  /// Before a run, once scalars are set: where the kept buffers lie, and whether they hold what the steps would make.
  void begin(RunState& state, std::span<void* const> inputs, std::span<const InputIdentity> identities) const;
  /// After all steps.
  void end(RunState& state) const;

 private:
  struct Part {
    uint32_t buffer;
    int64_t offset;
  };
  int64_t bytes_ = 0;
  std::vector<bool> makes_;
  std::vector<Part> parts_;
  std::vector<uint32_t> inputs_, scalars_;  // that the steps read
};

}  // namespace ingot::runtime
