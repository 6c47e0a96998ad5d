// Attention, host ops and buffers: operands of any layout.
#include <gtest/gtest.h>

#include "ir/passes/pipeline.h"
#include "lower_support.h"

namespace ingot::codegen {
namespace {
using namespace test;

TEST(LowerLibrary, WhatIsNotFusedSavesNothing) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {6, 5}), w = g.add_input(DType::f32, {5, 4}), i = g.add_input(DType::i64, {6, 5});
  ValueId sorted =
      g.add(OpId::sort, {val(g.add(OpId::relu, {val(x)}))}, {Attr::of(int64_t{1}), Attr::of(false), Attr::of(false)});
  g.outputs = {g.add(OpId::exp, {val(sorted)}),
               g.add(OpId::matmul, {val(i), val(g.add(OpId::permute, {val(i)}, {ints({1, 0})}))}),
               g.add(OpId::tanh, {val(g.add(OpId::matmul, {val(x), val(w)}))})};
  const LowerResult r = check_compiled(g, 1e-5);
  int alone = 0, fused = 0;
  for (const FusionDecision& d : r.explanation.decisions) {
    alone += !d.fused, fused += d.fused && d.bytes_saved > 0;
    EXPECT_TRUE(d.fused || d.bytes_saved == 0) << d.reason;
    if (std::string(d.reason).find("a product of integers") == 0) EXPECT_FALSE(d.fused);
  }
  EXPECT_GE(alone, 3);
  EXPECT_GE(fused, 1);
}

// A loss: of each row a number, then their sum. What makes the number of its row's sums belongs to the kernel of the
// rows.
TEST(LowerLibrary, WhatEndsAKernelOfRowsStaysThere) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {40, 30});
  ValueId rows = g.add(OpId::sum, {val(g.add(OpId::exp, {val(x)}))}, {ints({1}), Attr::of(false)});
  ValueId log = g.add(OpId::log, {val(rows)});
  g.outputs = {g.add(OpId::sum, {val(log)}, {ints({0}), Attr::of(false)})};
  const LowerResult r = check_compiled(g, 1e-4);
  ASSERT_EQ(r.program.steps.size(), 2u);
  const auto& groups = r.explanation.groups;
  EXPECT_NE(groups[0].name.find("log"), std::string::npos) << groups[0].name;
  EXPECT_EQ(groups[1].name.find("log"), std::string::npos) << groups[1].name;
}

ValueId attention(Graph& g, std::vector<Operand> operands, bool causal, bool gqa = false) {
  return g.add(OpId::scaled_dot_product_attention, std::move(operands),
               {Attr::number(0), Attr::of(causal), Attr::of(gqa)});
}

TEST(LowerLibrary, EqualGraphsMakeEqualPrograms) {
  auto program = [](int64_t dim, int64_t hint) {
    Graph g;
    const Dim n = g.dims.symbol(hint);
    ValueId x = g.add_input(DType::f32, {n, 3, 6, 5}), w = g.add_input(DType::f32, {4, 3, 3, 3});
    ValueId c = g.add(OpId::relu, {val(g.add(OpId::conv2d, {val(x), val(w)}))});
    ValueId a = attention(g, {val(c), val(c), val(c)}, true);
    g.outputs = {g.add(OpId::sort, {val(a)}, {Attr::of(dim), Attr::of(false), Attr::of(false)})};
    ir::run_pipeline(g);
    return lower(g, Target{}).program;
  };
  const Program one = program(1, 2), same = program(1, 2), other_dim = program(2, 2), other_hint = program(1, 3);
  EXPECT_TRUE(one == same);
  EXPECT_EQ(hash_of(one), hash_of(same));
  EXPECT_EQ(str(one), str(same));
  EXPECT_FALSE(one == other_dim);
  EXPECT_FALSE(one == other_hint);
}

/// A graph of attention's operands: with a mask of bools or of numbers, a scale given at run time, fewer heads of keys,
/// a literal scale. `use`: makes outputs of them. What is compiled of it, for more queries than it was lowered with.
template <class Use>
LowerResult check_attention(int kind, Use use) {
  Graph g;
  const Dim t = g.dims.symbol(6);
  const int64_t heads = kind == 3 ? 2 : 4;
  const ValueId q = g.add_input(DType::f32, {2, 4, t, 8}), k = g.add_input(DType::f32, {2, heads, 7, 8}),
                v = g.add_input(DType::f32, {2, heads, 7, 5});
  std::vector<Operand> operands{val(q), val(k), val(v)};
  std::vector<ir::ReferenceScalar> scalars;
  if (kind == 0) operands.push_back(val(g.add_input(DType::bool_, {t, 7})));
  if (kind == 1) operands.push_back(val(g.add_input(DType::f32, {2, 1, 1, 7})));
  if (kind == 2) {
    operands.push_back(Operand::none());
    operands.push_back(Operand::scalar(g.add_scalar(Category::floating), Category::floating));
    scalars.push_back(ir::ReferenceScalar(0.3));
  }
  if (kind == 4) {
    operands.push_back(Operand::none());
    operands.push_back(Operand::constant(0.7));
  }
  for (ValueId found : use(g, operands, t)) g.outputs.push_back(g.add(OpId::relu, {val(found)}));
  return check_compiled(g, 1e-5, {}, {5}, scalars);
}

TEST(LowerAttention, MasksScalesAndSharedHeads) {
  for (int kind = 0; kind < 5; ++kind) {
    SCOPED_TRACE(kind);
    check_attention(kind, [&](Graph& g, const std::vector<Operand>& operands, Dim) {
      return std::vector{attention(g, operands, kind == 2, kind == 3)};
    });
  }
}

TEST(LowerAttention, RanksAndLayouts) {
  Graph g;
  ValueId a = g.add_input(DType::f32, {5, 8}), b = g.add_input(DType::f32, {3, 5, 8}),
          c = g.add_input(DType::f32, {2, 2, 3, 5, 8});
  ValueId d = g.add_input(DType::f32, {3, 5, 8}, {40, 1, 5});
  g.outputs = {attention(g, {val(a), val(a), val(a)}, true), attention(g, {val(b), val(d), val(d)}, false),
               attention(g, {val(c), val(c), val(c)}, false)};
  check_compiled(g, 1e-5);
}

TEST(LowerAttention, HalfFloats) {
  Graph g;
  ValueId q = g.add_input(DType::bf16, {2, 2, 6, 8});
  g.outputs = {attention(g, {val(q), val(q), val(q)}, true)};
  check_compiled(g, 2e-2);
}

/// The gradients of attention over these operands, as one node.
std::vector<ValueId> attention_gradients(Graph& g, std::vector<Operand> operands, const Dims& result, bool causal,
                                         bool gqa = false) {
  operands.resize(5);
  operands.push_back(val(g.add_input(g.type(operands[0].id).dtype, result)));
  const ValueId first = g.add(OpId::scaled_dot_product_attention_backward, std::move(operands),
                              {Attr::number(0), Attr::of(causal), Attr::of(gqa)});
  return {first, first + 1, first + 2};
}

TEST(LowerAttentionBackward, MasksScalesAndSharedHeads) {
  for (int kind = 0; kind < 5; ++kind) {
    SCOPED_TRACE(kind);
    const LowerResult r = check_attention(kind, [&](Graph& g, const std::vector<Operand>& operands, Dim t) {
      return attention_gradients(g, operands, {2, 4, t, 5}, kind == 2, kind == 3);
    });
    EXPECT_EQ(count_steps<AttentionBackwardStep>(r.program), 1);
  }
}

TEST(LowerAttentionBackward, RanksAndLayouts) {
  Graph g;
  ValueId a = g.add_input(DType::f32, {5, 8}), b = g.add_input(DType::f32, {3, 5, 8}),
          c = g.add_input(DType::f32, {2, 2, 3, 5, 8}), d = g.add_input(DType::f32, {3, 5, 8}, {40, 1, 5});
  for (const auto& found : {attention_gradients(g, {val(a), val(a), val(a)}, {5, 8}, true),
                            attention_gradients(g, {val(b), val(d), val(d)}, {3, 5, 8}, false),
                            attention_gradients(g, {val(c), val(c), val(c)}, {2, 2, 3, 5, 8}, false)})
    g.outputs.insert(g.outputs.end(), found.begin(), found.end());
  check_compiled(g, 1e-5);
}

// Only what somebody reads is computed and stored; the explanation says what that is.
TEST(LowerAttentionBackward, MakesWhatIsRead) {
  for (size_t i : {0, 1, 2}) {
    Graph g;
    ValueId q = g.add_input(DType::f32, {2, 2, 6, 8});
    g.outputs = {attention_gradients(g, {val(q), val(q), val(q)}, {2, 2, 6, 8}, true)[i]};
    const LowerResult r = check_compiled(g, 1e-5);
    ASSERT_EQ(r.program.steps.size(), 1u);
    const auto& step = r.program.steps[0].as<AttentionBackwardStep>();
    EXPECT_EQ(step.for_query.has_value(), i == 0);
    EXPECT_EQ(step.for_key.has_value(), i == 1);
    EXPECT_EQ(step.for_value.has_value(), i == 2);
    const char* const said[] = {"causal, for query", "causal, for key", "causal, for value"};
    EXPECT_EQ(algorithm_of(r.program.steps[0]), said[i]);
  }
}

int arena_buffers(const Program& program) {
  return static_cast<int>(std::count_if(program.buffers.begin(), program.buffers.end(), [](const ProgramBuffer& b) {
    return b.place == Place::arena && !(b.bytes == Dim(0));
  }));
}

TEST(LowerBuffers, WhatNobodyReadsAnyMoreIsWrittenOver) {
  // Scan, loop, scan, loop, ...: all in one buffer.
  Graph g;
  ValueId v = g.add_input(DType::f32, {6, 40});
  for (int i = 0; i < 4; ++i) {
    v = g.add(OpId::cumsum, {val(v)}, {dim(1)});
    v = g.add(OpId::mul, {val(g.add(OpId::add, {val(v), Operand::constant(0.5)})), Operand::constant(0.25)});
  }
  g.outputs = {v};
  EXPECT_EQ(arena_buffers(check_compiled(g, 1e-5).program), 1);
}

TEST(LowerBuffers, WhatIsReadLaterOrElsewhereIsKept) {
  for (bool later : {false, true}) {
    Graph g;
    ValueId a = g.add(OpId::cumsum, {val(g.add_input(DType::f32, {6, 6}))}, {dim(1)});
    ValueId other = later ? a : g.add(OpId::permute, {val(a)}, {ints({1, 0})});
    ValueId b = g.add(OpId::mul, {val(g.add(OpId::add, {val(a), val(other)})), Operand::constant(0.5)});
    ValueId c = g.add(OpId::cumsum, {val(b)}, {dim(1)});
    g.outputs = {later ? g.add(OpId::sub, {val(c), val(a)}) : c};
    EXPECT_EQ(arena_buffers(check_compiled(g, 1e-5).program), 2) << later;
  }
}

}  // namespace
}  // namespace ingot::codegen
