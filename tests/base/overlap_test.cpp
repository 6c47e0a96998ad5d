#include "base/overlap.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace ingot {
namespace {

bool by_counting(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  std::vector<int64_t> places{0};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> next;
    for (int64_t place : places)
      for (int64_t i = 0; i < sizes[d]; ++i) next.push_back(place + i * strides[d]);
    places = std::move(next);
  }
  return std::set<int64_t>(places.begin(), places.end()).size() < places.size();
}

TEST(Overlap, DimsMayBeInterleaved) {
  EXPECT_FALSE(elements_overlap(std::vector<int64_t>{3, 2}, std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(elements_overlap(std::vector<int64_t>{4, 2}, std::vector<int64_t>{2, 6}));
  EXPECT_TRUE(elements_overlap(std::vector<int64_t>{2, 3}, std::vector<int64_t>{0, 1}));
  EXPECT_FALSE(elements_overlap(std::vector<int64_t>{1, 3}, std::vector<int64_t>{0, 1}));
  EXPECT_FALSE(elements_overlap(std::vector<int64_t>{0, 3}, std::vector<int64_t>{0, 0}));
  // Far more elements than a count could look at.
  constexpr int64_t kMany = int64_t{1} << 30;
  EXPECT_FALSE(elements_overlap(std::vector<int64_t>{kMany, 2}, std::vector<int64_t>{2, kMany + 1}));
  EXPECT_TRUE(elements_overlap(std::vector<int64_t>{kMany, 2}, std::vector<int64_t>{2, kMany}));
}

TEST(Overlap, IsWhatCountingSays) {
  std::mt19937 random(7);
  int overlapping = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<int64_t> sizes, strides;
    for (size_t d = 0, rank = random() % 5; d < rank; ++d) {
      sizes.push_back(static_cast<int64_t>(random() % 5));
      strides.push_back(static_cast<int64_t>(random() % (round % 2 ? 12 : 40)));
    }
    const bool expected = by_counting(sizes, strides);
    overlapping += expected;
    ASSERT_EQ(elements_overlap(sizes, strides), expected)
        << testing::PrintToString(sizes) << " " << testing::PrintToString(strides);
  }
  EXPECT_GT(overlapping, 1000);
  EXPECT_LT(overlapping, 19000);
}

}  // namespace
}  // namespace ingot
