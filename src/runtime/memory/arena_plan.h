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

/// Buffers whose lifetimes meet never share a byte. Offsets are multiples of 64; large buffers start at differing
/// addresses modulo 4096. Throws Error if the sizes overflow.
ArenaPlan plan_arena(std::span<const ArenaRequest> requests);

}  // namespace ingot::runtime
