// The processor we run on: which target to generate code for, and how large its caches are.
#pragma once
#include <cstdint>
#include <optional>

#include "base/program.h"

namespace ingot::runtime {

/// The target of this process: the best the processor and the operating system support, or what INGOT_ISA names.
/// Throws Error if INGOT_ISA names no level, or one that this machine lacks.
const Target& host_target();
/// What the machine supports, whatever INGOT_ISA says.
Target detected_target();
/// The target of a level on this machine. Throws Error if the machine lacks it.
Target target_of(Isa isa);
/// Replaces host_target() from now on (tests compare levels in one process); nullopt goes back to the default.
void set_host_target(std::optional<Target> target);

inline constexpr int64_t kCacheLine = 64;  // bytes
/// Bytes of cache that one core sees.
struct CacheSizes {
  int64_t l1, l2, l3;
  int64_t l2_ways;
};
const CacheSizes& cache_sizes();
/// True if `count` lines at this distance in bytes meet in so few sets of L2 that they take more than half of them.
bool lines_conflict(int64_t stride, int64_t count);

/// Number of logical processors that this process may use: its affinity and the CPU limit of its control group.
int usable_processors();

}  // namespace ingot::runtime
