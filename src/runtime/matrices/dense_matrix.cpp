#include "runtime/matrices/dense_matrix.h"

#include <algorithm>

#include "runtime/drivers/product.h"
#include "runtime/thread_pool.h"

namespace ingot::runtime {

double dot(const double* x, const double* y, int64_t n) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t j = 0; j < kSums; ++j) sums[j] += x[i + j] * y[i + j];
  for (int64_t j = 0; i + j < n; ++j) sums[j] += x[i + j] * y[i + j];
  for (int64_t step = kSums / 2; step > 0; step /= 2)
    for (int64_t j = 0; j < step; ++j) sums[j] += sums[j + step];
  return sums[0];
}

BlockProducts::BlockProducts(const ProductKernels& kernels, const BindContext& context)
    : max_rows_(kernels.max_rows), max_vectors_(kernels.max_vectors), tiles_(calls_of(kernels.tiles, context)) {}

int64_t BlockProducts::scratch_bytes() const {
  return Product::kBlock * Product::kVector * max_vectors_ * static_cast<int64_t>(sizeof(double));
}

/// What one thread computes of a product.
struct BlockProducts::Part {
  double sign;
  Block a, b;
  double* c;
  int64_t c_row, inner;
  Range rows, columns;
};

void BlockProducts::add_part(const Part& part) const {
  constexpr int64_t kElement = sizeof(double), kVector = Product::kVector;
  double* panel = reinterpret_cast<double*>(thread_scratch(scratch_bytes()));
  const Pieces rows(part.rows.end - part.rows.begin, max_rows_);
  for (int64_t first = part.columns.begin; first < part.columns.end; first += kVector * max_vectors_) {
    const int64_t columns = std::min(kVector * max_vectors_, part.columns.end - first);
    const int64_t vectors = ceil_div(columns, kVector), width = kVector * vectors;
    for (int64_t k = 0; k < part.inner; k += Product::kBlock) {
      const int64_t steps = std::min(Product::kBlock, part.inner - k);
      for (int64_t i = 0; i < steps; ++i) {
        const double* from = part.b.at + (k + i) * part.b.row + first * part.b.column;
        double* to = panel + i * width;
        for (int64_t j = 0; j < columns; ++j) to[j] = part.sign * from[j * part.b.column];
        std::fill(to + columns, to + width, 0);
      }
      TileFrame frame{};
      frame.k = steps;
      frame.b = frame.ahead = reinterpret_cast<const char*>(panel);
      frame.a_stride = part.a.row * kElement, frame.c_stride = frame.results_stride = part.c_row * kElement;
      frame.accumulate = 1;
      frame.columns = columns;
      for (int64_t i = 0; i < rows.count; ++i) {
        const KernelCall& tile = tiles_[static_cast<size_t>((rows.size(i) - 1) * max_vectors_ + vectors - 1)];
        const int64_t row = part.rows.begin + rows.begin(i);
        frame.a = reinterpret_cast<const char*>(part.a.at + row * part.a.row + k);
        frame.c = reinterpret_cast<char*>(part.c + row * part.c_row + first), frame.results = frame.c;
        frame.context = tile.context;
        tile.entry(&frame);
      }
    }
  }
}

void BlockProducts::add(double sign, const Block& a, const Block& b, double* c, int64_t c_row, int64_t rows,
                        int64_t inner, int64_t columns) const {
  if (rows == 0 || columns == 0) return;
  const bool by_rows = rows >= columns;
  const int64_t operations = saturating_product(2 * rows, saturating_product(inner, columns));
  const int64_t pieces = ceil_div(by_rows ? rows : columns, by_rows ? max_rows_ : Product::kVector);
  const int64_t pay = std::min({operations / kProductGrain, pieces, int64_t{num_threads()}});
  parallel(static_cast<int>(pay), [&](int thread, int threads) {
    const Range all_rows{0, rows}, all_columns{0, columns};
    add_part({sign, a, b, c, c_row, inner, by_rows ? share(rows, thread, threads, max_rows_) : all_rows,
              by_rows ? all_columns : share(columns, thread, threads, Product::kVector)});
  });
}

}  // namespace ingot::runtime
