// Methods of a tensor are the functions of their names.
#include <gtest/gtest.h>

#include "eager/ops/aliases.h"
#include "eager/ops/contractions.h"
#include "eager/ops/linalg.h"
#include "eager/ops/lists.h"
#include "eager/ops/products.h"
#include "eager/ops/replacements.h"
#include "eager/ops/selection.h"
#include "eager/ops/sets.h"
#include "eager/ops/shapes.h"
#include "eager/ops/special.h"
#include "eager/ops/statistics.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::counting;
using test::message_of;

TEST(Methods, AreTheFunctionsOfTheirNames) {
  const Tensor x = randn({4, 4}), y = randn({4, 4}), v = randn({3, 4}), w = randn({3, 4});
  const Tensor whole = randint(0, 9, {20}, kInt64), places = tensor({int64_t{1}, int64_t{5}}), two = tensor({7.f, 8.f});
  const Tensor spd = matmul(x, x.t()) + eye(4);
  const std::pair<Tensor, Tensor> pairs[] = {
      {x.median(), median(x)},
      {x.nanmedian(), nanmedian(x)},
      {std::get<1>(x.median(1)), std::get<1>(median(x, 1))},
      {std::get<0>(x.nanmedian(0, true)), std::get<0>(nanmedian(x, 0, true))},
      {x.quantile(0.3, 1, true, "lower"), quantile(x, 0.3, 1, true, "lower")},
      {x.nanquantile(0.7), nanquantile(x, 0.7)},
      {whole.bincount({}, 12), bincount(whole, {}, 12)},
      {x.histc(7, -1, 2), histc(x, 7, -1, 2)},
      {x.kron(v), kron(x, v)},
      {v.cross(w), cross(v, w)},
      {x.matrix_power(3), matrix_power(x, 3)},
      {x.dist(y, 1), dist(x, y, 1)},
      {x.renorm(2, 0, 0.5), renorm(x, 2, 0, 0.5)},
      {x.ravel(), ravel(x)},
      {two.diagflat(1), diagflat(two, 1)},
      {(x > 0).argwhere(), argwhere(x > 0)},
      {v.swapaxes(0, 1), v.t()},
      {v.swapdims(0, 1), v.t()},
      {v.moveaxis({0}, {1}), v.t()},
      {x.select_scatter(y[0], 1, 2), select_scatter(x, y[0], 1, 2)},
      {x.slice_scatter(v, 0, 1), slice_scatter(x, v, 0, 1)},
      {x.diagonal_scatter(y[1]), diagonal_scatter(x, y[1])},
      {x.clone().put_(places, two, true), put(x, places, two, true)},
      {x.index_reduce(0, places.slice(0, 0, 1), y.slice(0, 0, 1), "amax"),
       index_reduce(x, 0, places.slice(0, 0, 1), y.slice(0, 0, 1), "amax")},
      {x.det(), det(x)},
      {spd.logdet(), logdet(spd)},
      {std::get<1>(x.slogdet()), std::get<1>(slogdet(x))},
      {x.inverse(), inverse(x)},
      {v.pinverse(), pinverse(v)},
      {x.matrix_exp(), matrix_exp(x)},
      {x.diff(2, 0, v), diff(x, 2, 0, v)},
      {x.tensor_split(3, 1)[0], tensor_split(x, 3, 1)[0]},
      {x.tensor_split({1, 3})[1], tensor_split(x, {1, 3})[1]},
      {x.tensor_split(places.slice(0, 0, 1))[1], x.slice(0, 1)},
      {x.hsplit(2)[1], hsplit(x, 2)[1]},
      {x.vsplit({1, 2})[2], x.slice(0, 2)},
      {std::get<0>(x.histogram(4)), std::get<0>(histogram(x, 4))},
      {std::get<0>(x.histogram(two)), std::get<0>(histogram(x, two))},
      {x.cov(0), cov(x, 0)},
      {x.corrcoef(), corrcoef(x)},
      {v.inner(w), inner(v, w)},
      {two.vdot(two), vdot(two, two)},
      {std::get<0>(whole.unique_dim(0)), std::get<0>(unique_dim(whole, 0))},
      {std::get<0>(whole.unique_consecutive()), std::get<0>(unique_consecutive(whole))},
      {spd.i0(), special::i0(spd)},
      {spd.abs().igamma(y.abs()), igamma(spd.abs(), y.abs())},
      {spd.abs().igammac(y.abs()), igammac(spd.abs(), y.abs())},
      {two.mvlgamma(2), mvlgamma(two, 2)},
      {two.polygamma(1), polygamma(1, two)},
      {x.put(places, two), put(x, places, two)},
      {x.clone().renorm_(2, 0, 0.5), renorm(x, 2, 0, 0.5)},
      {x.index_put({places.slice(0, 0, 1)}, 3), index_put(x, {places.slice(0, 0, 1)}, 3)},
      {x.clone().index_reduce_(0, places.slice(0, 0, 1), y.slice(0, 0, 1), "amax"),
       index_reduce(x, 0, places.slice(0, 0, 1), y.slice(0, 0, 1), "amax")},
      {x.isreal(), ones({4, 4}, kBool)},
      {v.mH(), v.t()},
      {v.adjoint(), v.t()}};
  for (size_t i = 0; i < std::size(pairs); ++i) EXPECT_TRUE(equal(pairs[i].first, pairs[i].second)) << "pair " << i;
}

TEST(Methods, AskForFacts) {
  const Tensor x = zeros({2, 3}), one = tensor({2.f});
  EXPECT_EQ(x.ndimension(), 2);
  EXPECT_FALSE(x.is_complex());
  EXPECT_TRUE(x.is_signed());
  EXPECT_TRUE(x.to(kInt8).is_signed());
  EXPECT_FALSE(x.to(kUInt8).is_signed());
  EXPECT_FALSE(x.to(kBool).is_signed());
  EXPECT_TRUE(x.is_same_size(ones({2, 3}, kInt64)));
  EXPECT_FALSE(x.is_same_size(ones({3, 2})));
  EXPECT_TRUE(one.is_nonzero());
  EXPECT_FALSE((one - 2).is_nonzero());
  EXPECT_NE(message_of([&] { x.is_nonzero(); }).find("expected exactly one element"), std::string::npos);
  EXPECT_NE(message_of([&] { x[0].mH(); }).find("mH: self: got a tensor with 1 dims"), std::string::npos);
}

TEST(Functions, TakeOptionsBehindASize) {
  EXPECT_TRUE(equal(eye(3, kFloat64), eye(3, 3, kFloat64)));
  EXPECT_EQ(eye(2, kInt64).dtype(), kInt64);
  EXPECT_TRUE(eye(2, requires_grad()).requires_grad());
  EXPECT_EQ(eye(2).dtype(), kFloat32);
}

TEST(Methods, WriteInPlaceAndNameTheirLine) {
  const Tensor x = counting({2, 3}), same = x;
  x.put_(tensor({int64_t{-1}}), tensor({9.f}));
  EXPECT_EQ(same[1][2].item<float>(), 9.f);
  EXPECT_NE(message_of([&] { x.inverse(); }).find("methods_test.cpp"), std::string::npos);
}

TEST(Methods, SpreadIsUnbiasedOrNot) {
  const Tensor x = counting({2, 3});
  for (const Tensor& unbiased : {x.var(true), var(x, true), x.std(true).square(), ingot::std(x, true).square()})
    EXPECT_FLOAT_EQ(unbiased.item<float>(), 3.5f);
  for (const Tensor& biased : {x.var(false), var(x, false), x.std(false).square(), ingot::std(x, false).square()})
    EXPECT_FLOAT_EQ(biased.item<float>(), 35.f / 12);
}

TEST(Methods, OfLibTorchsNames) {
  const Tensor x = tensor({2.75f});
  EXPECT_EQ(x.item().toDouble(), 2.75);
  EXPECT_EQ(x.item().toFloat(), 2.75f);
  EXPECT_EQ(x.item().toInt(), 2);
  EXPECT_EQ(x.item().toLong(), 2);
  EXPECT_TRUE(x.item().toBool());
  EXPECT_EQ(x.toType(kFloat64).dtype(), kFloat64);
  EXPECT_TRUE(x.set_requires_grad(true).requires_grad());
  EXPECT_FALSE(x.set_requires_grad(false).requires_grad());
}

TEST(Methods, OfNothingButADType) {
  const Tensor x = tensor({1e8f, 1.f, -1e8f});
  EXPECT_EQ(x.sum(kFloat64).item<double>(), 1);
  EXPECT_EQ(sum(x, kFloat64).dtype(), kFloat64);
  EXPECT_EQ(x.mean(kFloat64).item<double>(), 1. / 3);
  EXPECT_EQ(tensor({3, 4}, kInt32).prod(kFloat32).dtype(), kFloat32);
  EXPECT_EQ(mean(arange(4), kFloat32).item<float>(), 1.5f);
  // A list without numbers is no dtype.
  EXPECT_EQ(x.to(kFloat64).sum({}).dtype(), kFloat64);
}

TEST(Methods, InPlaceAsFunctions) {
  const Tensor x = tensor({-1.f, 2.f});
  EXPECT_TRUE(relu_(x).is_same(x));
  EXPECT_TRUE(equal(x, tensor({0.f, 2.f})));
  EXPECT_TRUE(equal(add_(x, 1, 3), tensor({3.f, 5.f})));
  EXPECT_TRUE(equal(multiply_(x, x), tensor({9.f, 25.f})));
  EXPECT_NE(message_of([&] { sqrt_(tensor({1})); }).find("methods_test.cpp"), std::string::npos);
}

TEST(Methods, ViewOfAnotherDType) {
  const Tensor x = tensor({1.f, -2.f, 0.5f, 4.f}).view({2, 2});
  const Tensor bits = x.view(kInt32);
  EXPECT_TRUE(equal(bits, tensor({0x3f800000, -0x40000000, 0x3f000000, 0x40800000}, kInt32).view({2, 2})));
  bits.index({0, 1}) = 0x40400000;
  EXPECT_EQ(x[0][1].item<float>(), 3);
  EXPECT_TRUE(bits.shares_storage(x));
  EXPECT_EQ(x.view(kUInt8).sizes(), (std::vector<int64_t>{2, 8}));
  EXPECT_EQ(x.view(kFloat64).sizes(), (std::vector<int64_t>{2, 1}));
  EXPECT_TRUE(equal(x[1].view(kFloat64).view(kFloat32), x[1]));
  EXPECT_TRUE(equal(x.t().view(kInt32), bits.t()));
  EXPECT_EQ(zeros({0, 4}).view(kFloat64).sizes(), (std::vector<int64_t>{0, 2}));
  EXPECT_TRUE(x.view(kFloat32).is_same_size(x));
  EXPECT_FALSE(ones({2}).requires_grad_().view(kInt32).requires_grad());
  EXPECT_TRUE(ones({2}, kBool).view(kUInt8).equal(ones({2}, kUInt8)));
  const auto says = [](const auto& f, const char* words) {
    const std::string message = message_of(f);
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says([&] { x.t().view(kInt16); }, "view: dtype: got i16 of f32 with stride 2 in its last dim");
  says([&] { zeros({4, 3}).view(kFloat64); }, "with a last dim of 3, expected a multiple of 2 there");
  says([&] { zeros({4, 3}).narrow(1, 0, 2).view(kFloat64); }, "with stride 3");
  says([&] { zeros({5}).narrow(0, 1, 4).view(kFloat64); }, "with a first element at 1");
  says([&] { scalar_tensor(1).view(kUInt8); }, "with no dims");
  says([&] { x.view(kBool); }, "view: dtype: got bool of f32");
}

}  // namespace
}  // namespace ingot
