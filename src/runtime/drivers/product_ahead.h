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

/// Shares it out to tiles that fetch so many lines each (lines_fetched). What is contiguous is shared out evenly to two
/// or more; of what they do not come to each reads the end of its share when its time comes. Of many rows a tile
/// fetches as many lines as it can, of one column of lines; of few long ones a row.
class AheadShares {
  static constexpr int64_t kFewest = 2, kFewestOfRows = 4;

 public:
  AheadShares(const Ahead& next, int64_t tiles, int64_t lines)
      : next_(next), lines_(std::max<int64_t>(lines, 1)), even_(next.stride == Ahead::kLine) {
    if (!next.from || tiles < (even_ ? kFewest : kFewestOfRows)) return;
    if (even_) {
      fetching_ = tiles;
      share_ = next.rows * Ahead::kLine / tiles;
      step_ = std::min(ceil_div(share_, lines_), Ahead::kLine);
    } else if (next.rows <= lines_ / 2 && next.row_lines > 1) {
      fetching_ = next.rows;
      share_ = next.stride;
      step_ = std::clamp<int64_t>(next.row_lines * Ahead::kLine / lines_, 1, Ahead::kLine);
    } else {
      pieces_ = ceil_div(next.rows, lines_);
      fetching_ = pieces_ * next.row_lines;
      step_ = next.stride;
    }
  }

  /// Tells the i-th tile what to fetch: where there is nothing more, a line that it reads anyway.
  void give(int64_t i, TileFrame& frame) const {
    frame.ahead = frame.b, frame.ahead_step = frame.ahead_tile = 0;
    if (i >= fetching_) return;
    frame.ahead_tile = share_;
    frame.ahead = next_.from + (share_ ? i * share_ : i / pieces_ * Ahead::kLine + i % pieces_ * lines_ * next_.stride);
    frame.ahead_step = step_;
  }
  /// Tiles from the i-th on, at most, whose shares are as far apart from each other.
  int64_t alike(int64_t i) const { return even_ || i >= fetching_ ? INT64_MAX : share_ ? fetching_ - i : 1; }

 private:
  const Ahead& next_;
  int64_t lines_;  // that a tile fetches
  bool even_;
  int64_t fetching_ = 0, pieces_ = 1;  // tiles that fetch; that a column of lines takes
  int64_t share_ = 0, step_ = 0;       // how far the shares of tiles are apart, if they are evenly; from fetch to fetch
};

}  // namespace ingot::runtime
