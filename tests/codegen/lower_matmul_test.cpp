// Matrix products: dims, layouts that are read as they lie, epilogues.
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/lower/contraction.h"
#include "ir/decompose.h"
#include "lower_support.h"
#include "runtime/cpu.h"

namespace ingot::codegen {
namespace {
using namespace test;

const MatmulStep& only_matmul(const Program& program) {
  EXPECT_EQ(program.steps.size(), 1u);
  EXPECT_TRUE(program.steps[0].is<MatmulStep>());
  return program.steps[0].as<MatmulStep>();
}

TEST(LowerMatmul, PlainProductIsStoredDirectly) {
  Graph g;
  ValueId a = g.add_input(DType::f32, {5, 7}), b = g.add_input(DType::f32, {7, 6});
  g.outputs = {g.add(OpId::matmul, {val(a), val(b)})};
  LowerResult r = check_against_reference(g, 1e-6);
  EXPECT_TRUE(only_matmul(r.program).epilogue.kernels.empty());
}

TEST(LowerMatmul, EpiloguesAreMadeForPanelsThatOccur) {
  for (int64_t columns :
       {2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 80, 95, 96, 112, 128, 160, 176, 192, 200, 256, 384}) {
    SCOPED_TRACE(columns);
    Graph g;
    ValueId x = g.add_input(DType::f32, {5, 8}), w = g.add_input(DType::f32, {8, columns});
    g.outputs = {g.add(OpId::relu, {val(g.add(OpId::matmul, {val(x), val(w)}))})};
    LowerResult r = check_against_reference(g, 1e-6);
    const std::vector<KernelPtr>& kernels = only_matmul(r.program).epilogue.kernels;
    ASSERT_FALSE(kernels.empty());
    EXPECT_EQ(kernels[0] != nullptr, columns % 16 != 0) << "panels of any width";
    EXPECT_LE(std::count_if(kernels.begin() + 1, kernels.end(), [](const KernelPtr& k) { return k != nullptr; }), 2)
        << "panels differ by one vector at most";
  }
}

TEST(LowerMatmul, LinearWithBiasActivationAndResidualIsOneStep) {
  Graph g;
  Dim n = g.dims.symbol(4);
  ValueId x = g.add_input(DType::f32, {n, 3, 8}), w = g.add_input(DType::f32, {6, 8}), b = g.add_input(DType::f32, {6});
  ValueId residual = g.add_input(DType::f32, {n, 3, 6});
  g.inputs[1].constant = true;
  ValueId wt = g.add(OpId::permute, {val(w)}, {Attr::of(Dims{1, 0})});
  ValueId y = g.add(OpId::add, {val(g.add(OpId::matmul, {val(x), val(wt)})), val(b)});
  g.outputs = {g.add(OpId::add, {val(g.add(OpId::relu, {val(y)})), val(residual)})};
  LowerResult r = check_against_reference(g, 1e-6, {}, {2});
  const MatmulStep& m = only_matmul(r.program);
  EXPECT_TRUE(m.b_is_weight);
  EXPECT_TRUE(m.batch.empty()) << "the batch is part of the rows";
  EXPECT_EQ(m.m, r.program.dims.mul(n, 3));
  EXPECT_EQ(m.epilogue.arguments.size(), 3u);
}

// The gradient of a weight that is used transposed: its results lie along what were the rows.
TEST(LowerMatmul, ResultsThatLieAlongTheRowsTurnTheProduct) {
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (size_t others : {size_t{0}, size_t{1}, lowering::kMostEpilogueArguments})
      for (bool across : {false, true}) {
        SCOPED_TRACE(std::string(name_of(dtype)) + ", " + std::to_string(others) + (across ? ", across" : ", along"));
        Graph g;
        ValueId a = g.add_input(dtype, across ? Dims{9, 20} : Dims{20, 9}), b = g.add_input(dtype, {9, 33});
        const Attr turn = Attr::of(Dims{1, 0});
        if (across) a = g.add(OpId::permute, {val(a)}, {turn});
        ValueId y = g.add(OpId::permute, {val(g.add(OpId::matmul, {val(a), val(b)}))}, {turn});
        for (size_t i = 0; i < others; ++i) y = g.add(OpId::add, {val(y), val(g.add_input(dtype, {33, 20}))});
        if (others) y = g.add(OpId::relu, {val(y)});
        g.outputs = {y};
        const LowerResult r = check_against_reference(g, dtype == DType::f32 || dtype == DType::f64 ? 1e-6 : 1e-2);
        if (is_half(dtype)) continue;  // its operands may be copied to f32 before, one or the other
        const auto& m = r.program.steps[0].as<MatmulStep>();
        EXPECT_EQ(m.m, Dim(33));
        EXPECT_EQ(m.n, Dim(20));
        for (const Argument& argument : m.epilogue.arguments) EXPECT_EQ(argument.strides.back(), Dim(size_of(dtype)));
        EXPECT_EQ(r.program.steps.size(), others < lowering::kMostEpilogueArguments ? 1u : 2u);
      }
  // A weight stays where it is packed once.
  Graph g;
  ValueId x = g.add_input(DType::f32, {20, 9}), w = g.add_input(DType::f32, {9, 33});
  g.inputs[1].constant = true;
  g.outputs = {g.add(OpId::permute, {val(g.add(OpId::matmul, {val(x), val(w)}))}, {Attr::of(Dims{1, 0})})};
  const LowerResult r = check_against_reference(g, 1e-6);
  EXPECT_TRUE(only_matmul(r.program).b_is_weight);
}

// As autocast gives it: one step, which reads the weight as it lies, in place of one that casts and one that packs.
TEST(LowerMatmul, AWeightThatIsCastToBf16IsRoundedAsItIsPacked) {
  const Target target = runtime::detected_target();
  if (!target.bf16_dot) GTEST_SKIP() << "a processor without vdpbf16ps";
  for (const auto& [k, n] : std::vector<std::pair<int64_t, int64_t>>{{8, 16}, {300, 70}, {33, 5}, {1, 40}})
    for (const Dims& strides : {Dims{n, 1}, Dims{1, k}, Dims{1, k + 3}, Dims{2 * n + 1, 2}}) {
      std::vector<std::vector<double>> results;
      for (bool constant : {true, false}) {
        Graph g;
        const ValueId x = g.add_input(DType::bf16, {9, k}), w = g.add_input(DType::f32, {k, n}, strides);
        g.inputs[1].constant = constant;
        const ValueId rounded = g.add(OpId::cast, {val(w)}, {Attr::of(DType::bf16)});
        g.outputs = {g.add(OpId::matmul, {val(x), val(rounded)}, {Attr::of(DType::f32)})};
        const LowerResult r = lower(g, target);
        const auto& product = r.program.steps.back().as<MatmulStep>();
        const bool dense = strides[0] == Dim(1) || strides[1] == Dim(1) || k == 1;
        EXPECT_EQ(product.rounds_b, constant && dense);
        if (product.rounds_b) EXPECT_EQ(r.program.steps.size(), 1u);
        const std::vector<ir::ReferenceTensor> inputs{random_tensor(g, x, 1), random_tensor(g, w, 2)};
        results.push_back(run_program(g, r.program, inputs)[0].real);
      }
      EXPECT_EQ(results[0], results[1]) << k << " x " << n;
    }
}

TEST(LowerMatmul, TheWayOfASingleRowIsChosenWhereSizesAreKnown) {
  auto step = [](int64_t m, int64_t n, bool symbol) {
    Graph g;
    const Dim rows = symbol ? g.dims.symbol(m) : Dim(m);
    ValueId a = g.add_input(DType::f32, {rows, 7}), b = g.add_input(DType::f32, {7, n});
    g.outputs = {g.add(OpId::matmul, {val(a), val(b)})};
    return lower(g, Target{}).program.steps[0].as<MatmulStep>();
  };
  EXPECT_EQ(step(1, 300, false).one_row, OneRow::rows_of_b);
  EXPECT_EQ(algorithm_of(Step{"", 0, 0, step(1, 300, false)}), "one row reads rows of B");
  EXPECT_EQ(step(2, 300, true).one_row, OneRow::rows_of_b) << "a call may have one row";
  EXPECT_EQ(step(2, 300, false).one_row, OneRow::tiles);
  EXPECT_EQ(step(1, 100, false).one_row, OneRow::tiles);
  EXPECT_EQ(step(2, 300, false).kernels, step(3, 500, false).kernels) << "made once";
  EXPECT_EQ(step(2, 300, false).kernels->add_row, nullptr);
}

TEST(LowerMatmul, BatchesStayWhereBothOperandsMove) {
  Graph g;
  ValueId q = g.add_input(DType::f32, {2, 3, 5, 4}), k = g.add_input(DType::f32, {2, 3, 6, 4});
  ValueId kt = g.add(OpId::permute, {val(k)}, {Attr::of(Dims{0, 1, 3, 2})});
  ValueId scores = g.add(OpId::matmul, {val(q), val(kt)});
  g.outputs = {g.add(OpId::mul, {val(scores), Operand::constant(0.5)})};
  const LowerResult r = check_against_reference(g, 1e-6);
  EXPECT_EQ(only_matmul(r.program).batch, (Dims{6}));
}

TEST(LowerMatmul, BroadcastBatchesAndOddStrides) {
  auto product = [](std::initializer_list<Dim> a_strides) {
    Graph g;
    ValueId a = g.add_input(DType::f32, {2, 1, 5, 4}, a_strides), b = g.add_input(DType::f32, {3, 4, 6}, {48, 12, 2});
    g.outputs = {g.add(OpId::matmul, {val(a), val(b)})};
    LowerResult r = check_against_reference(g, 1e-6);
    EXPECT_EQ(r.program.steps.size(), 2u) << "B is copied";
    return r.program.steps.back().as<MatmulStep>().kernels;
  };
  const auto rows_dense = product({20, 20, 1, 5});
  EXPECT_TRUE(rows_dense->rows_of_a == RowsOfA::across) << "A is read as it lies";
  const auto neither = product({40, 40, 2, 10});
  EXPECT_TRUE(neither->rows_of_a == RowsOfA::along);
  EXPECT_NE(neither->pack_a, nullptr) << "A is packed by the step";
}

TEST(LowerMatmul, TheRowKernelThatFollowsReadsTheStoredProduct) {
  Graph g;
  ValueId a = g.add_input(DType::f32, {5, 7}), b = g.add_input(DType::f32, {7, 6});
  ValueId s = g.add(OpId::mul, {val(g.add(OpId::matmul, {val(a), val(b)})), Operand::constant(0.25)});
  ValueId m = g.add(OpId::amax, {val(s)}, {Attr::of(Dims{1}), Attr::of(true)});
  g.outputs = {g.add(OpId::sub, {val(s), val(m)})};
  LowerResult r = check_against_reference(g, 1e-6);
  ASSERT_EQ(r.program.steps.size(), 2u);
  EXPECT_FALSE(r.program.steps[0].as<MatmulStep>().epilogue.kernels.empty()) << "the scale belongs to the product";
}

TEST(LowerMatmul, GatedProductsEndInTheLaterOne) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {5, 7}), u = g.add_input(DType::f32, {7, 6}), w = g.add_input(DType::f32, {7, 6});
  ValueId a = g.add(OpId::relu, {val(g.add(OpId::matmul, {val(x), val(u)}))});
  ValueId b = g.add(OpId::matmul, {val(x), val(w)});
  g.outputs = {g.add(OpId::mul, {val(a), val(b)})};
  EXPECT_EQ(check_against_reference(g, 1e-6).program.steps.size(), 2u);
}

TEST(LowerMatmul, HalfProducts) {
  for (DType d : {DType::bf16, DType::f16}) {
    Graph g;
    ValueId a = g.add_input(d, {3, 8}), b = g.add_input(d, {8, 5});
    g.outputs = {g.add(OpId::matmul, {val(a), val(b)})};
    check_against_reference(g, 1e-2);
  }
}

// There are no tiles of integers: sums of products, over whatever lies along the columns.
TEST(LowerMatmul, IntegerProductsAreSums) {
  for (DType d : {DType::i64, DType::i32, DType::i16, DType::u8})
    for (auto [left, right] : {std::pair{Dims{2, 3, 8}, Dims{8, 5}},
                               {Dims{3, 8}, Dims{2, 8, 5}},
                               {Dims{8}, Dims{8, 5}},
                               {Dims{3, 8}, Dims{8}},
                               {Dims{3, 8}, Dims{8, 1}},
                               {Dims{3, 1}, Dims{1, 5}},
                               {Dims{8}, Dims{8}},
                               {Dims{3, 0}, Dims{0, 5}},
                               {Dims{3, 300}, Dims{300, 40}}}) {
      Graph g;
      ValueId a = g.add_input(d, left), b = g.add_input(d, right);
      g.outputs = {g.add(OpId::matmul, {val(a), val(b)})};
      decompose(g);
      LowerResult r = check_against_reference(g, 0);
      for (const Step& step : r.program.steps) EXPECT_FALSE(step.is<MatmulStep>());
    }
}

TEST(LowerMatmul, VectorsAsOperands) {
  Graph g;
  ValueId a = g.add_input(DType::f32, {8}), b = g.add_input(DType::f32, {8, 5}), c = g.add_input(DType::f32, {4, 8});
  g.outputs = {g.add(OpId::matmul, {val(a), val(b)}), g.add(OpId::matmul, {val(c), val(a)}),
               g.add(OpId::matmul, {val(a), val(a)})};
  check_against_reference(g, 1e-6);
}

TEST(LowerMatmul, AnEpilogueOfManyOperandsIsALoopOfItsOwn) {
  Graph g;
  ValueId a = g.add_input(DType::f32, {3, 8}), b = g.add_input(DType::f32, {8, 5});
  ValueId s = g.add(OpId::matmul, {val(a), val(b)});
  for (int i = 0; i < 40; ++i) s = g.add(OpId::add, {val(s), val(g.add_input(DType::f32, {3, 5}))});
  g.outputs = {s};
  LowerResult r = check_against_reference(g, 1e-5);
  ASSERT_EQ(r.program.steps.size(), 2u);
  EXPECT_TRUE(r.program.steps[0].as<MatmulStep>().epilogue.kernels.empty());
}

}  // namespace
}  // namespace ingot::codegen
