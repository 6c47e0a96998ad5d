// What a guard keeps of a tensor's strides: for each dim, how it follows from the others.
#pragma once
#include <cstdint>

#include "base/dim.h"
#include "base/small_vector.h"

namespace ingot::eager {

/// For each dim: zero, one, the dim over which it is dense (its stride is that dim's stride times that dim's size), or
/// free (its stride is a number of its own). A dim of size 1 is classed as if it were dense, whatever its stride.
using StrideClass = SmallVector<uint8_t, 8>;
inline constexpr uint8_t kStrideZero = 253, kStrideOne = 254, kStrideFree = 255;

StrideClass classify(const Ints& sizes, const Ints& strides);
/// Number of free strides.
int free_count(const StrideClass& classes);
/// Strides of a class for these sizes; `free` gives the free ones in order of their dims.
Dims strides_of(DimTable& dims, const StrideClass& classes, const Dims& sizes, std::span<const Dim> free);

}  // namespace ingot::eager
