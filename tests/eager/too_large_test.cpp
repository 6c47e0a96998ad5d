// Sizes beyond what memory can count are refused on every path, warm or cold, and never written.
#include <gtest/gtest.h>

#include <limits>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/operators.h"
#include "support.h"

namespace ingot {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

Tensor expanded(const IntList& sizes) { return ones({1}).expand(sizes); }

template <class F>
void expect_refused(F f) {
  for (int i = 0; i < 3; ++i) EXPECT_THROW(f(), Error) << i;
}

TEST(TooLarge, BroadcastsOfCallsThatThisThreadKnows) {
  // The same ops, dtypes and ranks at small sizes first: the paths that remember them must count too.
  for (int i = 0; i < 3; ++i) {
    Tensor a = ones({4, 1}), b = ones({1, 4});
    EXPECT_EQ((a + b).numel(), 16);
    EXPECT_EQ((a * 2).numel(), 4);
    EXPECT_EQ(maximum(a, b).numel(), 16);
    EXPECT_EQ(where(ones({1, 1}, kBool), a, b).numel(), 16);
  }
  Tensor a = expanded({kHuge, 1}), b = expanded({1, kHuge});
  expect_refused([&] { return a + b; });
  expect_refused([&] { return maximum(a, b); });
  expect_refused([&] { return where(ones({1, 1}, kBool), a, b); });
  expect_refused([&] { return expanded({kHuge, kHuge}) * 2; });
}

TEST(TooLarge, SizesOfZeroDoNotHideTheOthers) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ((ones({4, 1, 2}) + ones({1, 4, 1})).numel(), 32);
  Tensor a = zeros({0, 1, 1}).expand({0, kHuge, 1}), b = ones({1, 1, 1}).expand({1, 1, kHuge});
  expect_refused([&] { return a + b; });
}

TEST(TooLarge, OfCountsAndStridesOfFactories) {
  constexpr int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  expect_refused([&] { return arange(low, high); });
  expect_refused([&] { return arange(high, low, -1); });
  expect_refused([&] { return arange(-2, high); });
  expect_refused([&] { return arange(0, high, 2); });
  expect_refused([&] { return arange(0.0, 1e300); });
  expect_refused([&] { return arange(0.0, std::numeric_limits<double>::infinity()); });
  EXPECT_EQ(arange(low, low + 3).numel(), 3);
  EXPECT_EQ(arange(low, high, int64_t{1} << 62).numel(), 4);
  EXPECT_EQ(arange(high, low, low).numel(), 2);
  EXPECT_EQ(arange(7, 0, -2).numel(), 4);
  EXPECT_EQ(arange(3, 3).numel(), 0);
  float value = 0;
  expect_refused([&] { return from_blob(&value, {2, 3}, {high, 1}); });
  expect_refused([&] { return from_blob(&value, {3, 3}, {high / 2, high / 2}); });
  expect_refused([&] { return full({kHuge, kHuge}, 1); });
}

TEST(TooLarge, EndsThatTheStepLeadsAwayFrom) {
  expect_refused([&] { return arange(5, 4, 2); });
  expect_refused([&] { return arange(0, -1); });
  expect_refused([&] { return arange(0.0, 0.5, -1.0); });
  expect_refused([&] { return arange(0.0, -0.5); });
}

}  // namespace
}  // namespace ingot
