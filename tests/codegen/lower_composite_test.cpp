// Composites through the pipeline: how many kernels they become, and that they are right.
#include <gtest/gtest.h>

#include "lower_support.h"

namespace ingot::codegen {
namespace {
using namespace test;

TEST(LowerComposite, NormsAndSoftmaxAreOneKernelEach) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {4, 6, 33}), w = g.add_input(DType::f32, {33}), b = g.add_input(DType::f32, {33});
  g.outputs = {g.add(OpId::layer_norm, {val(x), val(w), val(b)}, {ints({33})})};
  EXPECT_EQ(check_compiled(g, 1e-5).program.steps.size(), 1u);
  for (OpId op : {OpId::softmax, OpId::log_softmax}) {
    Graph s;
    x = s.add_input(DType::f32, {4, 6, 33});
    s.outputs = {s.add(op, {val(x)}, {dim(2)})};
    EXPECT_EQ(check_compiled(s, 1e-6).program.steps.size(), 1u);
  }
  Graph r;
  x = r.add_input(DType::f32, {4, 6, 33}), w = r.add_input(DType::f32, {33});
  r.outputs = {r.add(OpId::rms_norm, {val(x), val(w)}, {ints({33})})};
  EXPECT_EQ(check_compiled(r, 1e-5).program.steps.size(), 1u);
}

TEST(LowerComposite, SoftmaxOverAnOuterDim) {
  Graph s;
  ValueId x = s.add_input(DType::f32, {4, 9, 6});
  s.outputs = {s.add(OpId::softmax, {val(x)}, {dim(1)})};
  check_compiled(s, 1e-6);
}

TEST(LowerComposite, HalfFloatNormRoundsOnce) {
  Graph g;
  ValueId x = g.add_input(DType::bf16, {4, 33}), w = g.add_input(DType::bf16, {33});
  g.outputs = {g.add(OpId::layer_norm, {val(x), val(w), val(w)}, {ints({33})})};
  EXPECT_EQ(check_compiled(g, 1e-2).program.steps.size(), 1u);
}

TEST(LowerComposite, CrossEntropyIsARowKernelAndAMean) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {12, 7}), t = g.add_input(DType::i64, {12});
  g.outputs = {g.add(OpId::cross_entropy, {val(x), val(t)})};
  EXPECT_LE(check_compiled(g, 1e-6).program.steps.size(), 2u);
}

TEST(LowerComposite, VarianceOverSeveralDims) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {3, 5, 4, 6});
  g.outputs = {g.add(OpId::var, {val(x)}, {ints({0, 2, 3})}), g.add(OpId::mean, {val(x)}),
               g.add(OpId::std, {val(x)}, {ints({1})})};
  check_compiled(g, 1e-5);
}

TEST(LowerComposite, LinearStackWithGelu) {
  Graph g;
  Dim n = g.dims.symbol(4);
  ValueId x = g.add_input(DType::f32, {n, 5, 16}), w = g.add_input(DType::f32, {24, 16}),
          b = g.add_input(DType::f32, {24});
  ValueId w2 = g.add_input(DType::f32, {16, 24}), b2 = g.add_input(DType::f32, {16});
  ValueId h = g.add(OpId::gelu, {val(g.add(OpId::linear, {val(x), val(w), val(b)}))});
  g.outputs = {g.add(OpId::add, {val(x), val(g.add(OpId::linear, {val(h), val(w2), val(b2)}))})};
  LowerResult r = check_compiled(g, 1e-5, {}, {3});
  EXPECT_EQ(r.program.steps.size(), 2u);
  EXPECT_EQ(count_steps<MatmulStep>(r.program), 2);
}

TEST(LowerComposite, ProductsOfHalfFloats) {
  for (DType d : {DType::bf16, DType::f16}) {
    Graph g;
    ValueId x = g.add_input(d, {5, 16}), w = g.add_input(d, {24, 16}), b = g.add_input(d, {24});
    g.outputs = {g.add(OpId::gelu, {val(g.add(OpId::linear, {val(x), val(w), val(b)}))})};
    LowerResult r = check_compiled(g, 1e-2);
    if (d == DType::bf16) {
      ASSERT_EQ(r.program.steps.size(), 1u) << "bf16 operands are read without a cast";
      EXPECT_EQ(r.program.steps[0].as<MatmulStep>().dtype, DType::bf16);
    }
  }
}

TEST(LowerComposite, Pooling) {
  for (OpId op : {OpId::max_pool2d, OpId::avg_pool2d}) {
    Graph g;
    ValueId x = g.add_input(DType::f32, {2, 3, 9, 8});
    Attr kernel = ints({3, 3}), stride = ints({2, 2}), padding = ints({1, 1});
    g.outputs = {g.add(op, {val(x)}, {kernel, stride, padding})};
    check_compiled(g, 1e-6);
  }
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 3, 8, 8});
  g.outputs = {g.add(OpId::max_pool2d, {val(x)}, {ints({2, 2})}),
               g.add(OpId::adaptive_avg_pool2d, {val(x)}, {ints({1, 1})})};
  check_compiled(g, 1e-6);
}

TEST(LowerComposite, BatchNormComputesItsFactorOnce) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 3, 4, 5});
  std::vector<Operand> operands{val(x)};
  for (int i = 0; i < 4; ++i) operands.push_back(val(g.add_input(DType::f32, {3})));
  // A variance is positive.
  operands[2] = val(g.add(OpId::exp, {operands[2]}));
  g.outputs = {g.add(OpId::batch_norm, operands)};
  check_compiled(g, 1e-5);
}

TEST(LowerComposite, EmbeddingOfTwoTablesAndANorm) {
  Graph g;
  ValueId w = g.add_input(DType::f32, {7, 12}), p = g.add_input(DType::f32, {5, 12}),
          i = g.add_input(DType::i64, {3, 5});
  ValueId s = g.add_input(DType::f32, {12});
  ValueId e = g.add(OpId::embedding, {val(w), val(i)});
  ValueId x = g.add(OpId::add, {val(e), val(p)});
  g.outputs = {g.add(OpId::layer_norm, {val(x), val(s), val(s)}, {ints({12})}), x};
  EXPECT_EQ(check_compiled(g, 1e-5).program.steps.size(), 1u);
}

TEST(LowerComposite, CumsumIsASumOverWhatCameBefore) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {3, 9, 2});
  g.outputs = {g.add(OpId::cumsum, {val(x)}, {dim(1)})};
  check_compiled(g, 1e-6);
}

}  // namespace
}  // namespace ingot::codegen
