// Convolution: operands of any layout, every form, epilogues that fit and those that do not.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/passes/pipeline.h"
#include "lower_support.h"
#include "runtime/cpu.h"

namespace ingot::codegen {
namespace {
using namespace test;

TEST(LowerConvolution, StridesGroupsDilationAndNoBatch) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 4, 9, 8}), w = g.add_input(DType::f32, {6, 2, 3, 2}),
          b = g.add_input(DType::f32, {6});
  ValueId y = g.add_input(DType::f32, {4, 9, 8});
  std::vector<Attr> attrs{ints({2, 1}), ints({1, 0}), ints({1, 2}), Attr::of(int64_t{2})};
  g.outputs = {g.add(OpId::conv2d, {val(x), val(w), val(b)}, attrs), g.add(OpId::conv2d, {val(y), val(w)}, attrs)};
  check_compiled(g, 1e-5);
}

TEST(LowerConvolution, OtherTypes) {
  for (DType d : {DType::f64, DType::bf16, DType::f16, DType::i64}) {
    Graph g;
    ValueId x = g.add_input(d, {2, 3, 5, 5}), w = g.add_input(d, {4, 3, 3, 3}), b = g.add_input(d, {4});
    g.outputs = {g.add(OpId::relu, {val(g.add(OpId::conv2d, {val(x), val(w), val(b)}))})};
    check_compiled(g, is_half(d) ? 2e-2 : d == DType::f64 ? 1e-12 : 0);
  }
}

TEST(LowerConvolution, AnEpilogueThatDiffersWithinARowOfPixelsIsALoopOfItsOwn) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 3, 6, 5}), w = g.add_input(DType::f32, {4, 3, 3, 3});
  ValueId rows = g.add_input(DType::f32, {4, 1}), b = g.add_input(DType::f32, {4});
  ValueId c = g.add(OpId::conv2d, {val(x), val(w), val(b)});
  g.outputs = {g.add(OpId::relu, {val(g.add(OpId::add, {val(c), val(rows)}))})};
  LowerResult r = check_compiled(g, 1e-5);
  ASSERT_EQ(r.program.steps.size(), 2u);
  EXPECT_TRUE(r.program.steps[1].is<LoopStep>());
}

// Its statistics are sums over columns of what the convolution stored; nothing of the image's size is stored between.
TEST(LowerConvolution, AGroupNormReadsTheImageAndStoresItOnce) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 4, 9, 8}), w = g.add_input(DType::f32, {32, 4, 3, 3}),
          again = g.add_input(DType::f32, {4, 32, 1, 1}), scale = g.add_input(DType::f32, {32});
  ValueId c = g.add(OpId::conv2d, {val(x), val(w)});
  ValueId n =
      g.add(OpId::group_norm, {val(c), val(scale), val(scale), Operand::constant(1e-5)}, {Attr::of(int64_t{8})});
  g.outputs = {g.add(OpId::conv2d, {val(g.add(OpId::relu, {val(n)})), val(again)})};
  LowerResult r = check_compiled(g, 1e-4);
  int images = 0, columns = 0, convolutions = 0;
  for (const Step& step : r.program.steps) {
    columns += step.is<ColumnStep>();
    convolutions += step.is<Conv2dStep>();
    if (!step.is<LoopStep>()) continue;
    int64_t points = 1;
    for (Dim d : step.as<LoopStep>().space) points *= r.program.dims.hint(d);
    images += points == 2 * 32 * 7 * 6;
  }
  EXPECT_EQ(convolutions, 2);
  EXPECT_EQ(columns, 2);
  EXPECT_EQ(images, 1);
  EXPECT_EQ(r.program.steps[0].as<Conv2dStep>().form, ConvolutionForm::pixels);
}

TEST(LowerConvolution, ABatchNormInTrainingReadsTheImageAndStoresItOnce) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 4, 9, 8}), w = g.add_input(DType::f32, {32, 4, 3, 3}),
          again = g.add_input(DType::f32, {4, 32, 1, 1}), scale = g.add_input(DType::f32, {32});
  ValueId c = g.add(OpId::conv2d, {val(x), val(w)});
  ValueId n = g.add(OpId::batch_norm,
                    {val(c), Operand::none(), Operand::none(), val(scale), val(scale), Operand::constant(0.1),
                     Operand::constant(1e-5)},
                    {Attr::of(true)});
  g.outputs = {g.add(OpId::conv2d, {val(g.add(OpId::relu, {val(n)})), val(again)}),
               g.add(OpId::var, {val(c)}, {ints({0, 2, 3}), Attr::number(1), Attr::of(false)})};
  LowerResult r = check_compiled(g, 1e-4);
  int images = 0;
  for (const Step& step : r.program.steps) {
    if (!step.is<LoopStep>()) continue;
    int64_t points = 1;
    for (Dim d : step.as<LoopStep>().space) points *= r.program.dims.hint(d);
    images += points == 2 * 32 * 7 * 6;
  }
  EXPECT_EQ(images, 1);
}

TEST(LowerConvolution, ResultsThatLieApartInMemory) {
  // As padding makes them: parts of a larger tensor, whose rows of pixels do not follow one another.
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 3, 6, 5}), w = g.add_input(DType::f32, {4, 3, 3, 3}),
          z = g.add_input(DType::f32, {2, 4, 4, 1});
  ValueId c = g.add(OpId::conv2d, {val(x), val(w)});
  ValueId m = g.add(OpId::matmul, {val(x), val(g.add_input(DType::f32, {5, 4}))});
  g.outputs = {g.add(OpId::cat, {val(z), val(c)}, {Attr::of(int64_t{3})}),
               g.add(OpId::cat, {val(m), val(m)}, {Attr::of(int64_t{2})})};
  check_compiled(g, 1e-5);
}

TEST(LowerConvolution, SeveralReadersAndTransposedInput) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 3, 6, 5}, {90, 1, 15, 3}), w = g.add_input(DType::f32, {3, 3, 1, 1});
  ValueId c = g.add(OpId::conv2d, {val(x), val(w)});
  ValueId p = g.add(OpId::permute, {val(c)}, {ints({0, 2, 3, 1})});
  ValueId s = g.add(OpId::softmax, {val(p)}, {Attr::of(int64_t{3})});
  g.outputs = {g.add(OpId::tanh, {val(c)}), s};
  check_compiled(g, 1e-5);
}

TEST(LowerConvolution, TheFormFollowsGroupsAndWhereTheResultLies) {
  auto forms = [](int64_t channels, int64_t groups, bool last, LowerOptions options = {}) {
    Graph g;
    ValueId x = g.add_input(DType::f32, {1, channels, 5, 5}), w = g.add_input(DType::f32, {4, channels / groups, 3, 3});
    ValueId c = g.add(OpId::conv2d, {val(x), val(w)}, {ints({1, 1}), ints({0, 0}), ints({1, 1}), Attr::of(groups)});
    if (!last) c = g.add(OpId::conv2d, {val(c), val(g.add_input(DType::f32, {6, 4, 1, 1}))});
    g.outputs = {c};
    return lower(g, Target{}, options).program.steps[0].as<Conv2dStep>().form;
  };
  for (bool last : {false, true}) EXPECT_EQ(forms(4, 4, last), ConvolutionForm::depthwise);
  for (int64_t groups : {1, 2}) {
    EXPECT_EQ(forms(4, groups, true), ConvolutionForm::patches) << "an output of the graph is row-major";
    EXPECT_EQ(forms(4, groups, false), ConvolutionForm::pixels);
    EXPECT_EQ(forms(4, groups, false, {.channels_last = false}), ConvolutionForm::patches);
  }
  EXPECT_EQ(forms(2, 2, true), ConvolutionForm::patches) << "two results a channel";

  // Of images that lie so, whatever the result does.
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 8, 5, 5}), w = g.add_input(DType::f32, {8, 8, 3, 3}),
          last = g.add_input(DType::f32, {3, 8, 3, 3});
  g.outputs = {g.add(OpId::conv2d, {val(g.add(OpId::conv2d, {val(x), val(w)})), val(last)})};
  const LowerResult r = check_compiled(g, 1e-5);
  ASSERT_EQ(r.program.steps.size(), 2u);
  EXPECT_EQ(r.program.steps[1].as<Conv2dStep>().form, ConvolutionForm::pixels);
}

// The weight of a transposed convolution, and of the gradient of an image.
TEST(LowerConvolution, TurnedWeightsAreReadAsTheyLie) {
  struct Case {
    const char* what;
    std::vector<Dims> flips;  // one after the other
    bool h, w;
    size_t steps = 1;
  };
  for (const Case& c : {Case{"both", {{2, 3}}, true, true}, Case{"the height", {{2}}, true, false},
                        Case{"the width", {{3}}, false, true}, Case{"one of them twice", {{2, 3}, {3}}, true, false},
                        Case{"the channels", {{1}}, false, false, 2}, Case{"all", {{1, 2, 3}}, false, false, 2}})
    for (int lies = 0; lies < 3; ++lies)
      for (int64_t groups : {1, 2, 6}) {
        const bool moved = lies == 1, computed = lies == 2;
        Graph g;
        ValueId x = g.add_input(DType::f32, {2, 6, 7, 6});
        ValueId w = moved ? g.add_input(DType::f32, {3, 2, 6 / groups, 6}, {2, 1, 36, 6})
                          : g.add_input(DType::f32, {6, 6 / groups, 3, 2});
        if (computed) w = g.add(OpId::exp, {val(w)});
        if (moved) w = g.add(OpId::permute, {val(w)}, {ints({3, 2, 0, 1})});
        for (const Dims& dims : c.flips) w = g.add(OpId::flip, {val(w)}, {Attr::of(dims)});
        g.outputs = {g.add(OpId::conv2d, {val(x), val(w)}, {ints({1}), ints({1}), ints({1}), Attr::of(groups)})};
        const LowerResult r = check_compiled(g, 1e-5);
        const bool one = groups == 6 && c.steps == 2;  // of one channel: nothing to turn
        const size_t turning = groups == 6;            // a loop: images of channels apart are row-major
        ASSERT_EQ(r.program.steps.size(), (computed ? 2 : one ? 1 : c.steps) + turning) << c.what << groups;
        const auto& conv = r.program.steps[r.program.steps.size() - 1 - turning].as<Conv2dStep>();
        if (!one) EXPECT_EQ(conv.turned_h, c.h) << c.what;
        if (!one) EXPECT_EQ(conv.turned_w, c.w) << c.what;
      }
}

TEST(LowerConvolution, OtherListsOfTapsTurnNothing) {
  // From the last but one; a part of the taps; by steps of two; of a list that only the call knows.
  for (int which = 0; which < 4; ++which) {
    Graph g;
    ValueId x = g.add_input(DType::f32, {1, 3, 8, 8}), w = g.add_input(DType::f32, {4, 3, 4, 3});
    auto list = [&](int64_t start, int64_t step, int64_t length) {
      return g.add(OpId::arange, {Operand::constant(start), Operand::constant(step)},
                   {ints({length}), Attr::of(DType::i64)});
    };
    const ValueId at = which == 0   ? list(2, -1, 3)
                       : which == 1 ? list(3, -1, 3)
                       : which == 2 ? list(3, -2, 2)
                                    : g.add_input(DType::i64, {4});
    g.outputs = {g.add(OpId::conv2d, {val(x), val(g.add(OpId::index_select, {val(w), val(at)}, {dim(2)}))})};
    const LowerResult r = which == 3 ? lower(g, Target{}) : check_compiled(g, 1e-5);
    EXPECT_FALSE(r.program.steps.back().as<Conv2dStep>().turned_h) << which;
    EXPECT_GE(r.program.steps.size(), 2u) << which;
  }
}

/// A convolution of any geometry, what may follow it, and a second one.
Graph random_network(std::mt19937_64& random) {
  auto any = [&](int64_t from, int64_t to) {
    return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
  };
  Graph g;
  const DType d = any(0, 4) ? DType::f32 : DType::f64;
  const int64_t kinds[] = {1, any(2, 5), any(2, 40)}, groups = any(0, 2) ? 1 : any(2, 5);
  const bool depthwise = any(0, 2) == 0;
  const bool vectors = any(0, 2) == 0;  // whole ones: tiles that finish their sums
  const int64_t each = depthwise ? 1 : kinds[any(0, 2)], spread = !depthwise ? groups
                                                                  : vectors  ? 16 * any(1, 4)
                                                                             : any(2, 60);
  const int64_t channels = each * spread, out = spread * (depthwise ? any(1, 3) == 3 ? 2 : 1
                                                          : vectors ? 16 * any(1, 4)
                                                                    : any(1, 20));
  const int64_t kh = any(1, 4), kw = any(1, 6), dh = any(1, 2), dw = any(1, 2), ph = any(0, 3), pw = any(0, 3);
  const int64_t h = std::max<int64_t>(any(1, 10), dh * (kh - 1) + 1 - 2 * ph),
                w = std::max<int64_t>(any(1, any(0, 1) ? 10 : 40), dw * (kw - 1) + 1 - 2 * pw),
                n = any(0, 9) == 0 ? 0
                    : any(0, 5)    ? any(1, 3)
                                   : any(8, 12);
  const bool inside = any(0, 1);
  // Pixels, lines and images with or without gaps.
  const int64_t pixel = channels + (any(0, 5) ? 0 : any(1, 3)), line = w * pixel + (any(0, 3) ? 0 : any(1, 9)),
                image = h * line + (any(0, 3) ? 0 : any(1, 9));
  ValueId x =
      inside ? g.add_input(d, {n, channels, h, w}, {image, 1, line, pixel}) : g.add_input(d, {n, channels, h, w});
  ValueId weight = g.add_input(d, {out, each, kh, kw});
  if (any(0, 3) == 0) {
    Dims turned;
    for (int64_t dim : {1, 2, 3})
      if (any(0, dim) != 0) turned.push_back(dim);
    if (!turned.empty()) weight = g.add(OpId::flip, {val(weight)}, {Attr::of(turned)});
  }
  const Operand bias = any(0, 1) ? val(g.add_input(d, {out})) : Operand::none();
  ValueId v = g.add(OpId::conv2d, {val(x), val(weight), bias},
                    {ints({any(1, 3), any(1, 3)}), ints({ph, pw}), ints({dh, dw}), Attr::of(spread)});
  const Dims shape = g.type(v).shape;
  switch (any(0, 5)) {
    case 0:
      v = g.add(OpId::relu, {val(v)});
      break;
    case 1:  // a residual
      v = g.add(OpId::relu,
                {val(g.add(OpId::add, {val(v), val(g.add_input(d, shape)), Operand::constant(int64_t{1})}))});
      break;
    case 2:
      v = g.add(OpId::max_pool2d, {val(v)},
                {ints({2, 2}), ints({any(1, 2)}), ints({1, 1}), ints({1}), Attr::of(false)});
      break;
    case 3:
      v = g.add(OpId::cat, {val(v), val(g.add(OpId::tanh, {val(v)}))}, {dim(1)});
      break;
    case 4: {  // lines in any order, as upsampling takes them
      if (shape[2] == Dim(0)) break;
      const ValueId lines =
          g.add(OpId::remainder, {val(g.add_input(DType::i64, {any(1, 6)})), Operand::constant(shape[2].code)});
      v = g.add(OpId::index_select, {val(v), val(lines)}, {dim(2)});
      break;
    }
    default:
      break;
  }
  if (any(0, 3)) {
    const int64_t middle = g.type(v).shape[1].code;
    v = g.add(OpId::conv2d, {val(v), val(g.add_input(d, {any(1, 30), middle, 1, 1}))});
  }
  g.outputs = {v};
  // Of what has one sign: a sum that cancels is as wrong as the largest that it adds.
  if (any(0, 2) == 0) g.outputs.push_back(g.add(OpId::sum, {val(g.add(OpId::abs, {val(v)}))}, {ints({1})}));
  return g;
}

// Interpreted and generated, by the reference; and with rows of pixels in place of channels: the same bits.
TEST(LowerConvolution, GeneratedGeometriesInEveryForm) {
  for (int seed = 1; seed <= how_many(500); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const Graph g = random_network(random);
    check_compiled(g, g.type(g.outputs[0]).dtype == DType::f64 ? 1e-12 : 1e-5);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    Graph lowered = g;
    ir::run_pipeline(lowered);
    std::vector<ir::ReferenceTensor> inputs;
    for (size_t i = 0; i < g.inputs.size(); ++i)
      inputs.push_back(random_tensor(g, g.inputs[i].value, static_cast<uint32_t>(i + 1)));
    const auto run = [&](bool channels_last, Isa isa) {
      return run_program(lowered, lower(lowered, Target{isa}, {.channels_last = channels_last}).program, inputs);
    };
    const auto one = run(true, Isa::none);
    for (Isa isa : {Isa::avx2, Isa::avx512})
      for (bool channels_last : {true, false}) {
        if (runtime::detected_target().isa < isa) continue;
        const auto other = run(channels_last, isa);
        for (size_t o = 0; o < one.size(); ++o)
          ASSERT_EQ(one[o].real, other[o].real) << "seed " << seed << " output " << o;
      }
  }
}

// Tiles pass over taps that lie beyond the image. A weight that is not finite times zero is NaN all the same, and a sum
// that underflowed to -0 takes its sign from the zeros that are added. Rows of pixels, whose tiles pass over nothing,
// say what is right; a few images of one pixel are rows of a tile, too.
TEST(LowerConvolution, ZerosBeyondTheImageAreTermsWhateverTheWeightsAre) {
  int passed_over = 0, by_rows = 0;
  for (int seed = 1; seed <= how_many(160); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    auto any = [&](int64_t from, int64_t to) {
      return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
    };
    const DType d = any(0, 4) ? DType::f32 : DType::f64;
    const int64_t groups = any(0, 3) ? 1 : 2, each = any(8, 70), out = any(1, 60) * groups, channels = each * groups;
    const int64_t kh = any(1, 4), kw = any(1, 4), dh = any(1, 2), dw = any(1, 2), ph = any(0, 3), pw = any(0, 3);
    const int64_t h = std::max<int64_t>(any(1, 9), dh * (kh - 1) + 1 - 2 * ph),
                  w = std::max<int64_t>(any(1, 9), dw * (kw - 1) + 1 - 2 * pw), n = any(0, 1) ? any(8, 20) : any(1, 7);
    const std::vector<Attr> attrs{ints({any(1, 2), any(1, 2)}), ints({ph, pw}), ints({dh, dw}), Attr::of(groups)};
    const auto graph = [&](bool inside) {
      Graph g;
      const Dims strides{h * w * channels, 1, w * channels, channels};
      const ValueId x = inside ? g.add_input(d, {n, channels, h, w}, strides) : g.add_input(d, {n, channels, h, w});
      g.outputs = {g.add(OpId::conv2d, {val(x), val(g.add_input(d, {out, each, kh, kw}))}, attrs)};
      return g;
    };
    const Graph g = graph(true);
    passed_over += ph + pw > 0;
    std::vector<ir::ReferenceTensor> inputs;
    for (size_t i = 0; i < 2; ++i) inputs.push_back(random_tensor(g, g.inputs[i].value, static_cast<uint32_t>(i + 1)));
    const double tiny = d == DType::f32 ? 1e-25 : 1e-170, infinity = std::numeric_limits<double>::infinity();
    const int64_t kind = any(0, 3);
    for (double& number : inputs[0].real) number = kind <= 1 ? std::abs(number) * tiny : number;
    for (double& number : inputs[1].real) {
      if (kind == 0) number = -std::abs(number) * tiny;
      if (kind == 1) number = any(0, 30) ? -std::abs(number) * tiny : any(0, 1) ? 0.0 : tiny;
      if (kind == 2 && any(0, 60) == 0) number = any(0, 1) ? infinity : -infinity;
      if (kind == 3 && any(0, 200) == 0) number = std::numeric_limits<double>::quiet_NaN();
    }
    const auto run = [&](bool inside, Isa isa) {
      Graph lowered = graph(inside);
      ir::run_pipeline(lowered);
      const LowerResult r = lower(lowered, Target{isa}, {.channels_last = inside});
      const ConvolutionForm form = r.program.steps[0].as<Conv2dStep>().form;
      if (inside) EXPECT_EQ(form, ConvolutionForm::pixels);
      by_rows += form == ConvolutionForm::patches;  // not of single pixels
      return bits_of(run_program(lowered, r.program, inputs)[0].real);
    };
    const std::vector<uint64_t> right = run(false, Isa::none);
    for (Isa isa : {Isa::none, Isa::avx2, Isa::avx512}) {
      if (runtime::detected_target().isa < isa) continue;
      ASSERT_EQ(run(true, isa), right) << "seed " << seed << ", kind " << kind;
    }
  }
  EXPECT_GT(passed_over, 0);
  EXPECT_GT(by_rows, 0);
}

// Pairs of channels, an odd last one with a zero beside it: a product of the patches of these channels, whose tiles
// read them as rows of a matrix, has the same bits. Weights that are not finite meet zeros beyond the image, and sums
// that underflowed to -0.
TEST(LowerConvolution, OfBf16HasTheBitsOfTheProductOfItsPatches) {
  const Target target = runtime::detected_target();
  if (!target.bf16_dot) GTEST_SKIP() << "a processor without vdpbf16ps";
  const auto run = [&](Graph g, const std::vector<ir::ReferenceTensor>& inputs) {
    ir::PipelineOptions options;
    options.convolves_bf16 = true;
    ir::run_pipeline(g, options);
    const LowerResult r = lower(g, target);
    for (const Step& step : r.program.steps)
      if (step.is<Conv2dStep>()) EXPECT_EQ(step.as<Conv2dStep>().dtype, DType::bf16);
    return run_program(g, r.program, inputs, {}, {}, r.output_orders)[0];
  };
  for (int seed = 1; seed <= how_many(150); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    auto any = [&](int64_t from, int64_t to) {
      return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
    };
    const int64_t groups = any(0, 3) ? 1 : any(2, 3), each = any(2, any(0, 1) ? 9 : 80), padded = each + each % 2,
                  out = any(2, 60), channels = each * groups;  // one column is no product of tiles
    const int64_t kh = any(1, 3), kw = any(1, 4), sh = any(1, 2), sw = any(1, 2), dh = any(1, 2), dw = any(1, 2),
                  ph = any(0, 2), pw = any(0, 2);
    const int64_t h = std::max<int64_t>(any(1, 9), dh * (kh - 1) + 1 - 2 * ph),
                  w = std::max<int64_t>(any(1, 9), dw * (kw - 1) + 1 - 2 * pw), n = any(0, 2) ? any(1, 3) : any(8, 17);
    Graph g;
    const Dims strides{h * w * channels, 1, w * channels, channels};
    const ValueId x = any(0, 1) ? g.add_input(DType::bf16, {n, channels, h, w}, strides)
                                : g.add_input(DType::bf16, {n, channels, h, w});
    const ValueId weight = g.add_input(DType::bf16, {out * groups, each, kh, kw});
    const ValueId y = g.add(OpId::conv2d, {val(x), val(weight)},
                            {ints({sh, sw}), ints({ph, pw}), ints({dh, dw}), Attr::of(groups), Attr::of(DType::f32)});
    g.outputs = {y};
    std::vector<ir::ReferenceTensor> inputs;
    for (size_t i = 0; i < 2; ++i) inputs.push_back(random_tensor(g, g.inputs[i].value, static_cast<uint32_t>(i + 1)));
    const int64_t kind = any(0, 4);
    const double tiny = 1e-25, infinity = std::numeric_limits<double>::infinity();
    for (double& number : inputs[0].real) number = kind == 0 ? std::abs(number) * tiny : number;
    for (double& number : inputs[1].real) {
      if (kind == 0) number = any(0, 30) ? -std::abs(number) * tiny : 0.0;
      if (kind == 1 && any(0, 60) == 0) number = any(0, 1) ? infinity : -infinity;
      if (kind == 2 && any(0, 200) == 0) number = std::numeric_limits<double>::quiet_NaN();
    }
    const ir::ReferenceTensor got = run(g, inputs);
    const int64_t oh = g.type(y).shape[2].code, ow = g.type(y).shape[3].code, k = kh * kw * padded;
    for (int64_t group = 0; group < groups; ++group) {
      Graph product;
      const ValueId a = product.add_input(DType::bf16, {n * oh * ow, k}), b = product.add_input(DType::bf16, {k, out});
      product.outputs = {product.add(OpId::matmul, {val(a), val(b)}, {Attr::of(DType::f32)})};
      ir::ReferenceTensor patches(DType::bf16, {n * oh * ow, k}), columns(DType::bf16, {k, out});
      for (int64_t tap = 0; tap < kh * kw; ++tap)
        for (int64_t c = 0; c < each; ++c) {
          const int64_t at_k = tap * padded + c;
          for (int64_t o = 0; o < out; ++o)
            columns.real[static_cast<size_t>(at_k * out + o)] =
                inputs[1].real[static_cast<size_t>(((group * out + o) * each + c) * kh * kw + tap)];
          for (int64_t pixel = 0; pixel < n * oh * ow; ++pixel) {
            const int64_t row = pixel / ow % oh * sh + tap / kw * dh - ph,
                          column = pixel % ow * sw + tap % kw * dw - pw;
            if (row < 0 || row >= h || column < 0 || column >= w) continue;
            patches.real[static_cast<size_t>(pixel * k + at_k)] = inputs[0].real[static_cast<size_t>(
                ((pixel / (oh * ow) * channels + group * each + c) * h + row) * w + column)];
          }
        }
      std::vector<double> mine, expected;
      const ir::ReferenceTensor sums = run(product, {patches, columns});
      for (int64_t pixel = 0; pixel < n * oh * ow; ++pixel)
        for (int64_t o = 0; o < out; ++o) {
          expected.push_back(sums.real[static_cast<size_t>(pixel * out + o)]);
          mine.push_back(got.real[static_cast<size_t>((pixel / (oh * ow) * groups * out + group * out + o) * oh * ow +
                                                      pixel % (oh * ow))]);
        }
      ASSERT_EQ(bits_of(mine), bits_of(expected)) << "seed " << seed << ", kind " << kind << ", group " << group;
    }
  }
}

// No images, no channels on either side, and images of one pixel, of which all taps but one lie beyond.
TEST(LowerConvolution, PaddedImagesOfNothingAndOfOnePixel) {
  for (int64_t n : {0, 1, 8})
    for (int64_t channels : {0, 16})
      for (int64_t out : {0, 24})
        for (int64_t size : {1, 2}) {
          Graph g;
          ValueId x = g.add_input(DType::f32, {n, channels, size, size},
                                  {size * size * channels, 1, size * channels, channels});
          ValueId w = g.add_input(DType::f32, {out, channels, 3, 3});
          const std::vector<Attr> attrs{ints({1, 1}), ints({1, 1}), ints({1, 1}), Attr::of(int64_t{1})};
          const ValueId y = g.add(OpId::conv2d, {val(x), val(w)}, attrs);
          ValueId slope = g.add_input(DType::f32, {n, out, size, size});
          g.outputs = {y, g.add(OpId::conv2d_weight_backward, {val(x), val(slope)},
                                {ints({3, 3}), ints({1, 1}), ints({1, 1}), ints({1, 1}), Attr::of(int64_t{1})})};
          check_compiled(g, 1e-5);
          ASSERT_FALSE(HasFailure()) << n << " " << channels << " " << out << " " << size;
        }
}

/// A convolution of 3x3 taps whose tiles may be transformed, what may follow it, and a second one.
Graph network_of_tiles(std::mt19937_64& random) {
  auto any = [&](int64_t from, int64_t to) {
    return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
  };
  Graph g;
  const int64_t n = any(1, 3), channels = any(16, 90), out = any(0, 1) ? 16 * any(1, 5) : any(16, 90);
  const int64_t h = any(9, 30), w = any(9, 30), ph = any(0, 3), pw = any(0, 3);
  const int64_t pixel = channels + (any(0, 3) ? 0 : 5), line = w * pixel + (any(0, 3) ? 0 : 7), image = h * line;
  ValueId x = g.add_input(DType::f32, {n, channels, h, w}, {image, 1, line, pixel});
  ValueId weight = g.add_input(DType::f32, {out, channels, 3, 3},
                               any(0, 1) ? Dims{channels * 9, 9, 3, 1} : Dims{1, 9 * out, 3 * out, out});
  if (any(0, 2) == 0) weight = g.add(OpId::flip, {val(weight)}, {ints({any(2, 3)})});
  const Operand bias = any(0, 1) ? val(g.add_input(DType::f32, {out})) : Operand::none();
  ValueId v = g.add(OpId::conv2d, {val(x), val(weight), bias}, {ints({1}), ints({ph, pw}), ints({1}), dim(1)});
  if (any(0, 1))
    v = g.add(OpId::relu, {val(g.add(OpId::add, {val(v), val(g.add_input(DType::f32, g.type(v).shape)),
                                                 Operand::constant(int64_t{1})}))});
  if (any(0, 3) == 0) v = g.add(OpId::cat, {val(v), val(v)}, {dim(1)});
  // Whose result is row-major: of one tap, or of transformed tiles again.
  const int64_t taps = any(0, 1) ? 1 : 3, last = any(0, 1) ? 3 : any(16, 40);
  v = g.add(OpId::conv2d, {val(v), val(g.add_input(DType::f32, {last, g.type(v).shape[1].code, taps, taps}))});
  g.outputs = {v};
  return g;
}

// Borders, tiles that results do not fill, channels that vectors do not: the same bits on every instruction set.
TEST(LowerConvolution, TransformedTiles) {
  for (int seed = 1; seed <= how_many(40); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const Graph g = network_of_tiles(random);
    const LowerResult r = check_compiled(g, 2e-5, {.winograd = true});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    ASSERT_TRUE(r.program.steps[0].as<Conv2dStep>().winograd) << "seed " << seed;
    Graph lowered = g;
    ir::run_pipeline(lowered);
    std::vector<ir::ReferenceTensor> inputs;
    for (size_t i = 0; i < g.inputs.size(); ++i)
      inputs.push_back(random_tensor(g, g.inputs[i].value, static_cast<uint32_t>(i + 1)));
    auto run = [&](Isa isa) {
      return run_program(lowered, lower(lowered, Target{isa}, {.winograd = true}).program, inputs)[0].real;
    };
    const auto one = run(Isa::none);
    for (Isa isa : {Isa::avx2, Isa::avx512})
      if (runtime::detected_target().isa >= isa) ASSERT_EQ(one, run(isa)) << "seed " << seed;
  }
}

TEST(LowerConvolution, TilesAreTransformedWhereItIsAllowedAndPays) {
  auto transformed = [](Dims weight, Dims stride, Dims dilation, int64_t groups, LowerOptions options) {
    Graph g;
    ValueId x = g.add_input(DType::f32, {1, weight[1].code * groups, 30, 30}), w = g.add_input(DType::f32, weight);
    ValueId c = g.add(OpId::conv2d, {val(x), val(w)}, {ints(stride), ints({1}), ints(dilation), dim(groups)});
    g.outputs = {g.add(OpId::conv2d, {val(c), val(g.add_input(DType::f32, {6, weight[0], 1, 1}))})};
    return lower(g, Target{}, options).program.steps[0].as<Conv2dStep>().winograd.has_value();
  };
  const LowerOptions allowed{.winograd = true};
  EXPECT_TRUE(transformed({32, 16, 3, 3}, {1, 1}, {1, 1}, 1, allowed));
  EXPECT_FALSE(transformed({32, 16, 3, 3}, {1, 1}, {1, 1}, 1, {})) << "other roundings are not allowed";
  EXPECT_FALSE(transformed({32, 3, 3, 3}, {1, 1}, {1, 1}, 1, allowed)) << "too few channels";
  EXPECT_FALSE(transformed({32, 16, 3, 3}, {2, 1}, {1, 1}, 1, allowed));
  EXPECT_FALSE(transformed({32, 16, 3, 3}, {1, 1}, {1, 2}, 1, allowed));
  EXPECT_FALSE(transformed({32, 16, 3, 3}, {1, 1}, {1, 1}, 2, allowed));
  EXPECT_FALSE(transformed({32, 16, 5, 5}, {1, 1}, {1, 1}, 1, allowed));
}

TEST(LowerConvolution, ImagesKeepTheirChannelsInnermost) {
  Graph g;
  ValueId x = g.add_input(DType::f32, {2, 3, 9, 8}), w = g.add_input(DType::f32, {16, 3, 3, 3});
  ValueId c = g.add(OpId::conv2d, {val(x), val(w)});
  ValueId pooled = g.add(OpId::max_pool2d, {val(g.add(OpId::relu, {val(c)}))},
                         {ints({3, 3}), ints({2, 2}), ints({1, 1}), ints({1}), Attr::of(false)});
  ValueId joined = g.add(OpId::cat, {val(pooled), val(pooled)}, {dim(1)});
  ValueId next = g.add(OpId::conv2d, {val(joined), val(g.add_input(DType::f32, {5, 32, 1, 1}))});
  g.outputs = {g.add(OpId::mean, {val(next)}, {ints({2, 3})})};
  const LowerResult r = check_compiled(g, 1e-5);
  int convolutions = 0;
  for (const Step& step : r.program.steps) {
    if (!step.is<Conv2dStep>()) continue;
    const auto& conv = step.as<Conv2dStep>();
    EXPECT_EQ(conv.form, ConvolutionForm::pixels);
    if (convolutions++) EXPECT_EQ(conv.input.strides[1], Dim(4)) << "the channels of what is pooled and joined";
  }
  EXPECT_EQ(convolutions, 2);
}

}  // namespace
}  // namespace ingot::codegen
