// Whether two elements of a strided view are one place in memory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "base/small_vector.h"

namespace ingot {

/// A dim of more than one element.
struct StridedDim {
  int64_t stride, size;
  friend bool operator<(const StridedDim& a, const StridedDim& b) { return a.stride < b.stride; }
};

/// The answer for dims in the order of their strides, by a search whose steps are at most about the view's elements.
bool some_elements_meet(std::span<const StridedDim> dims);

/// True if two elements of the view are one place. Strides are not negative.
inline bool elements_overlap(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t dense = 1;
  size_t d = sizes.size();
  while (d > 0 && strides[d - 1] == dense) dense *= sizes[--d];
  if (d == 0) return false;

  SmallVector<StridedDim, 8> dims;
  for (d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) dims.push_back({strides[d], sizes[d]});
  }
  std::sort(dims.begin(), dims.end());
  // Where each dim steps further than those of smaller strides reach, as in all views but as_strided's, that is all.
  int64_t reach = 0;
  for (const StridedDim& dim : dims) {
    if (dim.stride <= reach) return dim.stride == 0 || some_elements_meet({dims.data(), dims.size()});
    reach += (dim.size - 1) * dim.stride;
  }
  return false;
}

}  // namespace ingot
