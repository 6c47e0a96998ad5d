// Padding modes, padding by word, pooling with indices, renormed embeddings, the nuclear norm.
#include "eager/nn/windows.h"
#include "eager/nn/pooling.h"
#include "eager/nn/resample.h"
#include "eager/ops/contractions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "eager/autograd/autograd.h"
#include "eager/ops/factories.h"
#include "eager/ops/linalg.h"
#include "eager/support.h"

namespace ingot {
namespace {

namespace F = nn::functional;

TEST(Windows, PadModes) {
  Tensor x = tensor({1.f, 2.f, 3.f});
  EXPECT_TRUE(equal(F::pad(x, {1, 2}), tensor({0.f, 1.f, 2.f, 3.f, 0.f, 0.f})));
  EXPECT_TRUE(equal(F::pad(x, {2, 1}, "reflect"), tensor({3.f, 2.f, 1.f, 2.f, 3.f, 2.f})));
  EXPECT_TRUE(equal(F::pad(x, {2, 1}, "replicate"), tensor({1.f, 1.f, 1.f, 2.f, 3.f, 3.f})));
  EXPECT_TRUE(equal(F::pad(x, {2, 1}, "circular"), tensor({2.f, 3.f, 1.f, 2.f, 3.f, 1.f})));
  EXPECT_TRUE(equal(F::pad(x, {-1, 1}, "constant", 9), tensor({2.f, 3.f, 9.f})));
  EXPECT_THROW(F::pad(x, {3, 0}, "reflect"), Error);
  EXPECT_THROW(F::pad(x, {0, -4}), Error);
  EXPECT_THROW(F::pad(x, {1, 1}, "sideways"), Error);
}

// What a negative number cuts is not wrapped around, as in PyTorch.
// Each element by the position that its mode says, of all lengths beside all sizes; what is cut, too.
TEST(Windows, PadsAreCopiesOfTheirPositions) {
  for (const char* mode : {"reflect", "replicate", "circular"})
    for (int64_t n : {1, 2, 3, 5})
      for (int64_t before = -n; before <= n + 1; ++before)
        for (int64_t after = -n; after <= n + 1; ++after) {
          const bool reflects = *mode == 'r' && mode[2] == 'f', wraps = *mode == 'c';
          const int64_t most = reflects ? n - 1 : wraps ? n : n + 1;
          const int64_t left = wraps ? n - std::max<int64_t>(-before, 0) - std::max<int64_t>(-after, 0) : n;
          if (std::max(before, after) > std::min(most, wraps ? left : most) || left < 0 || n + before + after < 0)
            continue;
          const Tensor x = arange(6 * n).view({2, n, 3});
          std::vector<int64_t> places;
          for (int64_t at = -before; at < n + after; ++at) {
            const int64_t first = std::max<int64_t>(-before, 0);
            const int64_t mirrored = at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
            const int64_t wrapped = left ? first + ((at - first) % left + left) % left : 0;
            places.push_back(reflects ? mirrored : wraps ? wrapped : std::clamp<int64_t>(at, 0, n - 1));
          }
          const Tensor expected = places.empty() ? x.slice(1, 0, 0) : x.index_select(1, tensor(places));
          EXPECT_TRUE(equal(F::pad(x, {0, 0, before, after}, mode), expected))
              << mode << ", " << n << ": " << before << ", " << after;
        }
}

TEST(Windows, CircularPaddingCutsFirst) {
  const Tensor x = arange(8, kFloat32).view({1, 1, 8});
  auto padded = [&](const IntList& pad) { return F::pad(x, pad, "circular").flatten(); };
  EXPECT_TRUE(equal(padded({-2, 1}), tensor({2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 2.f})));
  EXPECT_TRUE(equal(padded({1, -2}), tensor({5.f, 0.f, 1.f, 2.f, 3.f, 4.f, 5.f})));
  EXPECT_TRUE(equal(padded({-1, -2}), tensor({1.f, 2.f, 3.f, 4.f, 5.f})));
  EXPECT_TRUE(equal(F::pad(x.view({1, 2, 4}), {-1, 1, 0, 1}, "circular").flatten(),
                    tensor({1.f, 2.f, 3.f, 1.f, 5.f, 6.f, 7.f, 5.f, 1.f, 2.f, 3.f, 1.f})));
  EXPECT_THROW(padded({-6, 3}), Error);
  EXPECT_THROW(padded({-9, 1}), Error);
}

TEST(Windows, PaddingMayBeALiteral) {
  const Tensor x = randn({1, 2, 5, 5}), w = randn({3, 2, 2, 2}), b = randn({3});
  EXPECT_TRUE(equal(F::conv2d(x, w, b, 1, 0), F::conv2d(x, w, b)));
  EXPECT_TRUE(allclose(F::conv2d(x, w, {}, 1, {0, 3}), F::conv2d(F::pad(x, {3, 3}), w)));
  EXPECT_TRUE(equal(F::conv2d(x, w, b, 1, std::string("valid")), F::conv2d(x, w, b)));
  const Tensor line = randn({1, 2, 5}), kernel = randn({3, 2, 2});
  EXPECT_TRUE(equal(F::conv1d(line, kernel, {}, 1, 0, 1), F::conv1d(line, kernel)));
  EXPECT_EQ(F::conv3d(randn({1, 1, 3, 3, 3}), randn({1, 1, 2, 2, 2}), {}, 1, {0, 0, 1}).sizes(),
            (std::vector<int64_t>{1, 1, 2, 2, 4}));
}

// The last window may hang over the end of an input that is smaller than it; the numbers are PyTorch's.
TEST(Windows, CeilModeTakesInputsSmallerThanTheWindow) {
  const Tensor x = arange(4, kFloat32).view({1, 1, 2, 2}).requires_grad_();
  EXPECT_TRUE(equal(max_pool2d(x, 3, 2, 0, 1, true), full({1, 1, 1, 1}, 3.f)));
  EXPECT_TRUE(equal(avg_pool2d(x, 3, 2, 0, true), full({1, 1, 1, 1}, 1.5f)));
  auto [values, indices] = F::max_pool2d_with_indices(x, 3, 2, 0, 1, true);
  EXPECT_EQ(values.item<float>(), 3);
  EXPECT_EQ(indices.item<int64_t>(), 3);
  (max_pool2d(x, 3, 2, 0, 1, true).sum() * 2 + avg_pool2d(x, 3, 2, 0, true).sum()).backward();
  EXPECT_TRUE(equal(x.grad().flatten(), tensor({0.25f, 0.25f, 0.25f, 2.25f})));
  const Tensor line = arange(2, kFloat32).view({1, 1, 2});
  EXPECT_EQ(max_pool1d(line, 4, 3, 0, 1, true).item<float>(), 1);
  EXPECT_EQ(avg_pool1d(line, 4, 3, 0, true).item<float>(), 0.5);
  EXPECT_EQ(max_pool3d(x.detach().view({1, 1, 1, 2, 2}), 2, 2, 0, 1, true).item<float>(), 3);
  EXPECT_EQ(max_pool1d(line, 2, 2, 0, 2, true).item<float>(), 0) << "dilated";
  EXPECT_THROW(max_pool1d(line, 4, 2, 0, 1, true), Error);
  EXPECT_THROW(max_pool1d(line, 4, 3, 0, 1, false), Error);
}

TEST(Windows, SamePaddingKeepsTheSize) {
  Tensor x = arange(12, kFloat32).view({1, 1, 3, 4});
  for (int64_t kernel : {1, 2, 3})
    for (int64_t dilation : {1, 2}) {
      Tensor y = F::conv2d(x, ones({2, 1, kernel, kernel}), {}, 1, "same", dilation);
      EXPECT_EQ(y.sizes(), (std::vector<int64_t>{1, 2, 3, 4})) << kernel << " " << dilation;
    }
  EXPECT_EQ(F::conv2d(x, ones({1, 1, 2, 2}), {}, 2, "valid").sizes(), (std::vector<int64_t>{1, 1, 1, 2}));
  EXPECT_THROW(F::conv2d(x, ones({1, 1, 2, 2}), {}, 2, "same"), Error);
}

TEST(Windows, IndicesOfPoolingSelectItsValues) {
  Tensor x = remainder(mul(arange(2 * 7 * 6, kFloat32), 37), 101).view({1, 2, 7, 6});
  for (bool ceil_mode : {false, true}) {
    auto [values, indices] = F::max_pool2d_with_indices(x, {3, 2}, 2, 1, {1, 2}, ceil_mode);
    EXPECT_TRUE(equal(values, max_pool2d(x, {3, 2}, 2, 1, {1, 2}, ceil_mode)));
    EXPECT_TRUE(equal(x.flatten(2).gather(2, indices.flatten(2)), values.flatten(2)));
  }
}

// Padding is never larger than an element, but may be as large.
TEST(Windows, IndicesOfPoolingLieInside) {
  const float low = -std::numeric_limits<float>::infinity();
  auto positions = [](const Tensor& x, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation = 1) {
    auto [values, indices] = F::max_pool1d_with_indices(x, kernel, stride, padding, dilation);
    EXPECT_TRUE(equal(x.gather(2, indices), values));
    return indices.flatten();
  };
  EXPECT_TRUE(equal(positions(full({1, 1, 3}, low), 2, 1, 1), tensor({0, 0, 1, 2}).to(kInt64)));
  EXPECT_TRUE(equal(positions(full({1, 1, 4}, low), 3, 1, 1, 2), tensor({1, 0}).to(kInt64)));
  EXPECT_TRUE(
      equal(positions(tensor({0, 5, 0, 0}).to(kUInt8).view({1, 1, 4}), 2, 1, 1), tensor({0, 1, 1, 2, 3}).to(kInt64)));
  for (const Tensor& x :
       {full({2, 3, 5, 4}, low), zeros({2, 3, 5, 4}, kUInt8), full({2, 3, 5, 4}, INT32_MIN, kInt32)}) {
    auto [values, indices] = F::max_pool2d_with_indices(x, {3, 2}, {2, 1}, {1, 1});
    EXPECT_EQ(indices.min().item<int64_t>(), 0);
    EXPECT_TRUE(equal(x.flatten(2).gather(2, indices.flatten(2)), values.flatten(2)));
  }
}

TEST(Windows, IndicesOfPoolingInOneAndThreeDims) {
  Tensor line = remainder(mul(arange(2 * 3 * 11, kFloat32), 37), 101).view({2, 3, 11});
  auto [values, indices] = F::max_pool1d_with_indices(line, 3, 2, 1, 2, true);
  EXPECT_TRUE(equal(values, max_pool1d(line, 3, 2, 1, 2, true)));
  EXPECT_TRUE(equal(line.gather(2, indices), values));
  Tensor box = remainder(mul(arange(2 * 5 * 4 * 6, kFloat32), 37), 101).view({2, 5, 4, 6});
  auto [largest, positions] = F::max_pool3d_with_indices(box, {2, 3, 2}, {2, 1, 3}, {1, 1, 0});
  EXPECT_TRUE(equal(largest, max_pool3d(box, {2, 3, 2}, {2, 1, 3}, {1, 1, 0})));
  EXPECT_TRUE(equal(box.flatten(1).gather(1, positions.flatten(1)), largest.flatten(1)));
}

TEST(Windows, IndicesOfAdaptivePoolingSelectItsValues) {
  Tensor x = remainder(mul(arange(2 * 3 * 7 * 6, kFloat32), 37), 101).view({2, 3, 7, 6});
  for (std::vector<int64_t> size : {std::vector<int64_t>{3, 4}, {7, 6}, {9, 2}, {1, 1}}) {
    auto [values, indices] = F::adaptive_max_pool2d_with_indices(x, size);
    EXPECT_TRUE(equal(values, adaptive_max_pool2d(x, size)));
    EXPECT_TRUE(equal(x.flatten(2).gather(2, indices.flatten(2)), values.flatten(2)));
  }
  EXPECT_EQ(adaptive_max_pool2d(x, F::adaptive_size(x, {std::nullopt, 2})).sizes(), (std::vector<int64_t>{2, 3, 7, 2}));
  auto [values, indices] = F::adaptive_max_pool1d_with_indices(x.flatten(2), 5);
  EXPECT_TRUE(equal(x.flatten(2).gather(2, indices), values));
}

// The transpose is defined by <conv(x), y> = <x, conv_transpose(y)>.
TEST(Windows, TransposedConvolutionIsTheAdjoint) {
  struct Case {
    int64_t channels, out, groups;  // fewer channels than 8 stay outside of the places when phases are joined
    std::vector<int64_t> kernel;
  };
  for (const Case& c : {Case{4, 6, 1, {3, 2}},
                        {4, 6, 2, {3, 2}},
                        {12, 6, 1, {1, 3}},
                        {12, 6, 2, {2, 6}},
                        {9, 9, 9, {3, 3}},
                        {3, 3, 3, {2, 2}},
                        {8, 16, 8, {5, 4}}})
    for (int64_t stride : {1, 2, 3, 5})
      for (int64_t dilation : {1, 2, 3})
        for (int64_t padding : {0, 1, 2}) {
          SCOPED_TRACE(fmt::format("{} {} {} [{}], {} {} {}", c.channels, c.out, c.groups, fmt::join(c.kernel, ", "),
                                   stride, dilation, padding));
          const Tensor x = randn({2, c.channels, 13, 16}, kFloat64);
          const Tensor weight = randn({c.out, c.channels / c.groups, c.kernel[0], c.kernel[1]}, kFloat64);
          const Tensor y = conv2d(x, weight, {}, stride, padding, dilation, c.groups);
          const Tensor other = randn(y.sizes(), kFloat64);
          std::vector<int64_t> more;
          for (int64_t d : {0, 1}) {
            int64_t reach = dilation * (weight.size(2 + d) - 1) + 1;
            more.push_back((x.size(2 + d) + 2 * padding - reach) % stride);
          }
          // More than a stride or a dilation is no output padding.
          const Tensor back = conv_transpose2d(other, weight, {}, stride, padding, more, c.groups, dilation);
          ASSERT_EQ(back.sizes(), x.sizes());
          const double expected = (y * other).sum().item<double>();
          EXPECT_NEAR(expected, (x * back).sum().item<double>(), 1e-9);
          const Tensor leaf = x.detach().requires_grad_();
          const Tensor grad =
              autograd::grad({conv2d(leaf, weight, {}, stride, padding, dilation, c.groups)}, {leaf}, {other})[0];
          EXPECT_TRUE(equal(grad, back));
        }
}

// An infinity goes where the kernel lies, and is not multiplied by zeros between its elements.
TEST(Windows, TransposedConvolutionMakesNoNaN) {
  for (int64_t channels : {2, 16})
    for (int64_t dilation : {1, 2, 3}) {
      Tensor x = zeros({1, channels, 3, 3});
      x.fill_(std::numeric_limits<float>::infinity());
      const Tensor weight = ones({channels, 1, 3, 3});
      const Tensor y = conv_transpose2d(x, weight, {}, 2, 1, 0, channels, dilation);
      EXPECT_FALSE(isnan(y).any().item<bool>()) << dilation;
      const Tensor reached = conv_transpose2d(ones_like(x), weight, {}, 2, 1, 0, channels, dilation).gt(0);
      EXPECT_TRUE(equal(isinf(y), reached)) << dilation;
    }
}

TEST(Windows, TransposedConvolutionOfManyPhases) {
  const Tensor x = randn({2, 6, 3, 2}, kFloat64), weight = randn({6, 5, 7, 9}, kFloat64), bias = randn({10}, kFloat64);
  const Tensor y = conv_transpose2d(x, weight, bias, {6, 7}, 1, {5, 2}, 2);
  Tensor expected = zeros({2, 10, 22, 16}, kFloat64) + bias.view({10, 1, 1});
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 2; ++j)
      for (int64_t g = 0; g < 2; ++g) {
        const Tensor piece =
            einsum("nc,cokl->nokl", {x.narrow(1, 3 * g, 3).select(2, i).select(2, j), weight.narrow(0, 3 * g, 3)});
        const int64_t top = 6 * i - 1, left = 7 * j - 1;
        for (int64_t k = std::max<int64_t>(0, -top); k < 7 && top + k < 22; ++k)
          for (int64_t l = std::max<int64_t>(0, -left); l < 9 && left + l < 16; ++l)
            expected.narrow(1, 5 * g, 5).select(2, top + k).select(2, left + l).add_(piece.select(2, k).select(2, l));
      }
  EXPECT_TRUE(allclose(y, expected, 1e-12, 1e-12));
}

TEST(Windows, ConvolutionInThreeDimsIsASumOverDepth) {
  Tensor x = randn({2, 4, 7, 5, 6}, kFloat64), weight = randn({6, 2, 3, 2, 3}, kFloat64), bias = randn({6}, kFloat64);
  Tensor y = conv3d(x, weight, bias, {2, 1, 2}, {1, 1, 0}, {2, 1, 1}, 2);
  Tensor padded = F::pad(x, {0, 0, 0, 0, 1, 1}), expected = zeros_like(y);
  for (int64_t i = 0; i < y.size(2); ++i)
    for (int64_t k = 0; k < 3; ++k)
      expected.select(2, i).add_(
          conv2d(padded.select(2, 2 * i + 2 * k), weight.select(2, k), {}, {1, 2}, {1, 0}, 1, 2));
  EXPECT_TRUE(allclose(y, expected + bias.view({6, 1, 1, 1}), 1e-12, 1e-12));
  EXPECT_EQ(F::conv3d(x, weight, bias, 1, "same", 1, 2).sizes(), (std::vector<int64_t>{2, 6, 7, 5, 6}));
}

TEST(Windows, PatchesAsColumnsAndBack) {
  Tensor x = randn({2, 3, 6, 5}, kFloat64), weight = randn({4, 3, 3, 2}, kFloat64);
  Tensor columns = F::unfold(x, {3, 2}, {1, 2}, 1, {2, 1});
  Tensor product = matmul(weight.flatten(1), columns);
  EXPECT_TRUE(allclose(product, conv2d(x, weight, {}, {2, 1}, 1, {1, 2}).flatten(2), 1e-12, 1e-12));
  // Adjoints of each other.
  Tensor other = randn(columns.sizes(), kFloat64);
  Tensor image = F::fold(other, {6, 5}, {3, 2}, {1, 2}, 1, {2, 1});
  EXPECT_NEAR((columns * other).sum().item<double>(), (x * image).sum().item<double>(), 1e-9);
  Tensor blocks = F::unfold(x, {3, 5}, 1, 0, {3, 5});
  EXPECT_TRUE(equal(F::fold(blocks, {6, 5}, {3, 5}, 1, 0, {3, 5}), x));
}

TEST(Resample, NearestRepeatsAndLinearKeepsLines) {
  Tensor x = randn({2, 3, 4, 5});
  Tensor twice = F::interpolate(x, {}, {2});
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 10; ++j)
      EXPECT_TRUE(equal(twice.select(3, j).select(2, i), x.select(3, j / 2).select(2, i / 2)));
  // A line stays a line: exactly between the corners.
  Tensor line = arange(5, kFloat64).view({1, 1, 5});
  EXPECT_TRUE(allclose(F::interpolate(line, 9, {}, "linear", true), (arange(9, kFloat64) / 2).view({1, 1, 9}), 1e-12));
  Tensor plane = add(mul(arange(4, kFloat64).view({4, 1}), 10), arange(5, kFloat64)).view({1, 1, 4, 5});
  Tensor wide = F::interpolate(plane, {7, 9}, {}, "bilinear", true);
  EXPECT_NEAR(wide[0][0][3][5].item<double>(), 15 + 2.5, 1e-12);
  // The corners lie on each other in any mode that aligns them.
  for (const char* mode : {"bilinear", "bicubic"}) {
    Tensor y = F::interpolate(x, {9, 3}, {}, mode, true);
    for (auto [i, j] : {std::pair{0, 0}, {-1, 0}, {0, -1}, {-1, -1}})
      EXPECT_TRUE(allclose(y.select(3, j).select(2, i), x.select(3, j).select(2, i), 1e-5, 1e-6)) << mode;
  }
  EXPECT_TRUE(equal(F::interpolate(x, {2, 3}, {}, "area"), adaptive_avg_pool2d(x, {2, 3})));
  // The factor says how far apart neighbours are, unless it is computed again from the sizes.
  EXPECT_EQ(F::interpolate(line, {}, {1.5}, "linear").size(2), 7);
  EXPECT_FALSE(allclose(F::interpolate(line, {}, {1.5}, "linear"), F::interpolate(line, 7, {}, "linear"), 1e-6));
  EXPECT_TRUE(equal(F::interpolate(line, {}, {1.5}, "linear", {}, true), F::interpolate(line, 7, {}, "linear")));
}

TEST(Resample, RefusesModesAndSizesThatDoNotFit) {
  Tensor x = ones({1, 1, 4, 4});
  EXPECT_THROW(F::interpolate(x, {}, {2}, "sharp"), Error);
  EXPECT_THROW(F::interpolate(x, {}, {2}, "linear"), Error);
  EXPECT_THROW(F::interpolate(x, {}, {2}, "trilinear"), Error);
  EXPECT_THROW(F::interpolate(x, {}, {2}, "nearest", true), Error);
  EXPECT_THROW(F::interpolate(x, IntList()), Error);
  EXPECT_THROW(F::interpolate(x, {8, 8}, {2.0}), Error);
  EXPECT_THROW(F::interpolate(x, {8, 8, 8}), Error);
  EXPECT_THROW(F::interpolate(x, {}, {-1.0}), Error);
  EXPECT_THROW(F::interpolate(x, {}, {0.1}), Error);
  EXPECT_THROW(F::interpolate(ones({4, 4}), 2), Error);
  EXPECT_THROW(F::interpolate(x.to(kInt64), {}, {2}, "bilinear"), Error);
}

TEST(Resample, PixelsShuffleAndBack) {
  Tensor x = arange(2 * 12 * 2 * 3).view({2, 12, 2, 3}), y = F::pixel_shuffle(x, 2);
  ASSERT_EQ(y.sizes(), (std::vector<int64_t>{2, 3, 4, 6}));
  EXPECT_EQ(y[1][2][3][5].item<int64_t>(), x[1][2 * 4 + 1 * 2 + 1][1][2].item<int64_t>());
  EXPECT_TRUE(equal(F::pixel_unshuffle(y, 2), x));
  EXPECT_THROW(F::pixel_shuffle(x, 5), Error);
  EXPECT_THROW(F::pixel_unshuffle(x, 4), Error);
  EXPECT_THROW(F::pixel_shuffle(x, 0), Error);
}

TEST(Windows, RenormScalesOnlyTheRowsThatAreNamed) {
  Tensor weight = tensor({{3.f, 4.f}, {0.3f, 0.4f}, {6.f, 8.f}});
  F::embedding_renorm_(weight, tensor({0, 1}), 1);
  EXPECT_TRUE(allclose(weight, tensor({{0.6f, 0.8f}, {0.3f, 0.4f}, {6.f, 8.f}}), 1e-6));
}

TEST(Windows, RenormLeavesTheRowsAloneWhereItThrows) {
  const Tensor weight = tensor({{3.f, 4.f}, {6.f, 8.f}}), before = weight.clone();
  EXPECT_NE(test::message_of([&] {
              F::embedding_renorm_(weight, tensor({0, 2}), 1);
            }).find("embedding_renorm_: indices: got 2, expected numbers from 0 to 1"),
            std::string::npos);
  EXPECT_THROW(F::embedding_renorm_(weight, tensor({-1}), 1), Error);
  EXPECT_THROW(F::embedding_renorm_(weight, {}, 1), Error);
  EXPECT_THROW(F::embedding_renorm_(weight, tensor({0.f}), 1), Error);
  EXPECT_THROW(F::embedding_renorm_(Tensor(), tensor({0}), 1), Error);
  EXPECT_THROW(F::embedding_renorm_(ones({2}), tensor({0}), 1), Error);
  EXPECT_TRUE(equal(weight, before));
}

TEST(Windows, RenormHasNoGradient) {
  Tensor weight = tensor({{3.f, 4.f}, {6.f, 8.f}}).requires_grad_();
  const Tensor ids = tensor({0, 1, 1});
  embedding(F::embedding_renorm_(weight, ids, 1, 1), ids, 1).sum().backward();
  EXPECT_TRUE(equal(weight.grad(), tensor({{1.f, 1.f}, {0.f, 0.f}})));
  EXPECT_TRUE(allclose(weight.detach(), tensor({{3 / 7.f, 4 / 7.f}, {3 / 7.f, 4 / 7.f}}), 1e-6));
}

TEST(Windows, AdaptivePoolsOfNoBins) {
  const auto [values, positions] = F::adaptive_max_pool2d_with_indices(ones({1, 2, 3, 3}), 0);
  EXPECT_EQ(values.sizes(), (std::vector<int64_t>{1, 2, 0, 0}));
  EXPECT_EQ(positions.sizes(), (std::vector<int64_t>{1, 2, 0, 0}));
  EXPECT_EQ(positions.dtype(), kInt64);
}

TEST(Windows, KernelsOfAnySize) {
  // As wide as sizes that are symbols in eager's programs: a patch embedding.
  Tensor patches = F::conv2d(ones({1, 3, 32, 32}), ones({16, 3, 16, 16}), {}, 16);
  EXPECT_TRUE(equal(patches, full({1, 16, 2, 2}, 3.f * 16 * 16)));
}

TEST(Linalg, NuclearNorm) {
  EXPECT_NEAR(nuclear_norm(tensor({{3.f, 0.f}, {0.f, -4.f}})).item<double>(), 7, 1e-6);
  // Of rank one: the product of the lengths.
  Tensor rank_one = outer(tensor({3.f, 4.f}), tensor({2.f, 1.f, 2.f}));
  EXPECT_NEAR(nuclear_norm(rank_one).item<double>(), 15, 1e-5);
  EXPECT_EQ(nuclear_norm(ones({2, 3, 4}), {0, 2}, true).sizes(), (std::vector<int64_t>{1, 3, 1}));
  EXPECT_THROW(nuclear_norm(ones({2, 2}), 0), Error);
}

TEST(Linalg, GradientOfTheNuclearNorm) {
  // Of rank one: that of its length along its directions.
  Tensor x = outer(tensor({3.f, 4.f}), tensor({2.f, 1.f, 2.f})).requires_grad_();
  nuclear_norm(x).backward();
  EXPECT_TRUE(allclose(x.grad(), x.detach() / 15, 1e-5, 1e-6)) << x.grad();
  // Against differences.
  Tensor a = randn({2, 3, 4}, kFloat64).requires_grad_(), weight = randn({3}, kFloat64);
  auto loss = [&](const Tensor& t) { return (nuclear_norm(t, {2, 0}) * weight).sum(); };
  loss(a).backward();
  const Tensor step = randn({2, 3, 4}, kFloat64) * 1e-5;
  const double expected = (loss(a.detach() + step) - loss(a.detach() - step)).item<double>() / 2;
  EXPECT_NEAR((a.grad() * step).sum().item<double>(), expected, 1e-13);
  Tensor zero = zeros({3, 3}).requires_grad_();
  nuclear_norm(zero).backward();
  EXPECT_TRUE(equal(zero.grad(), zeros({3, 3})));
  Tensor first = autograd::grad({loss(a)}, {a}, {}, {}, true)[0];
  EXPECT_THROW(first.sum().backward(), Error);
}

/// Values and gradients of PyTorch's, of an image of f32.
void expect_antialiased(const char* mode, const IntList& size, const std::vector<double>& factors,
                        std::optional<bool> align_corners, const std::vector<float>& values,
                        const std::vector<float>& gradients) {
  const Tensor x = ((arange(48) * 37 % 29).to(kFloat32) / 7 - 2).reshape({1, 2, 4, 6}).requires_grad_();
  const Tensor y = F::interpolate(x, size, factors, mode, align_corners, false, true);
  EXPECT_TRUE(allclose(y.flatten(), tensor(values), 1e-5, 1e-5)) << mode << y;
  y.mul((arange(y.numel()) % 5 + 1).reshape(y.sizes())).sum().backward();
  EXPECT_TRUE(allclose(x.grad().flatten().narrow(0, 0, 12), tensor(gradients), 1e-5, 1e-5)) << mode << x.grad();
}

TEST(Resample, WithAntialias) {
  expect_antialiased("bilinear", {3, 2}, {}, {},
                     {-0.2232142, -0.2660714, 0.3928572, -0.1160714, 0.2839286, -0.3285715, 0.3285714, -0.2839286,
                      0.1160715, -0.3928572, 0.2660715, 0.2232144},
                     {0.175, 0.2625, 0.35, 0.4375, 0.525, 0.35, 0.45, 0.6750001, 0.775, 0.875, 0.9750001, 0.65});
  expect_antialiased("bicubic", {3, 2}, {}, true,
                     {-0.1767712, -0.635142, 0.1445295, -0.2244952, 0.06733992, -0.7167356, 0.02710071, -0.5883372,
                      -0.04100623, -0.4156063, 0.2942857, 1.137432},
                     {0.009030376, 0.04248408, 0.1174667, 0.2768244, 0.510034, 0.7528269, 0.03862796, 0.1073483,
                      0.2489047, 0.5410898, 0.9659378, 1.40676});
  expect_antialiased("bicubic", {}, {0.6, 1.7}, {},
                     {-1.010005,  -0.462598,  0.3471893,  -0.05587816, -0.2568975, 0.6096581,  0.5770686,  -0.2626477,
                      -0.7972851, -1.088922,  0.3042673,  0.362096,    0.469911,   0.6552617,  0.5173357,  -0.3061512,
                      -0.551925,  -0.2664894, -0.1377699, -0.07521631, -0.1496298, 0.3645997,  1.078534,   0.5318003,
                      -0.2149924, -0.7328326, -0.4571549, 0.34846,     -0.2429218, -0.9617366, 1.009548,   0.5159851,
                      -0.2456484, -0.1598412, 0.08968058, 0.2620156,   -0.1656655, -0.9568263, -0.3606662, 0.3665922},
                     {1.23345, 2.903601, 3.996282, 1.457499, 2.958385, 3.91301, 1.537083, 3.618368, 4.98003, 1.816284,
                      3.686638, 4.876258});
  // What a pixel does not cover is not in it, whatever it is.
  const Tensor x = ones({1, 1, 1, 8});
  x.index({0, 0, 0, 7}) = std::numeric_limits<float>::infinity();
  const Tensor y = F::interpolate(x, {1, 2}, {}, "bilinear", {}, false, true);
  EXPECT_EQ(y.flatten()[0].item<float>(), 1);
  EXPECT_EQ(y.flatten()[1].item<float>(), std::numeric_limits<float>::infinity());
  for (const char* mode : {"nearest", "area"})
    EXPECT_NE(test::message_of([&] {
                F::interpolate(ones({1, 1, 4, 4}), 2, {}, mode, {}, false, true);
              }).find("interpolate: antialias: got true for mode"),
              std::string::npos);
  EXPECT_THROW(F::interpolate(ones({1, 1, 4}), 2, {}, "linear", {}, false, true), Error);
}

}  // namespace
}  // namespace ingot
