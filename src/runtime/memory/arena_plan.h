// Where the buffers of a program lie in its arena.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ingot::runtime {

struct ArenaRequest {
  int64_t bytes;
  uint32_t first_step, last_step;  // both ends included
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // one a request
  int64_t bytes = 0;
};

/// What to ask for a buffer of so many bytes: a little more where it is small, so that sizes that differ little have
/// the same plan. At most an eighth more, or a page.
int64_t arena_room(int64_t bytes);

/// Buffers whose lifetimes meet never share a byte. Offsets are multiples of 64; large buffers start at differing
/// addresses modulo 4096. Throws Error if the sizes overflow.
ArenaPlan plan_arena(std::span<const ArenaRequest> requests);

}  // namespace ingot::runtime
