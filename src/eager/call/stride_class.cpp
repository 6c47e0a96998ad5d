#include "eager/call/stride_class.h"

#include <algorithm>

#include "base/error.h"

namespace ingot::eager {

StrideClass classify(const Ints& sizes, const Ints& strides) {
  int rank = static_cast<int>(sizes.size());
  StrideClass classes(sizes.size(), kStrideFree);
  Ints dense = strides;  // with the strides that dims of size 1 would have
  for (int i = rank - 1; i >= 0; --i)
    if (sizes[i] == 1) dense[i] = i + 1 == rank ? 1 : dense[i + 1] * sizes[i + 1];
  for (int i = 0; i < rank; ++i) {
    // The next inner dim by number is asked first, so that a contiguous tensor has one class at every size.
    if (i + 1 < rank && (sizes[i] == 1 || (dense[i + 1] != 0 && dense[i] == dense[i + 1] * sizes[i + 1]))) {
      classes[i] = static_cast<uint8_t>(i + 1);
    } else if (dense[i] == 0) {
      classes[i] = kStrideZero;
    } else if (dense[i] == 1) {
      classes[i] = kStrideOne;
    } else {
      for (int j = 0; j < rank; ++j)
        if (sizes[j] > 1 && dense[j] > 0 && dense[j] < dense[i] && dense[j] * sizes[j] == dense[i]) {
          classes[i] = static_cast<uint8_t>(j);
          break;
        }
    }
  }
  return classes;
}

int free_count(const StrideClass& classes) {
  return static_cast<int>(std::count(classes.begin(), classes.end(), kStrideFree));
}

Dims strides_of(DimTable& dims, const StrideClass& classes, const Dims& sizes, std::span<const Dim> free) {
  size_t rank = classes.size(), next_free = 0;
  Dims strides(rank, 0);
  SmallVector<bool, 8> known(rank, false);
  for (size_t i = 0; i < rank; ++i) {
    known[i] = true;
    if (classes[i] == kStrideFree)
      strides[i] = free[next_free++];
    else if (classes[i] == kStrideOne)
      strides[i] = 1;
    else
      known[i] = classes[i] == kStrideZero;
  }
  // Each round finds at least the dims that are dense over a known one; there is no cycle, because strides fall
  // along it.
  for (size_t round = 0; round < rank; ++round)
    for (size_t i = 0; i < rank; ++i)
      if (!known[i] && known[classes[i]]) {
        strides[i] = dims.mul(strides[classes[i]], sizes[classes[i]]);
        known[i] = true;
      }
  return strides;
}

}  // namespace ingot::eager
