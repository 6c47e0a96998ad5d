#include "base/dim.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

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

// What would multiply out is refused where it passes the bound, with little done until then.
TEST(Dim, ExpressionsThatMultiplyOutAreRefused) {
  auto refused = [](auto&& grow) {
    DimTable t;
    std::vector<Dim> symbols;
    for (int i = 0; i < 40; ++i) symbols.push_back(t.symbol(i % 2));
    try {
      for (int step = 0; step < 100'000; ++step) grow(t, symbols, step);
    } catch (const SizeOverflow& e) {
      EXPECT_NE(std::string(e.what()).find("expected"), std::string::npos) << e.what();
      // The table is what it was: it still answers, and its expressions are small.
      EXPECT_EQ(t.add(symbols[0], symbols[0]), t.mul(symbols[0], 2));
      return true;
    }
    return false;
  };
  Dim x = 1;
  // Products of sums, in many symbols and in two; powers; sums of all that there is.
  EXPECT_TRUE(refused([&](DimTable& t, auto& s, int step) {
    if (!step) x = 1;
    x = t.mul(x, t.add(t.add(s[step % 40], s[(step + 1) % 40]), s[(step + 2) % 40]));
  }));
  EXPECT_TRUE(refused([&](DimTable& t, auto& s, int step) { x = step ? t.mul(x, t.add(s[1], s[3])) : Dim(1); }));
  EXPECT_TRUE(refused([&](DimTable& t, auto& s, int step) { x = step ? t.mul(x, x) : s[1]; }));
  EXPECT_TRUE(refused([&](DimTable& t, auto& s, int step) { x = step ? t.add(t.mul(x, s[step % 40]), x) : s[1]; }));
  // Expressions of an expression twice, whose text doubles with each step.
  EXPECT_TRUE(refused([&](DimTable& t, auto& s, int step) { x = step ? t.max(t.add(x, 1), t.mul(x, 2)) : s[1]; }));
  EXPECT_TRUE(refused([&](DimTable& t, auto& s, int step) { x = step ? t.min(t.max(x, step), x) : s[1]; }));
  EXPECT_TRUE(refused(
      [&](DimTable& t, auto& s, int step) { x = step ? t.floor_div(t.add(t.mul(x, x), s[step % 40]), 7) : s[1]; }));
  // A long chain, and very many of middling size.
  EXPECT_TRUE(refused([&](DimTable& t, auto& s, int step) { x = step ? t.floor_div(t.add(x, 1), 3) : s[1]; }));
  EXPECT_TRUE(refused([&](DimTable& t, auto& s, int step) {
    if (!step) x = t.product({{t.add(s[0], s[1]), t.add(s[2], s[3]), t.add(s[4], s[5]), t.add(s[6], s[7])}});
    x = t.add(x, 1);
  }));
}

// What real graphs have stays within: sums of hundreds of symbols, halves of halves.
TEST(Dim, LargeExpressionsOfRealGraphsAreKept) {
  DimTable t;
  Dim sum = 0;
  for (int i = 0; i < 300; ++i) sum = t.add(sum, t.symbol(i));
  EXPECT_EQ(t.hint(sum), 299 * 300 / 2);
  Dim n = t.symbol(INT64_MAX / 4), size = n;
  for (int i = 0; i < 60; ++i) size = t.add(t.floor_div(t.sub(t.add(size, 2), 1), 2), 1);
  EXPECT_GT(t.hint(size), 0);
  EXPECT_LT(t.str(t.mul(size, size)).size(), 10'000u);
}

TEST(Dim, CoefficientsThatHaveNoRoomAreRefused) {
  DimTable t;
  Dim n = t.symbol(1), k = t.symbol(1);
  Dim large = t.mul(n, INT64_MAX);
  EXPECT_THROW(t.add(large, n), SizeOverflow);
  EXPECT_THROW(t.mul(large, t.add(k, 1)), SizeOverflow);
  Dim negative = t.sub(t.sub(k, large), t.sub(k, large));
  EXPECT_EQ(negative, Dim(0));
}

TEST(Dim, GuardsPinSymbols) {
  DimTable t;
  Dim a = t.symbol(4), b = t.symbol(4), c = t.symbol(1), d = t.symbol(1), e = t.symbol(6), f = t.symbol(6);
  EXPECT_TRUE(t.equal(a, b));
  EXPECT_TRUE(t.equal(c, d));
  EXPECT_TRUE(t.is_one(d));
  EXPECT_FALSE(t.equal(a, e));
  EXPECT_TRUE(t.equal(t.add(a, 2), f));
  EXPECT_EQ(t.pinned_symbols(), (std::vector<int64_t>{1, 1, -1, -1, 4, 5}));
}

TEST(Dim, ImportedExpressionsHaveTheSameValues) {
  DimTable t;
  Dim a = t.symbol(5), b = t.symbol(3), c = t.symbol(1);
  std::vector<Dim> made = {t.mul(t.add(a, b), t.sub(a, c)),   t.floor_div(t.add(a, 7), t.mul(b, 2)),
                           t.max(t.mul(a, c), t.add(b, 4)),   t.min(t.floor_div(a, 2), b),
                           t.sub(t.mul(a, a), t.mul(a, b)),   t.add(t.max(a, b), t.floor_div(t.mul(b, 9), a)),
                           t.mul(t.add(c, 1), t.mul(b, 100)), 7};
  EXPECT_TRUE(t.less(b, a));
  DimTable pinned;
  Dim x = pinned.symbol(5);
  const Dim symbols[] = {x, pinned.sub(x, 2), 1};
  std::vector<Dim> imported = pinned.import(t, symbols);
  for (int64_t n : {5, 6, 11}) {
    const int64_t old_symbols[] = {n, n - 2, 1}, new_symbols[] = {n};
    const std::vector<int64_t> before = t.evaluate(old_symbols), after = pinned.evaluate(new_symbols);
    for (Dim d : made)
      EXPECT_EQ(DimTable::value_of(DimTable::translated(d, imported), after), DimTable::value_of(d, before))
          << t.str(d);
  }
  EXPECT_EQ(pinned.guards().size(), 1u);
}

TEST(Dim, OppositesAreStridesOfWhatIsReadBackwards) {
  DimTable t;
  const Dim n = t.symbol(4), back = t.opposite(1);
  EXPECT_FALSE(back.is_constant());
  EXPECT_EQ(t.hint(back), -1);
  EXPECT_EQ(t.str(back), "(-1)");
  EXPECT_EQ(t.opposite(back), Dim(1));
  EXPECT_EQ(t.opposite(0), Dim(0));
  EXPECT_EQ(t.mul(back, 6), t.opposite(6));
  EXPECT_EQ(t.mul(n, back), t.opposite(n));
  EXPECT_EQ(t.add(t.opposite(3), 3), Dim(0));
  EXPECT_EQ(t.add(t.opposite(3), 5), Dim(2));
  EXPECT_EQ(t.hint(t.add(t.opposite(3), 1)), -2);
  EXPECT_EQ(t.add(t.opposite(n), n), Dim(0));
  const std::vector<int64_t> values = t.evaluate(std::vector<int64_t>{9});
  EXPECT_EQ(DimTable::value_of(t.opposite(n), values), -9);
  EXPECT_EQ(DimTable::value_of(back, values), -1);
}

TEST(Dim, WhatIsNoSizeIsAnError) {
  DimTable t, other;
  Dim n = t.symbol(4), k = other.symbol(4), far = other.mul(k, other.add(k, 3));
  EXPECT_THROW(Dim(-1), Error);
  EXPECT_THROW(t.sub(3, 4), Error);
  EXPECT_THROW(t.sub(t.sub(n, 4), n), Error);
  EXPECT_THROW(t.floor_div(4, 0), Error);
  EXPECT_THROW(t.ceil_div(4, 0), Error);
  EXPECT_THROW(t.floor_div(n, t.sub(n, 4)), Error);
  EXPECT_TRUE(t.knows(n));
  EXPECT_FALSE(t.knows(far));
  EXPECT_THROW(t.add(far, 1), Error);
  EXPECT_THROW(t.max(far, 1), Error);
}

}  // namespace
}  // namespace ingot
