// What the process keeps between calls: every cache with its bound, in one list.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/export.h"

namespace ingot {

/// A cache of the process. What it has no count, bytes or bound of is -1.
struct CacheFigures {
  std::string name;
  int64_t entries = -1, most_entries = -1;
  int64_t bytes = -1, most_bytes = -1;
  int64_t evictions = -1;  // entries that went for want of room, since the process began
};
/// Kernels, packed weights, programs and kernels of eager ops, blocks of memory for tensors. What one compiled function
/// keeps is in its stats().
INGOT_API std::vector<CacheFigures> cache_figures();
/// Gives back what can be made again: kernels that nobody uses, packed weights, programs of eager ops, what frozen
/// functions learnt, cached blocks of memory. Calls in progress keep what they use.
INGOT_API void clear_caches();

namespace eager {
/// What clear_caches() calls first, for what the folders above this one keep.
void set_clear_functions(void (*clear)());
}  // namespace eager

}  // namespace ingot
