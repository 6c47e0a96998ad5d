// Times of steps and of bindings, for explain and bench: off, it costs one relaxed load a program run.
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

/// Binding a program to sizes that it was not bound to.
struct BindingTime {
  int64_t bindings = 0;
  int64_t steps = 0;  // bound anew: of the others, none of the sizes had changed
  double total_ns = 0;
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
  BindingTime bindings() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  friend void record_step(const std::shared_ptr<const Program>& program, uint32_t step, double ns);
  friend void record_binding(int64_t steps, double ns);
};

/// Adds one run of a step.
void record_step(const std::shared_ptr<const Program>& program, uint32_t step, double ns);
/// Adds one binding, in which so many steps were bound anew.
void record_binding(int64_t steps, double ns);

}  // namespace ingot::runtime
