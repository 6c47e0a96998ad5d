// A product with one row of A, whose B is used once: it is read as it lies.
#pragma once
#include "runtime/drivers/product_result.h"

namespace ingot::runtime {

/// One row of A: k elements of `dtype`, a_step bytes apart; and B, of elements of `b_element` bytes.
struct RowProduct {
  const RowCalls& calls;
  DType dtype;
  const char* a;
  int64_t a_step;
  const char* b;
  int64_t b_element, b_stride;  // from row to row, or from column to column
  int64_t k, columns;
};
/// total[columns], in f64 for f64 and else in f32. B's rows lie along the columns; `sums`: room for as many again.
void multiply_by_rows(const RowProduct& product, char* total, char* sums);
/// B's columns lie along k, and so does the row of A; k is not 0, and there are at least kLanes columns.
void multiply_by_columns(const RowProduct& product, char* total);

/// Whether MatmulStep::one_row is followed at these sizes.
bool reads_b_as_it_lies(const Product& product);
/// What the thread's scratch holds for it.
ProductRooms rooms_of_row(const Product& product);
/// One batch's panels.
void multiply_row(const Product& product, const ProductResult& result, const StepState& state, int64_t batch,
                  Range panels);

}  // namespace ingot::runtime
