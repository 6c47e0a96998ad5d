// Rows and blocks of dense matrices of f64 in memory, as factorizations take them.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "base/program.h"
#include "runtime/drivers/product_calls.h"

namespace ingot::runtime {

/// Matrices of at most so many rows and columns are computed by loops alone, whatever thread it is on.
inline constexpr int64_t kPlainSize = 16;
inline constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// The sum of x[i] y[i], of which every eighth one goes to a sum of its own.
double dot(const double* x, const double* y, int64_t n);

/// y += factor * x
inline void add_to(double* __restrict y, double factor, const double* __restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

/// Part of a matrix: how many elements its rows, and its columns, stand apart.
struct Block {
  const double* at;
  int64_t row, column = 1;
  Block turned() const { return {at, column, row}; }
};

/// Products of blocks by the tiles of a step, shared out to the pool's threads where it is free. The bits are those of
/// any product: they follow from the sizes alone.
class BlockProducts {
 public:
  BlockProducts(const ProductKernels& kernels, const BindContext& context);
  /// C += sign * A B, C: [rows, columns] of rows c_row elements apart, A: [rows, inner] of columns side by side.
  void add(double sign, const Block& a, const Block& b, double* c, int64_t c_row, int64_t rows, int64_t inner,
           int64_t columns) const;
  /// Of thread_scratch().
  int64_t scratch_bytes() const;

 private:
  struct Part;
  void add_part(const Part& part) const;

  int64_t max_rows_, max_vectors_;
  std::vector<KernelCall> tiles_;
};

}  // namespace ingot::runtime
