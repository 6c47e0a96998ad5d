// What the process keeps between calls: every cache with its bound, in one list.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/export.h"

namespace ingot {

/// A cache of the process. What it has no count, bytes or bound of is -1.
struct CacheFigures {
  std::string name;
  int64_t entries = -1, most_entries = -1;
  int64_t bytes = -1, most_bytes = -1;
  int64_t evictions = -1;  // entries that went for want of room, since the process began
};
/// Kernels, packed weights, programs, those and the kernels of eager ops, blocks of memory for tensors. What one
/// compiled function keeps is in its stats().
INGOT_API std::vector<CacheFigures> cache_figures();
/// The memory of the process, in bytes.
struct MemoryStats {
  int64_t allocated_bytes =
      0;                      // of tensors, packed weights and intermediate results, each rounded up to its size class
  int64_t peak_bytes = 0;     // the most of these since reset_peak_memory_stats()
  int64_t packed_bytes = 0;   // of what is allocated, packed weights
  int64_t scratch_bytes = 0;  // of what is allocated, what threads compute in; it stays with them between calls
  int64_t peak_beyond_scratch_bytes = 0;  // as peak_bytes, of what is no scratch memory
  int64_t cached_bytes = 0;               // of freed tensors and results, kept for the next ones
  int64_t cached_limit = 0;               // the most that is kept so now; see set_cached_memory_limit
  int64_t code_bytes = 0;                 // of kernels
  int64_t resident_bytes = 0;             // of the whole process, as the system counts it; 0 where it does not say
  int64_t given_back_bytes = 0;           // of weights whose file has them, given back once packed (CompileOptions)
};
INGOT_API MemoryStats memory_stats();
/// The peak begins anew, at what is allocated now.
INGOT_API void reset_peak_memory_stats();
/// Gives free memory back to the system: blocks that are kept for the next tensors, and what the C library holds. What
/// is in use stays, and so do caches (clear_caches); scratch memory of other threads goes when they next compute. For
/// any time; the calls after it take their memory anew.
INGOT_API void trim_memory();
/// The most bytes of free memory to keep, at least 0 (else Error): a quarter of the machine's memory by default. Below
/// it, as much is kept as was in use at once in the latest few hundred allocations beyond what is in use now, and 64
/// MiB.
INGOT_API void set_cached_memory_limit(int64_t bytes, Location location = Location());
/// Gives back what can be made again: kernels that nobody uses, packed weights, programs of eager ops, what frozen
/// functions learnt, cached blocks of memory. Calls in progress keep what they use.
INGOT_API void clear_caches();

namespace eager {
/// What clear_caches() calls first, for what the folders above this one keep.
void set_clear_functions(void (*clear)());
}  // namespace eager

}  // namespace ingot
