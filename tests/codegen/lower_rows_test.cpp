// Reductions: rows with what comes before and after, rows of several phases, columns.
#include <gtest/gtest.h>

#include "lower_support.h"

namespace ingot::codegen {
namespace {
using namespace test;

ValueId reduce(Graph& g, OpId op, ValueId x, int64_t dim, bool keepdim) {
  if (op == OpId::argmax) return g.add(op, {val(x)}, {Attr::of(dim), Attr::of(keepdim)});
  return g.add(op, {val(x)}, {Attr::of(Dims{dim}), Attr::of(keepdim)});
}

ValueId softmax(Graph& g, ValueId x, int64_t dim) {
  ValueId m = reduce(g, OpId::amax, x, dim, true);
  ValueId e = g.add(OpId::exp, {val(g.add(OpId::sub, {val(x), val(m)}))});
  return g.add(OpId::div, {val(e), val(reduce(g, OpId::sum, e, dim, true))});
}

ValueId layer_norm(Graph& g, ValueId x, int64_t dim, Dim size, ValueId weight, ValueId bias) {
  Operand n = Operand::size(size);
  ValueId mean = g.add(OpId::div, {val(reduce(g, OpId::sum, x, dim, true)), n});
  ValueId centered = g.add(OpId::sub, {val(x), val(mean)});
  ValueId squares = g.add(OpId::mul, {val(centered), val(centered)});
  ValueId variance = g.add(OpId::div, {val(reduce(g, OpId::sum, squares, dim, true)), n});
  ValueId rstd = g.add(OpId::rsqrt, {val(g.add(OpId::add, {val(variance), Operand::constant(1e-5)}))});
  ValueId y = g.add(OpId::mul, {val(centered), val(rstd)});
  return g.add(OpId::add, {val(g.add(OpId::mul, {val(y), val(weight)})), val(bias)});
}

TEST(LowerRows, SumWithPrologueAndEpilogueIsOneKernel) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {5, 37}), y = g.add_input(DType::f32, {5, 37}), b = g.add_input(DType::f32, {5});
  ValueId s = reduce(g, OpId::sum, g.add(OpId::mul, {val(x), val(y)}), 1, false);
  g.outputs = {g.add(OpId::relu, {val(g.add(OpId::add, {val(s), val(b)}))})};
  LowerResult r = check_against_reference(g, 1e-6);
  ASSERT_EQ(r.program.steps.size(), 1u);
  EXPECT_TRUE(r.program.steps[0].as<LoopStep>().rows_whole);
  EXPECT_EQ(r.program.steps[0].as<LoopStep>().space, (Dims{5, 37}));
}

// Once a row, what follows fills one lane of a vector; long rows take longer than that, and few ones no time.
TEST(LowerRows, LongWorkBehindShortRowsIsAKernelOfItsOwn) {
  const auto steps = [](int64_t rows, int64_t columns, int logarithms) {
    Graph g;
    ValueId s = reduce(g, OpId::sum, g.add_input(DType::f32, {rows, columns}), 1, false);
    s = g.add(OpId::abs, {val(s)});
    for (int i = 0; i < logarithms; ++i) s = g.add(OpId::log1p, {val(s)});
    g.outputs = {s};
    return check_against_reference(g, 1e-5).program.steps.size();
  };
  EXPECT_EQ(steps(3000, 20, 3), 2u);
  EXPECT_EQ(steps(3000, 20, 0), 1u);
  EXPECT_EQ(steps(30, 20, 3), 1u);
  EXPECT_EQ(steps(300, 4000, 3), 1u);
}

TEST(LowerRows, SoftmaxIsOneKernelThatKeepsTheExponentials) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {3, 4, 50});
  ValueId scaled = g.add(OpId::mul, {val(x), Operand::constant(0.5)});
  g.outputs = {softmax(g, scaled, 2)};
  LowerResult r = check_against_reference(g, 1e-6);
  ASSERT_EQ(r.program.steps.size(), 1u);
  EXPECT_EQ(r.program.steps[0].as<LoopStep>().space, (Dims{12, 50}));
  EXPECT_EQ(r.program.steps[0].as<LoopStep>().local_bytes.size(), 1u);
}

TEST(LowerRows, LayerNormWithResidualIsOneKernelWithTwoOutputs) {
  Graph g;
  Dim n = g.dims.symbol(4);
  ValueId x = g.add_input(DType::f32, {n, 3, 40}), h = g.add_input(DType::f32, {n, 3, 40});
  ValueId w = g.add_input(DType::f32, {40}), b = g.add_input(DType::f32, {40});
  ValueId sum = g.add(OpId::add, {val(x), val(h)});
  g.outputs = {layer_norm(g, sum, 2, 40, w, b), sum};
  LowerResult r = check_against_reference(g, 1e-5, {}, {3});
  ASSERT_EQ(r.program.steps.size(), 1u);
  EXPECT_EQ(r.program.steps[0].as<LoopStep>().space.size(), 2u);
}

TEST(LowerRows, CrossEntropyGathersInsideOfTheRowKernel) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {6, 7}), target = g.add_input(DType::i64, {6});
  ValueId m = reduce(g, OpId::amax, x, 1, true);
  ValueId c = g.add(OpId::sub, {val(x), val(m)});
  ValueId s = reduce(g, OpId::sum, g.add(OpId::exp, {val(c)}), 1, true);
  ValueId p = g.add(OpId::div, {val(c), val(s)});
  ValueId index = g.add(OpId::unsqueeze, {val(target)}, {Attr::of(int64_t{1})});
  ValueId at = g.add(OpId::gather, {val(p), val(index)}, {Attr::of(int64_t{1})});
  ValueId flat = g.add(OpId::squeeze, {val(at)}, {Attr::of(Dims{1})});
  g.outputs = {g.add(OpId::neg, {val(flat)})};
  LowerResult r = check_against_reference(g, 1e-6);
  EXPECT_EQ(r.program.steps.size(), 1u);
}

TEST(LowerRows, ReducedOverAnOuterDimIsAColumnStepAndAnEpilogue) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 30, 5, 4});
  ValueId s = reduce(g, OpId::sum, g.add(OpId::mul, {val(x), val(x)}), 1, false);
  g.outputs = {g.add(OpId::sqrt, {val(s)})};
  LowerResult r = check_against_reference(g, 1e-6);
  EXPECT_EQ(count_steps<ColumnStep>(r.program), 1);
  EXPECT_EQ(count_steps<LoopStep>(r.program), 1);
  for (const Step& s : r.program.steps)
    if (s.is<ColumnStep>()) {
      EXPECT_EQ(s.as<ColumnStep>().space, (Dims{2, 30, 20}));
    }
}

// Sixteen lanes of sums, each with a place beside it, would take longer to join than a second pass over the rows.
TEST(LowerRows, PlacesOfExtremesOverColumnsAreApartFromSums) {
  const auto steps = [](OpId first, OpId second) {
    Graph g;
    ValueId x = g.add_input(DType::f32, {30, 70});
    g.outputs = {reduce(g, first, x, 0, false), reduce(g, second, x, 0, false)};
    return count_steps<ColumnStep>(check_against_reference(g, 1e-6).program);
  };
  EXPECT_EQ(steps(OpId::sum, OpId::argmax), 2);
  EXPECT_EQ(steps(OpId::sum, OpId::amax), 1);
  EXPECT_EQ(steps(OpId::amax, OpId::argmax), 1);
}

TEST(LowerRows, TheMemoryOrderChoosesTheForm) {
  // The reduced dim is outer in the shape but dense in memory: rows.
  Graph g;
  ValueId x = g.add_input(DType::f32, {9, 6}, {1, 9});
  g.outputs = {reduce(g, OpId::sum, x, 0, false)};
  LowerResult r = check_against_reference(g, 1e-6);
  ASSERT_EQ(r.program.steps.size(), 1u);
  EXPECT_TRUE(r.program.steps[0].is<LoopStep>());
  // And the other way round: columns.
  Graph h;
  ValueId y = h.add_input(DType::f32, {9, 20}, {1, 9});
  h.outputs = {reduce(h, OpId::sum, y, 1, true)};
  EXPECT_EQ(count_steps<ColumnStep>(check_against_reference(h, 1e-6).program), 1);
}

// A weight a row, which lies along the rows, is small beside what lies along the columns; what moves with both is not.
TEST(LowerRows, AWeightARowLeavesColumns) {
  for (bool small : {true, false}) {
    Graph g;
    ValueId x = g.add_input(DType::f32, {4, 30, 20});
    ValueId w = small ? g.add_input(DType::f32, {4, 30, 1}) : g.add_input(DType::f32, {4, 30, 20}, {600, 1, 30});
    g.outputs = {reduce(g, OpId::sum, g.add(OpId::mul, {val(x), val(w)}), 1, false)};
    EXPECT_EQ(count_steps<ColumnStep>(check_against_reference(g, 1e-5).program), small ? 1 : 0);
  }
}

// What lies near decides the form: behind it may be a network's whole residual stream.
TEST(LowerRows, ALongWayBehindAnOperandLeavesColumns) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {30, 20}), behind = g.add_input(DType::f32, {30, 1});
  for (int i = 0; i < 100; ++i) behind = g.add(OpId::mul, {val(behind), Operand::constant(1.01)});
  g.outputs = {reduce(g, OpId::sum, g.add(OpId::mul, {val(x), val(behind)}), 0, false)};
  EXPECT_EQ(count_steps<ColumnStep>(check_against_reference(g, 1e-5).program), 1);
}

TEST(LowerRows, ArgmaxAndHalfFloatColumns) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {8, 19});
  g.outputs = {reduce(g, OpId::argmax, x, 1, false), reduce(g, OpId::argmax, x, 0, true)};
  check_against_reference(g, 0);
  Graph h;
  ValueId y = h.add_input(DType::bf16, {8, 19});
  ValueId s = reduce(h, OpId::sum, y, 0, false);
  h.outputs = {s, h.add(OpId::mul, {val(s), Operand::constant(3.0)})};
  check_against_reference(h, 0);
}

TEST(LowerRows, IntegerAndBoolReductions) {
  Graph g;
  ValueId x = g.add_input(DType::i32, {4, 21}), m = g.add_input(DType::bool_, {4, 21});
  g.outputs = {reduce(g, OpId::sum, x, 1, false), reduce(g, OpId::any, m, 1, false), reduce(g, OpId::all, m, 1, true),
               reduce(g, OpId::amax, x, 1, false), reduce(g, OpId::sum, m, 1, false)};
  check_against_reference(g, 0);
}

TEST(LowerRows, RowsOfOneElementAndNone) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {5, 1}), y = g.add_input(DType::f32, {3, 0});
  g.outputs = {softmax(g, x, 1), reduce(g, OpId::sum, y, 1, false)};
  check_against_reference(g, 0);
}

// The same item is an output of one element and one of a whole row.
TEST(LowerRows, AValueStoredOnceAndInEachColumn) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {1, 1}), index = g.add_input(DType::i64, {160});
  ValueId s = g.add(OpId::mul, {val(x), Operand::constant(0.5)});
  ValueId flat = g.add(OpId::view, {val(s)}, {Attr::of(Dims{1})});
  ValueId inside = g.add(OpId::clamp, {val(index), Operand::constant(int64_t{0}), Operand::constant(int64_t{0})});
  ValueId wrong =
      g.add(OpId::any, {val(g.add(OpId::ne, {val(index), val(inside)}))}, {Attr::of(Dims{0}), Attr::of(false)});
  ValueId row = g.add(OpId::index_select, {val(flat), val(inside)}, {Attr::of(int64_t{0})});
  g.outputs = {row, wrong, s};
  check_against_reference(g, 0);
}

TEST(LowerRows, ExpensiveWorkIsNotRepeatedOverALargerSpace) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {6, 8}), v = g.add_input(DType::f32, {8});
  ValueId e = g.add(OpId::exp, {val(v)});
  g.outputs = {g.add(OpId::mul, {val(x), val(e)})};
  LowerResult r = check_against_reference(g, 1e-6);
  EXPECT_EQ(r.program.steps.size(), 2u);
  EXPECT_NE(r.explanation.str(g, r.program).find("would repeat expensive work"), std::string::npos);
}

}  // namespace
}  // namespace ingot::codegen
