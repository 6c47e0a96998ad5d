// A size counts like a plain integer wherever one is expected.
#include "eager/size.h"

#include <gtest/gtest.h>

#include <sstream>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "support.h"

namespace ingot {
namespace {

TEST(Size, CountsLikeAnInteger) {
  Tensor x = zeros({6, 4});
  Size n = x.size(0), m = x.size(-1);
  EXPECT_EQ(n, 6);
  EXPECT_EQ(4, m);
  EXPECT_EQ(n + m, 10);
  EXPECT_EQ(n - 1, 5);
  EXPECT_EQ(2 * n, 12);
  EXPECT_EQ(n / m, 1);
  EXPECT_EQ(13 % n, 1);
  EXPECT_EQ(-n, -6);
  EXPECT_EQ(-n / 4, -1);
  EXPECT_EQ(n++ + ++m, 11);
  EXPECT_EQ(n, 7);
  n += 2, n *= m, n -= 1, n /= 4, n %= 7;
  EXPECT_EQ(n, 4);
  EXPECT_TRUE(m > 4 && m >= 5 && 6 > m && m != 4 && m <= 5u && !(m < 5));
  EXPECT_EQ(0.5 * m, 2.5);
  EXPECT_EQ(std::max(x.size(0), x.size(1)), 6);
}

TEST(Size, GoesWhereAnIntegerGoes) {
  Tensor x = zeros({3, 2});
  int64_t n = x.size(0);
  int narrow = static_cast<int>(x.size(1));
  size_t wide = static_cast<size_t>(x.size(0));
  std::vector<int64_t> sizes{x.size(0), x.size(1), 7};
  EXPECT_EQ(sizes, (std::vector<int64_t>{n, narrow, 7}));
  EXPECT_EQ(wide, 3u);
  EXPECT_EQ(n > 2 ? x.size(1) : 0, 2);
  EXPECT_EQ(std::to_string(x.size(0)), "3");
  std::ostringstream text;
  text << x.size(0);
  EXPECT_EQ(text.str(), "3");
  EXPECT_EQ(zeros({x.size(1), 5, x.size(0) * 2}).sizes(), (std::vector<int64_t>{2, 5, 6}));
  EXPECT_EQ(zeros(x.size(0)).sizes(), (std::vector<int64_t>{3}));
  EXPECT_EQ(x.view({x.size(1), -1}).size(1), 3);
  EXPECT_EQ(x.narrow(0, x.size(0) - 2, 2).size(0), 2);
  EXPECT_EQ(x.slice(0, 0, x.size(0) / 2).size(0), 1);
  EXPECT_EQ((ones({4}) * x.size(0)).sum().item<float>(), 12);
  EXPECT_EQ(arange(x.size(0)).sum().item<int64_t>(), 3);
  EXPECT_EQ(full({2}, x.size(0)).dtype(), kInt64);
  EXPECT_EQ(x[x.size(0) - 1].dim(), 1);
}

TEST(Size, BadDivisionsAndNegativeCountsAreErrors) {
  Tensor x = zeros({0, 2});
  EXPECT_NE(test::message_of([&] { static_cast<void>(x.size(1) / x.size(0)); }).find("division of 2 by zero"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] { static_cast<void>(x.size(1) % 0); }).find("by zero"), std::string::npos);
  EXPECT_EQ((x.size(1) - INT64_MIN) / -1, INT64_MAX - 1);
  EXPECT_NE(test::message_of([&] { arange(x.size(0) - 1); }).find("arange: end: got -1"), std::string::npos);
}

}  // namespace
}  // namespace ingot
