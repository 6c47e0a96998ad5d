// What tests of tiles share: elements of any dtype, packed panels, frames.
#pragma once
#include "codegen/x86_harness.h"

namespace ingot::codegen::test {

template <class T>
T element(const char* p, DType d) {
  if (is_half(d)) {
    uint16_t bits;
    std::memcpy(&bits, p, 2);
    return static_cast<T>(d == DType::bf16 ? f32_from_bf16(bits) : f32_from_f16(bits));
  }
  if (d == DType::i8) return static_cast<T>(static_cast<int8_t>(*p));
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

/// Where element (k, j) lies in a panel.
inline int64_t panel_offset(DType d, int64_t k, int64_t j, int64_t width) {
  return d == DType::bf16 ? (k / 2 * width + j) * 4 + k % 2 * 2 : (k * width + j) * size_of(d);
}
inline int64_t panel_bytes(DType d, int64_t k, int64_t width) {
  return d == DType::bf16 ? (k + 1) / 2 * width * 4 : k * width * size_of(d);
}

/// C after a tile: `sum(i, j)` in the first rows and columns of it, or added to what is there.
template <class T, class Sum>
std::vector<T> summed(std::vector<T> c, int rows, int64_t columns, int64_t width, int64_t accumulate, Sum sum) {
  for (int i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      T& to = c[static_cast<size_t>(i * width + j)];
      to = accumulate ? to + sum(i, j) : sum(i, j);
    }
  return c;
}

/// Where bits differ first, or -1 (of NaN: any).
template <class T>
int64_t first_difference(const std::vector<T>& expected, const std::vector<T>& got, DType d) {
  for (size_t i = 0; i < got.size(); ++i)
    if (!same(reinterpret_cast<const char*>(&expected[i]), reinterpret_cast<const char*>(&got[i]), d))
      return static_cast<int64_t>(i);
  return -1;
}

/// What a tile is given: A or where its rows lie, panels of B, C; strides in bytes.
inline TileFrame tile_frame(const void* a, const char* b, void* c, int64_t k, int64_t a_stride, int64_t c_row,
                            int64_t accumulate, int64_t columns) {
  return {static_cast<const char*>(a), b, static_cast<char*>(c), k, a_stride, c_row, accumulate, columns, nullptr};
}

}  // namespace ingot::codegen::test
