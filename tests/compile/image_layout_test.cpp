// Images lie channels innermost behind a convolution. What counts elements in row-major order must not notice.
#include "support.h"

namespace ingot {
namespace {

namespace F = nn::functional;

struct ImageLayout : test::Inference {
  const Tensor x = randn({3, 2, 5, 5}), w = randn({3, 2, 2, 2}), other = randn({3, 3, 4, 4});
  Tensor image(const Tensor& from) const { return conv2d(from, w); }  // [3, 3, 4, 4]

  template <class Function>
  void expect_bits(const char* what, Function f) const {
    auto fast = compile(f);
    for (int call = 0; call < 3; ++call) EXPECT_TRUE(test::same_bits(fast(x), f(x))) << what;
  }
};

#define EXPECT_BITS(...) expect_bits(#__VA_ARGS__, [&](const Tensor& from) -> Tensor { __VA_ARGS__ })

TEST_F(ImageLayout, PartsThatAreWritten) {
  EXPECT_BITS(Tensor y = image(from); y.slice(1, 0, 3, 2).mul_(2); return y * 2;);
  EXPECT_BITS(Tensor y = image(from); y.select(2, 1).add_(1); return y.relu(););
  EXPECT_BITS(Tensor y = image(from); y.slice(3, 0, 4, 2).copy_(other.slice(3, 1, 3)); return y.exp(););
  EXPECT_BITS(Tensor y = other.clone(), z = image(from); y.select(1, 0).copy_(z.select(1, 2)); return y.exp() + z;);
  EXPECT_BITS(Tensor y = image(from); y.diagonal(0, 2, 3).add_(1); return y * y;);
  EXPECT_BITS(Tensor y = image(from); y.view({-1}).slice(0, 1, 30, 4).zero_(); return y.sigmoid(););
  EXPECT_BITS(Tensor y = image(from); y.as_strided({4, 5}, {20, 2}, 3).mul_(2); return y.relu(););
  EXPECT_BITS(Tensor y = image(from); y.index_put_({tensor({0, 2})}, tensor(1.5)); return y * 3;);
}

TEST_F(ImageLayout, PlacesThatAreRead) {
  EXPECT_BITS(return image(from).as_strided({4, 5}, {7, 2}, 3) * 2;);
  EXPECT_BITS(return image(from).flatten().slice(0, 3, 40, 3) + 1;);
  EXPECT_BITS(return image(from).view({9, 16}).softmax(1););
  EXPECT_BITS(return image(from).scatter(1, zeros({3, 1, 4, 4}, kInt64), 2.0););
  EXPECT_BITS(return image(from).masked_fill(image(from) > 0, 3.0).cumsum(1););
  EXPECT_BITS(return std::get<0>(image(from).sort(1)) + 1;);
  EXPECT_BITS(return image(from).roll({1, 2}, {1, 3}) * 2;);
  EXPECT_BITS(return image(from).index_add(1, tensor({0, 2}), image(from).slice(1, 0, 2)) * 2;);
  EXPECT_BITS(return F::unfold(image(from), {2, 2}) * 2;);
}

// A row that the convolution does not see has no gradient (found by a random program, seed 290961).
TEST_F(ImageLayout, GradientsOfParts) {
  auto gradient = [&](const Tensor& from) {
    const EnableGradGuard tape;
    Tensor leaf = from.detach().requires_grad_(), part = leaf.transpose(1, 2).slice(1, 1, std::nullopt, 2);
    return autograd::grad({conv2d(part, w).sum()}, {leaf})[0];
  };
  expect_bits("a slice", gradient);
  EXPECT_TRUE(equal(compile(gradient)(x).select(2, 0), zeros({3, 2, 5})));
}

}  // namespace
}  // namespace ingot
