#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/hand_kernels.h"

namespace ingot::runtime {
namespace {

using namespace testing_kernels;
using canonical::kProductBlock;

struct Conv {
  int64_t n, c, h, w, out, kh, kw;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1, groups = 1;
  bool epilogue = false, constant = false, channels_last = false;
  ConvolutionForm form = ConvolutionForm::patches;
  bool result_last = false;  // the channels of the result are innermost

  int64_t out_h() const { return (h + 2 * pad_h - dil_h * (kh - 1) - 1) / stride_h + 1; }
  int64_t out_w() const { return (w + 2 * pad_w - dil_w * (kw - 1) - 1) / stride_w + 1; }
  int64_t depth() const { return c / groups * kh * kw; }
  Ints input_strides() const {  // elements
    return channels_last ? Ints{h * w * c, 1, w * c, c} : Ints{c * h * w, h * w, w, 1};
  }

  Ints result_strides() const {  // over [N, Cout, pixels]
    const int64_t pixels = out_h() * out_w();
    return result_last ? Ints{out * pixels, 1, out} : Ints{out * pixels, pixels, 1};
  }

  std::shared_ptr<Program> program() const {
    auto p = std::make_shared<Program>();
    p->inputs = 3, p->outputs = 1;
    p->buffers = {input(0), input(1), input(2), output(0)};
    Conv2dStep step;
    Dims strides;
    for (int64_t s : input_strides()) strides.push_back(s * 4);
    const int64_t depth_bytes = depth() * 4;
    step.input = {0, 0, strides, 0, true}, step.input_shape = {n, c, h, w};
    step.weight = {1, 0, {depth_bytes, kh * kw * 4, kw * 4, 4}, 0, true}, step.weight_shape = {out, c / groups, kh, kw};
    step.stride = {stride_h, stride_w}, step.padding = {pad_h, pad_w}, step.dilation = {dil_h, dil_w};
    step.groups = groups;
    step.weight_is_constant = constant;
    step.form = form;
    const RowsOfA rows = form == ConvolutionForm::patches  ? RowsOfA::along
                         : form == ConvolutionForm::pixels ? RowsOfA::listed
                                                           : RowsOfA::channels;
    step.kernels = std::make_shared<const ProductKernels>(product_kernels(nullptr, rows));
    const Ints of_result = result_strides();
    Argument result = {3, 0, {}, 0}, bias = {2, 0, {0, 4, 0}, 0};
    for (int64_t s : of_result) result.strides.push_back(s * 4);
    if (form != ConvolutionForm::patches) {
      std::swap(result.strides[1], result.strides[2]);
      std::swap(bias.strides[1], bias.strides[2]);
    }
    if (epilogue) {
      // result = raw + bias[channel]
      step.epilogue.kernels.push_back(loop_kernel([](const KernelFrame& f) {
        for (int64_t r = 0; r < f.rows; ++r)
          for (int64_t j = 0; j < f.columns; ++j)
            element<float>(f, 2, r, j) = element<float>(f, 0, r, j) + element<float>(f, 1, r, j);
      }));
      step.epilogue.arguments.push_back(bias);
    }
    step.epilogue.arguments.push_back(result);
    p->steps = {costly_step("convolution", std::move(step))};
    return p;
  }

  // The sum over (kh, kw, c) in blocks of k, taps outside of the image being zeros. In any form.
  std::vector<float> expected(const std::vector<float>& x, const std::vector<float>& weight,
                              const std::vector<float>& bias) const {
    std::vector<float> result(n * out * out_h() * out_w());
    const Ints to = result_strides();
    const Ints s = input_strides();
    const int64_t group_c = c / groups;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t y = 0; y < out_h(); ++y)
          for (int64_t z = 0; z < out_w(); ++z) {
            float total = 0, sum = 0;
            for (int64_t k = 0; k < depth(); ++k) {
              int64_t ch = k % group_c, u = k / group_c / kw, v = k / group_c % kw;
              int64_t in_y = y * stride_h + u * dil_h - pad_h, in_x = z * stride_w + v * dil_w - pad_w;
              bool inside = in_y >= 0 && in_y < h && in_x >= 0 && in_x < w;
              int64_t channel = o / (out / groups) * group_c + ch;
              float value = inside ? x[i * s[0] + channel * s[1] + in_y * s[2] + in_x * s[3]] : 0.0f;
              if (k % kProductBlock == 0) sum = 0;
              const float w = weight[((o * group_c + ch) * kh + u) * kw + v];
              sum = std::fma(w, value, sum);
              if (k % kProductBlock == kProductBlock - 1 || k + 1 == depth())
                total = k < kProductBlock ? sum : total + sum;
            }
            result[i * to[0] + o * to[1] + (y * out_w() + z) * to[2]] = epilogue ? total + bias[o] : total;
          }
    return result;
  }
};

void check(const Conv& conv, int threads) {
  Threads scope(threads);
  LoadedProgram program(conv.program());
  std::vector<float> x = random_floats(conv.n * conv.c * conv.h * conv.w, 1);
  std::vector<float> weight = random_floats(conv.out * conv.depth(), 2), bias = random_floats(conv.out, 3);
  std::vector<float> expected = conv.expected(x, weight, bias), y(expected.size());
  StoragePtr kept = storage_of(weight);
  for (int round = 0; round < (conv.constant ? 2 : 1); ++round) {
    std::fill(y.begin(), y.end(), 7.0f);
    run(program, {}, {x.data(), weight.data(), bias.data()}, {y.data()}, {}, {{}, InputIdentity::of(*kept), {}});
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y[i], expected[i]) << conv.n << "x" << conv.c << "x" << conv.h << "x" << conv.w << " -> " << conv.out
                                   << " (" << conv.kh << "x" << conv.kw << ") threads " << threads << " at " << i;
  }
  EXPECT_EQ(program.weight_packs(), conv.constant ? 1 : 0);
}

TEST(Conv2d, SameBitsForAnyGeometryFormAndThreads) {
  for (int threads : kThreadCounts)
    for (int options = 0; options < 16; ++options) {
      auto with = [&](Conv conv) {
        conv.epilogue = options & 1, conv.constant = options & 2, conv.channels_last = options & 4;
        conv.result_last = options & 8;
        const bool depthwise = conv.groups > 1 && conv.c == conv.groups && conv.out == conv.groups;
        for (ConvolutionForm form : {ConvolutionForm::patches, ConvolutionForm::pixels, ConvolutionForm::depthwise}) {
          // Without an epilogue the last dim is dense.
          if (!conv.epilogue && conv.result_last != (form != ConvolutionForm::patches)) continue;
          if (form == ConvolutionForm::depthwise && !depthwise) continue;
          conv.form = form;
          check(conv, threads);
        }
      };
      with({2, 3, 8, 8, 5, 3, 3, 1, 1, 1, 1});
      with({1, 2, 4, 4, 7, 3, 3, 1, 1, 1, 1});         // runs of four
      with({1, 60, 5, 7, 6, 3, 3, 1, 1, 1, 1});        // more than one block of k
      with({2, 4, 9, 11, 6, 3, 2, 2, 3, 1, 0, 1, 2});  // strides, dilation, one-sided padding
      with({1, 6, 7, 7, 9, 1, 1});                     // 1x1
      with({1, 6, 7, 7, 4, 1, 1, 2, 2});
      with({2, 6, 6, 5, 4, 3, 3, 1, 1, 2, 2, 1, 1, 2});   // groups
      with({2, 5, 6, 40, 5, 3, 3, 1, 1, 1, 1, 1, 1, 5});  // depthwise
      with({1, 3, 9, 9, 6, 3, 2, 2, 2, 1, 0, 2, 1, 3});
      with({1, 2, 3, 40, 2, 3, 5, 1, 1, 0, 2});
      with({6, 3, 4, 4, 5, 3, 3, 1, 1, 1, 1});  // small images together
      with({9, 2, 5, 3, 9, 3, 3, 1, 1, 1, 1});
      with({4, 2, 8, 8, 3, 3, 3, 2, 2, 1, 1});
      with({0, 3, 8, 8, 5, 3, 3, 1, 1, 1, 1});
      with({1, 70, 3, 3, 70, 3, 3, 1, 1, 1, 1, 1, 1, 70});   // several panels of channels
      with({2, 3, 5, 5, 3, 23, 23, 1, 1, 11, 11, 1, 1, 3});  // more than one block of taps
      with({1, 24, 6, 6, 5, 3, 3, 1, 1, 3, 2});              // whole windows of padding
      with({3, 9, 7, 7, 40, 3, 3, 2, 2, 1, 1});
    }
}

}  // namespace
}  // namespace ingot::runtime
