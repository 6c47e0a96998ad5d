// A product with one row of A, whose B is used once: it is read as it lies, several rows at a time that are added to
// sums in L1, or sixteen columns at a time. Each output sees the order of the tiles: k by k in blocks, each from zero,
// then block by block.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "runtime/drivers/product_driver.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kChunk = 4096;  // columns whose sums are kept in L1

uint64_t scalar_bits(DType dtype, const char* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(size_of(dtype)));
  return dtype == DType::bf16 ? bits << 16 : bits;
}

template <class T>
void add(char* to, const char* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(to)[i] += reinterpret_cast<const T*>(from)[i];
}

}  // namespace

/// Whether MatmulStep::one_row is followed at these sizes.
bool ProductDriver::reads_b_as_it_lies() const {
  return one_row_ != OneRow::tiles && sizes_.m == 1 && sizes_.n >= MatmulStep::kManyColumns && k_cuts_ == 1;
}

void ProductDriver::multiply_row(RunState& state, int64_t batch, Range panels, Range k) const {
  const bool epilogue = !kernels_->epilogues.empty();
  const int64_t at_once = kChunk / (kVector * max_vectors_);
  const Scratch scratch = lay_out(kChunk * c_element_, 0, epilogue ? kChunk * c_element_ : 0);
  const PlaneWalk walk(sizes_.batch, operands_, state, scratch.at, batch);
  const Run run{state, walk, scratch};
  for (int64_t begin = panels.begin; begin < panels.end; begin += at_once) {
    const int64_t end = std::min(begin + at_once, panels.end), first = panel_column(begin);
    const int64_t columns = panel_column(end - 1) + panel_columns(end - 1) - first;
    const char *a = scratch.at[0], *b = scratch.at[1] + first * b_column_;
    char* total = epilogue ? scratch.c : scratch.at[2] + first * c_element_;
    if (one_row_ == OneRow::columns_of_b && k.end > k.begin) {
      add_columns(a, b, total, columns, k);
    } else {
      add_rows(a, b, total, scratch.panels, columns, k);
    }
    for (int64_t panel = begin; panel < end && epilogue; ++panel) {
      Block piece{};
      piece.rows = 1, piece.panel = panel;
      piece.c = total + (panel_column(panel) - first) * c_element_;
      finish(run, piece, 0, 1);
    }
  }
}

// B's rows, several at a time; `sums` has room for those of a block.
void ProductDriver::add_rows(const char* a, const char* b, char* total, char* sums, int64_t columns, Range k) const {
  uint64_t scalars[ProductKernels::kRowsOfB];
  char* buffers[2 + ProductKernels::kRowsOfB];
  const int64_t strides[2 + ProductKernels::kRowsOfB] = {};
  KernelFrame frame{};
  frame.buffers = buffers, frame.scalars = scalars;
  frame.row_strides = frame.column_strides = frame.index_strides = strides;
  frame.rows = 1, frame.columns = columns;
  const auto bytes = static_cast<size_t>(columns * c_element_);
  std::memset(total, 0, bytes);
  for (int64_t block = k.begin; block < k.end; block += kBlock) {
    char* to = block == k.begin ? total : sums;
    if (to != total) std::memset(to, 0, bytes);
    buffers[0] = buffers[1] = to;
    const int64_t block_end = std::min(block + kBlock, k.end);
    for (int64_t row = block, rows = 0; row < block_end; row += rows) {
      const bool many = block_end - row >= ProductKernels::kRowsOfB;
      rows = many ? ProductKernels::kRowsOfB : 1;
      for (int64_t i = 0; i < rows; ++i) {
        scalars[i] = scalar_bits(sizes_.dtype, a + (row + i) * a_column_);
        buffers[2 + i] = const_cast<char*>(b) + (row + i) * b_row_;
      }
      const KernelCall& call = many ? kernels_->add_rows : kernels_->add_row;
      frame.context = call.context;
      call.entry(&frame);
    }
    if (to == total) continue;
    c_element_ == 8 ? add<double>(total, to, columns) : add<float>(total, to, columns);
  }
}

// B's columns, sixteen at a time; the last sixteen may have been among those before.
void ProductDriver::add_columns(const char* a, const char* b, char* total, int64_t columns, Range k) const {
  INGOT_CHECK(columns >= kVector);
  TileFrame frame;
  frame.context = kernels_->transposed.context;
  frame.b_stride = b_column_;
  for (int64_t column = 0; column < columns; column += kVector) {
    const int64_t at = std::min(column, columns - kVector);
    frame.c = total + at * c_element_;
    for (int64_t block = k.begin; block < k.end; block += kBlock) {
      frame.a = a + block * element_;
      frame.b = b + at * b_column_ + block * element_;
      frame.k = std::min(kBlock, k.end - block);
      frame.accumulate = block > k.begin;
      kernels_->transposed.entry(&frame);
    }
  }
}

}  // namespace ingot::runtime
