// What eager execution keeps has a bound and can be given back; results do not depend on it.
#include "eager/execute/caches.h"

#include <gtest/gtest.h>

#include "eager/execute/execute.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/operators.h"
#include "eager/support.h"

namespace ingot {
namespace {

CacheFigures figures(const std::string& name) {
  for (const CacheFigures& c : cache_figures())
    if (c.name == name) return c;
  ADD_FAILURE() << "no cache " << name;
  return {};
}

TEST(Caches, ProgramsOfSmallSizesAreBounded) {
  // 15^4 shapes, each a program of its own.
  int64_t most = 0;
  for (int64_t i = 0; i < 6000; ++i) {
    const int64_t a = 1 + i % 15, b = 1 + i / 15 % 15, c = 1 + i / 225 % 15, d = 1 + i / 3375 % 15;
    Tensor sum = ones({a, b, c, d}).sum({0, 2});
    ASSERT_EQ(sum.numel(), b * d);
    ASSERT_EQ(sum[0][0].item<float>(), static_cast<float>(a * c));
    most = std::max(most, figures("eager programs").entries);
  }
  EXPECT_EQ(figures("eager programs").most_entries, static_cast<int64_t>(eager::kMostEagerPrograms));
  EXPECT_LE(most, static_cast<int64_t>(eager::kMostEagerPrograms));
  EXPECT_GT(figures("eager programs").evictions, 0);
}

TEST(Caches, ClearedOnesAreMadeAgain) {
  Tensor x = randn({7, 5}), before = softmax(x, 1);
  for (int i = 0; i < 3; ++i) {
    clear_caches();
    EXPECT_EQ(figures("eager programs").entries, 0);
    EXPECT_EQ(figures("packed weights").bytes, 0);
    Tensor again = softmax(x, 1);
    EXPECT_EQ(figures("eager programs").entries, 1);
    EXPECT_TRUE(equal(again, before));
  }
}

}  // namespace
}  // namespace ingot
