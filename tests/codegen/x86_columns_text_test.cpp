// Sums over columns in kernels written as text, generated and run.
#include "canonical_sum.h"
#include "codegen/x86_text_support.h"

namespace ingot::codegen::test {
namespace {

class X86ColumnsText : public X86 {};
INGOT_X86_SUITE(X86ColumnsText);

// Row r goes to lane r % 16; a lane that has none holds the identity, which is -0 of a sum.
TEST_P(X86ColumnsText, ColumnsLeaveSixteenLanes) {
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
TEST_P(X86ColumnsText, FewColumnsJoinTheirLanes) {
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
  const std::string unknown = std::regex_replace(one, std::regex("known_columns 40"), "few_columns");
  for (const char* pattern : {one, unknown.c_str(), two, factors})
    for (const char* type : {"f32", "f64", "i32", "i64", "bf16"}) {
      // Sixteen bits are only in memory.
      std::string text = std::regex_replace(pattern, std::regex("(b\\d) T"), std::string("$1 ") + type);
      text = std::regex_replace(text, std::regex("T"), type == std::string("bf16") ? "f32" : type);
      const Kernel kernel = parse_kernel(text);
      ASSERT_TRUE(sums_in_registers(kernel));
      for (int64_t rows : {0, 1, 7, 8, 15, 16, 17, 31, 40, 64, 255, 256})
        for (int64_t columns : {1, 15, 16, 17, 40, 100})
          for (int64_t lanes : {1, 16}) {
            Trial trial{kernel, target(), rows, columns,
                        pattern == factors ? with_factors : std::vector<Layout>{{}, {1, true}}};
            trial.lanes = lanes;
            trial.run();
            ASSERT_FALSE(HasFailure()) << type << ", " << lanes << " lanes";
          }
    }
}

TEST_P(X86ColumnsText, SumsInRegistersAreCanonical) {
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
TEST_P(X86ColumnsText, NotEveryColumnKernelSumsInRegisters) {
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
  EXPECT_TRUE(with("known_columns 40", "few_columns"));
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

}  // namespace
}  // namespace ingot::codegen::test
