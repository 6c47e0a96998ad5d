#include "codegen/builder.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "codegen/scalar/lanes.h"
#include "run_scalar.h"

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
  const Expr larger = max(abs(h), round_to(x, DType::bf16));
  EXPECT_EQ(round_to(larger, DType::bf16).value, larger.value);
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
  // What a region left behind that was not needed says nothing of the nodes that take its numbers.
  b.rare(m, x, [&] { return (round_to(abs(round_to(sqrt(y), DType::bf16)), DType::bf16), before); });
  const Expr wide = sqrt(x) * x;
  EXPECT_NE(round_to(wide, DType::bf16).value, wide.value);
  EXPECT_EQ(b.rare(b.truth(false), x, [&] { return y; }).value, x.value);
  k.buffers.push_back({DType::f32, Access::dense, true});
  k.phases = {Phase{{{3, (r + second + outside).value}}, {}, {}, {}}};
  EXPECT_NO_THROW(verify(k));
}

/// The node on (x, constant) and (constant, x), built with and without simplification, over all special values of x.
template <class T>
void check_folding(DType d, Op op, uint64_t imm) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> special = {0, 1, 2, 3, 4, T(-1), T(-2), Limits::max(), Limits::lowest(), Limits::min()};
  if constexpr (std::is_floating_point_v<T>)
    for (T x : {T(0.5), T(0.25), T(1.5), T(0.1), Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min(),
                T(1) / Limits::max(), Limits::max() / 2 + 1, std::ldexp(T(1), Limits::max_exponent - 1),
                std::ldexp(T(1), Limits::max_exponent - 2)})
      special.insert(special.end(), {x, -x, -T(0)});
  const Type type = register_type(d);
  const bool compares = op == Op::eq || op == Op::ne || op == Op::lt || op == Op::le;
  const bool shifts = op == Op::shl || op == Op::shr || op == Op::sar;
  std::vector<T> x = special, folded(x.size()), raw(x.size());
  for (T constant : special) {
    if (op == Op::scale &&
        !(std::abs(static_cast<double>(constant)) < 1e30 && constant == std::trunc(static_cast<double>(constant))))
      continue;
    for (bool swapped : {false, true}) {
      if (shifts && (swapped || !(constant >= 0 && static_cast<double>(constant) < 8 * sizeof(T)))) continue;
      if (swapped && op == Op::scale) continue;
      for (bool simplify : {true, false}) {
        Kernel k;
        k.buffers = {{d}, {d, Access::dense, true}};
        Builder b(k);
        Value v = b.load(0).value, c = b.constant(type, constant).value, y;
        Node n{op, compares ? Type::mask : type, 0, swapped ? c : v, swapped ? v : c, kNone, imm};
        if (op == Op::fma) n.c = b.constant(type, -0.0).value;
        if (simplify) {
          y = b.node(n).value;
        } else {
          k.nodes.push_back(n);
          y = static_cast<Value>(k.nodes.size() - 1);
        }
        if (compares) {
          k.nodes.push_back({Op::convert, type, 0, y, kNone, kNone, 0});
          y = static_cast<Value>(k.nodes.size() - 1);
        }
        k.phases = {Phase{{{1, y}}, {}, {}, {}}};
        test::Call call;
        call.columns = static_cast<int64_t>(x.size());
        call.buffers = {x.data(), simplify ? folded.data() : raw.data()};
        call.run(k);
      }
      for (size_t i = 0; i < x.size(); ++i) {
        bool nan = folded[i] != folded[i] && raw[i] != raw[i];
        EXPECT_TRUE(nan || std::memcmp(&folded[i], &raw[i], sizeof(T)) == 0)
            << name_of(op) << " " << x[i] << " " << constant << ": " << folded[i] << " instead of " << raw[i];
      }
    }
  }
}

TEST(BuilderFolding, KeepsEveryBit) {
  for (Op op :
       {Op::add, Op::sub, Op::mul, Op::div, Op::min, Op::max, Op::eq, Op::ne, Op::lt, Op::le, Op::fma, Op::scale}) {
    check_folding<float>(DType::f32, op, 0);
    check_folding<double>(DType::f64, op, 0);
  }
  for (Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::min, Op::max, Op::eq, Op::ne, Op::lt, Op::le, Op::bit_and,
                Op::bit_or, Op::bit_xor, Op::shl, Op::shr, Op::sar}) {
    check_folding<int32_t>(DType::i32, op, 0);
    check_folding<int64_t>(DType::i64, op, 0);
  }
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
