// Ops that go through a sequence: the steps of one step, whatever the length, beside batches in slices.
#include <gtest/gtest.h>

#include "codegen/lower_support.h"
#include "ir/passes/pipeline.h"
#include "runtime/cpu.h"

namespace ingot::codegen {
namespace {

using namespace test;

/// An LSTM over x [steps, 2, 12], from zeros of the inputs.
ValueId lstm(Graph& g, ValueId x, Dim batch, bool reverse) {
  std::vector<Operand> operands = {val(x)};
  for (const Dims& shape : {Dims{batch, 3}, Dims{batch, 3}, Dims{12, 3}, Dims{12}})
    operands.push_back(val(g.add_input(DType::f32, shape)));
  return g.add(OpId::lstm_sequence, operands, {Attr::of(reverse)});
}

Program lowered(Dim steps, bool reverse) {
  Graph g;
  g.outputs = {lstm(g, g.add_input(DType::f32, {steps, 2, 12}), 2, reverse)};
  ir::run_pipeline(g);
  return lower(g, Target{}).program;
}

TEST(LowerSequence, AProgramHoldsOneStepWhateverTheLength) {
  for (bool reverse : {false, true}) {
    const size_t first = lowered(1, reverse).steps.size();
    EXPECT_TRUE(lowered(1, reverse).segments.empty());
    for (int64_t steps : {2, 5, 1000}) {
      const Program program = lowered(steps, reverse);
      EXPECT_EQ(program.steps.size(), 2 * first);
      ASSERT_EQ(program.segments.size(), 1u);
      EXPECT_EQ(program.segments[0].slices, Dim(steps - 1));
      EXPECT_EQ(program.segments[0].backwards, reverse);
      EXPECT_EQ(program.segments[0].first_step, first);
      EXPECT_EQ(program.segments[0].end_step, 2 * first);
    }
  }
}

TEST(LowerSequence, OneProgramHoldsForAllLengths) {
  for (bool reverse : {false, true}) {
    Graph g;
    g.outputs = {lstm(g, g.add_input(DType::f32, {g.dims.symbol(4), 2, 12}), 2, reverse)};
    check_compiled(g, 1e-5, {}, {4});
    ir::run_pipeline(g);
    const LowerResult r = lower(g, runtime::detected_target());
    for (int64_t steps : {1, 2, 3, 65}) {
      const std::vector<int64_t> symbols = {steps};
      std::vector<ir::ReferenceTensor> inputs;
      for (size_t i = 0; i < g.inputs.size(); ++i)
        inputs.push_back(random_tensor(g, g.inputs[i].value, static_cast<uint32_t>(i + 5), 3, symbols));
      const auto got = run_program(g, r.program, inputs, {}, symbols);
      const auto expected = ir::interpret(g, inputs, {}, {.symbols = symbols});
      ASSERT_EQ(got[0].size(), steps * 6);
      for (int64_t i = 0; i < got[0].size(); ++i) EXPECT_NEAR(got[0].at(i), expected[0].at(i), 1e-5) << steps;
    }
  }
}

// What stands before and behind runs over the batch in slices, the sequence as a whole.
TEST(LowerSequence, StandsBesideSlices) {
  Graph g;
  auto normalized = [&](ValueId x, int64_t d) { return g.add(OpId::softmax, {val(x)}, {dim(d)}); };
  auto turned = [&](ValueId x) { return g.add(OpId::permute, {val(x)}, {ints({1, 0, 2})}); };
  const ValueId x = g.add_input(DType::f32, {6, 5, 12});
  const ValueId y = turned(lstm(g, turned(normalized(normalized(x, 1), 2)), 6, true));
  g.outputs = {normalized(normalized(y, 1), 2)};
  ir::run_pipeline(g);
  LowerOptions options;
  options.slice_size = 2;
  for (const Target& target : {Target{}, runtime::detected_target()}) {
    const LowerResult sliced = lower(g, target, options), whole = lower(g, target);
    EXPECT_EQ(whole.program.segments.size(), 1u);
    EXPECT_GT(sliced.program.segments.size(), 1u);
    std::vector<ir::ReferenceTensor> inputs;
    for (size_t i = 0; i < g.inputs.size(); ++i)
      inputs.push_back(random_tensor(g, g.inputs[i].value, static_cast<uint32_t>(i + 5), 3, {}));
    const auto a = run_program(g, sliced.program, inputs, {}, {}), b = run_program(g, whole.program, inputs, {}, {});
    for (int64_t i = 0; i < a[0].size(); ++i) EXPECT_EQ(a[0].at(i), b[0].at(i));
  }
}

}  // namespace
}  // namespace ingot::codegen
