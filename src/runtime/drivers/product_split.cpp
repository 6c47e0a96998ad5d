#include "runtime/drivers/product_split.h"

#include <algorithm>
#include <cstring>

#include "runtime/cpu.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kMostBlocks = 32;   // of k, in one split: what all panels read of A stays in L2
constexpr int64_t kSmallResult = 16;  // partial accumulators take this part of what A and B take, at most

template <class T>
void add_blocks(char* to, const char* from, int64_t blocks, int64_t block_bytes, int64_t count) {
  T* sums = reinterpret_cast<T*>(to);
  std::memcpy(sums, from, static_cast<size_t>(count) * sizeof(T));
  for (int64_t block = 1; block < blocks; ++block) {
    const T* next = reinterpret_cast<const T*>(from + block * block_bytes);
    for (int64_t i = 0; i < count; ++i) sums[i] += next[i];
  }
}

}  // namespace

// Not where tiles are many, as they then give all threads work, nor where accumulators are not small beside what is
// read, as writing and reading them would take what the threads win.
ProductSplit::ProductSplit(const Product& product, int64_t useful, int64_t allowed) {
  const int64_t threads = std::min(useful, allowed);
  if (threads <= 1) return;
  const int64_t m = product.sizes.m, n = product.sizes.n;
  const int64_t tiles = saturating_product(product.rows.count, product.panels.count);
  const int64_t blocks = ceil_div(product.sizes.k, Product::kBlock);
  const int64_t splits = std::max(4 * threads, ceil_div(blocks, kMostBlocks));
  const bool few = tiles > 0 && saturating_product(product.batches, tiles) <= 4 * threads &&
                   saturating_product(saturating_product(m, n), kSmallResult) <= Product::kBlock * (m + n);
  if (!few || blocks < 2 * splits) return;
  splits_ = splits, blocks_ = blocks;
  row_stride_ = Product::kVector * product.panels.n * product.c_element;
  block_bytes_ = round_up(m * row_stride_, kCacheLine);
}

Range ProductSplit::part_of_k(const Product& product, int64_t split) const {
  const Range blocks = share(blocks_, static_cast<int>(split), static_cast<int>(splits_));
  return {blocks.begin * Product::kBlock, std::min(blocks.end * Product::kBlock, product.sizes.k)};
}

ProductRooms ProductSplit::rooms(const Product& product) {
  if (!product.has_epilogue()) return {};
  return {.c = product.max_rows * Product::kVector * product.max_vectors * product.c_element};
}

void ProductSplit::add_up(const Product& product, const ProductResult& result, const StepState& state, char* all,
                          int share, int shares) const {
  const int64_t rows = product.rows.count, tiles = rows * product.panels.count;
  const Range range = runtime::share(product.batches * tiles, share, shares);
  for (int64_t item = range.begin; item < range.end; ++item) {
    const int64_t batch = item / tiles;
    const ProductRun run(product, state, batch, rooms(product));
    add_tile(run, result, accumulators(all, batch, 0), item % rows, item % tiles / rows);
  }
}

void ProductSplit::add_tile(const ProductRun& run, const ProductResult& result, char* batch, int64_t tile,
                            int64_t panel) const {
  const Product& product = run.product;
  const int64_t column = product.panel_column(panel) * product.c_element, columns = product.panel_columns(panel);
  RawPiece piece{panel, product.rows.begin(tile), product.rows.size(tile), run.scratch.c,
                 product.panel_width(panel) * product.c_element};
  if (!product.has_epilogue()) {
    piece.at = run.scratch.at[2] + piece.row * product.c_row + column;
    piece.stride = product.c_row;
  }
  const auto add = product.c_element == 8 ? add_blocks<double> : add_blocks<float>;
  for (int64_t row = 0; row < piece.rows; ++row)
    add(piece.at + row * piece.stride, batch + (piece.row + row) * row_stride_ + column, blocks_, block_bytes_,
        columns);
  if (product.has_epilogue()) result.finish(run, piece);
}

}  // namespace ingot::runtime
