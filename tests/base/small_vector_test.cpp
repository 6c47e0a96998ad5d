#include "base/small_vector.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

namespace ingot {
namespace {

using Numbers = SmallVector<int64_t, 4>;

Numbers counted(size_t n) {
  Numbers numbers(n);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

// Whatever lies inside or on the heap, on either side.
TEST(SmallVector, CopiesAndMovesOfAnySize) {
  for (size_t from : {0, 1, 4, 5, 9})
    for (size_t to : {0, 3, 4, 5, 17}) {
      const Numbers source = counted(from);
      Numbers copied = counted(to);
      copied = source;
      EXPECT_EQ(copied, source);
      Numbers leaving = source, moved = counted(to);
      moved = std::move(leaving);
      EXPECT_EQ(moved, source);
      EXPECT_TRUE(leaving.empty());
      leaving.push_back(7);  // what was moved from is a vector like any other
      EXPECT_EQ(leaving, Numbers({7}));
      EXPECT_EQ(moved, source);
      Numbers made(std::move(moved)), again(made);
      EXPECT_EQ(made, source);
      made.push_back(100);
      EXPECT_EQ(again, source);
      EXPECT_EQ(made.size(), from + 1);
    }
}

TEST(SmallVector, IsAssignedToItself) {
  for (size_t n : {2, 6}) {
    Numbers numbers = counted(n);
    Numbers& same = numbers;
    numbers = same;
    EXPECT_EQ(numbers, counted(n));
    numbers = std::move(same);
    EXPECT_EQ(numbers, counted(n));
  }
}

TEST(SmallVector, GrowsByOneAndInTheMiddle) {
  Numbers numbers;
  for (int64_t i = 0; i < 20; ++i) numbers.push_back(i);
  numbers.insert(10, -1);
  numbers.erase(0);
  EXPECT_EQ(numbers.size(), 20u);
  EXPECT_EQ(numbers.front(), 1);
  EXPECT_EQ(numbers[9], -1);
  EXPECT_EQ(numbers.back(), 19);
  numbers.resize(2);
  numbers.resize(4, 5);
  EXPECT_EQ(numbers, Numbers({1, 2, 5, 5}));
}

}  // namespace
}  // namespace ingot
