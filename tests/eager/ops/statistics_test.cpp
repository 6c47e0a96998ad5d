// Order statistics, histograms and covariances beside PyTorch's numbers.
#include "eager/ops/statistics.h"

#include <cmath>
#include <limits>

#include "eager/autograd/autograd.h"
#include "eager/ops/near.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;
using test::near;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

Tensor table() { return tensor({{2.f, -1.f, .5f, 3.f}, {1.f, 1.f, -2.f, 4.f}, {0.f, 5.f, 2.f, -3.f}}); }
Tensor with_nan() { return tensor({{2.f, kNan, .5f, 3.f}, {kNan, 1.f, -2.f, kNan}, {kNan, kNan, kNan, kNan}}); }

TEST(Median, OfAllElements) {
  EXPECT_TRUE(near(median(table()), tensor(1.f)));
  EXPECT_TRUE(near(median(tensor({5, 2, 9, 2})), tensor(2)));
  EXPECT_TRUE(near(median(with_nan()), tensor(kNan)));
  EXPECT_TRUE(near(nanmedian(with_nan()), tensor(1.f)));
  EXPECT_TRUE(near(median(tensor(2.5f)), tensor(2.5f)));
  EXPECT_TRUE(near(median(zeros({0})), tensor(kNan)));
  EXPECT_TRUE(near(nanmedian(tensor({kNan, kNan})), tensor(kNan)));
  EXPECT_EQ(median(table().to(kBFloat16)).dtype(), kBFloat16);
}

TEST(Median, AlongADimWithItsPlace) {
  auto [values, places] = median(table(), 1);
  EXPECT_TRUE(near(values, tensor({0.5f, 1.f, 0.f})));
  EXPECT_TRUE(near(places, tensor({2, 0, 0})));
  EXPECT_TRUE(near(std::get<0>(median(table(), 0, true)), tensor({{1.f, 1.f, 0.5f, 3.f}})));
  // The first NaN; without NaN, the lower of two in the middle.
  auto [found, at] = median(with_nan(), -1);
  EXPECT_TRUE(near(found, tensor({kNan, kNan, kNan})));
  EXPECT_TRUE(near(at, tensor({1, 0, 0})));
  auto [numbers, where_they_are] = nanmedian(with_nan(), -1);
  EXPECT_TRUE(near(numbers, tensor({2.f, -2.f, kNan})));
  EXPECT_TRUE(near(where_they_are, tensor({0, 2, 0})));
  // Of equal elements the one that a stable order puts in the middle.
  EXPECT_TRUE(near(std::get<1>(median(tensor({3, 1, 3, 3, 7}), 0)), tensor(2)));
  EXPECT_TRUE(near(std::get<1>(median(tensor(4.f), 0, true)), tensor(0)));
  EXPECT_EQ(std::get<0>(median(zeros({0, 3}), 1)).numel(), 0);
}

TEST(Median, GradientIsSharedOutToEqualElements) {
  const auto gradient_of = [](const Tensor& given, Tensor (*f)(const TensorArg&)) {
    const Tensor x = given.clone().requires_grad_();
    f(x).backward();
    return x.grad();
  };
  EXPECT_TRUE(near(gradient_of(tensor({1.f, 2.f, 2.f, 3.f}), median), tensor({0.f, .5f, .5f, 0.f})));
  EXPECT_TRUE(near(gradient_of(tensor({1.f, kNan, 2.f, kNan}), median), tensor({0.f, .5f, 0.f, .5f})));
  EXPECT_TRUE(near(gradient_of(tensor({1.f, kNan, 2.f, 5.f}), nanmedian), tensor({0.f, 0.f, 1.f, 0.f})));
  const Tensor x = table().requires_grad_();
  (std::get<0>(median(x, 1)) * tensor({1.f, 2.f, 3.f})).sum().backward();
  EXPECT_TRUE(near(x.grad(), tensor({{0.f, 0.f, 1.f, 0.f}, {2.f, 0.f, 0.f, 0.f}, {3.f, 0.f, 0.f, 0.f}})));
}

TEST(Median, RefusesWhatHasNone) {
  EXPECT_NE(message_of([] { median(zeros({3, 0}), 1); }).find("median: dim: got 1, of size 0"), std::string::npos);
  EXPECT_NE(message_of([] { median(tensor({true})); }).find("median: self: got a tensor of bool"), std::string::npos);
  EXPECT_THROW(median(zeros({0}, kInt64)), Error);
  EXPECT_THROW(nanmedian(table(), 2), Error);
}

TEST(Quantile, InterpolatesInFiveWays) {
  const Tensor q = tensor({0.f, .3f, .5f, .99f, 1.f});
  EXPECT_TRUE(near(quantile(table(), q, 1), tensor({{-1.f, -2.f, -3.f},
                                                    {0.35000005f, 0.70000011f, -0.29999989f},
                                                    {1.25f, 1.f, 1.f},
                                                    {2.97f, 3.9100001f, 4.9099998f},
                                                    {3.f, 4.f, 5.f}})));
  EXPECT_TRUE(
      near(quantile(table(), q, 1, false, "lower"),
           tensor({{-1.f, -2.f, -3.f}, {-1.f, -2.f, -3.f}, {0.5f, 1.f, 0.f}, {2.f, 1.f, 2.f}, {3.f, 4.f, 5.f}})));
  EXPECT_TRUE(near(quantile(table(), q, 1, false, "higher"),
                   tensor({{-1.f, -2.f, -3.f}, {0.5f, 1.f, 0.f}, {2.f, 1.f, 2.f}, {3.f, 4.f, 5.f}, {3.f, 4.f, 5.f}})));
  EXPECT_TRUE(near(
      quantile(table(), q, 1, false, "midpoint"),
      tensor({{-1.f, -2.f, -3.f}, {-0.25f, -0.5f, -1.5f}, {1.25f, 1.f, 1.f}, {2.5f, 2.5f, 3.5f}, {3.f, 4.f, 5.f}})));
  EXPECT_TRUE(near(quantile(table(), q, 1, false, "nearest"),
                   tensor({{-1.f, -2.f, -3.f}, {0.5f, 1.f, 0.f}, {2.f, 1.f, 2.f}, {3.f, 4.f, 5.f}, {3.f, 4.f, 5.f}})));
  EXPECT_TRUE(near(quantile(table(), 0.25), tensor(-0.25f)));
  EXPECT_TRUE(near(quantile(table().to(kFloat64), 0.1), tensor(-1.9, kFloat64)));
}

TEST(Quantile, ShapesAreThoseOfQAndTheRest) {
  const Tensor q = tensor({.2f, .8f});
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(quantile(table(), q).sizes(), (Sizes{2}));
  EXPECT_EQ(quantile(table(), q, {}, true).sizes(), (Sizes{2, 1, 1}));
  EXPECT_EQ(quantile(table(), q, 0).sizes(), (Sizes{2, 4}));
  EXPECT_EQ(quantile(table(), q, -1, true).sizes(), (Sizes{2, 3, 1}));
  EXPECT_EQ(quantile(table(), 0.5, -1, true).sizes(), (Sizes{3, 1}));
  EXPECT_EQ(quantile(table(), 0.5, {}, true).sizes(), (Sizes{1, 1}));
  EXPECT_EQ(quantile(tensor(1.f), q, 0, true).sizes(), (Sizes{2}));
}

TEST(Quantile, OfNan) {
  EXPECT_TRUE(near(quantile(with_nan(), 0.5, 1), tensor({kNan, kNan, kNan})));
  EXPECT_TRUE(near(nanquantile(with_nan(), 0.5, 1), tensor({2.f, -0.5f, kNan})));
  EXPECT_TRUE(near(nanquantile(with_nan(), tensor({.1f, .9f}), 0),
                   tensor({{2.f, 1.f, -1.75f, 3.f}, {2.f, 1.f, 0.24999994f, 3.f}})));
}

TEST(Quantile, HasGradientsToElementsAndQ) {
  const Tensor x = table().requires_grad_(), q = tensor({.3f, .6f}).requires_grad_();
  quantile(x, q, 1).square().sum().backward();
  EXPECT_TRUE(near(x.grad(),
                   tensor({{2.7200003f, 0.069999985f, 1.3099999f, 0.f},
                           {1.6600001f, 1.6000001f, 0.13999997f, 0.f},
                           {0.099999964f, 0.f, 2.5600004f, -0.059999958f}}),
                   1e-5));
  EXPECT_TRUE(near(q.grad(), tensor({10.350005f, 34.500004f}), 1e-5));
}

TEST(Quantile, RefusesWrongArguments) {
  EXPECT_NE(message_of([] { quantile(table(), 1.5); }).find("quantile: q: got 1.5"), std::string::npos);
  EXPECT_NE(message_of([] {
              nanquantile(table(), tensor({.5f, 2.f}));
            }).find("nanquantile: q: got a number below 0 or above 1"),
            std::string::npos);
  EXPECT_NE(message_of([] { quantile(table(), .5, 0, false, "mean"); }).find("\"midpoint\""), std::string::npos);
  EXPECT_THROW(quantile(table(), tensor({.5}, kFloat64)), Error);
  EXPECT_THROW(quantile(table(), table()), Error);
  EXPECT_THROW(quantile(zeros({0}), .5), Error);
  EXPECT_THROW(quantile(tensor({1, 2}), .5), Error);
  EXPECT_THROW(quantile(table().to(kFloat16), .5), Error);
}

TEST(Bincount, CountsAndSumsOfWeights) {
  const Tensor x = tensor({0, 3, 3, 1});
  EXPECT_TRUE(near(bincount(x), tensor({1, 1, 0, 2})));
  EXPECT_TRUE(near(bincount(x, {}, 6), tensor({1, 1, 0, 2, 0, 0})));
  EXPECT_TRUE(near(bincount(x.to(kUInt8), tensor({.5f, 1.f, 2.f, 4.f})), tensor({.5f, 4.f, 0.f, 3.f})));
  EXPECT_TRUE(near(bincount(x, tensor({1, 2, 3, 4})), tensor({1., 4., 0., 5.}, kFloat64)));
  EXPECT_TRUE(near(bincount(zeros({0}, kInt64), {}, 2), tensor({0, 0})));
  EXPECT_NE(message_of([] { bincount(tensor({1, -2})); }).find("bincount: self: got -2"), std::string::npos);
  EXPECT_THROW(bincount(tensor({{1}})), Error);
  EXPECT_THROW(bincount(tensor({1.f})), Error);
  EXPECT_THROW(bincount(tensor({1, 2}), tensor({1.f})), Error);
  EXPECT_THROW(bincount(tensor({1}), {}, -1), Error);
}

TEST(Histogram, OfEqualBins) {
  EXPECT_TRUE(near(histc(table(), 4), tensor({2.f, 3.f, 4.f, 3.f})));
  EXPECT_TRUE(near(histc(table(), 5, -1, 2), tensor({1.f, 1.f, 1.f, 2.f, 2.f})));
  EXPECT_TRUE(near(histc(tensor({2.f, 2.f}), 3), tensor({0.f, 2.f, 0.f})));
  EXPECT_TRUE(near(histc(tensor({1.f, kNan, kInf}), 2, 0, 2), tensor({0.f, 1.f})));
  EXPECT_TRUE(near(histc(zeros({0}), 2), tensor({0.f, 0.f})));
  EXPECT_EQ(histc(table().to(kFloat16)).sizes(), (std::vector<int64_t>{100}));
  auto [counts, edges] = histogram(table(), 4);
  EXPECT_TRUE(near(counts, tensor({2.f, 3.f, 4.f, 3.f})));
  EXPECT_TRUE(near(edges, tensor({-3.f, -1.f, 1.f, 3.f, 5.f})));
  EXPECT_TRUE(near(std::get<0>(histogram(table(), 3, {-1.0, 2.0}, table().abs())), tensor({1.f, 0.5f, 6.f})));
  EXPECT_TRUE(near(std::get<0>(histogram(table(), 3, {}, {}, true)), tensor({0.09375f, 0.18750001f, 0.09375f})));
  EXPECT_TRUE(near(std::get<1>(histogram(zeros({0}), 2)), tensor({0.f, .5f, 1.f})));
  EXPECT_TRUE(near(std::get<1>(histogram(tensor({2.f}), 2)), tensor({1.5f, 2.f, 2.5f})));
}

TEST(Histogram, BetweenGivenEdges) {
  const Tensor edges = tensor({-2.f, 0.f, .5f, 4.f});
  EXPECT_TRUE(near(std::get<0>(histogram(table(), edges)), tensor({2.f, 1.f, 7.f})));
  EXPECT_TRUE(
      near(std::get<0>(histogram(table(), edges, table().abs(), true)), tensor({0.090909094f, 0.f, 0.23376623f})));
}

TEST(Histogram, RefusesWrongArguments) {
  EXPECT_NE(message_of([] {
              histc(tensor({1.f, kNan}));
            }).find("histc: self: got an element that is infinite or NaN"),
            std::string::npos);
  EXPECT_THROW(histc(table(), 0), Error);
  EXPECT_THROW(histc(table(), 2, 1, 0), Error);
  EXPECT_THROW(histc(tensor({1})), Error);
  EXPECT_THROW(histogram(table(), 2, {1.0, 0.0}), Error);
  EXPECT_THROW(histogram(table(), 2, {1.0}), Error);
  EXPECT_THROW(histogram(table(), 2, {}, tensor({1.f})), Error);
  EXPECT_THROW(histogram(table(), tensor({1.f})), Error);
  for (const Tensor& edges : {tensor({0.f, 2.f, 1.f}), tensor({0.f, kNan, 1.f})})
    EXPECT_NE(message_of([&] { histogram(table(), edges); }).find("histogram: bins: got an edge"), std::string::npos);
  EXPECT_THROW(histogram(table(), tensor({0., 1.}, kFloat64)), Error);
}

TEST(Covariance, OfRows) {
  EXPECT_TRUE(near(cov(table()),
                   tensor({{3.0625f, 2.5f, -5.8333335f}, {2.5f, 6.f, -5.f}, {-5.8333335f, -5.f, 11.333333f}}), 1e-5));
  EXPECT_TRUE(near(cov(table(), 0),
                   tensor({{2.296875f, 1.875f, -4.375f}, {1.875f, 4.5f, -3.75f}, {-4.375f, -3.75f, 8.5f}}), 1e-5));
  EXPECT_TRUE(near(cov(tensor({1, 2, 4})), tensor(2.3333335f), 1e-5));
  const Tensor often = tensor({1, 2, 0, 1}), much = tensor({.5f, .1f, .2f, .9f});
  EXPECT_TRUE(near(cov(table(), 1, often),
                   tensor({{4.25f, 2.25f, -8.083333f}, {2.25f, 2.25f, -4.75f}, {-8.083333f, -4.75f, 15.583333f}}),
                   1e-5));
  EXPECT_TRUE(near(cov(table(), 1, {}, much),
                   tensor({{2.0983145f, 3.0842693f, -4.2808986f},
                           {3.084269f, 6.9775281f, -6.7584262f},
                           {-4.2808986f, -6.7584262f, 9.0674152f}}),
                   1e-5));
  EXPECT_TRUE(near(cov(table(), 2, often, much),
                   tensor({{10.575005f, 8.7750034f, -21.525009f},
                           {8.7750034f, 14.175006f, -20.925009f},
                           {-21.525009f, -20.925009f, 45.175022f}}),
                   1e-5));
  EXPECT_TRUE(near(cov(tensor(3.f)), tensor(kNan)));
  EXPECT_EQ(cov(zeros({2, 0})).sizes(), (std::vector<int64_t>{2, 2}));
  EXPECT_TRUE(near(corrcoef(table()),
                   tensor({{1.f, 0.58321184f, -0.99014759f},
                           {0.58321184f, 0.99999988f, -0.60633904f},
                           {-0.99014759f, -0.6063391f, 1.f}}),
                   1e-5));
  EXPECT_TRUE(near(corrcoef(tensor({{1.f, 2.f, 3.f}, {2.f, 2.f, 2.f}})), tensor({{1.f, kNan}, {kNan, kNan}})));
  EXPECT_TRUE(near(corrcoef(tensor({1.f, 2.f, 3.f})), tensor(1.f)));
}

TEST(Covariance, HasGradients) {
  const Tensor x = table().to(kFloat64).requires_grad_(), w = tensor({.5, .1, .2, .9}, kFloat64).requires_grad_();
  const auto weighted = [](const std::vector<Tensor>& v) { return std::vector<Tensor>{cov(v[0], 1, {}, v[1])}; };
  EXPECT_TRUE(autograd::gradcheck(weighted, {x, w}));
  EXPECT_TRUE(autograd::gradgradcheck(weighted, {x, w}));
  EXPECT_TRUE(autograd::gradcheck([](const std::vector<Tensor>& v) { return std::vector<Tensor>{corrcoef(v[0])}; }, {x},
                                  1e-6, 1e-5));
}

TEST(Covariance, RefusesWrongWeights) {
  EXPECT_NE(message_of([] {
              cov(table(), 1, tensor({1, -1, 1, 1}));
            }).find("cov: fweights: got a weight that is negative"),
            std::string::npos);
  EXPECT_NE(message_of([] { cov(table(), 1, tensor({0, 0, 0, 0})); }).find("whose sum is 0"), std::string::npos);
  EXPECT_THROW(cov(table(), 1, tensor({1, 2})), Error);
  EXPECT_THROW(cov(table(), 1, tensor({1.f, 1.f, 1.f, 1.f})), Error);
  EXPECT_THROW(cov(table(), 1, {}, tensor({1, 1, 1, 1})), Error);
  EXPECT_THROW(cov(zeros({2, 2, 2})), Error);
  EXPECT_THROW(cov(tensor({true, false})), Error);
}

TEST(Covariance, Of16BitFloatsIsRoundedOnce) {
  const Tensor weights = tensor({1.f, 2.f, .5f, 3.f});
  for (DType dtype : {kFloat16, kBFloat16}) {
    const Tensor x = table().to(dtype), w = weights.to(dtype);
    EXPECT_TRUE(near(cov(x), cov(x.to(kFloat32)).to(dtype), 0));
    EXPECT_TRUE(near(cov(x, 1, {}, w), cov(x.to(kFloat32), 1, {}, w.to(kFloat32)).to(dtype), 0));
    EXPECT_EQ(cov(x, 1, {}, weights).dtype(), kFloat32);
  }
}

}  // namespace
}  // namespace ingot
