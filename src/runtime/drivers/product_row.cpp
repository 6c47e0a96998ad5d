// B's rows are read several at a time and added to sums in L1, or its columns sixteen at a time. Each output sees the
// order of the tiles: k by k in blocks, each from zero, then block by block.
#include "runtime/drivers/product_row.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kRowsAhead = 4 * ProductKernels::kRowsOfB;
constexpr int64_t kShortRow = 1024;  // bytes
constexpr int64_t kChunk = 4096;     // columns whose sums are kept in L1

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

// Several rows of B at a time; `sums` holds those of a block.
void multiply_by_rows(const RowProduct& product, char* total, char* sums) {
  uint64_t scalars[ProductKernels::kRowsOfB];
  char* buffers[2 + ProductKernels::kRowsOfB];
  const int64_t strides[2 + ProductKernels::kRowsOfB] = {};
  KernelFrame frame{};
  frame.buffers = buffers, frame.scalars = scalars;
  frame.row_strides = frame.column_strides = frame.index_strides = strides;
  frame.rows = 1, frame.columns = product.columns;
  const bool wide = product.dtype == DType::f64;
  const auto bytes = static_cast<size_t>(product.columns) * (wide ? sizeof(double) : sizeof(float));
  // Hardware fetches ahead in a row; short rows are taken several at a time.
  const int64_t row_bytes = product.columns * product.b_element, ahead = row_bytes <= kShortRow ? row_bytes : 0;
  std::memset(total, 0, bytes);
  for (int64_t block = 0; block < product.k; block += Product::kBlock) {
    char* to = block == 0 ? total : sums;
    if (to != total) std::memset(to, 0, bytes);
    buffers[0] = buffers[1] = to;
    const int64_t block_end = std::min(block + Product::kBlock, product.k);
    for (int64_t row = block, rows = 0; row < block_end; row += rows) {
      const bool many = block_end - row >= ProductKernels::kRowsOfB;
      rows = many ? ProductKernels::kRowsOfB : 1;
      for (int64_t i = 0; i < rows; ++i) {
        scalars[i] = scalar_bits(product.dtype, product.a + (row + i) * product.a_step);
        buffers[2 + i] = const_cast<char*>(product.b) + (row + i) * product.b_stride;
        for (int64_t at = 0; at < ahead; at += 64)
          __builtin_prefetch(buffers[2 + i] + kRowsAhead * product.b_stride + at);
      }
      const KernelCall& call = many ? product.calls.add_rows : product.calls.add_row;
      frame.context = call.context;
      call.entry(&frame);
    }
    if (to == total) continue;
    wide ? add<double>(total, to, product.columns) : add<float>(total, to, product.columns);
  }
}

// Sixteen columns of B at a time; the last sixteen may have been among those before.
void multiply_by_columns(const RowProduct& product, char* total) {
  INGOT_CHECK(product.columns >= Product::kVector && product.k > 0);
  TileFrame frame;
  frame.context = product.calls.transposed.context;
  frame.b_stride = product.b_stride;
  for (int64_t column = 0; column < product.columns; column += Product::kVector) {
    const int64_t at = std::min(column, product.columns - Product::kVector);
    frame.c = total + at * static_cast<int64_t>(sizeof(float));
    for (int64_t block = 0; block < product.k; block += Product::kBlock) {
      frame.a = product.a + block * product.a_step;
      frame.b = product.b + at * product.b_stride + block * product.b_element;
      frame.k = std::min(Product::kBlock, product.k - block);
      frame.accumulate = block > 0;
      product.calls.transposed.entry(&frame);
    }
  }
}

bool reads_b_as_it_lies(const Product& product) {
  return product.one_row != OneRow::tiles && !product.calls->prologue && product.sizes.m == 1 &&
         product.sizes.n >= MatmulStep::kManyColumns;
}

ProductRooms rooms_of_row(const Product& product) {
  const int64_t room = kChunk * product.c_element;
  return {.panels = room, .c = product.has_epilogue() ? room : 0};
}

void multiply_row(const Product& product, const ProductResult& result, const StepState& state, int64_t batch,
                  Range panels) {
  const bool epilogue = product.has_epilogue();
  const int64_t at_once = kChunk / (Product::kVector * product.max_vectors);
  const ProductRun run(product, state, batch, rooms_of_row(product));
  for (int64_t begin = panels.begin; begin < panels.end; begin += at_once) {
    const int64_t end = std::min(begin + at_once, panels.end), first = product.panel_column(begin);
    const int64_t columns = product.panel_column(end - 1) + product.panel_columns(end - 1) - first;
    char* total = epilogue ? run.scratch.c : run.scratch.at[2] + first * product.c_element;
    const bool by_columns = product.one_row == OneRow::columns_of_b && product.sizes.k > 0;
    const RowProduct row{.calls = product.calls->of_row,
                         .dtype = product.sizes.dtype,
                         .a = run.scratch.at[0],
                         .a_step = by_columns ? product.a_element : product.a_column,
                         .b = run.scratch.at[1] + first * product.b_column,
                         .b_element = product.element,
                         .b_stride = by_columns ? product.b_column : product.b_row,
                         .k = product.sizes.k,
                         .columns = columns};
    by_columns ? multiply_by_columns(row, total) : multiply_by_rows(row, total, run.scratch.panels);
    for (int64_t panel = begin; panel < end && epilogue; ++panel)
      result.finish(run, {panel, 0, 1, total + (product.panel_column(panel) - first) * product.c_element, 0});
  }
}

}  // namespace ingot::runtime
