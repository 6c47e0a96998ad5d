// The gradient of a convolution's weight: every form, wherever its operands lie.
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

TEST(LowerConvolutionWeight, DepthwiseWeightsMultiplyChannelsByChannelsWhateverIsKnownOfTheirNumber) {
  for (bool known : {true, false}) {
    Graph g;
    const Dim channels = known ? Dim(6) : g.dims.symbol(6);
    ValueId x = g.add_input(DType::f32, {2, channels, 7, 6}), slope = g.add_input(DType::f32, {2, channels, 5, 4});
    g.outputs = {g.add(OpId::conv2d_weight_backward, {val(x), val(slope)},
                       {ints({3, 3}), ints({1, 1}), ints({0, 0}), ints({1, 1}), Attr::of(int64_t{6})})};
    LowerResult r = check_compiled(g, 1e-5, {}, known ? std::vector<int64_t>() : std::vector<int64_t>{6});
    EXPECT_EQ(r.program.steps[0].as<Conv2dWeightStep>().kernels->rows_of_a, RowsOfA::channels_with_b) << known;
  }
}

// Of bf16 pairs of the pixels that a tap meets, an odd last one alone; few channels side by side for all taps. An
// infinite gradient beside which there is no pixel is no term.
TEST(LowerConvolutionWeight, IsTheSumOfItsTermsWhereverTheyLie) {
  const Target target = runtime::detected_target();
  for (int seed = 1; seed <= how_many(90); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const DType dtype = seed % 3 == 0 ? DType::f64 : seed % 3 == 1 || !target.bf16_dot ? DType::f32 : DType::bf16;
    const Attr result = dtype == DType::bf16 ? Attr::of(DType::f32) : Attr();
    auto any = [&](int64_t from, int64_t to) {
      return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
    };
    const int64_t groups = any(0, 3) ? 1 : any(2, 3), each = any(0, 3) ? any(4, any(0, 1) ? 20 : 100) : any(1, 3),
                  out = any(1, any(0, 1) ? 20 : 110);
    const int64_t channels = each * groups, results = out * groups;
    const int64_t kh = any(1, 3), kw = any(1, 4), sh = any(1, 2), sw = any(1, 2), dh = any(1, 2), dw = any(1, 2),
                  ph = any(0, 2), pw = any(0, 2);
    const int64_t h = std::max<int64_t>(any(1, 11), dh * (kh - 1) + 1 - 2 * ph),
                  w = std::max<int64_t>(any(1, 11), dw * (kw - 1) + 1 - 2 * pw), n = any(0, 2) ? any(0, 3) : any(4, 9);
    const int64_t oh = (h + 2 * ph - dh * (kh - 1) - 1) / sh + 1, ow = (w + 2 * pw - dw * (kw - 1) - 1) / sw + 1;
    const bool infinite = each > 3 && n > 0 && any(0, 1);
    auto graph = [&](bool inside) {
      Graph g;
      auto input = [&](int64_t c, int64_t y, int64_t x) {
        return val(inside ? g.add_input(dtype, {n, c, y, x}, {y * x * c, 1, x * c, c})
                          : g.add_input(dtype, {n, c, y, x}));
      };
      const Operand x = input(channels, h, w), slope = input(results, oh, ow);
      g.outputs = {g.add(OpId::conv2d_weight_backward, {x, slope},
                         {ints({kh, kw}), ints({sh, sw}), ints({ph, pw}), ints({dh, dw}), Attr::of(groups), result})};
      return g;
    };
    std::vector<ir::ReferenceTensor> inputs;
    {
      const Graph g = graph(false);
      for (size_t i = 0; i < 2; ++i)
        inputs.push_back(random_tensor(g, g.inputs[i].value, static_cast<uint32_t>(2 * seed + static_cast<int>(i))));
    }
    if (infinite) inputs[1].real[random() % inputs[1].real.size()] = std::numeric_limits<double>::infinity();
    std::vector<double> got;
    for (bool inside : {false, true}) {
      Graph g = graph(inside);
      ir::PipelineOptions options;
      options.convolves_bf16 = true;
      ir::run_pipeline(g, options);
      const LowerResult r = lower(g, target);
      if (each > 1) EXPECT_EQ(r.program.steps[0].as<Conv2dWeightStep>().dtype, dtype);
      const std::vector<double> sums = run_program(g, r.program, inputs)[0].real;
      if (!inside) got = sums;
      ASSERT_EQ(bits_of(sums), bits_of(got)) << "seed " << seed;
    }
    for (size_t i = 0; i < got.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t tap = at % (kh * kw), c = at / (kh * kw) % each, o = at / (kh * kw * each);
      double sum = 0, size = 0;
      for (int64_t pixel = 0; pixel < n * oh * ow; ++pixel) {
        const int64_t image = pixel / (oh * ow), y = pixel / ow % oh, x = pixel % ow;
        const int64_t row = y * sh + tap / kw * dh - ph, column = x * sw + tap % kw * dw - pw;
        if (row < 0 || row >= h || column < 0 || column >= w) continue;
        const double term =
            inputs[0].real[static_cast<size_t>(((image * channels + o / out * each + c) * h + row) * w + column)] *
            inputs[1].real[static_cast<size_t>(((image * results + o) * oh + y) * ow + x)];
        sum += term, size += std::abs(term);
      }
      if (std::isfinite(size))
        ASSERT_NEAR(got[i], sum, 2e-5 * size) << "seed " << seed << ", element " << i;
      else
        ASSERT_TRUE(std::isnan(sum) ? std::isnan(got[i]) : got[i] == sum) << "seed " << seed << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace ingot::codegen
