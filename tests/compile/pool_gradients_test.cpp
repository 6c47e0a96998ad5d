// Gradients of max pooling: places of windows side by side, and the images that a convolution leaves with their
// channels innermost. Gradients are small integers, so that sums are exact in any order.
#include <cmath>
#include <limits>
#include <ostream>
#include <string>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

struct Pool {
  int64_t height, width, kernel, stride, padding = 0, dilation = 1;
  bool ceil_mode = false;
  friend std::ostream& operator<<(std::ostream& out, const Pool& p) {
    return out << p.height << " x " << p.width << ", kernel " << p.kernel << ", stride " << p.stride << ", padding "
               << p.padding << ", dilation " << p.dilation;
  }
};

const Pool kPools[] = {
    {8, 8, 2, 2},
    {7, 9, 2, 2},
    {8, 8, 3, 2, 1},
    {9, 7, 3, 3},
    {6, 6, 3, 1, 1},
    {10, 10, 4, 4, 2},
    {11, 11, 2, 3},
    {9, 9, 3, 2, 1, 2},
    {7, 7, 2, 2, 0, 1, true},
    {1, 1, 1, 1},
    {2, 2, 2, 2},
    {16, 16, 5, 4, 2},
    {17, 16, 4, 5, 1},
    {7, 8, 2, 4, 1, 2},
    {20, 33, 3, 2, 1},
    {33, 18, 3, 2, 1, 2, true},
    {24, 19, 2, 2, 1},
};

Tensor pooled(const Pool& p, const Tensor& x) {
  return max_pool2d(x, p.kernel, p.stride, p.padding, p.dilation, p.ceil_mode);
}

/// Images with many ties, and a NaN here and there.
Tensor image(int64_t batch, int64_t channels, const Pool& p) {
  manual_seed(3);
  const Tensor x = randint(-2, 3, {batch, channels, p.height, p.width}).to(kFloat32);
  return where(rand({batch, channels, p.height, p.width}) < 0.03, std::numeric_limits<double>::quiet_NaN(), x);
}

/// Each window gives its gradient to its first maximum, or its last NaN.
Tensor expected(const Pool& p, const Tensor& image, const Tensor& gradient) {
  const Tensor x = image.contiguous(), g = gradient.contiguous();
  Tensor result = zeros_like(x);
  const float *values = x.data_ptr<float>(), *given = g.data_ptr<float>();
  float* to = result.mutable_data_ptr<float>();
  const int64_t rows = g.size(2), columns = g.size(3);
  for (int64_t plane = 0; plane < x.size(0) * x.size(1); ++plane)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        int64_t best = -1;
        for (int64_t a = 0; a < p.kernel; ++a)
          for (int64_t b = 0; b < p.kernel; ++b) {
            const int64_t y = i * p.stride - p.padding + a * p.dilation, z = j * p.stride - p.padding + b * p.dilation;
            if (y < 0 || y >= p.height || z < 0 || z >= p.width) continue;
            const int64_t at = (plane * p.height + y) * p.width + z;
            if (best < 0 || values[at] > values[best] || std::isnan(values[at])) best = at;
          }
        to[best] += given[(plane * rows + i) * columns + j];
      }
  return result;
}

TEST(PoolGradients, GoToTheFirstMaximumOfEachWindow) {
  test::on_every_target({1, 3}, [] {
    for (const Pool& p : kPools)
      for (int64_t batch : {1, 3}) {
        SCOPED_TRACE(p);
        const Tensor x = image(batch, 5, p);
        auto gradient = [&](const Tensor& from, const Tensor& g) {
          const Tensor leaf = from.detach().requires_grad_();
          return autograd::grad({pooled(p, leaf)}, {leaf}, {g})[0];
        };
        const Tensor g = randint(-9, 10, pooled(p, x).sizes()).to(kFloat32);
        const Tensor right = expected(p, x, g);
        EXPECT_TRUE(same_bits(gradient(x, g) + 0.0, right + 0.0));
        auto fast = compile([&](const Tensor& from, const Tensor& given) { return gradient(from, given); });
        EXPECT_TRUE(same_bits(fast(x, g), gradient(x, g)));
      }
  });
}

// Without a border around the image, and without cutting it off again.
TEST(PoolGradients, AreWrittenWhereTheyLie) {
  auto fast = compile([](const Tensor& x, const Tensor& g) {
    const Tensor leaf = x.detach().requires_grad_();
    return autograd::grad({max_pool2d(leaf, 3, 2, 1)}, {leaf}, {g})[0];
  });
  const Tensor x = randn({2, 3, 32, 32});
  fast(x, ones({2, 3, 16, 16}));
  const std::string text = fast.explain().str();
  EXPECT_EQ(text.find("is a copy"), std::string::npos) << text;
}

// What lies with its channels innermost stays so; what follows is computed with it.
TEST(PoolGradients, BehindConvolutions) {
  test::on_every_target({1, 2}, [] {
    for (const Pool& p : kPools)
      for (int64_t channels : {1, 16, 40}) {
        SCOPED_TRACE(p);
        manual_seed(4);
        const Tensor x = randn({2, 3, p.height, p.width}), w = randn({channels, 3, 1, 1});
        auto gradients = [&](const Tensor& image, const Tensor& weight) {
          const Tensor a = image.detach().requires_grad_(), b = weight.detach().requires_grad_();
          const Tensor y = pooled(p, conv2d(a, b).relu());
          return autograd::grad({(y * y).sum()}, {a, b});
        };
        auto fast = compile(gradients);
        const auto right = gradients(x, w), got = fast(x, w);
        for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(got[i], right[i])) << channels << " channels";
      }
  });
}

TEST(PoolGradients, OfNoImages) {
  const Tensor x = zeros({0, 2, 6, 6}).requires_grad_();
  const Tensor y = max_pool2d(x, 2, 2);
  EXPECT_EQ(autograd::grad({y}, {x}, {zeros_like(y)})[0].sizes(), x.sizes());
}

// At sizes of even and uneven bins.
TEST(AdaptivePools, AreEagersAtAllSizes) {
  const auto f = [](const Tensor& x) { return adaptive_avg_pool2d(x, {3, 2}) + adaptive_max_pool2d(x, {3, 2}); };
  auto fast = compile(f);
  for (const auto& [height, width] :
       std::vector<std::pair<int64_t, int64_t>>{{6, 8}, {9, 8}, {12, 8}, {13, 7}, {60, 41}, {2, 1}, {3, 2}}) {
    manual_seed(5);
    const Tensor x = randn({2, 17, height, width}), a = x.clone().requires_grad_(), b = x.clone().requires_grad_();
    EXPECT_TRUE(same_bits(fast(x), f(x))) << height << ", " << width;
    f(a).sum().backward();
    fast(b).sum().backward();
    EXPECT_TRUE(same_bits(a.grad(), b.grad())) << height << ", " << width;
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

// PyTorch's numbers, where many elements of a bin are equal: even bins, uneven ones, and those that share elements.
TEST(AdaptivePools, GradientsGoToTheFirstOfEqualElements) {
  struct Case {
    Ints input, output;
    double sum, weighted, gradient;
  };
  for (const Case& c : {Case{{1, 2, 18, 24}, {6, 4}, 476, 1397, 937}, Case{{1, 2, 19, 26}, {5, 7}, 700, 2100, 1271},
                        Case{{2, 19, 20}, {25, 3}, 1463, 4398, 2677}}) {
    const auto numbers = [&](const Tensor& given) {
      const Tensor x = given.detach().requires_grad_();
      const Tensor y = adaptive_max_pool2d(x, c.output);
      const Tensor weight = (arange(y.numel()) % 5 + 1).to(kFloat32).view(y.sizes());
      const Tensor gradient = autograd::grad({y}, {x}, {weight})[0];
      const Tensor place = (arange(x.numel()) % 13).to(kFloat32).view(x.sizes());
      return stack({y.detach().sum(), (y.detach() * weight).sum(), (gradient * place).sum()});
    };
    int64_t elements = 1;
    for (int64_t n : c.input) elements *= n;
    const Tensor x = (arange(elements) * 37 % 11).to(kFloat32).view(c.input);
    const Tensor expected = tensor({c.sum, c.weighted, c.gradient});
    EXPECT_EQ(numbers(x).str(), expected.str());
    EXPECT_EQ(compile(numbers)(x).str(), expected.str());
  }
}

// Through a view of even bins or to the places of maxima, before other sizes are known and after: a scatter adds -0 to
// a zero, and so does every program.
TEST(PoolGradients, OfMinusZeroThroughAdaptiveMaxPools) {
  for (const auto& [size, bins] : std::vector<std::pair<int64_t, int64_t>>{{6, 3}, {7, 3}, {4, 1}, {5, 3}, {6, 3}}) {
    manual_seed(7);
    const Tensor x = randn({2, 2, size, size}).requires_grad_(), slope = full({2, 2, bins, bins}, -0.0);
    auto gradient = [&, bins = bins](const Tensor& of) {
      return autograd::grad({F::adaptive_max_pool2d(of, {bins, bins})}, {of}, {slope})[0];
    };
    auto compiled = compile(gradient);
    const Tensor expected = zeros({2, 2, size, size});
    EXPECT_TRUE(test::same_bits(gradient(x), expected)) << size;
    EXPECT_TRUE(test::same_bits(compiled(x), expected)) << size;
    EXPECT_TRUE(test::same_bits(compiled(x), expected)) << size;
  }
}

}  // namespace
}  // namespace ingot
