// Which dim of a loop becomes its columns, and what is transposed where it lies along another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/program.h"

namespace ingot::codegen {

/// Rows of few columns fill no vector, and of four take longer to begin than to compute: a long dim takes the place of
/// the last one, where elements are gathered anyway from eight on. (The order of a loop shows in no bit.)
struct ColumnRule {
  int64_t few_gathered = 8, few_dense = 4, many = 64;
};

/// The dim, of `rank` dims, that is to change places with the last one, or the last: the one along which most arguments
/// lie dense, of these the longest. `gathered`: some argument is strided along the last dim.
template <class SizeOf, class DenseAlong>
size_t column_dim(size_t rank, bool gathered, SizeOf size, DenseAlong dense, const ColumnRule& rule = {}) {
  const size_t last = rank - 1;
  if (rank < 2 || size(last) > (gathered ? rule.few_gathered : rule.few_dense)) return last;
  size_t best = last;
  auto worth = [&](size_t d) { return std::pair<int64_t, int64_t>(dense(d), size(d)); };
  for (size_t d = 0; d < last; ++d)
    if (size(d) >= rule.many && (best == last || worth(d) > worth(best))) best = d;
  return best;
}

/// Whether elements of so many bytes that lie dense along the rows are transposed tile by tile, not gathered: AVX2 has
/// no masks for the edges of tiles of narrow ones.
constexpr bool transposes(Isa isa, int64_t bytes) { return bytes >= 4 || isa == Isa::avx512; }

}  // namespace ingot::codegen
