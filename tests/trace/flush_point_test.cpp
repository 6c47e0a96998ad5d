#include "trace/flush_point.h"

#include <gtest/gtest.h>

namespace ingot::trace {
namespace {

TEST(Symbols, SitesThatChangedTogetherShareASymbol) {
  std::vector<std::vector<int64_t>> history = {{4, 8, 4, 3}, {5, 8, 5, 6}};
  int count = 0;
  EXPECT_EQ(assign_symbols(history, &count), (std::vector<int32_t>{0, -1, 0, 1}));
  EXPECT_EQ(count, 2);
  history.push_back({6, 8, 7, 6});
  EXPECT_EQ(assign_symbols(history, &count), (std::vector<int32_t>{0, -1, 1, 2}));
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace ingot::trace
