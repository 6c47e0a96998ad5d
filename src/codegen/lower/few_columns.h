// Rows of few columns, computed side by side.
#pragma once
#include "codegen/lower/kernel_writer.h"

namespace ingot::codegen::lowering {

/// Reductions over so few columns leave most of a vector empty: each column becomes a copy of the kernel's expressions,
/// and what were rows its columns. Where rows lie side by side (columns across), the dim that is reduced may have
/// kFewAcross, with kMostWorkAcross nodes in all copies; more are read faster one after another, and take long to
/// compile.
inline constexpr int64_t kFewColumns = 8, kFewAcross = 16, kMostWorkAcross = 512;

/// Whether a kernel over rows of so many columns, with so much work for an element, is small enough where its columns
/// are computed side by side. One that is not is computed row by row, which is slow where rows lie side by side: so
/// fusion makes none.
inline bool fits_side_by_side(Dim columns, int64_t work) {
  constexpr int64_t kMostWork = 1536;
  return !columns.is_constant() || columns.code > kFewAcross || columns.code * work <= kMostWork;
}

/// Rewrites a written kernel of rows over the dim `reduced`, of `columns`, as one without reductions, whose arguments
/// do not move along that dim; sums keep their canonical order. False, and nothing is changed, where it would be too
/// large.
bool put_columns_side_by_side(KernelWriter& writer, DimTable& dims, uint32_t reduced, int64_t columns);

}  // namespace ingot::codegen::lowering
