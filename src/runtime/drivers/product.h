// A matrix product at given sizes: what all ways of computing it have in common.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "base/canonical_order.h"
#include "base/pieces.h"
#include "runtime/drivers/product_calls.h"

namespace ingot::runtime {

/// Operations of a product for which another thread pays; and where each of them loads an element.
inline constexpr int64_t kProductGrain = 1'000'000, kChannelGrain = 250'000;

/// The runs of a listed A in one block of k, and where their addresses begin in the list of a row of A.
struct ListedRuns {
  int64_t first = 0;
  std::span<const TileRun> runs;
};

struct ProductSizes {
  std::span<const int64_t> batch;
  int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::f32, accumulate = DType::f32;
};

/// C[batch..., m, n] = A[batch..., m, k] x B[batch..., k, n]: sizes, operands, kernels, and how its rows and columns
/// are cut into tiles and panels.
struct Product {
  static constexpr int64_t kBlock = canonical::kProductBlock;  // of k
  static constexpr int64_t kVector = 16;                       // columns

  /// To be followed by these in this order.
  Product(const ProductKernels& kernels, const ProductCalls& calls);
  void set_sizes(const ProductSizes& s);
  /// A, B (strides over [batch..., row, column]), then the arguments of the epilogue, or C.
  void set_operands(const BoundArguments& bound);

  bool has_epilogue() const { return !calls->epilogues.empty(); }
  int64_t panel_column(int64_t panel) const { return kVector * panels.begin(panel); }
  int64_t panel_width(int64_t panel) const { return kVector * panels.size(panel); }
  int64_t panel_columns(int64_t panel) const {
    return std::min(panel_column(panel) + panel_width(panel), sizes.n) - panel_column(panel);
  }
  // In packed B: bytes before a panel, and of all.
  int64_t panel_offset(int64_t panel) const { return panel_column(panel) * k_padded * element; }
  int64_t packed_bytes() const { return kVector * panels.n * k_padded * element; }
  const KernelCall& tile(const std::vector<KernelCall>& kernels, int64_t rows_of_it, int64_t vectors) const {
    return kernels[(rows_of_it - 1) * max_vectors + vectors - 1];
  }

  /// So that what follows the first block ends the sums.
  bool one_block_of_k() const { return sizes.k > 0 && sizes.k <= kBlock; }
  /// Tiles that end with the epilogue, if there are any for all rows of a panel, or null.
  const std::vector<KernelCall>* finishing_tiles(int64_t panel) const {
    const auto& kernels = panel_columns(panel) == panel_width(panel) ? calls->finishing : calls->finishing_last;
    auto has = [&](int64_t rows_of_it) { return bool(tile(kernels, rows_of_it, panels.size(panel))); };
    return !kernels.empty() && has(rows.each) && (!rows.extra || has(rows.each + 1)) ? &kernels : nullptr;
  }

  const ProductCalls* calls;
  int64_t max_rows, max_vectors;  // of a tile
  int64_t whole_k_rows;           // see ProductKernels
  bool goes_on;
  ProductSizes sizes;
  int64_t element, a_element, c_element = 4;  // of B; of A, as tiles read it; of the sums
  bool pairs;                                 // B is packed in pairs of k
  int64_t k_padded = 0, batches = 1;
  Pieces rows, panels;  // panels in units of 16 columns
  OneRow one_row = OneRow::tiles;

  BoundArguments operands;
  int64_t a_row = 0, a_column = 0;
  RowsOfA rows_of_a = RowsOfA::along;
  bool a_across() const { return rows_of_a == RowsOfA::across; }
  bool by_channels() const { return rows_of_a == RowsOfA::channels || rows_of_a == RowsOfA::windows; }
  bool packs_a = false;      // a copy of it, or what the prologue makes, a block of rows at a time
  bool packs_tiles = false;  // of an A across: [tile][k][rows of the tile], so that L1 holds nothing else of it
  int64_t a_bytes = 0;       // that a row of A takes in a cache, which may share it with others
  // Of a listed A: for each block of k, and entries of a tile.
  std::span<const ListedRuns> listed;
  int64_t addresses = 0;
  /// The rows of these tiles. Windows slide along lines, in order; else tiles that are alike come in turn.
  PieceWalk walk_rows(Range tiles) const { return {rows, tiles.begin, tiles.end, rows_of_a != RowsOfA::windows}; }
  int64_t b_row = 0, b_column = 0;
  int64_t c_row = 0;   // where there is no epilogue
  int64_t b_room = 0;  // bytes that putting a B together takes, a thread
};

}  // namespace ingot::runtime
