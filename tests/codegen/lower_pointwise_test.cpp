// Pointwise groups: chains, broadcasts, views, several outputs, symbolic sizes.
#include <gtest/gtest.h>

#include "lower_support.h"

namespace ingot::codegen {
namespace {
using namespace test;

TEST(LowerPointwise, ChainIsOneKernelOverOneMergedDim) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {6, 5}), y = g.add_input(DType::f32, {6, 5});
  ValueId s = g.add(OpId::add, {val(x), val(y)});
  ValueId m = g.add(OpId::mul, {val(s), Operand::constant(2.5)});
  g.outputs = {g.add(OpId::relu, {val(m)})};
  LowerResult r = check_against_reference(g, 0);
  ASSERT_EQ(r.program.steps.size(), 1u);
  EXPECT_EQ(r.program.steps[0].as<LoopStep>().space, (Dims{1, 30}));
  EXPECT_EQ(r.program.steps[0].as<LoopStep>().arguments.size(), 3u);
  EXPECT_EQ(r.explanation.groups.size(), 1u);
  EXPECT_EQ(r.explanation.groups[0].members.size(), 3u);
}

TEST(LowerPointwise, BroadcastKeepsTwoDims) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {4, 3, 5}), b = g.add_input(DType::f32, {5}), c = g.add_input(DType::f32, {3, 1});
  ValueId s = g.add(OpId::add, {val(x), val(b)});
  g.outputs = {g.add(OpId::sub, {val(s), val(c)})};
  LowerResult r = check_against_reference(g, 0);
  ASSERT_EQ(r.program.steps.size(), 1u);
  EXPECT_EQ(r.program.steps[0].as<LoopStep>().space, (Dims{4, 3, 5}));
}

TEST(LowerPointwise, ViewsOfComputedValuesAreReadInPlace) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {4, 6});
  ValueId r = g.add(OpId::relu, {val(x)});
  ValueId t = g.add(OpId::permute, {val(r)}, {Attr::of(Dims{1, 0})});
  ValueId h =
      g.add(OpId::slice, {val(t)}, {Attr::of(int64_t{0}), Attr::of(Dims{1}), Attr::of(Dims{5}), Attr::of(int64_t{2})});
  g.outputs = {g.add(OpId::mul, {val(h), Operand::constant(3.0)})};
  LowerResult result = check_against_reference(g, 0);
  EXPECT_EQ(result.program.steps.size(), 1u);
}

TEST(LowerPointwise, OutputThatIsAPermutedViewIsCopiedDense) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {4, 6});
  g.outputs = {g.add(OpId::permute, {val(x)}, {Attr::of(Dims{1, 0})})};
  LowerResult copied = check_against_reference(g, 0);
  EXPECT_EQ(copied.program.steps.size(), 1u);
  LowerOptions options;
  options.outputs_may_alias = true;
  EXPECT_TRUE(lower(g, Target{}, options).program.steps.empty());
}

TEST(LowerPointwise, ReshapeOfPermutedMemoryIsACopy) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 3, 4});
  ValueId t = g.add(OpId::permute, {val(x)}, {Attr::of(Dims{1, 0, 2})});
  // Not a legal view of strided memory: lowering copies.
  ValueId r = g.add(OpId::relu, {val(t)});
  ValueId p = g.add(OpId::permute, {val(r)}, {Attr::of(Dims{1, 0, 2})});
  ValueId q = g.add(OpId::clone, {val(p)});
  ValueId v = g.add(OpId::view, {val(q)}, {Attr::of(Dims{6, 4})});
  g.outputs = {g.add(OpId::add, {val(v), Operand::constant(1.0)})};
  check_against_reference(g, 0);
}

TEST(LowerPointwise, SeveralOutputsOfOneSpaceShareAKernel) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {7, 9});
  ValueId e = g.add(OpId::sqrt, {val(g.add(OpId::abs, {val(x)}))});
  ValueId a = g.add(OpId::add, {val(e), Operand::constant(1.0)});
  ValueId b = g.add(OpId::mul, {val(e), val(x)});
  g.outputs = {a, b, e};
  LowerResult r = check_against_reference(g, 0);
  EXPECT_EQ(r.program.steps.size(), 1u);
}

TEST(LowerPointwise, SymbolicSizesMergeWhereStridesAllow) {
  Graph g;
  Dim n = g.dims.symbol(4), c = g.dims.symbol(5);
  ValueId x = g.add_input(DType::f32, {n, c, 3}), b = g.add_input(DType::f32, {c, 3});
  ValueId s = g.add(OpId::add, {val(x), val(b)});
  g.outputs = {g.add(OpId::neg, {val(s)})};
  LowerResult r = check_against_reference(g, 0, {}, {2, 7});
  ASSERT_EQ(r.program.steps.size(), 1u);
  EXPECT_EQ(r.program.steps[0].as<LoopStep>().space.size(), 2u);
}

TEST(LowerPointwise, RunTimeScalarsAndSizesAreFedToTheKernel) {
  Graph g;
  Dim n = g.dims.symbol(4);
  ValueId x = g.add_input(DType::f32, {n, 3});
  uint32_t lr = g.add_scalar(Category::floating);
  ValueId a = g.add(OpId::mul, {val(x), Operand::scalar(lr, Category::floating)});
  g.outputs = {g.add(OpId::div, {val(a), Operand::size(n)})};
  LowerResult r = check_against_reference(g, 1e-7, {}, {6}, {ir::ReferenceScalar(0.75)});
  ASSERT_EQ(r.program.steps.size(), 1u);
  EXPECT_EQ(r.program.steps[0].as<LoopStep>().scalars.size(), 2u);
}

TEST(LowerPointwise, HalfFloatsRoundAfterEveryOp) {
  Graph g;
  ValueId x = g.add_input(DType::bf16, {40}), y = g.add_input(DType::bf16, {40});
  ValueId s = g.add(OpId::add, {val(x), val(y)});
  g.outputs = {g.add(OpId::mul, {val(s), val(s)})};
  check_against_reference(g, 0);
}

TEST(LowerPointwise, EmptyAndZeroDimTensors) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {0, 3}), y = g.add_input(DType::f32, {});
  g.outputs = {g.add(OpId::add, {val(x), val(y)}), g.add(OpId::neg, {val(y)})};
  check_against_reference(g, 0);
}

TEST(LowerPointwise, MixedTypesAreConvertedToTheOpsType) {
  Graph g;
  ValueId x = g.add_input(DType::i64, {3, 4}), y = g.add_input(DType::f32, {3, 4}),
          m = g.add_input(DType::bool_, {3, 4});
  ValueId s = g.add(OpId::add, {val(x), val(y)});
  ValueId w = g.add(OpId::where, {val(m), val(s), Operand::constant(int64_t{0})});
  g.outputs = {w, g.add(OpId::lt, {val(x), val(y)}), g.add(OpId::cast, {val(w)}, {Attr::of(DType::i32)})};
  check_against_reference(g, 0);
}

TEST(LowerPointwise, WithoutFusionEveryOpIsAStep) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {8});
  ValueId a = g.add(OpId::neg, {val(x)});
  g.outputs = {g.add(OpId::relu, {val(a)})};
  LowerOptions options;
  options.fuse = false;
  EXPECT_EQ(check_against_reference(g, 0, options).program.steps.size(), 2u);
}

TEST(LowerPointwise, DeepGraphsNeedNoStack) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {5});
  for (int i = 0; i < 3000; ++i) x = g.add(i % 2 ? OpId::neg : OpId::relu, {val(x)});
  g.outputs = {x};
  // One kernel computes a bounded number of values.
  const size_t steps = lower(g, Target{}).program.steps.size();
  EXPECT_GT(steps, 10u);
  EXPECT_LT(steps, 50u);
}

TEST(LowerPointwise, WhatOneKernelWouldComputeAtManyPlacesIsStored) {
  // Each level reads the one before at two places: in place, the work would double with each.
  Graph g;
  ValueId x = g.add_input(DType::f32, {40});
  for (int64_t i = 0; i < 20; ++i) {
    auto part = [&](int64_t start) {
      return g.add(OpId::slice, {val(x)},
                   {Attr::of(int64_t{0}), Attr::of(Dims{start}), Attr::of(Dims{39 - i + start}), Attr::of(int64_t{1})});
    };
    x = g.add(OpId::maximum, {val(part(0)), val(part(1))});
  }
  g.outputs = {x};
  LowerResult r = check_against_reference(g, 0);
  EXPECT_GT(r.program.steps.size(), 2u);
  for (const Step& s : r.program.steps) EXPECT_LE(s.as<LoopStep>().arguments.size(), 17u);
}

TEST(LowerPointwise, FewGatheredColumnsGiveWayToALongDim) {
  // As in pooling: every second element of short rows.
  Graph g;
  ValueId x = g.add_input(DType::f32, {400, 10});
  auto part = [&](int64_t start) {
    return g.add(OpId::slice, {val(x)},
                 {Attr::of(int64_t{1}), Attr::of(Dims{start}), Attr::of(Dims{8}), Attr::of(int64_t{2})});
  };
  g.outputs = {g.add(OpId::maximum, {val(part(0)), val(part(1))})};
  LowerResult r = check_against_reference(g, 0);
  ASSERT_EQ(r.program.steps.size(), 1u);
  EXPECT_EQ(r.program.steps[0].as<LoopStep>().space, (Dims{4, 400}));
}

}  // namespace
}  // namespace ingot::codegen
