// A product with one row of A, whose B is used once: its rows are read as they lie, several at a time, and added to the
// sums, which stay in L1. Each output sees the order of the tiles: k by k in blocks, each from zero, then block by
// block.
#include <algorithm>
#include <cstring>

#include "runtime/product_driver.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kFewColumns = 256;  // fewer: tiles cost less than calls
constexpr int64_t kChunk = 4096;      // columns whose sums are kept in L1

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

bool ProductDriver::reads_rows() const {
  return add_row_ && sizes_.m == 1 && sizes_.n >= kFewColumns && b_column_ == element_ && weight_buffer < 0 &&
         k_cuts_ == 1;
}

void ProductDriver::multiply_row(RunState& state, int64_t batch, Range panels, Range k) const {
  const bool epilogue = !epilogues_.empty();
  const int64_t at_once = kChunk / (kVector * sizes_.max_vectors);
  const Scratch scratch = lay_out(kChunk * c_element_, 0, epilogue ? kChunk * c_element_ : 0);
  const PlaneWalk walk(sizes_.batch, operands_, state, scratch.at, batch);
  const Run run{state, walk, scratch};
  const char *a = scratch.at[0], *b = scratch.at[1];

  uint64_t scalars[MatmulStep::kRowsOfB];
  char* buffers[2 + MatmulStep::kRowsOfB];
  const int64_t strides[2 + MatmulStep::kRowsOfB] = {};
  KernelFrame frame{};
  frame.buffers = buffers, frame.scalars = scalars;
  frame.row_strides = frame.column_strides = frame.index_strides = strides;
  frame.rows = 1;
  for (int64_t begin = panels.begin; begin < panels.end; begin += at_once) {
    const int64_t end = std::min(begin + at_once, panels.end), first = panel_column(begin);
    frame.columns = panel_column(end - 1) + panel_columns(end - 1) - first;
    const auto bytes = static_cast<size_t>(frame.columns * c_element_);
    char* total = epilogue ? scratch.c : scratch.at[2] + first * c_element_;
    std::memset(total, 0, bytes);
    for (int64_t block = k.begin; block < k.end; block += kBlock) {
      char* sums = block == k.begin ? total : scratch.panels;
      if (sums != total) std::memset(sums, 0, bytes);
      buffers[0] = buffers[1] = sums;
      const int64_t block_end = std::min(block + kBlock, k.end);
      for (int64_t row = block, rows = 0; row < block_end; row += rows) {
        const bool many = block_end - row >= MatmulStep::kRowsOfB;
        rows = many ? MatmulStep::kRowsOfB : 1;
        for (int64_t i = 0; i < rows; ++i) {
          scalars[i] = scalar_bits(sizes_.dtype, a + (row + i) * a_column_);
          buffers[2 + i] = const_cast<char*>(b) + (row + i) * b_row_ + first * element_;
        }
        const KernelCall& call = many ? add_rows_ : add_row_;
        frame.context = call.context;
        call.entry(&frame);
      }
      if (sums == total) continue;
      c_element_ == 8 ? add<double>(total, sums, frame.columns) : add<float>(total, sums, frame.columns);
    }
    for (int64_t panel = begin; panel < end && epilogue; ++panel) {
      Block piece{};
      piece.rows = 1, piece.panel = panel;
      piece.c = total + (panel_column(panel) - first) * c_element_;
      finish(run, piece, 0, 1);
    }
  }
}

}  // namespace ingot::runtime
