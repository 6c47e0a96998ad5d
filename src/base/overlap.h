// Whether two elements of a strided view are one place in memory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "base/small_vector.h"

namespace ingot {

/// True if a dim steps no further than the dims of smaller strides reach. Of views by slices, windows and diagonals
/// that says exactly whether elements overlap; as_strided can interleave dims that it takes for overlapping.
inline bool elements_overlap(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t dense = 1;
  size_t d = sizes.size();
  while (d > 0 && strides[d - 1] == dense) dense *= sizes[--d];
  if (d == 0) return false;

  struct Step {
    int64_t stride, size;
    bool operator<(const Step& other) const { return stride < other.stride; }
  };
  SmallVector<Step, 8> dims;
  for (d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) dims.push_back({strides[d], sizes[d]});
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const Step& dim : dims) {
    if (dim.stride <= reach) return true;
    reach += (dim.size - 1) * dim.stride;
  }
  return false;
}

}  // namespace ingot
