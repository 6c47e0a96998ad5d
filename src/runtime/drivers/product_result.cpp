#include "runtime/drivers/product_result.h"

#include <algorithm>

#include "base/error.h"

namespace ingot::runtime {

ProductResult::ProductResult(const Product& product, const ProductSegments& segments)
    : written_(product.calls->written), segments_(segments) {
  const BoundArguments& operands = product.operands;
  written_row_ = operands.row_strides()[written_];
  const int64_t written_column = operands.column_strides()[written_];
  beside_[0] = beside_[1] = written_;
  for (size_t i = 2, found = 0; i < operands.size() && found < std::size(beside_); ++i)
    if (i != written_ && operands.row_strides()[i] == written_row_ && operands.column_strides()[i] == written_column)
      beside_[found++] = i;
}

void ProductResult::find_beside(const ProductRun& run, int64_t row, int64_t column, int64_t (&distances)[2]) const {
  const auto from = reinterpret_cast<intptr_t>(place(run, row, column));
  for (size_t i = 0; i < std::size(beside_); ++i)
    distances[i] = reinterpret_cast<intptr_t>(place(run, beside_[i], row, column)) - from;
}

Ahead ProductResult::alike(const ProductRun& run, size_t which, int64_t row, int64_t end) const {
  const size_t operand = which == 0 ? written_ : beside_[which - 1];
  const int64_t line = run.product.sizes.n * run.product.operands.column_strides()[operand];
  if ((which > 0 && operand == written_) || line != written_row_) return {};
  return Ahead::lines(place(run, operand, row, 0), (end - row) * line);
}

/// Where a row and column of C's are in an operand behind A and B.
char* ProductResult::place(const ProductRun& run, size_t operand, int64_t row, int64_t column) const {
  const BoundArguments& operands = run.product.operands;
  char* const at = run.scratch.at[operand] + row * operands.row_strides()[operand];
  const int64_t stride = operands.column_strides()[operand];
  if (column < segments_.columns) return at + column * stride;  // mostly: a division takes longer
  return at + column % segments_.columns * stride + column / segments_.columns * segments_.strides[operand];
}

ResultCall::ResultCall(const ProductResult& result, const ProductRun& run)
    : result_(result),
      run_(run),
      count_(run.product.operands.size() - 1),
      at_(run.scratch.at + run.product.operands.size()) {
  const BoundArguments& operands = run.product.operands;
  INGOT_CHECK(count_ <= kMost, "an epilogue of more than 31 operands");
  row_strides_[0] = 0, column_strides_[0] = run.product.c_element;
  std::copy_n(operands.row_strides() + 2, count_ - 1, row_strides_ + 1);
  std::copy_n(operands.column_strides() + 2, count_ - 1, column_strides_ + 1);
  frame.buffers = at_;
  frame.row_strides = row_strides_;
  frame.column_strides = column_strides_;
  frame.index_strides = operands.index_strides() + 1;
  frame.scalars = run.state.scalars;
  frame.scratch = run.scratch.epilogue;
  frame.outer_index = run.walk.index();
}

void ResultCall::begin_at(int64_t row, int64_t column) {
  for (size_t i = 1; i < count_; ++i) at_[i] = result_.place(run_, i + 1, row, column);
  frame.row_index = row, frame.column_index = column;
}

void ResultCall::advance(int64_t rows) {
  for (size_t i = 1; i < count_; ++i) at_[i] += rows * row_strides_[i];
  frame.row_index += rows;
}

void ResultCall::set_raw(char* at, int64_t stride) { at_[0] = at, row_strides_[0] = stride; }

void ProductResult::finish(const ProductRun& run, const RawPiece& piece) const {
  const Product& product = run.product;
  const int64_t first = product.panel_column(piece.panel), last = first + product.panel_columns(piece.panel);
  ResultCall result(*this, run);
  KernelFrame& frame = result.frame;
  frame.rows = piece.rows;
  const std::vector<KernelCall>& kernels = product.calls->epilogues;
  for (int64_t column = first; column < last; column += frame.columns) {
    frame.columns = std::min(last - column, segments_.columns - column % segments_.columns);
    result.begin_at(piece.row, column);
    result.set_raw(piece.at + (column - first) * product.c_element, piece.stride);
    const auto vectors = static_cast<size_t>(frame.columns / Product::kVector);
    const bool known = frame.columns % Product::kVector == 0 && vectors < kernels.size() && kernels[vectors];
    const KernelCall& call = kernels[known ? vectors : 0];
    frame.context = call.context;
    call.entry(&frame);
  }
}

}  // namespace ingot::runtime
