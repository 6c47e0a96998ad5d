// Rows and blocks of dense matrices of f64 in memory, as factorizations take them. Not in the API.
#pragma once
#include <cstdint>

#include "eager/tensor.h"

namespace ingot::eager {

/// Matrices of at most so many rows and columns are computed by loops alone, whatever thread it is on.
inline constexpr int64_t kPlainSize = 16;

/// The sum of x[i] y[i], of which every eighth one goes to a sum of its own.
double dot(const double* x, const double* y, int64_t n);

/// y += factor * x
inline void add_to(double* __restrict y, double factor, const double* __restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

/// A view of [rows, columns] whose rows stand `stride` elements apart: products of blocks are the library's own. Where
/// it lives, calls must not be recorded.
Tensor block_of(const double* data, int64_t rows, int64_t columns, int64_t stride);

}  // namespace ingot::eager
