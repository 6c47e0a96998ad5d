// Gradients of convolutions, eager and compiled: the weight's is a step of its own.
#include <limits>
#include <ostream>

#include "runtime/thread_pool.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

struct Convolution {
  int64_t batch, channels, size, out_channels, kernel, stride = 1, padding = 0, dilation = 1, groups = 1;
  friend std::ostream& operator<<(std::ostream& out, const Convolution& c) {
    return out << c.batch << " images of " << c.channels << " channels, " << c.size << " x " << c.size << ", kernel "
               << c.kernel << ", groups " << c.groups;
  }
};

struct Operands {
  Tensor image, weight, gradient;
};
INGOT_FIELDS(Operands, image, weight, gradient)

Operands operands_of(const Convolution& c, DType dtype) {
  manual_seed(5);
  const TensorOptions options = TensorOptions().dtype(dtype);
  const int64_t out = (c.size + 2 * c.padding - c.dilation * (c.kernel - 1) - 1) / c.stride + 1;
  return {randn({c.batch, c.channels, c.size, c.size}, options),
          randn({c.out_channels, c.channels / c.groups, c.kernel, c.kernel}, options),
          randn({c.batch, c.out_channels, out, out}, options)};
}

std::vector<Tensor> gradients(const Convolution& c, const Operands& o) {
  const Tensor x = o.image.detach().requires_grad_(), w = o.weight.detach().requires_grad_();
  const Tensor y = conv2d(x, w, Tensor(), c.stride, c.padding, c.dilation, c.groups);
  return autograd::grad({y}, {x, w}, {o.gradient});
}

/// The image's gradient, patches of products in double.
Tensor expected_of_image(const Convolution& c, const Operands& o) {
  const int64_t in = c.channels / c.groups, out = c.out_channels / c.groups, taps = c.kernel * c.kernel;
  const int64_t pixels = o.gradient.size(2) * o.gradient.size(3);
  const Tensor w = o.weight.to(kFloat64).reshape({c.groups, out, in * taps}).transpose(1, 2);
  const Tensor g = o.gradient.to(kFloat64).reshape({c.batch, c.groups, out, pixels});
  const Tensor patches = matmul(w, g).reshape({c.batch, c.channels * taps, pixels});
  return col2im(patches, {c.size, c.size}, c.kernel, c.dilation, c.padding, c.stride);
}

/// The weight's gradient, a product of patches in double.
Tensor expected_of_weight(const Convolution& c, const Operands& o) {
  const Tensor patches = im2col(o.image.to(kFloat64), c.kernel, c.dilation, c.padding, c.stride);
  const int64_t in = c.channels / c.groups, out = c.out_channels / c.groups, taps = c.kernel * c.kernel;
  const int64_t pixels = patches.size(2);
  const Tensor b = patches.view({c.batch, c.groups, in * taps, pixels}).permute({1, 2, 0, 3});
  const Tensor a = o.gradient.to(kFloat64).reshape({c.batch, c.groups, out, pixels}).permute({1, 2, 0, 3});
  const int64_t k = c.batch * pixels;
  return matmul(a.reshape({c.groups, out, k}), b.reshape({c.groups, in * taps, k}).transpose(1, 2))
      .reshape({c.out_channels, in, c.kernel, c.kernel});
}

const Convolution kCases[] = {
    {3, 5, 9, 7, 3, 1, 1},
    {2, 32, 8, 20, 3, 1, 1},
    {9, 16, 8, 8, 3, 2, 1},
    {2, 3, 17, 4, 5, 3, 2},
    {2, 6, 11, 9, 3, 2, 3, 2, 3},
    {4, 12, 7, 12, 3, 1, 1, 1, 12},
    {8, 40, 8, 33, 1},
    {1, 2, 3, 2, 3},
    {3, 64, 9, 64, 3, 2, 1, 1, 64},
    {2, 50, 12, 50, 5, 1, 2, 1, 50},
    {2, 32, 1, 32, 3, 1, 1, 1, 32},
    {1, 16400, 3, 16400, 3, 2, 1, 1, 16400},
    {2, 6, 8, 12, 3, 2, 1, 1, 6},
    {5, 17, 11, 17, 2, 3, 1, 2, 17},
    {64, 1, 8, 32, 3, 1, 1},
    {3, 7, 25, 2, 4, 2, 0, 3},
    {1, 48, 40, 2, 2},
    {2, 64, 6, 3, 1, 2},
    {2, 3, 40, 70, 7, 2, 3},
    {3, 1, 14, 40, 3, 1, 2, 2},
    {2, 9, 10, 150, 2, 3, 1, 1, 3},
    {1, 3, 22, 5, 19, 1, 2},
};

class ConvolutionGradients : public testing::TestWithParam<Convolution> {};

TEST_P(ConvolutionGradients, AreProductsOfPatches) {
  for (DType dtype : {kFloat64, kFloat32, kBFloat16}) {
    const Operands o = operands_of(GetParam(), dtype);
    const std::vector<Tensor> got = gradients(GetParam(), o),
                              expected{expected_of_image(GetParam(), o), expected_of_weight(GetParam(), o)};
    const double bound = dtype == kFloat64 ? 1e-13 : dtype == kFloat32 ? 2e-6 : 5e-3;
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(got[i].dtype(), dtype);
      const double largest = 1 + expected[i].abs().amax().item<double>();
      EXPECT_LE((got[i].to(kFloat64) - expected[i]).abs().amax().item<double>(), bound * largest)
          << name_of(dtype) << " by operand " << i;
    }
  }
}

TEST_P(ConvolutionGradients, HaveTheSameBitsCompiledOnAnyThreadsInstructionSetAndLayout) {
  for (DType dtype : {kFloat32, kFloat64}) {
    Operands o = operands_of(GetParam(), dtype);
    std::vector<Tensor> first;
    test::on_every_target({1, 2, 5}, [&] {
      auto fast = compile([&](const Operands& x) { return gradients(GetParam(), x); });
      const std::vector<Tensor> eager = gradients(GetParam(), o), compiled = fast(o);
      EXPECT_EQ(fast.stats().fallbacks, 0);
      if (first.empty()) first = eager;
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(same_bits(eager[i], first[i])) << "gradient " << i;
        EXPECT_TRUE(same_bits(compiled[i], first[i])) << "gradient " << i;
      }
      o.image = o.image.transpose(1, 3).contiguous().transpose(1, 3);
      o.gradient = o.gradient.transpose(0, 2).contiguous().transpose(0, 2);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ConvolutionGradients, testing::ValuesIn(kCases));

TEST(ConvolutionGradient, OfNoImagesIsZeros) {
  for (const Convolution& c : {Convolution{0, 3, 5, 4, 3}, {0, 16, 5, 16, 3, 2, 1, 1, 16}}) {
    const Operands o = operands_of(c, kFloat32);
    auto fast = compile([&](const Operands& x) { return gradients(c, x); });
    EXPECT_TRUE(same_bits(gradients(c, o)[1], zeros_like(o.weight)));
    EXPECT_TRUE(same_bits(fast(o)[1], zeros_like(o.weight)));
  }
}

TEST(ConvolutionGradient, ABorderHidesNothing) {
  // An infinite pixel reaches the taps whose windows see it, and no others.
  const Convolution c{1, 1, 3, 1, 3, 1, 1};
  Operands o = operands_of(c, kFloat32);
  o.image.fill_(1), o.gradient.fill_(1);
  o.image.select(2, 0).select(2, 0).fill_(std::numeric_limits<double>::infinity());
  const Tensor got = gradients(c, o)[1];
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t w = 0; w < 3; ++w)
      EXPECT_EQ(got.select(2, h).select(2, w).item<double>() > 1e30, h < 2 && w < 2) << h << ", " << w;
}

TEST(ConvolutionGradient, SizesAreSymbolsAndTheWeightIsAStep) {
  for (const Convolution& c : {Convolution{0, 4, 0, 6, 3, 2, 1}, {0, 20, 0, 20, 3, 2, 1, 1, 20}}) {
    auto fast = compile([&](const Operands& x) { return gradients(c, x); });
    for (int64_t n : {5, 8, 3, 17, 1}) {
      Convolution at = c;
      at.batch = n, at.size = n + 4;
      const Operands o = operands_of(at, kFloat32);
      const std::vector<Tensor> eager = gradients(c, o), compiled = fast(o);
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(compiled[i], eager[i])) << n;
    }
    const auto explanation = fast.explain();
    int steps = 0;
    for (const auto& step : explanation.programs[0].steps) steps += step.form == "conv2d_weight";
    EXPECT_EQ(steps, 1);
    // The first sizes, any sizes, a batch of one: whether a stride divides a size makes no program.
    EXPECT_LE(explanation.statistics.compilations, 3);
  }
}

// What a transposed convolution is made of does not follow from which sizes are known: the gradient of its weight sums
// over all of it, in blocks. Below 16 eager knows sizes, a first call of a compiled function all of them.
TEST(ConvolutionGradient, BitsDoNotDependOnWhichSizesAreKnown) {
  manual_seed(11);
  struct Form {
    int64_t kernel, stride, padding, more, dilation;
  };
  for (const Form& f : {Form{3, 1, 1, 0, 1}, Form{5, 2, 2, 1, 1}, Form{3, 2, 0, 0, 1}, Form{4, 2, 1, 0, 1},
                        Form{3, 1, 2, 1, 2}, Form{3, 1, 0, 0, 1}, Form{2, 3, 1, 2, 1}, Form{3, 2, 1, 1, 2}}) {
    SCOPED_TRACE(std::to_string(f.kernel) + " stride " + std::to_string(f.stride));
    const Tensor weight = randn({4, 4, f.kernel, f.kernel}).requires_grad_();
    auto gradients = [&](const Tensor& w, const Tensor& x) {
      const Tensor y = F::conv_transpose2d(x, w, {}, f.stride, f.padding, f.more, 1, f.dilation);
      return autograd::grad({y.square().mean()}, {w, x});
    };
    // A penalty on the gradient of an ordinary one.
    auto penalty = [&](const Tensor& w, const Tensor& x) {
      const Tensor y = F::conv2d(x, w, {}, f.stride, f.padding, f.dilation);
      const Tensor slope = autograd::grad({y.square().mean()}, {x}, {}, true, true)[0];
      return autograd::grad({slope.square().sum()}, {w, x});
    };
    auto compare = [&](const auto& function) {
      auto again = compile(function);
      for (int64_t size : {16, 17, 9, 10, 20, 11}) {
        const Tensor x = randn({2, 4, size, size + 1}).requires_grad_();
        const std::vector<Tensor> expected = function(weight, x), first = compile(function)(weight, x),
                                  later = again(weight, x);
        for (size_t i = 0; i < 2; ++i) {
          EXPECT_TRUE(same_bits(first[i], expected[i])) << size << ", gradient " << i;
          EXPECT_TRUE(same_bits(later[i], expected[i])) << size << ", gradient " << i << ", after other sizes";
        }
      }
    };
    compare(gradients);
    compare(penalty);
  }
}

}  // namespace
}  // namespace ingot
