#include "base/pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace ingot {
namespace {

TEST(Pieces, AreWalkedInTheirOrderOrTheLargerFirst) {
  for (int64_t n = 1; n <= 60; ++n)
    for (int64_t most : {1, 3, 6, 8})
      for (int64_t multiple : {1, 4}) {
        const Pieces pieces(n, most, multiple);
        ASSERT_EQ(pieces.begin(0), 0);
        ASSERT_EQ(pieces.begin(pieces.count), n);
        for (int64_t first = 0; first < pieces.count; ++first)
          for (int64_t last = first + 1; last <= pieces.count; ++last) {
            std::vector<int64_t> sizes;
            for (int64_t i = first; i < last; ++i) sizes.push_back(pieces.size(i));
            ASSERT_LE(*std::ranges::max_element(sizes), most);
            for (bool larger_first : {false, true}) {
              if (larger_first) std::ranges::sort(sizes, std::greater());
              PieceWalk one(pieces, first, last, larger_first), many = one;
              int64_t begin = pieces.begin(first);
              for (size_t i = 0; i < sizes.size();) {
                const auto alike = static_cast<size_t>(many.alike());
                ASSERT_GE(alike, 1u);
                ASSERT_LE(i + alike, sizes.size());
                if (larger_first) ASSERT_TRUE(i + alike == sizes.size() || sizes[i + alike] != sizes[i]);
                ASSERT_EQ(many.begin(), begin);
                for (size_t end = i + alike; i < end; ++i, one.next()) {
                  ASSERT_EQ(one.begin(), begin);
                  ASSERT_EQ(one.size(), sizes[i]);
                  ASSERT_EQ(many.size(), sizes[i]);
                  begin += sizes[i];
                }
                many.next(static_cast<int64_t>(alike));
              }
              ASSERT_EQ(begin, pieces.begin(last));
            }
          }
      }
}

}  // namespace
}  // namespace ingot
