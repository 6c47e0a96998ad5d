// The bounds that the op table states, over sampled inputs; tools/exhaustive checks them all.
#include "cli/accuracy.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "ir/op.h"
#include "runtime/cpu.h"

namespace ingot::cli {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Accuracy, ErrorsInUnitsInTheLastPlace) {
  EXPECT_EQ(error_in_ulps(1, 1 + 0x1p-24), 0.5);
  EXPECT_EQ(error_in_ulps(1, 1 - 0x1p-24), 1);  // units are finer below a power of two
  EXPECT_EQ(error_in_ulps(0, 0x1p-150), 0.5);
  EXPECT_EQ(error_in_ulps(kInfinity, 0x1.ffffffp127), 0);
  EXPECT_EQ(error_in_ulps(kInfinity, 0x1.fffffep127), 1);
  EXPECT_EQ(error_in_ulps(std::numeric_limits<float>::quiet_NaN(), NAN), 0);
  for (auto [result, exact] : {std::pair(0.0f, -0.0), {1.0f, INFINITY}, {-kInfinity, INFINITY}})
    EXPECT_EQ(error_in_ulps(result, exact), INFINITY) << result << " for " << exact;
  EXPECT_EQ(error_in_ulps(std::numeric_limits<float>::quiet_NaN(), 1), INFINITY);
  EXPECT_EQ(error_in_ulps(1, NAN), INFINITY);
  EXPECT_GT(error_in_ulps(kInfinity, 1), 1e40);
  EXPECT_EQ(error_in_ulps(0x1p-10f, 0x1p-9, 1), 0x1p13);
}

TEST(Accuracy, SamplesMeetEveryExponent) {
  std::vector<float> inputs = sample_inputs(6, 1);
  std::vector<bool> met(512);
  for (float x : inputs) met[std::bit_cast<uint32_t>(x) >> 23] = true;
  EXPECT_EQ(std::count(met.begin(), met.end(), true), 512);
}

TEST(Accuracy, UnaryFunctionsKeepTheBoundsOfTheirRows) {
  const std::vector<float> inputs = sample_inputs(300, 5);
  const std::vector<UnaryFunction> functions = unary_functions();
  EXPECT_GT(functions.size(), 40u);
  for (const UnaryFunction& function : functions) {
    const Accuracy a = measure(function, UnaryKernel(function, runtime::host_target()), inputs);
    EXPECT_EQ(a.over, 0u) << function.name << ": " << a.worst << " at " << a.input << ", " << a.result << " for "
                          << a.exact;
    EXPECT_LE(function.bound, 2) << function.name;
  }
}

// A wrong definition is found.
TEST(Accuracy, MeasuresWhatIsWrong) {
  UnaryFunction function = unary_functions()[0];
  const auto define = function.define;
  function.define = [&](codegen::Expr x) { return define(x) * (1 + 0x1p-20); };
  const Accuracy a = measure(function, UnaryKernel(function, runtime::host_target()), sample_inputs(20, 5));
  EXPECT_GT(a.over, 1000u);
  EXPECT_GT(a.worst, 8);
}

}  // namespace
}  // namespace ingot::cli
