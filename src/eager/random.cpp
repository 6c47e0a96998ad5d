#include "eager/random.h"

#include <mutex>

#include "eager/factories.h"

namespace ingot {
namespace {

struct Generator {
  std::mutex mutex;
  uint64_t seed = 0, position = 0;
};
Generator& generator() {
  static Generator g;
  return g;
}

}  // namespace

// Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011), Philox 4x32 with ten rounds.
eager::RandomBits eager::philox(uint64_t seed, uint64_t position) {
  uint32_t c[4] = {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0};
  uint32_t k[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
                        static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return {uint64_t{c[1]} << 32 | c[0], uint64_t{c[3]} << 32 | c[2]};
}

eager::RandomStream eager::take_random(int64_t count) {
  Generator& g = generator();
  std::lock_guard lock(g.mutex);
  RandomStream stream{g.seed, g.position};
  g.position += static_cast<uint64_t>(count);
  return stream;
}

void manual_seed(uint64_t seed) {
  Generator& g = generator();
  std::lock_guard lock(g.mutex);
  g.seed = seed;
  g.position = 0;
}

}  // namespace ingot
