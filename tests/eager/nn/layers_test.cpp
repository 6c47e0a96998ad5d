// Layers against their definitions.
#include "eager/nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "eager/nn/recurrent_layers.h"
#include "eager/ops/factories.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

TEST(Layers, FollowTheirDefinitions) {
  Tensor x = randn({5, 6});
  nn::Linear linear(6, 3);
  EXPECT_TRUE(allclose(linear(x), matmul(x, linear->weight.t()) + linear->bias, 1e-5, 1e-6));
  nn::LayerNorm norm(6);
  Tensor mean = x.mean(1, true), var = x.var(1, 0, true);
  EXPECT_TRUE(allclose(norm(x), (x - mean) / (var + 1e-5).sqrt(), 1e-4, 1e-5));
  nn::RMSNorm rms(6, 1e-6);
  EXPECT_TRUE(allclose(rms(x), x / ((x * x).mean(1, true) + 1e-6).sqrt(), 1e-4, 1e-5));
  nn::Embedding table(7, 6);
  EXPECT_TRUE(equal(table(tensor({3, 0})), stack({table->weight[3], table->weight[0]})));
  EXPECT_TRUE(equal(nn::Flatten()(rand({2, 3, 4})), nn::Flatten()(rand({2, 3, 4}))) == false);
  EXPECT_EQ(nn::Flatten()(rand({2, 3, 4})).sizes(), (std::vector<int64_t>{2, 12}));
  nn::Dropout dropout(0.5);
  dropout->eval();
  EXPECT_TRUE(dropout(x).is_same(x));
}

TEST(Layers, RmsNormWithoutAnEpsilonHasThatOfTheTypeItComputesIn) {
  const Tensor x = tensor({{1e-3f, 2e-3f, -1e-3f, 5e-4f}});
  for (DType dtype : {kFloat16, kBFloat16}) {
    const Tensor expected = dtype == kFloat16
                                ? tensor({{0.77099609375f, 1.5419921875f, -0.77099609375f, 0.385498046875f}})
                                : tensor({{0.76953125f, 1.5390625f, -0.76953125f, 0.384765625f}});
    EXPECT_TRUE(allclose(nn::functional::rms_norm(x.to(dtype), {4}).to(kFloat32), expected, 5e-3)) << dtype;
  }
}

TEST(Layers, DropoutOfNothingDrawsNoNumbers) {
  const Tensor x = randn({3, 4, 4});
  EXPECT_TRUE(nn::functional::dropout(x, 0, true).is_same(x));
  EXPECT_TRUE(nn::functional::feature_dropout(x, 0, true).is_same(x));
  const nn::LSTM lstm(4, 3, {.num_layers = 2});
  manual_seed(5);
  const Tensor expected = rand({4});
  manual_seed(5);
  EXPECT_TRUE(nn::Dropout(0.0)(x).is_same(x));
  lstm(x);
  EXPECT_TRUE(equal(rand({4}), expected));
}

TEST(Layers, ConvolutionAndPooling) {
  nn::Conv2d conv(2, 3, 3, {.stride = 2, .padding = 1});
  Tensor x = randn({2, 2, 7, 5}), y = conv(x);
  ASSERT_EQ(y.sizes(), (std::vector<int64_t>{2, 3, 4, 3}));
  double expected = conv->bias[1].item<double>();
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        int64_t row = 2 * 2 - 1 + i, column = 1 * 2 - 1 + j;
        expected += x[1][c][row][column].item<double>() * conv->weight[1][c][i][j].item<double>();
      }
  EXPECT_NEAR(y[1][1][2][1].item<double>(), expected, 1e-5);
  Tensor pooled = nn::MaxPool2d(2)(x);
  ASSERT_EQ(pooled.sizes(), (std::vector<int64_t>{2, 2, 3, 2}));
  EXPECT_EQ(pooled[1][0][2][1].item<float>(), x[1][0].slice(0, 4, 6).slice(1, 2, 4).max().item<float>());
  EXPECT_NEAR(nn::AvgPool2d(2)(x)[0][1][1][0].item<float>(), x[0][1].slice(0, 2, 4).slice(1, 0, 2).mean().item<float>(),
              1e-6);
  EXPECT_TRUE(allclose(nn::AdaptiveAvgPool2d(1)(x).flatten(1), x.mean({2, 3}), 1e-5, 1e-6));
}

TEST(Layers, WindowsInEveryNumberOfDims) {
  Tensor line = randn({2, 4, 9}), image = randn({2, 4, 9, 8}), box = randn({2, 4, 5, 6, 7});
  nn::ConvTranspose2d up(4, 3, 3, {.stride = 2, .padding = 1, .output_padding = 1});
  EXPECT_EQ(up->weight.sizes(), (std::vector<int64_t>{4, 3, 3, 3}));
  EXPECT_TRUE(equal(up(image), conv_transpose2d(image, up->weight, up->bias, 2, 1, 1)));
  nn::Conv1d conv1(4, 6, 3, {.groups = 2, .bias = false});
  EXPECT_EQ(conv1->weight.sizes(), (std::vector<int64_t>{6, 2, 3}));
  EXPECT_TRUE(equal(conv1(line), conv1d(line, conv1->weight, {}, 1, 0, 1, 2)));
  nn::Conv3d conv3(4, 2, {1, 2, 3});
  EXPECT_TRUE(equal(conv3(box), conv3d(box, conv3->weight, conv3->bias)));
  EXPECT_THROW(nn::Conv3d(4, 2, {1, 2}), Error);
  EXPECT_TRUE(equal(nn::MaxPool1d(2)(line), max_pool1d(line, 2)));
  EXPECT_TRUE(equal(nn::MaxPool3d(2, {.stride = 1})(box), max_pool3d(box, 2, 1)));
  EXPECT_TRUE(
      equal(nn::AvgPool3d({2, 1, 2}, {.divisor_override = 3})(box), avg_pool3d(box, {2, 1, 2}, {}, 0, false, true, 3)));
  EXPECT_TRUE(equal(nn::AdaptiveMaxPool2d({3, 2})(image), adaptive_max_pool2d(image, {3, 2})));
  EXPECT_TRUE(equal(nn::Upsample({.scale_factor = {2}, .mode = "bilinear"})(image),
                    nn::functional::interpolate(image, {}, {2}, "bilinear")));
  EXPECT_TRUE(equal(nn::PixelUnshuffle(2)(nn::PixelShuffle(2)(image)), image));
  EXPECT_TRUE(equal(nn::Fold({9, 8}, 1)(nn::Unfold(1)(image)), image));
}

TEST(Layers, LossesAreTheFunctionsWithTheirSettings) {
  Tensor x = randn({4, 3}), y = randn({4, 3}), share = sigmoid(y), classes = tensor({0, 2, 1, 1});
  EXPECT_TRUE(equal(nn::MSELoss()(x, y), mse_loss(x, y)));
  EXPECT_TRUE(equal(nn::L1Loss("sum")(x, y), l1_loss(x, y, "sum")));
  EXPECT_TRUE(equal(nn::SmoothL1Loss("mean", 0.5)(x, y), smooth_l1_loss(x, y, "mean", 0.5)));
  EXPECT_TRUE(equal(nn::HuberLoss("mean", 0.5)(x, y), huber_loss(x, y, "mean", 0.5)));
  EXPECT_TRUE(equal(nn::KLDivLoss("batchmean")(x, share), kl_div(x, share, "batchmean")));
  EXPECT_TRUE(equal(nn::BCEWithLogitsLoss()(x, share), binary_cross_entropy_with_logits(x, share)));
  EXPECT_TRUE(allclose(nn::BCELoss(ones({3}))(sigmoid(x), share), nn::BCEWithLogitsLoss()(x, share), 1e-5, 1e-6));
  EXPECT_TRUE(equal(nn::CrossEntropyLoss()(x, classes), cross_entropy(x, classes)));
  EXPECT_TRUE(equal(nn::NLLLoss(ones({3}))(x, classes), nll_loss(x, classes)));
  EXPECT_TRUE(equal(nn::CosineSimilarity()(x, y), cosine_similarity(x, y)));
  EXPECT_TRUE(equal(nn::PairwiseDistance(1)(x, y), pairwise_distance(x, y, 1)));
}

TEST(Layers, InstanceNormFollowsStatisticsWhereItIsAsked) {
  Tensor x = randn({4, 3, 5, 5}) * 2 + 1;
  nn::InstanceNorm2d plain(3);
  EXPECT_TRUE(plain->parameters().empty());
  Tensor y = plain(x);
  EXPECT_TRUE(allclose(y.mean({2, 3}), zeros({4, 3}), 0, 1e-5));
  plain->eval();
  EXPECT_TRUE(equal(plain(x), y));
  nn::InstanceNorm2d norm(3, {.affine = true, .track_running_stats = true});
  norm(x);
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 0) << "as in PyTorch, it counts none";
  EXPECT_TRUE(allclose(norm->running_mean, x.mean({0, 2, 3}) * 0.1, 1e-4, 1e-6));
  EXPECT_TRUE(allclose(norm->running_var, x.var({2, 3}).mean(0) * 0.1 + 0.9, 1e-4, 1e-6));
  norm->eval();
  Tensor mean = norm->running_mean.view({1, 3, 1, 1}), var = norm->running_var.view({1, 3, 1, 1});
  EXPECT_TRUE(allclose(norm(x), (x - mean) / (var + 1e-5).sqrt(), 1e-4, 1e-5));
}

TEST(Layers, BatchNormFollowsStatisticsInTrainingOnly) {
  nn::BatchNorm2d norm(3);
  Tensor x = randn({4, 3, 5, 5}) * 2 + 1;
  Tensor y = norm(x);
  EXPECT_TRUE(allclose(y.mean({0, 2, 3}), zeros({3}), 0, 1e-5));
  EXPECT_TRUE(allclose(norm->running_mean, x.mean({0, 2, 3}) * 0.1, 1e-4, 1e-6));
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
  norm->eval();
  Tensor mean = norm->running_mean.view({1, 3, 1, 1}), var = norm->running_var.view({1, 3, 1, 1});
  EXPECT_TRUE(allclose(norm(x), (x - mean) / (var + 1e-5).sqrt(), 1e-4, 1e-5));
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
}

TEST(Layers, BatchNormWithoutMomentumAveragesAllBatches) {
  nn::BatchNorm1d norm(3, {.momentum = std::nullopt});
  Tensor means = zeros({3}), vars = zeros({3});
  for (int i = 1; i <= 4; ++i) {
    Tensor x = randn({6, 3, 5}) * i;
    norm(x);
    means.add_(x.mean({0, 2})), vars.add_(x.var({0, 2}));
    EXPECT_TRUE(allclose(norm->running_mean, means / i, 1e-4, 1e-5));
    EXPECT_TRUE(allclose(norm->running_var, vars / i, 1e-4, 1e-5));
  }
}

TEST(Layers, BatchNormWithoutStatisticsUsesTheBatchAlways) {
  nn::BatchNorm1d norm(3, {.track_running_stats = false});
  EXPECT_TRUE(norm->named_buffers().empty());
  Tensor x = randn({6, 3}), y = norm(x);
  norm->eval();
  EXPECT_TRUE(equal(norm(x), y));
  EXPECT_TRUE(allclose(y.mean(0), zeros({3}), 0, 1e-5));
}

TEST(Layers, BatchNormNeedsMoreThanOneValue) {
  nn::BatchNorm1d norm(3);
  EXPECT_THROW(norm(randn({1, 3})), Error);
  EXPECT_TRUE(equal(norm->running_mean, zeros({3})));
  norm->eval();
  EXPECT_NO_THROW(norm(randn({1, 3})));
}

TEST(Layers, BatchNormOfAnEmptyBatchLeavesTheStatistics) {
  nn::BatchNorm2d norm(3);
  const Tensor x = zeros({0, 3, 4, 4}).requires_grad_();
  const Tensor y = norm(x);
  EXPECT_EQ(y.sizes(), x.sizes());
  y.sum().backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_TRUE(equal(norm->weight.grad(), zeros({3})));
  EXPECT_TRUE(equal(norm->bias.grad(), zeros({3})));
  EXPECT_TRUE(equal(norm->running_mean, zeros({3})));
  EXPECT_TRUE(equal(norm->running_var, ones({3})));
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
}

TEST(Layers, AttentionOfOneHeadIsSoftmaxOfProducts) {
  nn::MultiheadAttention attention(8, 1);
  Tensor x = randn({2, 3, 8});
  Tensor qkv = linear(x, attention->in_proj_weight, attention->in_proj_bias);
  std::vector<Tensor> parts = qkv.split(8, 2);
  Tensor weights = softmax(matmul(parts[0], parts[1].mT()) / std::sqrt(8.0), -1);
  EXPECT_TRUE(allclose(attention(x), attention->out_proj(matmul(weights, parts[2])), 1e-4, 1e-5));
}

// Without its handle nothing knows its fields: that is said, not taken for a module of none.
TEST(Linear, TakesItsOptions) {
  EXPECT_FALSE(nn::Linear(3, 4, {.bias = false})->bias.defined());
  EXPECT_TRUE(nn::Linear(3, 4, {})->bias.defined());
  EXPECT_FALSE(nn::Linear(3, 4, false)->bias.defined());
}

// PyTorch's numbers.
TEST(Embeddings, GradientsByHowOftenARowIsAskedFor) {
  const nn::Embedding rows(4, 2, {.padding_idx = 3, .scale_grad_by_freq = true});
  const Tensor indices = tensor(std::vector<int64_t>{0, 2, 2, 3, 2, 0});
  rows(indices.view({2, 3})).mul(arange(1, 13).view({2, 3, 2})).sum().backward();
  EXPECT_TRUE(allclose(rows->weight.grad(), tensor({6.f, 7.f, 0.f, 0.f, 17.f / 3, 20.f / 3, 0.f, 0.f}).view({4, 2})));
  const std::pair<const char*, Tensor> modes[] = {
      {"sum", tensor({2.f, 3.f, 0.f, 0.f, 5.f / 3, 8.f / 3, 1.f, 2.f})},
      {"mean", tensor({0.875f, 1.25f, 0.f, 0.f, 2.f / 3, 1.f, 0.25f, 0.5f})}};
  for (const auto& [mode, expected] : modes) {
    const nn::EmbeddingBag bags(4, 2, {.mode = mode, .scale_grad_by_freq = true});
    bags(indices, tensor(std::vector<int64_t>{0, 4})).mul(arange(1, 5).view({2, 2})).sum().backward();
    EXPECT_TRUE(allclose(bags->weight.grad(), expected.view({4, 2}))) << mode << bags->weight.grad();
  }
  const nn::EmbeddingBag even(4, 2, {.mode = "sum", .scale_grad_by_freq = true});
  even(indices.view({3, 2})).sum().backward();
  EXPECT_TRUE(allclose(even->weight.grad(), tensor({1.f, 1.f, 0.f, 0.f, 1.f, 1.f, 1.f, 1.f}).view({4, 2})));
}

}  // namespace
}  // namespace ingot
