// Where an iteration space reads a value: one coordinate a dim of the value, affine in the indices of the space.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/dim.h"
#include "base/small_vector.h"

namespace ingot::codegen::lowering {

inline constexpr uint32_t kNoIndex = ~0u;

struct Term {
  uint32_t dim = 0;  // of the space
  Dim coefficient;
  friend bool operator==(const Term&, const Term&) = default;
};

/// offset + sum of coefficient * index of the space + index_coefficient * (a position that the kernel computes).
struct Coordinate {
  SmallVector<Term, 2> terms;  // outermost first
  Dim offset;
  uint32_t index = kNoIndex;  // number of a Group's position
  Dim index_coefficient;
  friend bool operator==(const Coordinate&, const Coordinate&) = default;
  bool is_zero() const { return terms.empty() && offset == Dim(0) && index == kNoIndex; }
};
using IndexMap = std::vector<Coordinate>;

Coordinate unit(uint32_t dim);
/// Every dim of a space of this shape, in order; a dim of size 1 is at 0.
IndexMap identity_map(std::span<const Dim> shape);
/// `inner` gives coordinates over the dims of a value that `outer` reads. Nothing where two positions would meet in one
/// coordinate.
std::optional<IndexMap> compose(DimTable& dims, const IndexMap& inner, const IndexMap& outer);
/// True if the map runs once through all elements of a value of this shape as the indices run through the dims of the
/// space that `wanted` marks. Dims of size 1 do not count.
bool covers(DimTable& dims, const IndexMap& map, std::span<const Dim> shape, std::span<const Dim> space,
            const SmallVector<bool, 8>& wanted);
/// True if some coordinate moves with this dim of the space.
bool depends_on(const IndexMap& map, uint32_t dim);

/// The coordinates in `from` of each element of `to`, a reshape of it. Nothing where that is not affine (dims are
/// merged).
std::optional<IndexMap> reshape_map(DimTable& dims, std::span<const Dim> from, std::span<const Dim> to);
/// Strides of a reshape of a view with these sizes and strides. Nothing where it needs a copy.
std::optional<Dims> reshape_strides(DimTable& dims, std::span<const Dim> from, std::span<const Dim> strides,
                                    std::span<const Dim> to);

}  // namespace ingot::codegen::lowering
