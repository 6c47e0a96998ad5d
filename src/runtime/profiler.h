// Times of steps, for explain and bench: off, it costs one relaxed load a program run.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/program.h"

namespace ingot::runtime {

/// What one step of a program took, over all its runs.
struct StepTime {
  std::shared_ptr<const Program> program;
  uint32_t step = 0;
  int64_t runs = 0;
  double total_ns = 0, least_ns = 0;  // least: of one run
};

namespace detail {
extern std::atomic<int> profiles;
}
inline bool profiling() { return detail::profiles.load(std::memory_order_relaxed) > 0; }

/// While one exists, every step of every program is timed (and separated by barriers, which costs a little).
class Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  /// So far, in order of first run.
  std::vector<StepTime> steps() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  friend void record_step(const std::shared_ptr<const Program>& program, uint32_t step, double ns);
};

/// Adds one run of a step.
void record_step(const std::shared_ptr<const Program>& program, uint32_t step, double ns);

}  // namespace ingot::runtime
