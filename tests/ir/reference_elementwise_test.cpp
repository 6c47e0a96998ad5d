// Elementwise ops of the reference, by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "ir/reference_helper.h"

namespace ingot::ir {
namespace {

using Reals = std::vector<double>;
using Wholes = std::vector<int64_t>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

TEST(ReferenceElementwise, SumIsRoundedOnce) {
  ReferenceTensor sum = apply(OpId::add, {real({2}, {1, 16777216}), real({2}, {1e-9, 1})});
  EXPECT_EQ(sum.real, (Reals{1, 16777216}));
  EXPECT_EQ(apply(OpId::add, {real({1}, {0.1})}, {Operand::constant(0.2)}).real[0],
            static_cast<float>(static_cast<double>(0.1f) + static_cast<double>(0.2f)));
}

TEST(ReferenceElementwise, BroadcastAndPromotion) {
  ReferenceTensor sum = apply(OpId::add, {whole({2, 1}, {1, 2}, DType::i8), whole({3}, {10, 20, 127}, DType::i8)});
  EXPECT_EQ(sum.shape, (Ints{2, 3}));
  EXPECT_EQ(sum.integer, (Wholes{11, 21, -128, 12, 22, -127}));  // wraps
  EXPECT_EQ(apply(OpId::add, {whole({1}, {1}), real({}, {0.5}, DType::f64)}).dtype, DType::f64);
  EXPECT_EQ(apply(OpId::mul, {whole({1}, {3}, DType::u8)}, {Operand::constant(0.5)}).real, (Reals{1.5}));
}

TEST(ReferenceElementwise, IntegerDivision) {
  ReferenceTensor a = whole({4}, {7, -7, 7, -7}), b = whole({4}, {2, 2, -2, -2});
  EXPECT_EQ(apply(OpId::floor_divide, {a, b}).integer, (Wholes{3, -4, -4, 3}));
  EXPECT_EQ(apply(OpId::remainder, {a, b}).integer, (Wholes{1, 1, -1, -1}));
  EXPECT_EQ(apply(OpId::fmod, {a, b}).integer, (Wholes{1, -1, 1, -1}));
  EXPECT_EQ(apply(OpId::div, {a, b}).real, (Reals{3.5, -3.5, -3.5, 3.5}));
  EXPECT_EQ(apply(OpId::floor_divide, {whole({1}, {INT64_MIN}), whole({1}, {-1})}).integer[0], INT64_MIN);
  EXPECT_THROW(apply(OpId::remainder, {a, whole({4}, {1, 0, 1, 1})}), Error);
}

TEST(ReferenceElementwise, NanWinsAndZerosAreOrdered) {
  ReferenceTensor a = real({3}, {1, kNaN, -0.0}), b = real({3}, {kNaN, 2, 0.0});
  ReferenceTensor top = apply(OpId::maximum, {a, b}), low = apply(OpId::minimum, {b, a});
  EXPECT_TRUE(std::isnan(top.real[0]) && std::isnan(top.real[1]));
  EXPECT_FALSE(std::signbit(top.real[2]));
  EXPECT_TRUE(std::signbit(low.real[2]));
  EXPECT_EQ(apply(OpId::fmax, {a, b}).real[0], 1);
}

TEST(ReferenceElementwise, BoundsMayLiePastTheNumbersOfADtype) {
  const Operand low = Operand::constant(-(int64_t{1} << 40)), high = Operand::constant(int64_t{1} << 40);
  const ReferenceTensor x = whole({3}, {-5, 7, INT32_MAX}, DType::i32), bytes = whole({2}, {5, 250}, DType::u8);
  EXPECT_EQ(apply(OpId::clamp, {x}, {low, high}).integer, x.integer);
  EXPECT_EQ(apply(OpId::clamp_min, {x}, {low}).integer, x.integer);
  EXPECT_EQ(apply(OpId::clamp_max, {bytes}, {Operand::constant(int64_t{300})}).integer, bytes.integer);
  EXPECT_EQ(apply(OpId::clamp_min, {bytes}, {Operand::constant(int64_t{-1})}).integer, bytes.integer);
}

TEST(ReferenceElementwise, ThresholdsOfIntegersAreCut) {
  const ReferenceTensor x = whole({4}, {-3, -2, -1, 4}, DType::i32);
  EXPECT_EQ(apply(OpId::threshold, {x}, {Operand::constant(-2.5), Operand::constant(int64_t{7})}).integer,
            (Wholes{7, 7, -1, 4}));
}

TEST(ReferenceElementwise, CastsSaturate) {
  ReferenceTensor x = real({5}, {300, -300, kNaN, 1.9, -kInfinity});
  EXPECT_EQ(apply(OpId::cast, {x}, {}, {Attr::of(DType::i8)}).integer, (Wholes{127, -128, 0, 1, -128}));
  EXPECT_EQ(apply(OpId::cast, {x}, {}, {Attr::of(DType::bool_)}).integer, (Wholes{1, 1, 1, 1, 1}));
  EXPECT_EQ(apply(OpId::cast, {whole({2}, {300, -1})}, {}, {Attr::of(DType::u8)}).integer, (Wholes{44, 255}));
}

TEST(ReferenceElementwise, SixteenBitsAreRoundedAtTheEnd) {
  // 3 * 683 = 2049 is no f16; the difference from 2048 shows that it was not rounded on the way.
  ReferenceTensor x =
      apply(OpId::addcmul, {real({1}, {-2048}, DType::f16), real({1}, {3}, DType::f16), real({1}, {683}, DType::f16)});
  EXPECT_EQ(x.dtype, DType::f16);
  EXPECT_EQ(x.real[0], 1);
  EXPECT_EQ(apply(OpId::exp, {real({1}, {12}, DType::f16)}).real[0], kInfinity);
}

TEST(ReferenceElementwise, IntegersBecomeFloats) {
  ReferenceTensor y = apply(OpId::exp, {whole({2}, {0, 1})});
  EXPECT_EQ(y.dtype, DType::f32);
  EXPECT_EQ(y.real, (Reals{1, static_cast<float>(std::exp(1.0))}));
}

TEST(ReferenceElementwise, Powers) {
  EXPECT_EQ(apply(OpId::pow, {whole({3}, {3, -1, 2}), whole({3}, {40, -3, -1})}).integer,
            (Wholes{-6289078614652622815, -1, 0}));  // 3^40 modulo 2^64
  EXPECT_EQ(apply(OpId::pow, {real({1}, {2})}, {Operand::constant(10.0)}).real[0], 1024);
  EXPECT_TRUE(std::isnan(apply(OpId::pow, {real({1}, {-kInfinity})}, {Operand::constant(0.5)}).real[0]));
}

TEST(ReferenceElementwise, ShiftsPastTheWidth) {
  ReferenceTensor x = whole({3}, {-8, 1, 3}, DType::i8);
  EXPECT_EQ(apply(OpId::bitwise_left_shift, {x, whole({3}, {1, 8, 7}, DType::i8)}).integer, (Wholes{-16, 0, -128}));
  EXPECT_EQ(apply(OpId::bitwise_right_shift, {x, whole({3}, {9, 1, -1}, DType::i8)}).integer, (Wholes{-1, 0, 0}));
}

TEST(ReferenceElementwise, ChoiceByMask) {
  ReferenceTensor mask = whole({2}, {1, 0}, DType::bool_);
  EXPECT_EQ(apply(OpId::where, {mask, real({2}, {1, 2}), real({}, {9})}).real, (Reals{1, 9}));
  EXPECT_EQ(apply(OpId::masked_fill, {real({2}, {1, 2}), mask}, {Operand::constant(-1.0)}).real, (Reals{-1, 2}));
}

TEST(ReferenceElementwise, UnroundedModeKeepsDoubles) {
  Graph graph;
  ReferenceTensor x = real({1}, {3});
  ValueId third = graph.add(OpId::reciprocal, {Operand::value(graph.add_input(DType::bf16, {1}))});
  graph.outputs.push_back(graph.add(OpId::mul, {Operand::value(third), Operand::constant(3.0)}));
  x.dtype = DType::bf16;
  ReferenceOptions exact;
  exact.round = false;
  EXPECT_EQ(interpret(graph, {&x, 1}, {}, exact)[0].real[0], 1);
  EXPECT_EQ(interpret(graph, {&x, 1})[0].real[0], 1.0);
  graph.outputs[0] = third;
  EXPECT_EQ(interpret(graph, {&x, 1}, {}, exact)[0].real[0], 1.0 / 3);
  EXPECT_EQ(interpret(graph, {&x, 1})[0].real[0], round_to(DType::bf16, 1.0 / 3));
}

// NIST's Digital Library of Mathematical Functions has the values at halves in closed form.
TEST(ReferenceElementwise, SpecialFunctions) {
  auto at = [](OpId op, std::vector<double> x) {
    const auto count = static_cast<int64_t>(x.size());
    return apply(op, {real({count}, std::move(x), DType::f64)}).real;
  };
  const double root_pi = std::sqrt(std::acos(-1.0)), gamma = 0.57721566490153286061;
  std::vector<double> y = at(OpId::lgamma, {0.5, 1, 2, 4, -0.5, -2, INFINITY});
  EXPECT_NEAR(y[0], std::log(root_pi), 1e-15);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 0);
  EXPECT_NEAR(y[3], std::log(6.0), 1e-15);
  EXPECT_NEAR(y[4], std::log(2 * root_pi), 1e-15);
  EXPECT_EQ(y[5], INFINITY);
  EXPECT_EQ(y[6], INFINITY);
  y = at(OpId::digamma, {1, 2, 0.5, -0.5, 0, -3, INFINITY});
  EXPECT_NEAR(y[0], -gamma, 1e-15);
  EXPECT_NEAR(y[1], 1 - gamma, 1e-15);
  EXPECT_NEAR(y[2], -gamma - 2 * std::log(2.0), 1e-15);
  EXPECT_NEAR(y[3], 2 - gamma - 2 * std::log(2.0), 1e-15);
  EXPECT_EQ(y[4], -INFINITY);
  EXPECT_TRUE(std::isnan(y[5]));
  EXPECT_EQ(y[6], INFINITY);
  y = at(OpId::erfinv, {0, 1, -1, 2, 1e-300});
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], INFINITY);
  EXPECT_EQ(y[2], -INFINITY);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_NEAR(y[4] * 1e300, root_pi / 2, 1e-14);
  const std::vector<double> x = {1e-9, 0.1, 0.5, 0.9, 0.999999, -0.3};
  y = at(OpId::erfinv, x);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(std::erf(y[i]), x[i], 1e-15 * std::abs(x[i]));
}

}  // namespace
}  // namespace ingot::ir
