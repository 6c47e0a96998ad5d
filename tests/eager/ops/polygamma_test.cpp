// Derivatives of digamma: every order that there is, poles, halfway between them.
#include <gtest/gtest.h>

#include <cmath>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot {
namespace {

double polygamma_at(int64_t n, double x) { return polygamma(n, full({1}, x, kFloat64)).item<double>(); }

TEST(Polygamma, FollowsItsRecurrence) {
  for (int64_t n = 1; n <= 30; ++n)
    for (double x : {1e-3, 0.1, 0.5, 0.75, 1.0, 3.25, 9.5, 40.0}) {
      // psi_n(x) - psi_n(x + 1) = -(-1)^n n! / x^(n + 1)
      const double step = (n % 2 ? 1 : -1) * std::tgamma(n + 1.0) / std::pow(x, n + 1.0);
      const double here = polygamma_at(n, x);
      EXPECT_NEAR(here, polygamma_at(n, x + 1) + step, 1e-12 * std::abs(here)) << n << " at " << x;
    }
}

TEST(Polygamma, OfEvenOrdersIsEqualAcrossAHalf) {
  for (int64_t n = 2; n <= 30; n += 2)
    for (double x : {0.5, 1.5, 7.5})
      EXPECT_NEAR(polygamma_at(n, -x), polygamma_at(n, x + 1), 1e-12 * std::abs(polygamma_at(n, x + 1))) << n;
}

TEST(Polygamma, PolesHaveASign) {
  for (int64_t n = 1; n <= 30; ++n)
    for (double x : {0.0, -0.0, -1.0, -8.0}) EXPECT_EQ(polygamma_at(n, x), n % 2 ? INFINITY : -INFINITY) << n;
  EXPECT_TRUE(std::isnan(polygamma_at(4, NAN)));
  EXPECT_TRUE(std::isnan(polygamma_at(4, -INFINITY)));
  EXPECT_EQ(polygamma_at(4, INFINITY), 0);
  EXPECT_THROW(polygamma(31, ones({1})), Error);
  EXPECT_THROW(polygamma(-1, ones({1})), Error);
}

}  // namespace
}  // namespace ingot
