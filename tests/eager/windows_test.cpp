// Padding modes, padding by word, pooling with indices, renormed embeddings, the nuclear norm.
#include "eager/nn/windows.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "eager/factories.h"
#include "eager/linalg.h"

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

TEST(Windows, RenormScalesOnlyTheRowsThatAreNamed) {
  Tensor weight = tensor({{3.f, 4.f}, {0.3f, 0.4f}, {6.f, 8.f}});
  F::embedding_renorm_(weight, tensor({0, 1}), 1);
  EXPECT_TRUE(allclose(weight, tensor({{0.6f, 0.8f}, {0.3f, 0.4f}, {6.f, 8.f}}), 1e-6));
}

TEST(Linalg, NuclearNorm) {
  EXPECT_NEAR(nuclear_norm(tensor({{3.f, 0.f}, {0.f, -4.f}})).item<double>(), 7, 1e-6);
  // Of rank one: the product of the lengths.
  Tensor rank_one = outer(tensor({3.f, 4.f}), tensor({2.f, 1.f, 2.f}));
  EXPECT_NEAR(nuclear_norm(rank_one).item<double>(), 15, 1e-5);
  EXPECT_EQ(nuclear_norm(ones({2, 3, 4}), {0, 2}, true).sizes(), (std::vector<int64_t>{1, 3, 1}));
  EXPECT_THROW(nuclear_norm(ones({2, 2}), 0), Error);
}

}  // namespace
}  // namespace ingot
