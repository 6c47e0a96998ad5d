#include "runtime/drivers/product_packing.h"

#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.h"

namespace ingot::runtime {
namespace {

/// Of each line, `tiles` pieces that follow one another, each to its tile, `to_tile` apart. A few lines at a time: L1
/// holds as many, whatever their stride, until all tiles have their pieces, and what a tile gets lies side by side.
template <size_t kBytes>
void copy_pieces(const char* from, int64_t stride, int64_t lines, char* to, int64_t to_tile, int64_t tiles) {
  constexpr int64_t kLines = 8;
  auto copy = [&](int64_t count) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const char* piece = from + tile * kBytes;
      char* at = to + tile * to_tile;
      for (int64_t i = 0; i < count; ++i, piece += stride, at += kBytes) std::memcpy(at, piece, kBytes);
    }
    from += count * stride, to += count * kBytes;
  };
  for (; lines >= kLines; lines -= kLines) copy(kLines);
  copy(lines);
}

}  // namespace

void pack_a(const Product& product, const char* a, char* to, int64_t rows, int64_t k, int64_t to_stride) {
  int64_t from_row = product.a_row, from_column = product.a_column;
  if (product.a_across()) std::swap(rows, k), std::swap(from_row, from_column);
  char* buffers[] = {const_cast<char*>(a), to};
  const int64_t row_strides[] = {from_row, to_stride}, column_strides[] = {from_column, product.a_element},
                index_strides[] = {0, 0};
  KernelFrame frame{};
  frame.buffers = buffers;
  frame.row_strides = row_strides, frame.column_strides = column_strides, frame.index_strides = index_strides;
  frame.rows = rows, frame.columns = k;
  frame.context = product.calls->pack_a.context;
  product.calls->pack_a.entry(&frame);
}

// Not by a kernel: it would store these few columns by mask, which is slow in AVX2 on AMD's processors.
void pack_tiles(const Product& product, const char* a, char* to, PieceWalk walk, int64_t tiles, int64_t k) {
  static constexpr decltype(&copy_pieces<4>) kCopies[] = {copy_pieces<4>,  copy_pieces<8>,  copy_pieces<12>,
                                                          copy_pieces<16>, copy_pieces<20>, copy_pieces<24>};
  for (int64_t alike; tiles > 0; tiles -= alike, walk.next(alike)) {
    alike = walk.alike();
    const int64_t bytes = walk.size() * product.a_element;
    INGOT_CHECK(bytes % 4 == 0 && bytes / 4 <= static_cast<int64_t>(std::size(kCopies)), "a tile of too many rows");
    kCopies[bytes / 4 - 1](a, product.a_column, k, to, bytes * k, alike);
    a += alike * bytes, to += alike * bytes * k;
  }
}

void widen(const Product& product, const char* packed, char* to, int64_t k, int64_t width) {
  const int64_t row = width * product.c_element;
  char* buffers[] = {const_cast<char*>(packed), to, to + row};
  const int64_t row_strides[] = {row, 2 * row, 2 * row},
                column_strides[] = {product.pairs ? 4 : product.element, product.c_element, product.c_element},
                index_strides[] = {0, 0, 0};
  KernelFrame frame{};
  frame.buffers = buffers;
  frame.row_strides = row_strides, frame.column_strides = column_strides, frame.index_strides = index_strides;
  frame.rows = product.pairs ? ceil_div(k, 2) : 1, frame.columns = product.pairs ? width : k * width;
  frame.context = product.calls->widen.context;
  product.calls->widen.entry(&frame);
}

void widen_rows(const Product& product, const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to) {
  const int64_t row = product.panel_width(panel) * product.c_element, columns = product.panel_columns(panel);
  if (columns < product.panel_width(panel)) std::memset(to, 0, static_cast<size_t>((k_end - k_begin) * row));
  char* buffers[] = {const_cast<char*>(b) + k_begin * product.b_row + product.panel_column(panel) * product.element,
                     to};
  const int64_t row_strides[] = {product.b_row, row}, column_strides[] = {product.element, product.c_element},
                index_strides[] = {0, 0};
  KernelFrame frame{};
  frame.buffers = buffers;
  frame.row_strides = row_strides, frame.column_strides = column_strides, frame.index_strides = index_strides;
  frame.rows = k_end - k_begin, frame.columns = columns;
  frame.context = product.calls->widen_rows.context;
  product.calls->widen_rows.entry(&frame);
}

}  // namespace ingot::runtime
