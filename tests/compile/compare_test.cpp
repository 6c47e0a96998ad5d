#include "compile/compare.h"

#include <limits>

#include "support.h"

namespace ingot {
namespace {

constexpr CompareOptions kBrief{.seconds = 0.001};

TEST(Compare, EqualCallablesAreEqualAndTimed) {
  auto f = [](const Tensor& x, double scale) { return std::vector<Tensor>{x.tanh() * scale, x.sum()}; };
  Tensor x = arange(100).to(kFloat32) / 50.0;
  Comparison c = compare(f, compile(f), std::tuple(x, 0.5), kBrief);
  EXPECT_TRUE(c.bitwise_equal);
  EXPECT_EQ(c.max_abs_error, 0);
  for (const Timing& t : {c.eager, c.compiled}) {
    EXPECT_GT(t.low, 0);
    EXPECT_LE(t.low, t.median);
    EXPECT_LE(t.median, t.high);
  }
  EXPECT_DOUBLE_EQ(c.speedup(), c.eager.median / c.compiled.median);
  EXPECT_NE(c.str().find("the same bits"), std::string::npos);
}

TEST(Compare, DifferencesAreFound) {
  auto f = [](const Tensor& x) { return x + 1; };
  auto g = [](const Tensor& x) { return x + 1.25; };
  Comparison c = compare(f, g, ones({4}), kBrief);
  EXPECT_FALSE(c.bitwise_equal);
  EXPECT_EQ(c.max_abs_error, 0.25);
  EXPECT_NE(c.str().find("differ by up to 2.5e-01"), std::string::npos) << c.str();

  auto number = [](const Tensor& x) { return std::tuple(x, 1.0); };
  auto other_number = [](const Tensor& x) { return std::tuple(x, 2.0); };
  EXPECT_FALSE(compare(number, other_number, ones({4}), kBrief).bitwise_equal);
  auto other_shape = [](const Tensor& x) { return (x + 1).reshape({2, 2}); };
  EXPECT_FALSE(compare(f, other_shape, ones({4}), kBrief).bitwise_equal);
}

TEST(Compare, BitsAreComparedNotNumbers) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(bitwise_equal(tensor({nan, 1.0}), -tensor({nan, -1.0}))) << "all NaNs are equal";
  EXPECT_FALSE(bitwise_equal(tensor({0.0}), tensor({-0.0})));
  EXPECT_FALSE(bitwise_equal(tensor({1.0}), tensor({1.0}).to(kFloat64)));
  EXPECT_FALSE(bitwise_equal(zeros({2}), zeros({1, 2})));
}

TEST(Compare, ModulesAreCallables) {
  nn::Sequential model{nn::Linear(8, 4), nn::GELU()};
  EXPECT_TRUE(compare(model, compile(model), ones({2, 8}), kBrief).bitwise_equal);
}

}  // namespace
}  // namespace ingot
