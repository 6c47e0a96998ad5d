// Losses, pooling, convolution, resampling and contractions in compiled code: eager's bits, no break, and new sizes
// without new programs.
#include <cmath>
#include <functional>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;
namespace F = nn::functional;

struct Case {
  const char* name;
  std::function<Tensor(const Tensor&)> function;
  std::vector<std::vector<int64_t>> shapes;
  int64_t compilations = 2;  // the first sizes, then symbols
};

TEST(Functions, AreCompiledForAllSizesWithEagersBits) {
  Tensor kernel1 = randn({3, 2, 4}), kernel2 = randn({3, 2, 3, 3}), kernel3 = randn({4, 3, 2, 3, 3}), bias = randn({4});
  Tensor matrix = randn({5, 6});
  const Case cases[] = {
      {"glu", [](const Tensor& x) { return glu(x, 0); }, {{4, 6}, {6, 6}, {10, 6}}},
      {"isclose", [](const Tensor& x) { return isclose(x, x + 1e-6); }, {{4, 6}, {6, 6}, {10, 6}}},
      {"nanmean", [](const Tensor& x) { return nanmean(where(gt(x, 1), NAN, x), 0); }, {{4, 6}, {60, 6}, {10, 6}}},
      {"std_mean",
       [](const Tensor& x) {
         auto [deviation, mean] = std_mean(x, 1);
         return deviation + mean;
       },
       {{4, 6}, {6, 8}, {10, 61}}},
      {"linspace", [](const Tensor& x) { return linspace(-1, 2.5, x.size(0)); }, {{4}, {6}, {11}}},
      {"cosine_similarity", [](const Tensor& x) { return F::cosine_similarity(x, x + 1); }, {{4, 6}, {6, 7}, {9, 31}}},
      {"smooth_l1_loss", [](const Tensor& x) { return F::smooth_l1_loss(x, x.sin()); }, {{4, 6}, {6, 7}, {9, 31}}},
      {"binary_cross_entropy_with_logits",
       [](const Tensor& x) { return F::binary_cross_entropy_with_logits(x, sigmoid(x)); },
       {{4, 6}, {6, 7}, {9, 31}}},
      {"instance_norm", [](const Tensor& x) { return F::instance_norm(x); }, {{2, 3, 8}, {4, 3, 9}, {5, 3, 33}}},
      {"local_response_norm",
       [](const Tensor& x) { return F::local_response_norm(x, 3); },
       {{2, 7, 4}, {3, 7, 5}, {4, 7, 9}}},
      {"adaptive_avg_pool2d",
       [](const Tensor& x) {
         return F::adaptive_avg_pool2d(x, {3, 4});
       },
       {{2, 3, 9, 8}, {3, 3, 10, 13}, {5, 3, 7, 33}}},
      {"adaptive pooling to one row",
       [](const Tensor& x) {
         return F::adaptive_avg_pool2d(x, {1, 4}) + F::adaptive_max_pool2d(x, {1, 4});
       },
       {{2, 3, 9, 8}, {3, 3, 10, 13}, {5, 3, 7, 33}}},
      {"adaptive_max_pool1d",
       [](const Tensor& x) { return F::adaptive_max_pool1d(x, 4); },
       {{2, 3, 9}, {3, 3, 10}, {5, 3, 33}}},
      {"max_pool1d", [](const Tensor& x) { return F::max_pool1d(x, 3, 2, 1); }, {{2, 3, 9}, {3, 3, 12}, {5, 3, 33}}},
      {"avg_pool3d",
       [](const Tensor& x) { return F::avg_pool3d(x, 2, 2); },
       {{2, 3, 4, 6, 4}, {3, 3, 8, 10, 4}, {5, 3, 6, 14, 4}}},
      {"conv3d",
       [=](const Tensor& x) {
         return F::conv3d(x, kernel3, bias, 1, {1, 1, 0});
       },
       {{2, 3, 4, 5, 6}, {3, 3, 5, 7, 9}, {5, 3, 6, 9, 8}}},
      {"conv_transpose1d",
       [=](const Tensor& x) { return F::conv_transpose1d(x, kernel1, {}, 2, 1); },
       {{2, 3, 5}, {3, 3, 8}, {5, 3, 31}}},
      {"conv_transpose2d",
       [=](const Tensor& x) { return F::conv_transpose2d(x, kernel2, {}, 2, 1, 1); },
       {{2, 3, 5, 4}, {3, 3, 8, 6}, {5, 3, 9, 31}}},
      {"unfold and fold",
       [](const Tensor& x) {
         return F::fold(F::unfold(x, 3, 1, 1), {x.size(-2), x.size(-1)}, 3, 1, 1);
       },
       {{2, 3, 5, 4}, {3, 3, 8, 6}, {5, 3, 9, 31}}},
      {"bilinear",
       [](const Tensor& x) { return F::interpolate(x, {}, {2}, "bilinear"); },
       {{2, 3, 5, 4}, {3, 3, 8, 6}, {5, 3, 9, 31}}},
      {"bicubic",
       [](const Tensor& x) {
         return F::interpolate(x, {7, 9}, {}, "bicubic", true);
       },
       {{2, 3, 5, 4}, {3, 3, 8, 6}, {5, 3, 9, 31}}},
      {"nearest",
       [](const Tensor& x) {
         return F::interpolate(x, {7, 9});
       },
       {{2, 3, 5, 4}, {3, 3, 8, 6}, {5, 3, 9, 31}}},
      {"adaptive pooling along one dim",
       [](const Tensor& x) {
         return F::adaptive_avg_pool2d(x, F::adaptive_size(x, {std::nullopt, 2}));
       },
       {{2, 3, 5, 4}, {3, 3, 8, 6}, {5, 3, 9, 31}}},
      {"adaptive pooling to a part",
       [](const Tensor& x) {
         const Ints half{x.size(-2) / 2, x.size(-1) / 2};
         return F::adaptive_avg_pool2d(x, half) + F::adaptive_max_pool2d(x, half);
       },
       {{2, 3, 8, 14}, {3, 3, 11, 22}, {5, 3, 12, 31}}},
      {"pixel_shuffle",
       [](const Tensor& x) { return F::pixel_shuffle(x, 2) + 1; },
       {{2, 4, 5, 4}, {3, 4, 8, 6}, {5, 4, 9, 31}}},
      {"einsum",
       [=](const Tensor& x) {
         return einsum("bij,jk,bik->bk", {x, matrix, x.exp().sum(2, true).expand({-1, -1, 6})});
       },
       {{2, 3, 5}, {4, 6, 5}, {7, 9, 5}}},
      {"tensordot", [=](const Tensor& x) { return tensordot(x, matrix, -1, 0); }, {{2, 3, 5}, {4, 6, 5}, {7, 9, 5}}},
      {"diff", [](const Tensor& x) { return diff(x, 2); }, {{2, 5}, {4, 7}, {7, 9}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    auto fast = compile(c.function);
    for (const auto& shape : c.shapes) {
      Tensor x = randn(shape);
      EXPECT_TRUE(same_bits(fast(x), c.function(x)));
    }
    EXPECT_LE(fast.stats().compilations, c.compilations);
    EXPECT_EQ(fast.stats().fallbacks, 0);
    EXPECT_EQ(fast.stats().graph_breaks, 0);
  }
}

TEST(Functions, KernelsOfAnySize) {
  auto fast = compile([](const Tensor& x, const Tensor& w) { return F::conv2d(x, w, {}, w.size(2)); });
  for (int64_t k : {16, 18, 20, 16}) {
    Tensor x = randn({1, 3, 2 * k, 2 * k}), w = randn({4, 3, k, k});
    EXPECT_TRUE(equal(fast(x, w), F::conv2d(x, w, {}, k))) << k;
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

}  // namespace
}  // namespace ingot
