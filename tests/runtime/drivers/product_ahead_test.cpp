// What tiles fetch for those that come next: all of it where they are enough, and nothing else.
#include "runtime/drivers/product_ahead.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace ingot::runtime {
namespace {

constexpr int64_t kLine = Ahead::kLine;

/// The lines, relative to `next`, that all tiles fetch, each so many.
std::set<int64_t> fetched(const Ahead& next, int64_t tiles, int64_t each) {
  const AheadShares shares(next, tiles, each);
  std::set<int64_t> lines;
  TileFrame frame{};
  frame.b = nullptr;
  for (int64_t i = 0; i < tiles; ++i) {
    shares.give(i, frame);
    if (!frame.ahead) continue;  // nothing more: a line of B
    for (int64_t step = 0; step < each; ++step)
      lines.insert((frame.ahead + step * frame.ahead_step - next.from) / kLine * kLine);
  }
  return lines;
}

std::set<int64_t> lines_of(const Ahead& next) {
  std::set<int64_t> lines;
  for (int64_t row = 0; row < next.rows; ++row)
    for (int64_t line = 0; line < next.row_lines; ++line) lines.insert(row * next.stride + line * kLine);
  return lines;
}

alignas(64) char memory[1 << 20];

TEST(AheadShares, AllOfWhatComesNextAndNothingElse) {
  const Ahead even = Ahead::lines(memory, 16 << 10), longer = Ahead::lines(memory, (16 << 10) + kLine);
  EXPECT_EQ(fetched(even, 4, 128), lines_of(even));
  EXPECT_EQ(fetched(even, 22, 128), lines_of(longer));  // shares are no whole lines: the last may go a little further
  // A block of B of two tiles that read as much, which is what lines_fetched() is for; of one there is nothing behind
  // it.
  for (int64_t row : {64, 128, 192}) {
    const Ahead block = Ahead::lines(memory, 256 * row);
    EXPECT_EQ(fetched(block, 2, lines_fetched(256, row)), lines_of(block)) << row;
    EXPECT_TRUE(fetched(block, 1, lines_fetched(256, row)).empty());
  }
  // Rows of B: a column of their lines is two tiles' work.
  const Ahead rows{memory, 256, 3, 3072};
  EXPECT_EQ(fetched(rows, 22, 128), lines_of(rows));
  // Columns of B that lie along k: few long rows, one a tile.
  for (int64_t k : {256, 128, 64}) {
    const Ahead columns{memory, 16, k * 4 / kLine, 3072};
    EXPECT_EQ(fetched(columns, 22, k / 2), lines_of(columns)) << k;
  }
  // Fewer tiles than rows: the first rows.
  const Ahead columns{memory, 16, 16, 3072}, first{memory, 8, 16, 3072};
  EXPECT_EQ(fetched(columns, 8, 128), lines_of(first));
}

TEST(AheadShares, NothingOfNothing) {
  EXPECT_TRUE(fetched({}, 22, 128).empty());
  EXPECT_TRUE(fetched({memory, 16, 16, 3072}, 3, 128).empty());  // too few tiles
}

/// Tiles that go on from one to the next fetch what each of them would.
TEST(AheadShares, TilesThatGoOnFetchTheSame) {
  for (const Ahead& next : {Ahead::lines(memory, 16 << 10), Ahead{memory, 256, 3, 3072}, Ahead{memory, 16, 16, 3072}}) {
    constexpr int64_t kTiles = 22;
    const AheadShares shares(next, kTiles, 128);
    for (int64_t i = 0; i < kTiles; ++i) {
      TileFrame first{}, other{};
      shares.give(i, first);
      for (int64_t j = 0; j < std::min(shares.alike(i), kTiles - i); ++j) {
        shares.give(i + j, other);
        EXPECT_EQ(first.ahead + j * first.ahead_tile, other.ahead) << i << " " << j;
        EXPECT_EQ(first.ahead_step, other.ahead_step);
      }
    }
  }
}

}  // namespace
}  // namespace ingot::runtime
