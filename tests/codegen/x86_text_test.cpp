// Kernels written as text, generated and run: numbers worked out by hand, and the bits of the scalar executor.
#include <algorithm>
#include <regex>

#include "canonical_sum.h"
#include "codegen/kernel_analysis.h"
#include "codegen/run_scalar.h"
#include "codegen/x86_harness.h"

namespace ingot::codegen::test {
namespace {

class X86Text : public X86 {};
INGOT_X86_SUITE(X86Text);

/// Calls `as` with a value of the C++ type that holds a number of this dtype.
template <class F>
auto with_type(DType d, F as) {
  switch (d) {
    case DType::f32:
      return as(float());
    case DType::f64:
      return as(double());
    case DType::i16:
      return as(int16_t());
    case DType::i32:
      return as(int32_t());
    case DType::i64:
      return as(int64_t());
    case DType::i8:
      return as(int8_t());
    default:
      return as(uint8_t());
  }
}
void write(char* at, DType d, double x) {
  if (is_half(d)) {
    const auto narrow = static_cast<float>(x);
    const uint16_t bits = d == DType::f16 ? f16_from_f32(narrow) : bf16_from_f32(narrow);
    std::memcpy(at, &bits, sizeof bits);
  } else {
    with_type(d, [&](auto value) {
      value = static_cast<decltype(value)>(x);
      std::memcpy(at, &value, sizeof value);
    });
  }
}
double read(const char* at, DType d) {
  if (is_half(d)) {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return d == DType::f16 ? f32_from_f16(bits) : f32_from_bf16(bits);
  }
  return with_type(d, [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  });
}

/// What a buffer has at a row and column (of the index, where it is a table of rows).
using Numbers = std::function<double(size_t buffer, int64_t row, int64_t column)>;

constexpr int64_t kWidths[] = {1, 15, 16, 17, 31, 63, 64, 65, 100, 257};
constexpr int64_t kRows = 3, kStep = 3;  // elements from column to column of a strided buffer
constexpr double kUntouched = 77;

/// A kernel of form rows, called with numbers and compared with numbers.
struct Written {
  std::string text;
  Numbers given, expected;  // of buffers that are read; that are written
  std::vector<uint64_t> scalars = {};
  int64_t table_rows = 0;  // > 0: buffer 0 is a table of so many numbers, looked up

  int64_t step(const Buffer& b) const {
    return b.access == Access::dense ? 1 : b.access == Access::uniform ? 0 : b.stride ? b.stride : kStep;
  }

  void run(const Kernel& kernel, const Target& target, int64_t columns) const {
    KernelPtr source = generate(kernel, target, "text");
    std::unique_ptr<Code> code = source->code.empty() ? nullptr : std::make_unique<Code>(*source);
    std::vector<std::vector<char>> memory;
    Call call;
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const Buffer& buffer = kernel.buffers[b];
      const int64_t size = size_of(buffer.dtype), table = b == 0 ? table_rows : 0;
      // Rows begin at multiples of 64 bytes, for those that are stored past the caches.
      const int64_t row = table || buffer.same_rows ? 0 : (columns * kStep * size + 63) / 64 * 64;
      memory.emplace_back(static_cast<size_t>((row ? row * kRows : std::max(columns * kStep, table) * size) + 64));
      char* data = memory[b].data();
      data += (64 - reinterpret_cast<uintptr_t>(data) % 64) % 64;
      const int64_t first = step(buffer) < 0 ? (columns - 1) * size : 0;  // where the first column is
      for (int64_t at = 0; at + size <= memory[b].data() + memory[b].size() - data; at += size)
        write(data + at, buffer.dtype, kUntouched);
      for (int64_t r = 0; r < kRows && !table; ++r)
        for (int64_t c = 0; c < columns && !buffer.written; ++c)
          write(data + first + r * row + c * step(buffer) * size, buffer.dtype,
                given(b, buffer.same_rows ? 0 : r, step(buffer) ? c : 0));
      for (int64_t i = 0; i < table; ++i) write(data + i * size, buffer.dtype, given(b, i, 0));
      call.buffers.push_back(data + first);
      call.row_strides.push_back(row);
      call.column_strides.push_back(step(buffer) * size);
      call.index_strides.push_back(size);
    }
    call.scalars = scalars;
    call.rows = kRows;
    call.columns = columns;
    call.context = source->context.get();
    int64_t scratch = source->scratch_bytes;
    for (Type t : kernel.locals) scratch += (columns + 15) / 16 * 16 * codegen::size_of(t);
    call.run(code ? code->entry() : source->interpret, scratch);
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const Buffer& buffer = kernel.buffers[b];
      if (!buffer.written) continue;
      const int64_t size = size_of(buffer.dtype), width = step(buffer) ? columns : 1;
      for (int64_t r = 0; r < kRows; ++r) {
        const char* at = static_cast<const char*>(call.buffers[b]) + r * call.row_strides[b];
        for (int64_t c = 0; c < width; ++c)
          ASSERT_EQ(read(at + c * step(buffer) * size, buffer.dtype), expected(b, r, c))
              << (code ? "generated" : "interpreted") << ": buffer " << b << ", row " << r << " of " << kRows
              << ", column " << c << " of " << columns;
        // Behind a row's end, and between its elements.
        const int64_t end = width * std::max<int64_t>(step(buffer), 1) - std::max<int64_t>(step(buffer) - 1, 0);
        ASSERT_EQ(read(at + end * size, buffer.dtype), kUntouched) << "behind row " << r << " of buffer " << b;
        if (step(buffer) > 1 && width > 1) {
          ASSERT_EQ(read(at + size, buffer.dtype), kUntouched) << "between columns of buffer " << b;
        }
      }
    }
  }

  void check(const Target& target) const {
    const Kernel kernel = parse_kernel(text);
    for (int64_t columns : kWidths) {
      if (kernel.known_columns) columns = kernel.known_columns;
      for (const Target& t : {Target{}, target}) run(kernel, t, columns);
      if (testing::Test::HasFatalFailure()) return;
      if (kernel.known_columns) break;
    }
    if (kernel.streams || table_rows) return;  // random memory has no aligned rows and no right indices
    for (int64_t columns : kWidths) {
      Trial trial{kernel, target, kRows, kernel.known_columns ? kernel.known_columns : columns};
      for (const Buffer& b : kernel.buffers) trial.layouts.push_back({step(b), b.same_rows, 0});
      trial.scalars = scalars;
      trial.run();
      if (testing::Test::HasFailure() || kernel.known_columns) return;
    }
  }
};

double small(int64_t row, int64_t column) { return static_cast<double>(row * 10 + column % 7); }

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

// Row r goes to lane r % 16; a lane that has none holds the identity, which is -0 of a sum.
TEST_P(X86Text, ColumnsLeaveSixteenLanes) {
  const Kernel kernel = parse_kernel(R"(kernel columns scalars 0
b0 f32 dense
b1 f32 uniform
%0 = load f32 b0
%1 = load f32 b1
%2 = mul f32 %0 %1
r0 sum %2
r1 max %0
phase 0
  reduce r0
  reduce r1
)");
  for (int64_t rows : {1, 5, 16, 20, 64})
    for (int64_t columns : kWidths) {
      std::vector<float> x(static_cast<size_t>(rows * columns)), factors(static_cast<size_t>(rows));
      for (int64_t r = 0; r < rows; ++r) {
        factors[static_cast<size_t>(r)] = r % 2 ? 2 : 1;
        for (int64_t c = 0; c < columns; ++c) x[static_cast<size_t>(r * columns + c)] = static_cast<float>(r + c);
      }
      for (const Target& t : {Target{}, target()}) {
        KernelPtr source = generate(kernel, t, "columns");
        std::unique_ptr<Code> code = source->code.empty() ? nullptr : std::make_unique<Code>(*source);
        Call call{{x.data(), factors.data()}, {4 * columns, 4}, {}, {}, {}, {}, rows, columns, 0, 0, {}};
        call.context = source->context.get();
        call.run(code ? code->entry() : source->interpret, 2 * 16 * columns * 4);
        const auto* lanes = reinterpret_cast<const float*>(call.aligned_scratch());
        for (int64_t lane = 0; lane < 16; ++lane)
          for (int64_t c = 0; c < columns; ++c) {
            float sum = -0.0F, most = -INFINITY;
            for (int64_t r = lane; r < rows; r += 16) {
              sum += static_cast<float>((r + c) * (r % 2 ? 2 : 1));
              most = static_cast<float>(r + c);
            }
            const float got = lanes[lane * columns + c];
            ASSERT_EQ(got, sum) << rows << " x " << columns << ": lane " << lane << ", column " << c;
            ASSERT_EQ(std::signbit(got), lane >= rows) << rows << " x " << columns << ": lane " << lane;
            ASSERT_EQ(lanes[(16 + lane) * columns + c], most) << rows << " x " << columns << ": lane " << lane;
          }
      }
      Trial{kernel, target(), rows, columns}.run();
      if (HasFailure()) return;
    }
}

// Few columns are summed down their rows in registers; one lane asked for, it has the sixteen joined.
TEST_P(X86Text, FewColumnsJoinTheirLanes) {
  const char* one = R"(kernel columns scalars 0 known_columns 40
b0 T dense
%0 = load T b0
r0 sum %0
phase 0
  reduce r0
)";
  const char* two = R"(kernel columns scalars 0 known_columns 40
b0 T dense
b1 T dense same_rows
b2 T dense
%0 = load T b0
%1 = load T b1
%2 = load T b2
%3 = sub T %0 %1
%4 = mul T %3 %2
r0 sum %2
r1 sum %4
r2 max %3
phase 0
  reduce r0
  reduce r1
  reduce r2
)";
  // A factor for each row, one for all of them, and rows of a table.
  const char* factors = R"(kernel columns scalars 0 known_columns 40
b0 T dense
b1 T uniform
b2 T uniform same_rows
b3 i64 uniform
b4 T dense same_rows
%0 = load T b0
%1 = load T b1
%2 = load T b2
%3 = load i64 b3
%4 = constant i64 3
%5 = bit_and i64 %3 %4
%6 = load T %5 b4
%7 = mul T %1 %2
%8 = mul T %0 %7
%9 = add T %8 %6
r0 sum %9
r1 max %7
phase 0
  reduce r0
  reduce r1
)";
  const std::vector<Layout> with_factors{{}, {0}, {0, true}, {0}, {1, true, 4}};
  for (const char* pattern : {one, two, factors})
    for (const char* type : {"f32", "f64", "i32", "i64", "bf16"}) {
      // Sixteen bits are only in memory.
      std::string text = std::regex_replace(pattern, std::regex("(b\\d) T"), std::string("$1 ") + type);
      text = std::regex_replace(text, std::regex("T"), type == std::string("bf16") ? "f32" : type);
      const Kernel kernel = parse_kernel(text);
      ASSERT_TRUE(sums_in_registers(kernel));
      for (int64_t rows : {0, 1, 7, 8, 15, 16, 17, 31, 40, 64, 255, 256})
        for (int64_t columns : {1, 15, 16, 17, 40})
          for (int64_t lanes : {1, 16}) {
            Trial trial{kernel, target(), rows, columns,
                        pattern == factors ? with_factors : std::vector<Layout>{{}, {1, true}}};
            trial.lanes = lanes;
            trial.run();
            ASSERT_FALSE(HasFailure()) << type << ", " << lanes << " lanes";
          }
    }
}

TEST_P(X86Text, SumsInRegistersAreCanonical) {
  const Kernel kernel = parse_kernel(R"(kernel columns scalars 0 known_columns 20
b0 f32 dense
%0 = load f32 b0
r0 sum %0
phase 0
  reduce r0
)");
  constexpr int64_t kColumns = 20;
  for (int64_t rows : {1, 5, 16, 20, 64, 250, 256}) {
    std::vector<float> x(static_cast<size_t>(rows * kColumns)), column(static_cast<size_t>(rows));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i));
    for (const Target& t : {Target{}, target()}) {
      KernelPtr source = generate(kernel, t, "columns");
      std::unique_ptr<Code> code = source->code.empty() ? nullptr : std::make_unique<Code>(*source);
      Call call{{x.data()}, {4 * kColumns}, {}, {}, {}, {}, rows, kColumns, 0, 0, {}};
      call.context = source->context.get();
      call.lanes = 1;
      call.run(code ? code->entry() : source->interpret, 16 * kColumns * 4);
      const auto* sums = reinterpret_cast<const float*>(call.aligned_scratch());
      for (int64_t c = 0; c < kColumns; ++c) {
        for (int64_t r = 0; r < rows; ++r) column[static_cast<size_t>(r)] = x[static_cast<size_t>(r * kColumns + c)];
        ASSERT_EQ(sums[c], ingot::test::canonical_sum(column.data(), rows)) << rows << ", column " << c;
      }
    }
  }
}

// What asks for its position, for a truth, for a place or for elements of a table is not.
TEST_P(X86Text, NotEveryColumnKernelSumsInRegisters) {
  const std::string text = R"(kernel columns scalars 0 known_columns 40
b0 f32 dense
%0 = load f32 b0
r0 sum %0
phase 0
  reduce r0
)";
  auto with = [&](const char* from, const char* to) {
    return sums_in_registers(parse_kernel(std::regex_replace(text, std::regex(from), to)));
  };
  EXPECT_TRUE(with("sum", "max"));
  EXPECT_FALSE(with("sum", "argmax"));
  EXPECT_FALSE(with(" known_columns 40", ""));
  EXPECT_FALSE(with("f32 dense", "f32 strided"));
  const std::string looked_up = R"(kernel columns scalars 0 known_columns 40
b0 i64 uniform
b1 f32 dense same_rows
%0 = load i64 b0
%1 = load f32 %0 b1
r0 sum %1
phase 0
  reduce r0
)";
  EXPECT_TRUE(sums_in_registers(parse_kernel(looked_up)));
  for (const auto& [from, to] : {std::pair(" same_rows", ""), std::pair("i64 uniform", "i64 dense")})
    EXPECT_FALSE(sums_in_registers(parse_kernel(std::regex_replace(looked_up, std::regex(from), to)))) << from;
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
