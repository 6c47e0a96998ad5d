#include "runtime/drivers/product.h"

#include "base/error.h"
#include "runtime/cpu.h"

namespace ingot::runtime {
namespace {
constexpr int64_t kManyPanels = 8;  // that read a tile's A, for which a copy of it pays
}

Product::Product(const ProductKernels& kernels, const ProductCalls& calls)
    : calls(&calls),
      max_rows(kernels.max_rows),
      max_vectors(kernels.max_vectors),
      whole_k_rows(kernels.whole_k_rows),
      goes_on(kernels.goes_on),
      element(size_of(kernels.b)),
      a_element(size_of(kernels.a)),
      pairs(kernels.b == DType::bf16),
      rows_of_a(kernels.rows_of_a) {
  INGOT_CHECK(static_cast<int64_t>(calls.tiles.size()) == max_rows * max_vectors);
}

void Product::set_sizes(const ProductSizes& s) {
  sizes = s;
  c_element = size_of(sizes.accumulate);
  for (int64_t size : sizes.batch) batches = saturating_product(batches, size);
  rows = Pieces(sizes.m, max_rows);
  panels = product_panels(sizes.n, max_vectors);
  a_bytes = sizes.k * a_element;
  k_padded = round_up(sizes.k, 2);
}

void Product::set_operands(const BoundArguments& bound) {
  operands = bound;
  INGOT_CHECK(operands.rank() == sizes.batch.size() + 2);
  const int64_t *row_strides = operands.row_strides(), *column_strides = operands.column_strides();
  a_row = row_strides[0], a_column = column_strides[0];
  packs_tiles = calls->pack_a && a_across() && goes_on && panels.count >= kManyPanels;
  packs_a = calls->prologue ||
            (calls->pack_a && (!a_across() || packs_tiles || lines_conflict(a_column, std::min(kBlock, sizes.k))));
  if (has_epilogue()) return;
  INGOT_CHECK(operands.size() == 3);
  c_row = row_strides[2];
  INGOT_CHECK(column_strides[2] == c_element || sizes.n <= 1, "C's columns are contiguous");
}

}  // namespace ingot::runtime
