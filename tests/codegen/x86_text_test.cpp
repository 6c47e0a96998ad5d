// Kernels written as text, generated and run: numbers worked out by hand, and the bits of the scalar executor.
#include "codegen/x86_text_support.h"

namespace ingot::codegen::test {
namespace {

class X86Text : public X86 {};
INGOT_X86_SUITE(X86Text);

TEST_P(X86Text, AMultiplicationAndAnAddition) {
  Written{R"(kernel rows scalars 0
b0 f32 dense
b1 f32 dense
b2 f32 dense written
%0 = load f32 b0
%1 = load f32 b1
%2 = constant f32 0x40000000 (2)
%3 = fma f32 %0 %2 %1
phase 0
  store b2 %3
)",
          [](size_t b, int64_t r, int64_t c) { return b == 0 ? small(r, c) : -1.0; },
          [](size_t, int64_t r, int64_t c) { return 2 * small(r, c) - 1; }}
      .check(target());
}

TEST_P(X86Text, MasksAreReadComputedAndStored) {
  Written{R"(kernel rows scalars 0
b0 i32 dense
b1 bool dense
b2 i32 dense written
b3 bool dense written
%0 = load i32 b0
%1 = load mask b1
%2 = constant i32 5
%3 = lt mask %0 %2
%4 = bit_and mask %3 %1
%5 = select i32 %4 %0 %2
phase 0
  store b2 %5
  store b3 %4
)",
          [](size_t b, int64_t r, int64_t c) { return b == 0 ? static_cast<double>(c % 9 - r) : c % 2; },
          [](size_t b, int64_t r, int64_t c) {
            const auto x = static_cast<double>(c % 9 - r);
            const bool below = x < 5 && c % 2;
            return b == 3 ? below : below ? x : 5;
          }}
      .check(target());
}

// What softmax is without its exponential: two reductions, each before a pass of its own, and a row kept between.
TEST_P(X86Text, RowsOfThreePhasesWithALocalBuffer) {
  for (const char* type : {"f32", "f64"}) {
    std::string text = R"(kernel rows scalars 0
b0 T dense
b1 T dense written
b2 T uniform written
l0 T
%0 = load T b0
%1 = reduced T r0
%2 = sub T %1 %0
%3 = reduced T r1
%4 = local T l0
%5 = add T %4 %3
r0 max %0
r1 sum %2
phase 0
  reduce r0
phase 1
  local_store l0 %2
  reduce r1
phase 2
  store b1 %5
  row_store b2 %3
)";
    for (size_t at; (at = text.find('T')) != std::string::npos;) text.replace(at, 1, type);
    // Numbers from 10 r to 10 r + 6; the largest is among them from seven columns on.
    for (int64_t columns : kWidths) {
      const Written rows{text, [](size_t, int64_t r, int64_t c) { return small(r, c); },
                         [&](size_t b, int64_t, int64_t c) {
                           const int64_t most = std::min<int64_t>(columns - 1, 6);
                           double sum = 0;
                           for (int64_t i = 0; i < columns; ++i) sum += static_cast<double>(most - i % 7);
                           return b == 2 ? sum : static_cast<double>(most - c % 7) + sum;
                         }};
      for (const Target& t : {Target{}, target()}) rows.run(parse_kernel(text), t, columns);
      Trial{parse_kernel(text), target(), kRows, columns}.run();
      if (HasFailure()) return;
    }
  }
}

TEST_P(X86Text, WhereTheLargestIsAndWhetherAnyIsNegative) {
  const std::string text = R"(kernel rows scalars 0
b0 f32 dense
b1 i64 uniform written
b2 bool uniform written
b3 bool uniform written
%0 = load f32 b0
%1 = constant f32 0x0 (0)
%2 = lt mask %0 %1
%3 = reduced i64 r0
%4 = reduced mask r1
%5 = reduced mask r2
r0 argmax %0
r1 any %2
r2 all %2
phase 0
  reduce r0
  reduce r1
  reduce r2
  row_store b1 %3
  row_store b2 %4
  row_store b3 %5
)";
  for (int64_t columns : kWidths) {
    // Row 0 falls, row 1 has its largest in the middle, row 2 is -1 throughout.
    const int64_t middle = columns / 2;
    const Written rows{text,
                       [&](size_t, int64_t r, int64_t c) {
                         return static_cast<double>(r == 0 ? 9 - c : r == 1 ? (c == middle) + 4 : -1);
                       },
                       [&](size_t b, int64_t r, int64_t) -> double {
                         if (b == 1) return r == 1 ? static_cast<double>(middle) : 0;
                         return b == 2 ? r == 2 || (r == 0 && columns > 10) : r == 2;
                       }};
    for (const Target& t : {Target{}, target()}) rows.run(parse_kernel(text), t, columns);
    Trial{parse_kernel(text), target(), kRows, columns}.run();
    if (HasFailure()) return;
  }
}

// A number a row, a row for all rows, and elements apart, read and written.
TEST_P(X86Text, UniformSharedAndStridedBuffers) {
  Written{
      R"(kernel rows scalars 0
b0 f32 strided
b1 f32 uniform
b2 f32 dense same_rows
b3 f32 strided written
%0 = load f32 b0
%1 = load f32 b1
%2 = load f32 b2
%3 = mul f32 %0 %1
%4 = add f32 %3 %2
phase 0
  store b3 %4
)",
      [](size_t b, int64_t r, int64_t c) { return b == 0 ? small(r, c) : static_cast<double>(b == 1 ? r + 2 : -c); },
      [](size_t, int64_t r, int64_t c) { return small(r, c) * static_cast<double>(r + 2) - static_cast<double>(c); }}
      .check(target());
}

TEST_P(X86Text, ElementsReadBackwards) {
  for (const std::string type : {"f32 f32", "f64 f64", "i64 i64", "i32 i32", "f32 bf16", "f32 f16", "i32 i16", "i32 i8",
                                 "i32 u8", "mask bool"}) {
    const std::string held = type.substr(0, type.find(' ')), dtype = type.substr(type.find(' ') + 1);
    const auto number = [&](int64_t r, int64_t c) {
      return static_cast<double>(held == "mask" ? c % 3 == 0 : r + c % 90);
    };
    Written{"kernel rows scalars 0\nb0 " + dtype + " strided by -1\nb1 " + dtype + " dense written\n%0 = load " + held +
                " b0\nphase 0\n  store b1 %0\n",
            [&](size_t, int64_t r, int64_t c) { return number(r, c); },
            [&](size_t, int64_t r, int64_t c) { return number(r, c); }}
        .check(target());
  }
}

TEST_P(X86Text, ElementsOfATableByIndex) {
  Written{R"(kernel rows scalars 0
b0 f32 uniform
b1 i64 dense
b2 f32 dense written
%0 = load i64 b1
%1 = load f32 %0 b0
phase 0
  store b2 %1
)",
          [](size_t b, int64_t r, int64_t c) { return static_cast<double>(b == 0 ? r * r : (r + 5 * c) % 13); },
          [](size_t, int64_t r, int64_t c) {
            const auto at = static_cast<double>((r + 5 * c) % 13);
            return at * at;
          },
          {},
          13}
      .check(target());
}

TEST_P(X86Text, RareRegionsRunForNoneOneAndAllLanes) {
  const std::string text = R"(kernel rows scalars 0
b0 f32 dense
b1 f32 dense written
%0 = load f32 b0
%1 = constant f32 0x0 (0)
%2 = lt mask %0 %1
[1] %3 = sub f32 %1 %0
[1] %4 = sqrt f32 %3
%5 = rare f32 %2 %0 %4 1
phase 0
  store b1 %5
)";
  for (int64_t every : {1000, 40, 1}) {  // of the columns, in row 1
    auto is_rare = [=](int64_t r, int64_t c) { return r == 1 && c % every == every - 1; };
    Written{text, [&](size_t, int64_t r, int64_t c) { return is_rare(r, c) ? -16 : small(r, c); },
            [&](size_t, int64_t r, int64_t c) { return is_rare(r, c) ? 4 : small(r, c); }}
        .check(target());
  }
}

TEST_P(X86Text, ScalarsAndPositions) {
  Written{R"(kernel rows scalars 2
b0 i64 dense written
b1 f64 dense written
%0 = index i64 0
%1 = index i64 1
%2 = scalar i64 1
%3 = mul i64 %1 %2
%4 = add i64 %0 %3
%5 = scalar f64 0
%6 = convert f64 %4
%7 = mul f64 %6 %5
phase 0
  store b0 %4
  store b1 %7
)",
          [](size_t, int64_t, int64_t) { return 0.0; },
          [](size_t b, int64_t r, int64_t c) { return static_cast<double>(c + 100 * r) * (b == 0 ? 1 : 0.25); },
          {std::bit_cast<uint64_t>(0.25), 100}}
      .check(target());
}

// From 2048 on, an f16 has a step of 2, and a bf16 from 256 on: a sum between two of them goes to the even one.
TEST_P(X86Text, SixteenBitFloatsRoundToEven) {
  for (const auto& [type, from] : {std::pair{"f16", 2048}, {"bf16", 256}}) {
    const int64_t first = from;  // Clang 14 captures no binding
    std::string text = R"(kernel rows scalars 0
b0 T dense
b1 T dense written
b2 f32 dense written
b3 T dense written
%0 = load f32 b0
%1 = constant f32 0x3f800000 (1)
%2 = add f32 %0 %1
%3 = round_to f32 %2 T
phase 0
  store b1 %2
  store b2 %2
  store b3 %3
)";
    for (size_t at; (at = text.find('T')) != std::string::npos;) text.replace(at, 1, type);
    Written{text, [&](size_t, int64_t, int64_t c) { return static_cast<double>(first + 2 * (c % 60)); },
            [&](size_t b, int64_t, int64_t c) {
              const int64_t x = first + 2 * (c % 60);
              return static_cast<double>(b == 2 ? x + 1 : x % 4 == 0 ? x : x + 2);
            }}
        .check(target());
  }
}

TEST_P(X86Text, NarrowIntegersWrap) {
  Written{R"(kernel rows scalars 0
b0 i16 dense
b1 u8 strided
b2 i16 dense written
b3 u8 dense written
b4 i8 strided written
%0 = load i32 b0
%1 = load i32 b1
%2 = mul i32 %0 %1
%3 = wrap i32 %2 i16
%4 = add i32 %3 %1
phase 0
  store b2 %3
  store b3 %4
  store b4 %4
)",
          [](size_t b, int64_t r, int64_t c) {
            return static_cast<double>(b == 0 ? 9000 - 300 * (c % 50) + r : 250 - c % 9);
          },
          [](size_t b, int64_t r, int64_t c) -> double {
            const auto narrow = static_cast<int16_t>(9000 - 300 * (c % 50) + r);
            const auto byte = static_cast<int32_t>(250 - c % 9);
            const auto product = static_cast<int16_t>(narrow * byte);
            if (b == 2) return product;
            return b == 3 ? static_cast<double>(static_cast<uint8_t>(product + byte))
                          : static_cast<double>(static_cast<int8_t>(product + byte));
          }}
      .check(target());
}

TEST_P(X86Text, KnownColumnsAndStoresPastTheCaches) {
  for (const char* head : {"known_columns 1", "known_columns 8", "known_columns 16", "known_columns 20", "streams"})
    Written{"kernel rows scalars 0 " + std::string(head) + R"(
b0 f32 dense
b1 f32 dense written
b2 f32 uniform written
%0 = load f32 b0
%1 = reduced f32 r0
%2 = add f32 %0 %0
r0 min %0
phase 0
  store b1 %2
  reduce r0
  row_store b2 %1
)",
            [](size_t, int64_t r, int64_t c) { return small(r, c); },
            [](size_t b, int64_t r, int64_t c) { return b == 1 ? 2 * small(r, c) : small(r, 0); }}
        .check(target());
}

}  // namespace
}  // namespace ingot::codegen::test
