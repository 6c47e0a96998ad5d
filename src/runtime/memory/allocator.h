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
/// The same for what lasted, as weights do, and is not asked for again soon: large blocks go to the system.
void deallocate_lasting(void* block, int64_t bytes) noexcept;
/// The same for the scratch memory of a thread, which stays with the thread whoever needed it first.
void* allocate_scratch(int64_t bytes);
void deallocate_scratch(void* block, int64_t bytes) noexcept;

struct AllocatorStatistics {
  int64_t live_bytes = 0;           // in blocks that are allocated, by size class
  int64_t peak_bytes = 0;           // the most of these since reset_allocator_peak(), to within 64 KiB a thread
  int64_t scratch_bytes = 0;        // of the live ones, scratch memory of threads
  int64_t peak_beyond_scratch = 0;  // as peak_bytes, of what is no scratch memory
  int64_t cached_bytes = 0;         // in blocks kept for reuse
  int64_t cached_limit = 0;         // most bytes of large blocks to keep now
  int64_t moved_bytes = 0;          // of cached blocks, so far, whose pages went to blocks of other sizes
  int64_t allocations = 0, reuses = 0;
};
AllocatorStatistics allocator_statistics();
void reset_allocator_peak();
/// Large free blocks are kept for what was in use at once of late, beyond what is in use now, and kKeptFree more; never
/// more than this: a quarter of the machine's memory by default.
void set_allocator_limit(int64_t bytes);
constexpr int64_t kKeptFree = 64 << 20;
/// What was in use at once before is no measure any more: as where a function with its intermediate results has gone.
void forget_peak();
/// Gives cached large blocks back to the system; blocks in other threads' caches stay, and the scratch memory of other
/// threads until they next need theirs.
void trim_allocator();
/// Moves on with every trim_allocator().
uint64_t trim_epoch();

}  // namespace ingot::runtime
