// The definition of the order of sums, as docs/numerics.md has it.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace ingot::test {

/// Blocks of 256 elements with 16 lanes each, a binary tree of blocks, then the lanes by halves.
template <class T>
T canonical_sum(const T* x, int64_t n) {
  std::vector<std::array<T, 16>> parts;
  for (int64_t b = 0; b < n; b += 256) {
    std::array<T, 16> lane;
    lane.fill(T(-0.0));
    for (int64_t i = b; i < std::min(b + 256, n); ++i) lane[static_cast<size_t>((i - b) % 16)] += x[i];
    parts.push_back(lane);
  }
  if (parts.empty()) return T(0);
  while (parts.size() > 1) {
    for (size_t i = 0; i + 1 < parts.size(); i += 2)
      for (size_t l = 0; l < 16; ++l) parts[i / 2][l] = parts[i][l] + parts[i + 1][l];
    if (parts.size() % 2) parts[parts.size() / 2] = parts.back();
    parts.resize((parts.size() + 1) / 2);
  }
  for (size_t half = 8; half; half /= 2)
    for (size_t l = 0; l < half; ++l) parts[0][l] += parts[0][l + half];
  return parts[0][0];
}

}  // namespace ingot::test
