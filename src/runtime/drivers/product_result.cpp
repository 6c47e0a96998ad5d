#include "runtime/drivers/product_result.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace ingot::runtime {

/// Where a row and column of C's are in an operand behind A and B.
char* ProductResult::place(const ProductRun& run, size_t operand, int64_t row, int64_t column) const {
  const BoundArguments& operands = run.product.operands;
  const int64_t segment = column / segments_.columns;
  return run.scratch.at[operand] + row * operands.row_strides()[operand] +
         column % segments_.columns * operands.column_strides()[operand] +
         (segment ? segment * segments_.strides[operand] : 0);
}

void ProductResult::finish(const ProductRun& run, const RawPiece& piece) const {
  const Product& product = run.product;
  const size_t count = product.operands.size() - 1;  // the raw piece instead of A and B
  char** at = run.scratch.at + product.operands.size();
  const int64_t first = product.panel_column(piece.panel), last = first + product.panel_columns(piece.panel);
  const int64_t *operand_rows = product.operands.row_strides(), *operand_columns = product.operands.column_strides();
  int64_t row_strides[32], column_strides[32];
  INGOT_CHECK(count <= std::size(row_strides), "an epilogue of more than 31 operands");
  row_strides[0] = piece.stride, column_strides[0] = product.c_element;
  KernelFrame frame;
  frame.buffers = at;
  frame.row_strides = row_strides;
  frame.column_strides = column_strides;
  frame.index_strides = product.operands.index_strides() + 1;
  frame.scalars = run.state.scalars.data() + first_scalar_;
  frame.rows = piece.rows;
  frame.scratch = run.scratch.epilogue;
  frame.row_index = piece.row;
  frame.outer_index = run.walk.index();
  const std::vector<KernelCall>& kernels = product.calls->epilogues;
  for (int64_t column = first; column < last; column += frame.columns) {
    frame.columns = std::min(last - column, segments_.columns - column % segments_.columns);
    frame.column_index = column;
    at[0] = piece.at + (column - first) * product.c_element;
    for (size_t i = 1; i < count; ++i) {
      at[i] = place(run, i + 1, piece.row, column);
      row_strides[i] = operand_rows[i + 1], column_strides[i] = operand_columns[i + 1];
    }
    const auto vectors = static_cast<size_t>(frame.columns / Product::kVector);
    const bool known = frame.columns % Product::kVector == 0 && vectors < kernels.size();
    const KernelCall& call = kernels[known ? vectors : 0];
    frame.context = call.context;
    call.entry(&frame);
  }
}

}  // namespace ingot::runtime
