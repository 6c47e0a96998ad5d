// What is asked of a kernel before it is run.
#include "codegen/kernel_analysis.h"

#include <gtest/gtest.h>

namespace ingot::codegen {
namespace {

// A constant that was folded, and a rare region whose result nobody reads: the next one takes its number.
TEST(KernelAnalysis, DeadNodesGo) {
  Kernel kernel = parse_kernel(R"(kernel rows scalars 0
b0 f32 dense
b1 f32 dense written
%0 = load f32 b0
%1 = constant f32 0x3f800000 (1)
%2 = constant f32 0x0 (0)
%3 = lt mask %0 %2
%4 = reduced f32 r0
[1] %5 = sqrt f32 %0
%6 = rare f32 %3 %0 %5 1
[2] %7 = constant f32 0x40000000 (2)
[2] %8 = mul f32 %0 %7
[2] %9 = add f32 %8 %8
%10 = rare f32 %3 %0 %9 2
%11 = sub f32 %10 %4
r0 max %0
phase 0
  reduce r0
phase 1
  store b1 %11
)");
  verify(kernel);
  drop_dead_nodes(kernel);
  verify(kernel);
  const std::string live = print(kernel);
  EXPECT_EQ(live, R"(kernel rows scalars 0
b0 f32 dense
b1 f32 dense written
%0 = load f32 b0
%1 = constant f32 0x0 (0)
%2 = lt mask %0 %1
%3 = reduced f32 r0
[1] %4 = constant f32 0x40000000 (2)
[1] %5 = mul f32 %0 %4
[1] %6 = add f32 %5 %5
%7 = rare f32 %2 %0 %6 1
%8 = sub f32 %7 %3
r0 max %0
phase 0
  reduce r0
phase 1
  store b1 %8
)");
  drop_dead_nodes(kernel);
  EXPECT_EQ(print(kernel), live);
}

TEST(KernelAnalysis, NumbersOfSixteenBits) {
  const Kernel kernel = parse_kernel(R"(kernel rows scalars 0
b0 bf16 dense
b1 f16 dense
b2 f32 dense written
%0 = load f32 b0
%1 = load f32 b1
%2 = round_to f32 %1 bf16
%3 = max f32 %0 %2
%4 = max f32 %0 %1
%5 = constant f32 0x3f000000 (0.5)
%6 = constant f32 0x3dcccccd (0.1)
%7 = lt mask %0 %1
%8 = select f32 %7 %3 %5
%9 = select f32 %7 %3 %6
%10 = bitcast i32 %8
%11 = constant i32 0x7fffffff
%12 = bit_and i32 %10 %11
%13 = bitcast f32 %12
%14 = add f32 %13 %0
%15 = bit_xor i32 %10 %11
phase 0
  store b2 %14
)");
  std::vector<DType> halves;
  find_halves(kernel, halves);
  const DType b = DType::bf16, f = DType::f32;
  EXPECT_EQ(halves, (std::vector<DType>{b, DType::f16, b, b, f, f, f, f, b, f, b, f, b, b, f, f}));
}

}  // namespace
}  // namespace ingot::codegen
