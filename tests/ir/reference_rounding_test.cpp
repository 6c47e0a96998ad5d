// Numbers of the reference: one rounding from double, wrapping, saturation, bytes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/reference.h"

namespace ingot::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double decode(DType dtype, uint16_t bits) { return ReferenceTensor::from_bytes(dtype, {1}, &bits).real[0]; }

TEST(ReferenceRounding, HalfByHand) {
  EXPECT_EQ(round_to(DType::f16, 1 + std::ldexp(1, -11)), 1);                          // a tie: even is below
  EXPECT_EQ(round_to(DType::f16, 1 + 3 * std::ldexp(1, -11)), 1 + std::ldexp(1, -9));  // a tie: even is above
  EXPECT_EQ(round_to(DType::f16, 1 + std::ldexp(1, -11) + std::ldexp(1, -40)), 1 + std::ldexp(1, -10));
  EXPECT_EQ(round_to(DType::f16, 65519.999), 65504);
  EXPECT_EQ(round_to(DType::f16, 65520), kInfinity);
  EXPECT_EQ(round_to(DType::f16, -1e300), -kInfinity);
  EXPECT_EQ(round_to(DType::f16, std::ldexp(1, -24)), std::ldexp(1, -24));  // the least denormal
  EXPECT_EQ(round_to(DType::f16, std::ldexp(1, -25)), 0);
  EXPECT_EQ(round_to(DType::f16, std::ldexp(1.001, -25)), std::ldexp(1, -24));
  EXPECT_TRUE(std::signbit(round_to(DType::f16, -1e-30)));
  EXPECT_TRUE(std::isnan(round_to(DType::f16, std::nan(""))));
}

// Rounding to f32 first would make a tie of this and send it to the even neighbour below.
TEST(ReferenceRounding, OneRoundingNotTwo) {
  double x = 1 + std::ldexp(1, -11) + std::ldexp(1, -30);
  EXPECT_EQ(static_cast<double>(static_cast<float>(x)), 1 + std::ldexp(1, -11));
  EXPECT_EQ(round_to(DType::f16, x), 1 + std::ldexp(1, -10));
  double y = 1 + std::ldexp(1, -8) + std::ldexp(1, -30);
  EXPECT_EQ(round_to(DType::bf16, y), 1 + std::ldexp(1, -7));
}

TEST(ReferenceRounding, BrainByHand) {
  EXPECT_EQ(round_to(DType::bf16, 1 + std::ldexp(1, -8)), 1);
  EXPECT_EQ(round_to(DType::bf16, 1 + 3 * std::ldexp(1, -8)), 1 + std::ldexp(1, -6));
  EXPECT_EQ(round_to(DType::bf16, 3.4e38), kInfinity);
  EXPECT_EQ(round_to(DType::bf16, std::ldexp(1, -133)), std::ldexp(1, -133));
  EXPECT_EQ(round_to(DType::bf16, std::ldexp(1, -134)), 0);
}

// Every pattern survives, and every midpoint between neighbours goes to the one with an even last bit.
TEST(ReferenceRounding, AllSixteenBitPatterns) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    uint16_t top = dtype == DType::f16 ? 0x7c00 : 0x7f80;
    for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
      uint16_t in = static_cast<uint16_t>(bits), out = 0;
      ReferenceTensor t = ReferenceTensor::from_bytes(dtype, {1}, &in);
      t.to_bytes(&out);
      if ((in & 0x7fff) <= top)
        ASSERT_EQ(in, out) << name_of(dtype);
      else
        ASSERT_TRUE(std::isnan(t.real[0]));
      if ((in & 0x7fff) + 1 >= top) continue;
      double here = t.real[0], next = decode(dtype, static_cast<uint16_t>(in + 1)), middle = (here + next) / 2;
      ASSERT_EQ(round_to(dtype, here), here);
      ASSERT_EQ(round_to(dtype, middle), in & 1 ? next : here);
      ASSERT_EQ(round_to(dtype, middle + (next - middle) / 64), next);
      ASSERT_EQ(round_to(dtype, middle + (here - middle) / 64), here);
    }
  }
}

TEST(ReferenceRounding, Integers) {
  EXPECT_EQ(wrap_to(DType::i8, 200), -56);
  EXPECT_EQ(wrap_to(DType::u8, -1), 255);
  EXPECT_EQ(wrap_to(DType::bool_, 256), 1);
  EXPECT_EQ(saturate_to(DType::i8, 1e9), 127);
  EXPECT_EQ(saturate_to(DType::u8, -3), 0);
  EXPECT_EQ(saturate_to(DType::i32, -2.9), -2);
  EXPECT_EQ(saturate_to(DType::i64, 9.3e18), INT64_MAX);
  EXPECT_EQ(saturate_to(DType::i64, -kInfinity), INT64_MIN);
  EXPECT_EQ(saturate_to(DType::i64, std::nan("")), 0);
  EXPECT_EQ(saturate_to(DType::bool_, std::nan("")), 1);
}

TEST(ReferenceRounding, BytesOfEveryIntegerDtype) {
  for (DType dtype : {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8}) {
    ReferenceTensor t(dtype, {3}), back;
    t.integer = {wrap_to(dtype, -7), 0, 100};
    std::string bytes(3 * size_of(dtype), '\0');
    t.to_bytes(bytes.data());
    EXPECT_EQ(ReferenceTensor::from_bytes(dtype, {3}, bytes.data()).integer, t.integer) << name_of(dtype);
  }
}

}  // namespace
}  // namespace ingot::ir
