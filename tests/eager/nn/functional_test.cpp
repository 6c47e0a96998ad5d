// What nn::functional has beyond the op table, and its layers: against PyTorch 2.15 in double where nothing is drawn.
#include "eager/nn/functional.h"

#include "eager/nn/layers.h"
#include "eager/nn/pytorchs.h"
#include "eager/ops/near.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::input;
using test::message_of;

void expect_error(const std::string& words, const std::function<void()>& f) {
  EXPECT_EQ(message_of(f).rfind(words, 0), 0u) << message_of(f);
}
double mean_of(const Tensor& x) { return x.mean().item<double>(); }
double variance_of(const Tensor& x) { return x.var().item<double>(); }

TEST(Functional, ChannelShuffle) {
  EXPECT_PYTORCHS(F::channel_shuffle(input({2, 6, 3}), 3), (), 3.446902281865489);
  EXPECT_PYTORCHS(nn::ChannelShuffle(2)(input({2, 6, 2, 2})), (), -0.10425629511893142);
  expect_error("channel_shuffle: input: got 6 channels, expected a multiple of 4", [] {
    F::channel_shuffle(ones({1, 6, 2}), 4);
  });
  expect_error("channel_shuffle: input: got a tensor with 2 dims", [] { F::channel_shuffle(ones({2, 6}), 2); });
  expect_error("channel_shuffle: groups: got 0", [] { F::channel_shuffle(ones({1, 6, 2}), 0); });
  expect_error("ChannelShuffle: groups: got 0", [] { nn::ChannelShuffle(0); });
}

TEST(Functional, Bilinear) {
  const Tensor x = input({2, 3, 4}), y = input({2, 3, 5}, 1.0), w = input({6, 4, 5}, 2.0), b = input(6, 3.0);
  EXPECT_PYTORCHS(F::bilinear(x, y, w, b), ({x, y, w, b}), 2.921465009164609, -5.125592940131391, -0.5576377139596471,
                  -5.000218575084798, 0.3873548650210244);
  EXPECT_PYTORCHS(F::bilinear(x[0][0], y[0][0], w), (), 8.228120443630793);
  EXPECT_EQ(F::bilinear(ones({0, 4}), ones({0, 5}), ones({6, 4, 5})).sizes(), (std::vector<int64_t>{0, 6}));
  // Integers stay what they are; 16-bit floats are computed in f32 and rounded once.
  EXPECT_TRUE(equal(F::bilinear(tensor({1, 2}, kInt32), tensor({3, 1}, kInt32), tensor({{{1, 2}, {3, 4}}}, kInt32)),
                    tensor({31}, kInt32)));
  const auto half = [](const Tensor& t) { return t.detach().to(kBFloat16); };
  const auto wide = [&](const Tensor& t) { return half(t).to(kFloat32); };
  EXPECT_TRUE(equal(F::bilinear(half(x), half(y), half(w), half(b)),
                    F::bilinear(wide(x), wide(y), wide(w), wide(b)).to(kBFloat16)));
  const nn::Bilinear layer(4, 5, 6);
  EXPECT_EQ(layer->named_parameters()[0].first, "weight");
  EXPECT_EQ(layer->weight.sizes(), (std::vector<int64_t>{6, 4, 5}));
  EXPECT_LE(layer->bias.abs().max().item<float>(), 0.5f);
  EXPECT_EQ(layer(ones({2, 4}), ones({2, 5})).sizes(), (std::vector<int64_t>{2, 6}));
  EXPECT_FALSE(nn::Bilinear(4, 5, 6, false)->bias.defined());
  expect_error("bilinear: input1: got shape [2, 3, 5], expected a last dim of 4", [&] { F::bilinear(y, y, w); });
  expect_error("bilinear: input2: got shape [2, 1, 5], expected the other dims",
               [&] { F::bilinear(x, y.narrow(1, 0, 1), w); });
  expect_error("bilinear: weight: got shape [6]", [&] { F::bilinear(x, y, b); });
  expect_error("bilinear: bias: got shape [5], expected [6]", [&] { F::bilinear(x, y, w, ones({5}, kFloat64)); });
  expect_error("Bilinear: in1_features: got 0", [] { nn::Bilinear(0, 2, 3); });
}

TEST(Functional, PairwiseDistancesOfRows) {
  const Tensor x = input({5, 3});
  EXPECT_PYTORCHS(F::pdist(x, 0), (), 14.247188935594282);
  EXPECT_PYTORCHS(F::pdist(x, 1), ({x}), 13.056300310191093, 0.7687060334011018);
  EXPECT_PYTORCHS(F::pdist(x), ({x}), 8.0015206253384, -0.1467512906776518);
  EXPECT_PYTORCHS(F::pdist(x, 3), ({x}), 6.93586567343982, -0.5511940819240481);
  EXPECT_PYTORCHS(F::pdist(x, std::numeric_limits<double>::infinity()), ({x}), 5.856409522623489, -1.4404127746327604);
  // Rows that are equal.
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> equal_rows{1, 2, 1, 2, 4, -2, 1, 2.5};
  const auto slope = [&](double p) {
    const Tensor rows = tensor(equal_rows).view({4, 2}).requires_grad_();
    (F::pdist(rows, p) * arange(1, 7)).sum().backward();
    return rows.grad().reshape({-1});
  };
  EXPECT_TRUE(test::near(slope(0), zeros({8}, kFloat64)));
  EXPECT_TRUE(test::near(slope(1), tensor({-2., -1., -4., -1., 12., -12., -6., 14.}, kFloat64), 1e-12));
  EXPECT_TRUE(test::near(
      slope(2),
      tensor({-1.2, -1.4, -2.4, -1.8, 6.928201177351374, -9.792301766027062, -3.3282011773513744, 12.992301766027062},
             kFloat64),
      1e-12));
  EXPECT_TRUE(test::near(slope(1.5),
                         tensor({-1.4659129516579497, -1.3073095255034477, -2.9318259033158993, -1.6146190510068954,
                                 8.636043329739854, -10.268913092355344, -4.2383044747660055, 13.190841668865687},
                                kFloat64),
                         1e-12));
  EXPECT_TRUE(test::near(slope(infinity), tensor({0., -1., 0., -1., 0., -12., 0., 14.}, kFloat64), 1e-12));
  EXPECT_EQ(F::pdist(ones({1, 2})).numel(), 0);
  EXPECT_EQ(F::pdist(ones({0, 2})).numel(), 0);
  expect_error("pdist: input: got shape [1, 1, 2]", [] { F::pdist(ones({1, 1, 2})); });
  expect_error("pdist: input: got a tensor of i64", [] { F::pdist(ones({1, 2}, kInt64)); });
  expect_error("pdist: p: got -1", [] { F::pdist(ones({3, 2}), -1); });
}

TEST(Functional, RandomSlopes) {
  const Tensor x = input({4, 3});
  EXPECT_PYTORCHS(F::rrelu(x, 0.2, 0.6), ({x}), -0.7236509832086625, 5.202308898636854);
  manual_seed(3);
  const Tensor negative = full({4000}, -1.0).requires_grad_(), slopes = -F::rrelu(negative, 0.2, 0.6, true);
  EXPECT_GE(slopes.min().item<float>(), 0.2f);
  EXPECT_LT(slopes.max().item<float>(), 0.6f);
  EXPECT_NEAR(mean_of(slopes), 0.4, 0.01);
  slopes.sum().backward();
  EXPECT_TRUE(allclose(-negative.grad(), slopes.detach()));
  EXPECT_TRUE(equal(F::rrelu(ones({5}), 0.2, 0.6, true), ones({5})));
  nn::RReLU layer;
  layer->eval();
  EXPECT_NEAR(layer(tensor({-1.0}))[0].item<float>(), -(1.0 / 8 + 1.0 / 3) / 2, 1e-7);
  expect_error("rrelu: input: got a tensor of i64", [] { F::rrelu(ones({4}, kInt64)); });
  expect_error("rrelu: lower: got 0.5", [] { F::rrelu(ones({2}), 0.5, 0.1); });
}

TEST(Functional, AlphaDropoutKeepsMeanAndVariance) {
  manual_seed(5);
  const Tensor x = randn({200, 500});
  const Tensor y = F::alpha_dropout(x, 0.3, true);
  EXPECT_NEAR(mean_of(y), 0, 0.02);
  EXPECT_NEAR(variance_of(y), 1, 0.03);
  // The two values of ones in PyTorch.
  const Tensor ones_dropped = F::alpha_dropout(ones({1000}), 0.3, true);
  EXPECT_NEAR(ones_dropped.max().item<float>(), 1.3150, 1e-4);
  EXPECT_NEAR(ones_dropped.min().item<float>(), -1.0595, 1e-4);
  const Tensor channels = F::feature_alpha_dropout(ones({50, 20, 6}), 0.5, true);
  EXPECT_TRUE(equal(channels, channels.select(2, 0).unsqueeze(2).expand({50, 20, 6})));
  EXPECT_NE(channels.min().item<float>(), channels.max().item<float>());
  EXPECT_TRUE(F::alpha_dropout(x).is_same(x));
  // LibTorch's dropout beside the ops.
  EXPECT_TRUE(dropout(x, 0.5, false).is_same(x));
  EXPECT_TRUE(equal(dropout(x, 1, true), zeros_like(x)));
  EXPECT_TRUE(equal(F::alpha_dropout(ones({4}), 1, true), zeros({4})));
  expect_error("alpha_dropout: input: got a tensor of i64", [] { F::alpha_dropout(ones({4}, kInt64), 0.5, true); });
  expect_error("alpha_dropout: p: got 1.5", [&] { F::alpha_dropout(x, 1.5, true); });
  expect_error("feature_alpha_dropout: input: got 1 dims", [] { F::feature_alpha_dropout(ones({4}), 0.5, true); });
  nn::AlphaDropout layer(0.3);
  EXPECT_FALSE(equal(layer(x), x));
  layer->eval();
  EXPECT_TRUE(equal(layer(x), x));
  EXPECT_EQ(nn::FeatureAlphaDropout()(ones({2, 3, 4})).sizes(), (std::vector<int64_t>{2, 3, 4}));
}

// Channels without a batch: dim 0, as in PyTorch.
TEST(Functional, DropoutOfChannelsWithAndWithoutABatch) {
  manual_seed(7);
  const auto by_channel = [](const Tensor& y, int64_t dims) {
    const Tensor flat = y.flatten(0, dims - 1).flatten(1);
    return equal(flat, flat.narrow(1, 0, 1).expand(flat.sizes().vec())) && flat.min().item<float>() == 0 &&
           flat.max().item<float>() == 2;
  };
  EXPECT_TRUE(by_channel(F::dropout1d(ones({40, 5})).unsqueeze(0), 2));
  EXPECT_TRUE(by_channel(F::dropout1d(ones({4, 10, 5})), 2));
  EXPECT_TRUE(by_channel(F::dropout2d(ones({4, 10, 5, 6})), 2));
  EXPECT_TRUE(by_channel(F::dropout3d(ones({40, 2, 5, 6})).unsqueeze(0), 2));
  EXPECT_TRUE(by_channel(F::dropout3d(ones({4, 10, 2, 5, 6})), 2));
  EXPECT_TRUE(by_channel(nn::Dropout1d()(ones({40, 5})).unsqueeze(0), 2));
  EXPECT_TRUE(by_channel(nn::Dropout3d()(ones({40, 2, 5, 6})).unsqueeze(0), 2));
  EXPECT_TRUE(equal(F::dropout1d(ones({4, 5}), 0.5, false), ones({4, 5})));
}

TEST(Functional, GumbelSoftmax) {
  manual_seed(9);
  const Tensor logits = tensor({0.0, std::log(2.0), std::log(5.0)}, kFloat64).expand({8000, 3}).contiguous();
  const Tensor hard = F::gumbel_softmax(logits, 1, true), shares = hard.mean(0);
  EXPECT_TRUE(allclose(shares, tensor({0.125, 0.25, 0.625}, kFloat64), 0, 0.02));
  EXPECT_TRUE(allclose(hard.sum(1), ones({8000}, kFloat64)));
  expect_error("gumbel_softmax: logits: got a tensor of i64", [] { F::gumbel_softmax(ones({4}, kInt64)); });
  const Tensor x = zeros({4, 3}).requires_grad_();
  const Tensor smooth = F::gumbel_softmax(x, 0.5, false, 0);
  EXPECT_TRUE(allclose(smooth.sum(0), ones({3})));
  manual_seed(11);
  const Tensor soft = F::gumbel_softmax(x);
  manual_seed(11);
  const Tensor one = F::gumbel_softmax(x, 1, true);
  const Tensor weight = arange(12).to(kFloat32).view({4, 3});
  EXPECT_TRUE(equal(autograd::grad({(soft * weight).sum()}, {x})[0], autograd::grad({(one * weight).sum()}, {x})[0]));
}

TEST(Functional, ShapesAndFunctionsAsLayers) {
  const Tensor x = input({2, 3, 4, 5});
  EXPECT_PYTORCHS(nn::Softmax2d()(x), ({x}), -0.044358841239178326, 0.9857606699113817);
  expect_error("Softmax2d: x: got 2 dims, expected 3 or 4", [] { nn::Softmax2d()(ones({2, 2})); });
  EXPECT_PYTORCHS(nn::Unflatten(1, {3, -1})(input({2, 6, 3})), (), -1.3439697205684031);
  const nn::Sequential net{nn::Functional([](const Tensor& t) { return t * 2; }), nn::Functional(relu)};
  EXPECT_TRUE(equal(net(tensor({-1.0, 3.0})), tensor({0.0, 6.0})));
  expect_error("Functional: function: got nothing", [] { nn::Functional(std::function<Tensor(const Tensor&)>()); });
}

TEST(Functional, EmbeddingsFromATable) {
  const Tensor table = tensor({{1.0, 2.0}, {3.0, 4.0}, {0.3, 0.4}});
  const auto frozen = nn::Embedding::from_pretrained(table);
  EXPECT_TRUE(equal(frozen(tensor({2, 0})), tensor({{0.3, 0.4}, {1.0, 2.0}})));
  EXPECT_FALSE(frozen->weight.requires_grad());
  EXPECT_EQ(frozen->weight.data_ptr(), table.data_ptr());
  const auto learned = nn::Embedding::from_pretrained(table, false, {.padding_idx = 1});
  EXPECT_TRUE(learned->weight.requires_grad());
  EXPECT_TRUE(equal(learned->weight.detach(), table));
  EXPECT_FALSE(table.requires_grad());
  learned(tensor({1, 0})).sum().backward();
  EXPECT_TRUE(equal(learned->weight.grad(), tensor({{1.0, 1.0}, {0.0, 0.0}, {0.0, 0.0}})));
  const auto bags = nn::EmbeddingBag::from_pretrained(table, true, {.mode = "sum"});
  EXPECT_TRUE(equal(bags(tensor({{0, 1}})), tensor({{4.0, 6.0}})));
  expect_error("Embedding: embeddings: got f32, shape [2]", [] { nn::Embedding::from_pretrained(ones({2})); });
  expect_error("EmbeddingBag: embeddings: got i64", [] { nn::EmbeddingBag::from_pretrained(ones({2, 2}, kInt64)); });
  expect_error("Embedding: padding_idx: got 3",
               [&] { nn::Embedding::from_pretrained(table, true, {.padding_idx = 3}); });
}

}  // namespace
}  // namespace ingot
