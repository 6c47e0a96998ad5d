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

}  // namespace
}  // namespace ingot::codegen
