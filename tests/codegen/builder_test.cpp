#include "codegen/builder.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "codegen/scalar/lanes.h"

namespace ingot::codegen {
namespace {

struct Fixture : testing::Test {
  Fixture() {
    k.scalars = 4;
    k.buffers = {{DType::f32}, {DType::i64}, {DType::bf16}};
    x = b.scalar(Type::f32, 0);
    y = b.scalar(Type::f32, 1);
    i = b.scalar(Type::i32, 2);
    m = b.scalar(Type::mask, 3);
  }
  Kernel k;
  Builder b{k};
  Expr x, y, i, m;
};
using BuilderTest = Fixture;

TEST_F(BuilderTest, EqualNodesAreOneNode) {
  EXPECT_EQ((x + y).value, (x + y).value);
  EXPECT_EQ((x * y).value, (y * x).value);
  EXPECT_NE((x - y).value, (y - x).value);
  EXPECT_EQ(fma(x, y, i.builder->constant(Type::f32, 1)).value, fma(y, x, 1.0).value);
  Builder again(k);
  size_t count = k.nodes.size();
  again.node({Op::add, Type::f32, 0, x.value, y.value, kNone, 0});
  EXPECT_EQ(k.nodes.size(), count);
}

TEST_F(BuilderTest, IdentitiesKeepEveryBit) {
  EXPECT_EQ((x * 1.0).value, x.value);
  EXPECT_EQ((x + -0.0).value, x.value);
  EXPECT_NE((x + 0.0).value, x.value);  // -0 + 0 is +0
  EXPECT_EQ((x - 0.0).value, x.value);
  EXPECT_NE((x * 0.0).value, b.constant(Type::f32, 0.0).value);  // NaN, infinities, signs
  EXPECT_EQ((i * 0).value, b.constant(Type::i32, 0).value);
  EXPECT_EQ((i + 0).value, i.value);
  EXPECT_EQ((x / 4.0).value, (x * 0.25).value);
  EXPECT_EQ(b[(x / 3.0).value].op, Op::div);
  EXPECT_EQ(b[(x / 0x1p127).value].op, Op::div);  // its reciprocal is a denormal
  EXPECT_EQ((-(-x)).value, x.value);
  EXPECT_EQ((~~m).value, m.value);
  EXPECT_EQ(floor(ceil(x)).value, ceil(x).value);
  EXPECT_EQ(select(m, x, x).value, x.value);
  EXPECT_EQ(select(b.truth(true), x, y).value, x.value);
  Expr h = b.load(2);
  EXPECT_EQ(round_to(h, DType::bf16).value, h.value);
  EXPECT_NE(round_to(h, DType::f16).value, h.value);
}

TEST_F(BuilderTest, ConstantsFoldAsTheyWouldRun) {
  auto f32 = [&](Expr e) { return std::bit_cast<float>(static_cast<uint32_t>(b[e.value].imm)); };
  auto c = [&](double v) { return b.constant(Type::f32, v); };
  EXPECT_EQ(f32(c(0.1) + c(0.2)), 0.1f + 0.2f);
  EXPECT_EQ(f32(fma(c(0.1), 0.2, 0.3)), std::fma(0.1f, 0.2f, 0.3f));
  EXPECT_EQ(f32(scale(c(1.5), -149.0)), 0x1p-148f);  // ties to even
  EXPECT_TRUE(std::signbit(f32(min(c(0.0), c(-0.0)))));
  EXPECT_TRUE(std::isnan(f32(max(c(1), c(NAN)))));
  Expr z = b.constant(Type::i32, 0), lowest = b.constant(Type::i32, std::numeric_limits<int32_t>::min());
  EXPECT_EQ(b[(lowest / -1).value].imm, 0x80000000u);
  EXPECT_EQ(b[(lowest / z).value].imm, 0u);
  EXPECT_EQ(b[convert(c(1e20), Type::i32).value].imm, 0x7fffffffu);
  EXPECT_EQ(static_cast<int64_t>(b[convert(c(-1e20), Type::i64).value].imm), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(b[convert(c(NAN), Type::i64).value].imm, 0u);
  EXPECT_EQ(b[wrap(b.constant(Type::i32, 200), DType::i8).value].imm, static_cast<uint32_t>(-56));
}

TEST_F(BuilderTest, RareHoldsItsOwnNodes) {
  Expr before = x * y;
  Expr r = b.rare(m, x, [&] { return sqrt(before) + 1.0; });
  EXPECT_EQ(b[r.value].op, Op::rare);
  EXPECT_EQ(b[b[r.value].c].region, 1);
  EXPECT_EQ(b[before.value].region, 0);
  Expr outside = sqrt(before);
  EXPECT_EQ(b[outside.value].region, 0);
  Expr second = b.rare(m, y, [&] { return b.rare(~m, x, [&] { return x / y; }) + 2.0; });
  EXPECT_EQ(b[b[second.value].c].region, 2);
  // A result that was there before needs no region, and a constant mask no branch.
  EXPECT_EQ(b[b.rare(m, x, [&] { return (x - y, before); }).value].op, Op::select);
  EXPECT_EQ(b.rare(b.truth(false), x, [&] { return y; }).value, x.value);
  k.buffers.push_back({DType::f32, Access::dense, true});
  k.phases = {Phase{{{3, (r + second + outside).value}}, {}, {}, {}}};
  EXPECT_NO_THROW(verify(k));
}

TEST(HalfFloats, EveryValueSurvivesARoundTrip) {
  for (DType d : {DType::f16, DType::bf16})
    for (uint32_t h = 0; h < 0x10000; ++h) {
      float x = scalar::from_half(d, static_cast<uint16_t>(h));
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(scalar::from_half(d, scalar::to_half(d, x))));
      } else {
        ASSERT_EQ(scalar::to_half(d, x), h) << name_of(d);
      }
    }
}

TEST(HalfFloats, MidpointsGoToEvenAndTheRestToTheNearest) {
  for (DType d : {DType::f16, DType::bf16}) {
    uint32_t infinity = d == DType::f16 ? 0x7c00 : 0x7f80;
    for (uint32_t h = 0; h + 1 < infinity; ++h) {
      double low = scalar::from_half(d, static_cast<uint16_t>(h)),
             high = scalar::from_half(d, static_cast<uint16_t>(h + 1));
      float middle = static_cast<float>((low + high) / 2);  // exact
      uint32_t even = h % 2 ? h + 1 : h;
      ASSERT_EQ(scalar::to_half(d, middle), even);
      ASSERT_EQ(scalar::to_half(d, std::nextafter(middle, 0.0f)), h);
      ASSERT_EQ(scalar::to_half(d, std::nextafter(middle, INFINITY)), h + 1);
      ASSERT_EQ(scalar::to_half(d, -middle), even | 0x8000);
    }
  }
  EXPECT_EQ(scalar::to_half(DType::f16, 65519.0f), 0x7bff);
  EXPECT_EQ(scalar::to_half(DType::f16, 65520.0f), 0x7c00);
  EXPECT_EQ(scalar::to_half(DType::f16, INFINITY), 0x7c00);
  EXPECT_EQ(scalar::to_half(DType::bf16, std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace ingot::codegen
