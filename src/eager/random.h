// The generator of this process: Philox 4x32-10, so that draw i is a function of (seed, i).
#pragma once
#include <cstdint>

namespace ingot::eager {

/// 128 random bits.
struct RandomBits {
  uint64_t high, low;
};
RandomBits philox(uint64_t seed, uint64_t position);

/// Draws of one call, in order.
struct RandomStream {
  uint64_t seed, position;
  RandomBits next() { return philox(seed, position++); }
};
/// Reserves `count` draws.
RandomStream take_random(int64_t count);

}  // namespace ingot::eager
