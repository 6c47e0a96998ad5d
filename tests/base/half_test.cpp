#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ingot {
namespace {

struct Format {
  const char* name;
  float (*up)(uint16_t);
  uint16_t (*down)(float);
  uint16_t infinity;
  double smallest;  // the least positive value
};
const Format kFormats[] = {{"f16", f32_from_f16, f16_from_f32, 0x7c00, 0x1p-24},
                           {"bf16", f32_from_bf16, bf16_from_f32, 0x7f80, 0x1p-133}};

TEST(Half, EveryValueSurvivesTheWayUpAndDown) {
  for (const Format& f : kFormats)
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      float value = f.up(static_cast<uint16_t>(bits));
      if ((bits & 0x7fff) > f.infinity) {
        EXPECT_TRUE(std::isnan(value) && std::isnan(f.up(f.down(value)))) << f.name << " " << bits;
      } else {
        ASSERT_EQ(f.down(value), bits) << f.name;
      }
    }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(f32_from_f16(0x3c00), 1.0f);
  EXPECT_EQ(f32_from_f16(0x7bff), 65504.0f);
  EXPECT_EQ(f32_from_f16(0x0001), 0x1p-24f);
  EXPECT_EQ(f32_from_f16(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(f32_from_bf16(0x3f80), 1.0f);
  EXPECT_EQ(f32_from_bf16(0x0001), 0x1p-133f);
}

// Between each pair of neighbours: the middle goes to the even one, its neighbours in f32 to their own side.
TEST(Half, RoundsToNearestEven) {
  for (const Format& f : kFormats)
    for (uint32_t bits = 0; bits + 1 < f.infinity; ++bits) {
      float low = f.up(static_cast<uint16_t>(bits)), high = f.up(static_cast<uint16_t>(bits + 1));
      double exact = (static_cast<double>(low) + high) / 2;
      float middle = static_cast<float>(exact);
      ASSERT_EQ(middle, exact);
      uint32_t even = bits % 2 ? bits + 1 : bits;
      ASSERT_EQ(f.down(middle), even) << f.name;
      ASSERT_EQ(f.down(-middle), even | 0x8000u) << f.name;
      ASSERT_EQ(f.down(std::nextafter(middle, 0.0f)), bits) << f.name;
      ASSERT_EQ(f.down(std::nextafter(middle, INFINITY)), bits + 1) << f.name;
    }
}

TEST(Half, OverflowAndUnderflow) {
  for (const Format& f : kFormats) {
    float largest = f.up(f.infinity - 1), step = largest - f.up(f.infinity - 2);
    EXPECT_EQ(f.down(largest + step / 4), f.infinity - 1) << f.name;
    EXPECT_EQ(f.down(largest + step / 2), f.infinity) << f.name;
    EXPECT_EQ(f.down(std::numeric_limits<float>::max()), f.infinity) << f.name;
    EXPECT_EQ(f.down(INFINITY), f.infinity) << f.name;
    EXPECT_EQ(f.down(static_cast<float>(f.smallest / 2)), 0) << f.name;
    EXPECT_EQ(f.down(static_cast<float>(f.smallest * 0.75)), 1) << f.name;
    EXPECT_EQ(f.down(-0.0f), 0x8000) << f.name;
  }
}

}  // namespace
}  // namespace ingot
