#include "eager/call/stride_class.h"

#include <gtest/gtest.h>

namespace ingot::eager {
namespace {

TEST(StrideClass, AContiguousTensorHasOneClassAtEverySize) {
  StrideClass expected = classify({4, 3, 5}, {15, 5, 1});
  EXPECT_EQ(classify({1, 3, 5}, {15, 5, 1}), expected);
  EXPECT_EQ(classify({7, 1, 2}, {2, 2, 1}), expected);
  EXPECT_EQ(classify({7, 1, 2}, {2, 99, 1}), expected) << "the stride of a dim of size 1 does not matter";
  EXPECT_EQ(classify({2, 2, 2}, {4, 2, 1}), expected);
}

TEST(StrideClass, LayoutsThatDifferHaveOtherClasses) {
  StrideClass contiguous = classify({4, 3}, {3, 1});
  EXPECT_NE(classify({4, 3}, {1, 4}), contiguous);   // transposed
  EXPECT_NE(classify({4, 3}, {0, 1}), contiguous);   // expanded
  EXPECT_NE(classify({4, 3}, {10, 1}), contiguous);  // columns of a wider matrix
  EXPECT_NE(classify({4, 3}, {6, 2}), contiguous);   // every second column
  EXPECT_EQ(free_count(classify({4, 3}, {10, 1})), 1);
}

// Strides that are derived from a class are those that it was made from.
TEST(StrideClass, StridesComeBack) {
  struct Case {
    Ints sizes, strides;
  };
  for (const Case& c : {Case{{4, 3, 5}, {15, 5, 1}}, Case{{3, 4}, {1, 3}}, Case{{2, 3, 4}, {4, 8, 1}},
                        Case{{5, 3}, {20, 1}}, Case{{5, 3}, {0, 2}}, Case{{2, 3, 4, 5}, {60, 1, 15, 3}}}) {
    StrideClass classes = classify(c.sizes, c.strides);
    DimTable dims;
    Dims sizes, free;
    for (int64_t s : c.sizes) sizes.push_back(s);
    for (size_t i = 0; i < classes.size(); ++i)
      if (classes[i] == kStrideFree) free.push_back(c.strides[i]);
    Dims strides = strides_of(dims, classes, sizes, free);
    for (size_t i = 0; i < strides.size(); ++i) EXPECT_EQ(strides[i], Dim(c.strides[i])) << i;
  }
}

}  // namespace
}  // namespace ingot::eager
