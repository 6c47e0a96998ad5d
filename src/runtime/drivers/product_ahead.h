// Fetching the B that is read next while tiles work on the one before.
#pragma once
#include <algorithm>

#include "base/pieces.h"
#include "runtime/drivers/step_driver.h"

namespace ingot::runtime {

/// Memory that is read soon: `rows` rows, `stride` apart, of so many lines of 64 bytes.
struct Ahead {
  static constexpr int64_t kLine = 64;
  const char* from = nullptr;
  int64_t rows = 0, row_lines = 0, stride = 0;

  /// Memory without gaps.
  static Ahead lines(const char* from, int64_t bytes) { return {from, ceil_div(bytes, kLine), 1, kLine}; }
};

/// Shares it out to tiles of `k` steps. What is contiguous is shared out evenly; of rows a tile fetches as many lines
/// as it can, of one column of lines.
class AheadShares {
 public:
  AheadShares(const Ahead& next, int64_t tiles, int64_t k)
      : next_(next),
        lines_(std::max<int64_t>(k / 2, 1)),
        pieces_(ceil_div(next.rows, lines_)),
        even_(next.stride == Ahead::kLine),
        fetching_(!next.from || tiles < 4 ? 0
                  : even_                 ? tiles
                                          : pieces_ * next.row_lines),
        share_(next.rows * Ahead::kLine / tiles),
        even_step_(std::min(ceil_div(share_, lines_), Ahead::kLine)) {}

  /// Tells the i-th tile what to fetch: where there is nothing more, a line that it reads anyway.
  void give(int64_t i, TileFrame& frame) const {
    frame.ahead = frame.b, frame.ahead_step = frame.ahead_tile = 0;
    if (i >= fetching_) return;
    frame.ahead_tile = share_;
    frame.ahead = next_.from + (even_ ? i * share_ : i / pieces_ * Ahead::kLine + i % pieces_ * lines_ * next_.stride);
    frame.ahead_step = even_ ? even_step_ : next_.stride;
  }
  /// Whether what the tiles from the i-th on fetch lies evenly.
  bool evenly(int64_t i) const { return even_ || i >= fetching_; }

 private:
  const Ahead& next_;
  int64_t lines_, pieces_;  // lines that a tile can fetch; tiles that a column of lines takes
  bool even_;
  int64_t fetching_, share_, even_step_;  // tiles that fetch; bytes of each, and how far from fetch to fetch
};

}  // namespace ingot::runtime
