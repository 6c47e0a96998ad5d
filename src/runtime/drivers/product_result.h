// Where the results of a product go: through its epilogue's kernels into the epilogue's buffers, or straight into C.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/drivers/product_ahead.h"
#include "runtime/drivers/product_run.h"

namespace ingot::runtime {

/// Columns lie in memory in segments, `strides` apart (one an operand): as the pixels of several images do. Only with
/// an epilogue.
struct ProductSegments {
  int64_t columns = INT64_MAX;
  std::span<const int64_t> strides;
};

/// Rows of a panel that are summed up, not yet in their place.
struct RawPiece {
  int64_t panel, row, rows;
  char* at;
  int64_t stride;
};

class ProductResult;

/// What the kernels of an epilogue are called with, on one thread.
class ResultCall {
 public:
  ResultCall(const ProductResult& result, const ProductRun& run);
  /// From this row and column of C's on.
  void begin_at(int64_t row, int64_t column);
  /// So many rows further on.
  void advance(int64_t rows);
  /// The sums, where they are in memory.
  void set_raw(char* at, int64_t stride);

  KernelFrame frame;

 private:
  static constexpr size_t kMost = 32;
  const ProductResult& result_;
  const ProductRun& run_;
  const size_t count_;  // operands: the raw piece instead of A and B
  char** const at_;
  int64_t row_strides_[kMost], column_strides_[kMost];
};

class ProductResult {
 public:
  ProductResult() = default;
  /// Of a product whose operands are set.
  ProductResult(const Product& product, const ProductSegments& segments);

  /// Runs the epilogue on a piece.
  void finish(const ProductRun& run, const RawPiece& piece) const;
  /// Where a row and column of C's end up in the operand that is written first, and how far its next row is.
  const char* place(const ProductRun& run, int64_t row, int64_t column) const {
    return place(run, written_, row, column);
  }
  int64_t row_stride() const { return written_row_; }
  /// How far two operands that the epilogue reads or writes in the same way are from there; 0: none.
  void find_beside(const ProductRun& run, int64_t row, int64_t column, int64_t (&distances)[2]) const;
  /// The operand that is written first, and up to two that lie as it does: all columns of these rows, where they lie
  /// together.
  static constexpr size_t kAlike = 3;
  Ahead alike(const ProductRun& run, size_t which, int64_t row, int64_t end) const;
  /// Whether these columns are apart by the operands' strides.
  bool in_one_segment(int64_t column, int64_t columns) const {
    return column + columns <= segments_.columns ||
           column / segments_.columns == (column + columns - 1) / segments_.columns;
  }

 private:
  friend ResultCall;
  char* place(const ProductRun& run, size_t operand, int64_t row, int64_t column) const;

  size_t written_ = 2;         // the operand that is written first
  size_t beside_[2] = {2, 2};  // operands with its strides, or itself
  int64_t written_row_ = 0;
  ProductSegments segments_;
};

}  // namespace ingot::runtime
