#include "base/dim.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

TEST(Dim, EqualPolynomialsAreTheSameDim) {
  DimTable t;
  Dim n = t.symbol(4), k = t.symbol(5);
  EXPECT_EQ(t.mul(t.add(n, 1), k), t.add(t.mul(k, n), k));
  EXPECT_EQ(t.floor_div(t.mul(t.mul(n, k), 12), t.mul(k, 3)), t.mul(n, 4));
  EXPECT_EQ(t.sub(t.add(n, 7), n), Dim(7));
  EXPECT_TRUE(t.guards().empty());
}

TEST(Dim, UndecidableQuestionsAreAnsweredByHintsAndGuarded) {
  DimTable t;
  Dim n = t.symbol(4), k = t.symbol(4);
  EXPECT_TRUE(t.equal(n, k));
  ASSERT_EQ(t.guards().size(), 1u);
  int64_t same[] = {7, 7}, different[] = {7, 8};
  EXPECT_TRUE(t.holds(t.guards()[0], t.evaluate(same)));
  EXPECT_FALSE(t.holds(t.guards()[0], t.evaluate(different)));
}

TEST(Dim, AQuestionAskedAgainIsOneGuard) {
  DimTable t;
  Dim n = t.symbol(4), k = t.symbol(5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(t.less(n, k));
    EXPECT_FALSE(t.equal(n, k));
  }
  EXPECT_EQ(t.guards().size(), 2u);
}

TEST(Dim, EvaluatesEveryKindOfExpression) {
  DimTable t;
  Dim n = t.symbol(10);
  Dim half = t.floor_div(n, 4), up = t.ceil_div(n, 4), big = t.max(n, 16), small = t.min(n, 16);
  int64_t symbols[] = {22};
  auto values = t.evaluate(symbols);
  EXPECT_EQ(DimTable::value_of(half, values), 5);
  EXPECT_EQ(DimTable::value_of(up, values), 6);
  EXPECT_EQ(DimTable::value_of(big, values), 22);
  EXPECT_EQ(DimTable::value_of(small, values), 16);
}

}  // namespace
}  // namespace ingot
