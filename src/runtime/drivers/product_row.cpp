// B's rows are read several at a time and added to sums in L1, or its columns sixteen at a time. Each output sees the
// order of the tiles: k by k in blocks, each from zero, then block by block.
#include "runtime/drivers/product_row.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kBlock = Product::kBlock, kVector = Product::kVector;
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

// B's rows, several at a time; `sums` has room for those of a block.
void add_rows(const Product& product, const char* a, const char* b, char* total, char* sums, int64_t columns) {
  uint64_t scalars[ProductKernels::kRowsOfB];
  char* buffers[2 + ProductKernels::kRowsOfB];
  const int64_t strides[2 + ProductKernels::kRowsOfB] = {};
  KernelFrame frame{};
  frame.buffers = buffers, frame.scalars = scalars;
  frame.row_strides = frame.column_strides = frame.index_strides = strides;
  frame.rows = 1, frame.columns = columns;
  const auto bytes = static_cast<size_t>(columns * product.c_element);
  std::memset(total, 0, bytes);
  for (int64_t block = 0; block < product.sizes.k; block += kBlock) {
    char* to = block == 0 ? total : sums;
    if (to != total) std::memset(to, 0, bytes);
    buffers[0] = buffers[1] = to;
    const int64_t block_end = std::min(block + kBlock, product.sizes.k);
    for (int64_t row = block, rows = 0; row < block_end; row += rows) {
      const bool many = block_end - row >= ProductKernels::kRowsOfB;
      rows = many ? ProductKernels::kRowsOfB : 1;
      for (int64_t i = 0; i < rows; ++i) {
        scalars[i] = scalar_bits(product.sizes.dtype, a + (row + i) * product.a_column);
        buffers[2 + i] = const_cast<char*>(b) + (row + i) * product.b_row;
      }
      const KernelCall& call = many ? product.calls->add_rows : product.calls->add_row;
      frame.context = call.context;
      call.entry(&frame);
    }
    if (to == total) continue;
    product.c_element == 8 ? add<double>(total, to, columns) : add<float>(total, to, columns);
  }
}

// B's columns, sixteen at a time; the last sixteen may have been among those before.
void add_columns(const Product& product, const char* a, const char* b, char* total, int64_t columns) {
  INGOT_CHECK(columns >= kVector);
  TileFrame frame;
  frame.context = product.calls->transposed.context;
  frame.b_stride = product.b_column;
  for (int64_t column = 0; column < columns; column += kVector) {
    const int64_t at = std::min(column, columns - kVector);
    frame.c = total + at * product.c_element;
    for (int64_t block = 0; block < product.sizes.k; block += kBlock) {
      frame.a = a + block * product.a_element;
      frame.b = b + at * product.b_column + block * product.element;
      frame.k = std::min(kBlock, product.sizes.k - block);
      frame.accumulate = block > 0;
      product.calls->transposed.entry(&frame);
    }
  }
}

}  // namespace

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
  const int64_t at_once = kChunk / (kVector * product.max_vectors);
  const ProductRun run(product, state, batch, rooms_of_row(product));
  for (int64_t begin = panels.begin; begin < panels.end; begin += at_once) {
    const int64_t end = std::min(begin + at_once, panels.end), first = product.panel_column(begin);
    const int64_t columns = product.panel_column(end - 1) + product.panel_columns(end - 1) - first;
    const char *a = run.scratch.at[0], *b = run.scratch.at[1] + first * product.b_column;
    char* total = epilogue ? run.scratch.c : run.scratch.at[2] + first * product.c_element;
    if (product.one_row == OneRow::columns_of_b && product.sizes.k > 0) {
      add_columns(product, a, b, total, columns);
    } else {
      add_rows(product, a, b, total, run.scratch.panels, columns);
    }
    for (int64_t panel = begin; panel < end && epilogue; ++panel)
      result.finish(run, {panel, 0, 1, total + (product.panel_column(panel) - first) * product.c_element, 0});
  }
}

}  // namespace ingot::runtime
