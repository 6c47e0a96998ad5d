// Host memory for tensors: blocks are cached by size class, first in the freeing thread, then for all.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ingot::runtime {

/// A block of at least `bytes` bytes (0 too), aligned to 64. Large blocks start at differing addresses modulo 4096 and
/// are backed by huge pages where the system has them. Throws Error if the size is negative, absurd or not to be had.
void* allocate(int64_t bytes);
/// Gives back a block of allocate(bytes), on any thread.
void deallocate(void* block, int64_t bytes) noexcept;

struct AllocatorStatistics {
  int64_t live_bytes = 0;    // in blocks that are allocated, by size class
  int64_t cached_bytes = 0;  // in blocks kept for reuse
  int64_t cached_limit = 0;  // most bytes of large blocks to keep: a quarter of the machine's memory
  int64_t allocations = 0, reuses = 0;
};
AllocatorStatistics allocator_statistics();
/// Gives cached large blocks back to the system; blocks in other threads' caches stay.
void trim_allocator();

}  // namespace ingot::runtime
