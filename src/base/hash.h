// Hashing for tables in memory: fast and well mixed, not for files and not against an adversary.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace ingot {

/// Folds the 128-bit product: the mixing step of wyhash (Wang Yi, public domain).
inline uint64_t hash_mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_combine(uint64_t seed, uint64_t value) {
  return hash_mix(seed ^ 0x9e3779b97f4a7c15ull, value ^ 0xe7037ed1a0b428dbull);
}

inline uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0) {
  const char* p = static_cast<const char*>(data);
  uint64_t hash = hash_combine(seed, bytes);
  for (; bytes >= 8; p += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    hash = hash_combine(hash, word);
  }
  if (bytes) {
    uint64_t word = 0;
    std::memcpy(&word, p, bytes);
    hash = hash_combine(hash, word);
  }
  return hash;
}

inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}
inline uint64_t hash_ints(std::span<const int64_t> values, uint64_t seed = 0) {
  return hash_bytes(values.data(), values.size_bytes(), seed);
}

}  // namespace ingot
