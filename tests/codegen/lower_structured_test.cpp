// Joining, indexing, coordinates, scattered writes, memory order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lower_support.h"

namespace ingot::codegen {
namespace {
using namespace test;

TEST(LowerStructured, CatWritesEachPartIntoItsPlace) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 3, 4}), y = g.add_input(DType::f32, {2, 5, 4});
  ValueId r = g.add(OpId::relu, {val(x)});
  ValueId c = g.add(OpId::cat, {val(r), val(y), val(x)}, {Attr::of(int64_t{1})});
  g.outputs = {c, g.add(OpId::neg, {val(c)})};
  LowerResult result = check_against_reference(g, 0);
  EXPECT_EQ(result.program.steps.size(), 3u) << "the two parts that read x are one kernel";
}

TEST(LowerStructured, APointwiseReaderOfACatIsOneKernelAPart) {
  // Rotary embedding: x * cos + rotate_half(x) * sin.
  Graph g;
  Dim t = g.dims.symbol(5);
  ValueId x = g.add_input(DType::f32, {2, 3, t, 8}), cos = g.add_input(DType::f32, {t, 8}),
          sin = g.add_input(DType::f32, {t, 8});
  auto half = [&](int64_t start) {
    return g.add(OpId::slice, {val(x)},
                 {Attr::of(int64_t{3}), Attr::of(Dims{start}), Attr::of(Dims{start + 4}), Attr::of(int64_t{1})});
  };
  ValueId rotated = g.add(OpId::cat, {val(g.add(OpId::neg, {val(half(4))})), val(half(0))}, {Attr::of(int64_t{3})});
  ValueId a = g.add(OpId::mul, {val(x), val(cos)}), b = g.add(OpId::mul, {val(rotated), val(sin)});
  g.outputs = {g.add(OpId::add, {val(a), val(b)})};
  LowerResult r = check_against_reference(g, 1e-6, {}, {6});
  EXPECT_EQ(r.program.steps.size(), 2u);
  for (const ProgramBuffer& buffer : r.program.buffers)
    EXPECT_NE(buffer.place, Place::arena) << "nothing is kept between";
}

// What the pieces of a cat's reader read is read by others as well, who come before or after them.
TEST(LowerStructured, AReaderOfACatSharesWhatItReads) {
  for (bool before : {false, true})
    for (OpId made : {OpId::exp, OpId::neg}) {
      Graph g;
      ValueId p = g.add_input(DType::f32, {2, 3}), q = g.add_input(DType::f32, {2, 5}),
              a = g.add_input(DType::f32, {2, 8});
      ValueId x = g.add(made, {val(a)});
      auto sum = [&] { return g.add(OpId::sum, {val(x)}, {Attr::of(Dims{1}), Attr::of(false)}); };
      ValueId s = before ? sum() : ir::kNoValue;
      ValueId y = g.add(OpId::add, {val(g.add(OpId::cat, {val(p), val(q)}, {Attr::of(int64_t{1})})), val(x)});
      if (!before) s = sum();
      g.outputs = {y, s};
      check_against_reference(g, 1e-6);
    }
}

TEST(LowerStructured, CatOfSymbolicSizes) {
  Graph g;
  Dim n = g.dims.symbol(4), m = g.dims.symbol(3);
  ValueId x = g.add_input(DType::f32, {n, 4}), y = g.add_input(DType::f32, {m, 4});
  g.outputs = {g.add(OpId::cat, {val(x), val(y)}, {Attr::of(int64_t{0})})};
  check_against_reference(g, 0, {}, {2, 6});
}

TEST(LowerStructured, IndexSelectReadsInPlace) {
  Graph g;
  ValueId w = g.add_input(DType::f32, {7, 6}), i = g.add_input(DType::i64, {5}), p = g.add_input(DType::f32, {5, 6});
  ValueId e = g.add(OpId::index_select, {val(w), val(i)}, {Attr::of(int64_t{0})});
  g.outputs = {g.add(OpId::add, {val(e), val(p)})};
  EXPECT_EQ(check_against_reference(g, 0).program.steps.size(), 1u);
  Graph h;
  w = h.add_input(DType::f32, {3, 7}), i = h.add_input(DType::i64, {4});
  h.outputs = {h.add(OpId::index_select, {val(w), val(i)}, {Attr::of(int64_t{1})})};
  check_against_reference(h, 0);
}

TEST(LowerStructured, GatherOfAComputedValueComputesWhatIsRead) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {4, 7}), y = g.add_input(DType::f32, {7}), i = g.add_input(DType::i64, {4, 2});
  ValueId s = g.add(OpId::add, {val(x), val(y)});
  g.outputs = {g.add(OpId::gather, {val(s), val(i)}, {Attr::of(int64_t{1})})};
  EXPECT_EQ(check_against_reference(g, 0).program.steps.size(), 1u);
}

TEST(LowerStructured, TwoGathersOfOneAnother) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {7, 7}), i = g.add_input(DType::i64, {3}), j = g.add_input(DType::i64, {2});
  ValueId rows = g.add(OpId::index_select, {val(x), val(i)}, {Attr::of(int64_t{0})});
  g.outputs = {g.add(OpId::index_select, {val(rows), val(j)}, {Attr::of(int64_t{1})})};
  EXPECT_EQ(check_against_reference(g, 0).program.steps.size(), 1u);
}

TEST(LowerStructured, CoordinatesAreMadeInTheKernel) {
  Graph g;
  Dim n = g.dims.symbol(4);
  ValueId x = g.add_input(DType::f32, {2, n, n});
  auto range = [&] {
    return g.add(OpId::arange, {Operand::constant(int64_t{0}), Operand::constant(int64_t{1})},
                 {Attr::of(Dims{n}), Attr::of(DType::i64)});
  };
  ValueId row = g.add(OpId::unsqueeze, {val(range())}, {Attr::of(int64_t{1})});
  ValueId seen = g.add(OpId::lt, {val(range()), val(row)});
  g.outputs = {g.add(OpId::where, {val(seen), val(x), Operand::constant(-1.0)}),
               g.add(OpId::tril, {val(x), Operand::constant(int64_t{-1})}),
               g.add(OpId::triu, {val(x), Operand::constant(int64_t{1})})};
  LowerResult r = check_against_reference(g, 0, {}, {5});
  EXPECT_EQ(r.program.steps.size(), 1u);
}

TEST(LowerStructured, FullAndArangeOfEveryType) {
  for (DType d : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::i32, DType::u8}) {
    Graph g;
    ValueId a = g.add(OpId::arange, {Operand::constant(int64_t{2}), Operand::constant(int64_t{3})},
                      {Attr::of(Dims{11}), Attr::of(d)});
    ValueId f = g.add(OpId::full, {Operand::constant(7.0)}, {Attr::of(Dims{3, 2}), Attr::of(d)});
    g.outputs = {a, f};
    check_against_reference(g, 0);
  }
}

TEST(LowerStructured, ScatterWritesOverACopy) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {4, 5}), s = g.add_input(DType::f32, {2, 3});
  ValueId n = g.add(OpId::neg, {val(s)});
  ValueId y = g.add(OpId::as_strided_scatter, {val(x), val(n)},
                    {Attr::of(Dims{2, 3}), Attr::of(Dims{10, 2}), Attr::of(Dims{5})});
  g.outputs = {g.add(OpId::relu, {val(y)})};
  check_against_reference(g, 0);
}

TEST(LowerStructured, ComputedValuesFollowTheMemoryTheyComeFrom) {
  // As after a convolution: a product [pixels, channels] seen as [n, channels, h, w].
  Graph g;
  ValueId a = g.add_input(DType::f32, {2 * 3 * 4, 5}), b = g.add_input(DType::f32, {5, 6}),
          scale = g.add_input(DType::f32, {1, 6, 1, 1});
  ValueId p = g.add(OpId::matmul, {val(a), val(b)});
  ValueId v = g.add(OpId::view, {val(p)}, {Attr::of(Dims{2, 3, 4, 6})});
  ValueId t = g.add(OpId::permute, {val(v)}, {Attr::of(Dims{0, 3, 1, 2})});
  ValueId s = g.add(OpId::mul, {val(t), val(scale)});
  ValueId r = g.add(OpId::relu, {val(s)});
  ValueId left =
      g.add(OpId::slice, {val(r)}, {Attr::of(int64_t{3}), Attr::of(Dims{0}), Attr::of(Dims{3}), Attr::of(int64_t{2})});
  ValueId right =
      g.add(OpId::slice, {val(r)}, {Attr::of(int64_t{3}), Attr::of(Dims{1}), Attr::of(Dims{4}), Attr::of(int64_t{2})});
  g.outputs = {g.add(OpId::sub, {val(left), val(right)})};
  LowerResult result = check_against_reference(g, 1e-6);
  ASSERT_EQ(result.program.steps.size(), 2u);
  const MatmulStep& m = result.program.steps[0].as<MatmulStep>();
  ASSERT_FALSE(m.epilogue.kernels.empty()) << "what follows in another order of dims is still the epilogue";
  EXPECT_EQ(m.batch.size(), 0u);
  for (const Argument& x : m.epilogue.arguments) EXPECT_EQ(x.strides.back(), Dim(4)) << "channels stay innermost";
}

// Who reads rows of pixels next is not to follow rows of three colours.
TEST(LowerStructured, ImagesOfFewColoursAreTurnedAsTheyAreRead) {
  for (const auto& [channels, turned] : {std::pair{3, true}, {4, true}, {16, false}}) {
    Graph g =
        ir::parse(fmt::format("ingot.ir 1\ninput %0 = f32[1, {0}, 20, 32] strides [{1}, 1, {2}, {0}]\n"
                              "input %1 = f32[32, 8]\n%2 = relu(%0)\n%3 = matmul(%2, %1)\noutput %3\n",
                              channels, channels * 640, channels * 32));
    const LowerResult result = check_against_reference(g, 1e-5);
    const auto* loop = std::get_if<LoopStep>(&result.program.steps[0].work);
    ASSERT_TRUE(loop);
    EXPECT_EQ(loop->arguments.back().strides.back(), Dim(4));
    const MatmulStep& m = result.program.steps[1].as<MatmulStep>();
    EXPECT_EQ(m.a.strides.back() == Dim(4), turned) << channels;
  }
}

}  // namespace
}  // namespace ingot::codegen
