// Copies of A and B in the forms that tiles read, where they do not lie so; panels of B are for the kinds of product.
#pragma once
#include "runtime/drivers/product.h"

namespace ingot::runtime {

/// Rows of A, or what it has of them for each k where it is across, `to_stride` apart.
void pack_a(const Product& product, const char* a, char* to, int64_t rows, int64_t k, int64_t to_stride);
/// What tiles have of an A across, [tile][k][rows of it] (Product::packs_tiles).
void pack_tiles(const Product& product, const char* a, char* to, PieceWalk walk, int64_t tiles, int64_t k);
/// A packed block of B to f32: its rows, or pairs of them, one after the other.
void widen(const Product& product, const char* packed, char* to, int64_t k, int64_t width);
/// A panel of f32, [k][width], of the rows of a B that starts at b.
void widen_rows(const Product& product, const char* b, int64_t panel, int64_t k_begin, int64_t k_end, char* to);

}  // namespace ingot::runtime
