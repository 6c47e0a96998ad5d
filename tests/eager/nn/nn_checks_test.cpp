// What layers refuse when they are made, and of which line they say so.
#include "eager/nn/checks.h"

#include <gtest/gtest.h>

#include "eager/nn/recurrent_cells.h"
#include "eager/nn/transformer_layers.h"
#include "eager/ops/factories.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::message_of;

/// Refused with these words, of this line, before a number is drawn.
void expect_refused(const char* what, const std::string& words, int line, const std::function<void()>& make) {
  manual_seed(11);
  const std::string message = message_of(make), place = "nn_checks_test.cpp:" + std::to_string(line) + ")";
  EXPECT_EQ(message.substr(0, words.size()), words) << what << ": " << message;
  EXPECT_NE(message.find(place), std::string::npos) << what << ": " << message;
  const Tensor next = rand({2});
  manual_seed(11);
  EXPECT_TRUE(equal(next, rand({2}))) << what << " has drawn";
}
#define REFUSED(words, ...) expect_refused(#__VA_ARGS__, words, __LINE__, [] { static_cast<void>(__VA_ARGS__); })

using namespace nn;

TEST(LayerChecks, SizesAreNotNegative) {
  REFUSED("Linear: in_features: got -3, expected no negative number", Linear(-3, 4));
  REFUSED("Linear: out_features: got -4", Linear(3, -4));
  REFUSED("Linear: out_features: got -4", Linear(3, -4, false));
  REFUSED("Embedding: num_embeddings: got -1", Embedding(-1, 4));
  REFUSED("Embedding: embedding_dim: got -1", Embedding(4, -1));
  REFUSED("LayerNorm: normalized_shape: got -1", LayerNorm(-1));
  REFUSED("LayerNorm: normalized_shape: got -2", LayerNorm({4, -2}));
  REFUSED("LayerNorm: normalized_shape: got -2", LayerNorm({4, -2}, {.affine = false}));
  REFUSED("LayerNorm: normalized_shape: got 0 numbers", LayerNorm(std::vector<int64_t>()));
  REFUSED("RMSNorm: normalized_shape: got -1", RMSNorm(-1));
  REFUSED("RMSNorm: normalized_shape: got -1", RMSNorm({2, -1}, 1e-3, false));
  REFUSED("BatchNorm2d: num_features: got -1", BatchNorm2d(-1));
  REFUSED("BatchNorm1d: num_features: got -1", BatchNorm1d(-1, {.affine = false, .track_running_stats = false}));
  REFUSED("InstanceNorm: num_features: got -1", InstanceNorm2d(-1));
  REFUSED("InstanceNorm: num_features: got -1", InstanceNorm3d(-1, {.affine = true}));
  REFUSED("PReLU: num_parameters: got -1", PReLU(-1));
}

TEST(LayerChecks, BatchNormsTakeInputsOfTheirDims) {
  const auto message = [](const auto& norm, const IntList& shape) { return message_of([&] { norm(ones(shape)); }); };
  EXPECT_EQ(
      message(BatchNorm1d(3), {2, 3, 4, 4}).find("BatchNorm1d: input: got shape [2, 3, 4, 4], expected 2 or 3 dims"),
      0u);
  EXPECT_EQ(message(BatchNorm2d(3), {2, 3}).find("BatchNorm2d: input: got shape [2, 3], expected 4 dims"), 0u);
  EXPECT_EQ(message(BatchNorm3d(3), {2, 3, 4, 4}).find("BatchNorm3d: input: got shape [2, 3, 4, 4], expected 5 dims"),
            0u);
  for (const std::string& fits :
       {message(BatchNorm1d(3), {2, 3}), message(BatchNorm1d(3), {2, 3, 4}), message(BatchNorm2d(3), {2, 3, 4, 4}),
        message(BatchNorm3d(3), {2, 3, 2, 2, 2}), message(BatchNorm(3), {2, 3, 4, 4})})
    EXPECT_EQ(fits, "no error");
  const BatchNorm2d norm(3);
  EXPECT_EQ(BatchNorm(norm).ptr().get(), norm.ptr().get());
}

TEST(LayerChecks, GroupsAndHeadsDivide) {
  REFUSED("Conv2d: padding: got \"sam\", expected \"same\", \"valid\" or numbers", Conv2d(3, 4, 3, {.padding = "sam"}));
  REFUSED("Conv2d: stride: got 2, expected 1 for padding \"same\"", Conv2d(3, 4, 3, {.stride = 2, .padding = "same"}));
  REFUSED("Conv2d: padding: got -1", Conv2d(3, 4, 3, {.padding = -1}));
  REFUSED("Conv2d: padding: got 3 numbers, expected one, or 2", Conv2d(3, 4, 3, {.padding = {1, 2, 3}}));
  REFUSED("Conv2d: padding_mode: got \"mirror\"", Conv2d(3, 4, 3, {.padding_mode = "mirror"}));
  REFUSED("Embedding: padding_idx: got 6, expected an index of 6 rows", Embedding(6, 4, {.padding_idx = 6}));
  REFUSED("Embedding: max_norm: got -1", Embedding(6, 4, {.max_norm = -1}));
  REFUSED("EmbeddingBag: mode: got \"min\"", EmbeddingBag(6, 4, {.mode = "min"}));
  REFUSED("EmbeddingBag: scale_grad_by_freq: got true with mode \"max\"",
          EmbeddingBag(6, 4, {.mode = "max", .scale_grad_by_freq = true}));
  REFUSED("TransformerEncoderLayer: activation: got \"silu\"", TransformerEncoderLayer(6, 2, {.activation = "silu"}));
  REFUSED("TransformerDecoderLayer: dropout: got 1.5", TransformerDecoderLayer(6, 2, {.dropout = 1.5}));
  REFUSED("TransformerEncoderLayer: dim_feedforward: got 0", TransformerEncoderLayer(6, 2, {.dim_feedforward = 0}));
  REFUSED("Conv2d: in_channels: got 30, expected a multiple of groups (4)", Conv2d(30, 64, 3, {.groups = 4}));
  REFUSED("Conv1d: out_channels: got 30, expected a multiple of groups (4)", Conv1d(64, 30, 3, {.groups = 4}));
  REFUSED("ConvTranspose3d: in_channels: got 30", ConvTranspose3d(30, 64, 3, {.groups = 4}));
  REFUSED("ConvTranspose2d: out_channels: got 30", ConvTranspose2d(64, 30, 3, {.groups = 4}));
  REFUSED("GroupNorm: num_channels: got 6, expected a multiple of num_groups (4)", GroupNorm(4, 6));
  REFUSED("GroupNorm: num_channels: got -4", GroupNorm(4, -4));
  REFUSED("GroupNorm: num_groups: got 0, expected a positive number", GroupNorm(0, 6));
  REFUSED("MultiheadAttention: embed_dim: got 6, expected a multiple of num_heads (4)", MultiheadAttention(6, 4));
  REFUSED("MultiheadAttention: num_heads: got 0", MultiheadAttention(6, 0));
  REFUSED("MultiheadAttention: num_heads: got -2", MultiheadAttention(6, -2));
  REFUSED("MultiheadAttention: embed_dim: got 0", MultiheadAttention(0, 2));
  REFUSED("MultiheadAttention: embed_dim: got -6", MultiheadAttention(-6, 2, false));
}

#define REFUSES_CONVOLUTION(Layer, dims)                                                   \
  REFUSED(#Layer ": in_channels: got -4", Layer(-4, 4, 3));                                \
  REFUSED(#Layer ": out_channels: got -4", Layer(4, -4, 3, {.bias = false}));              \
  REFUSED(#Layer ": kernel_size: got 0", Layer(4, 4, 0));                                  \
  REFUSED(#Layer ": kernel_size: got -1", Layer(4, 4, std::vector<int64_t>(dims, -1)));    \
  REFUSED(#Layer ": kernel_size: got 4 numbers", Layer(4, 4, std::vector<int64_t>(4, 1))); \
  REFUSED(#Layer ": stride: got 0", Layer(4, 4, 3, {.stride = 0}));                        \
  REFUSED(#Layer ": stride: got 4 numbers", Layer(4, 4, 3, {.stride = {1, 1, 1, 1}}));     \
  REFUSED(#Layer ": padding: got -1", Layer(4, 4, 3, {.padding = -1}));                    \
  REFUSED(#Layer ": dilation: got 0", Layer(4, 4, 3, {.dilation = 0}));                    \
  REFUSED(#Layer ": groups: got 0", Layer(4, 4, 3, {.groups = 0}));                        \
  REFUSED(#Layer ": groups: got -2", Layer(4, 4, 3, {.groups = -2}))
TEST(LayerChecks, Convolutions) {
  REFUSES_CONVOLUTION(Conv1d, 1);
  REFUSES_CONVOLUTION(Conv2d, 2);
  REFUSES_CONVOLUTION(Conv3d, 3);
  REFUSES_CONVOLUTION(ConvTranspose1d, 1);
  REFUSES_CONVOLUTION(ConvTranspose2d, 2);
  REFUSES_CONVOLUTION(ConvTranspose3d, 3);
  REFUSED("ConvTranspose2d: output_padding: got -1", ConvTranspose2d(4, 4, 3, {.output_padding = -1}));
}

#define REFUSES_POOLING(Layer, dims)                                              \
  REFUSED(#Layer ": kernel_size: got 0", Layer(0));                               \
  REFUSED(#Layer ": kernel_size: got -2", Layer(std::vector<int64_t>(dims, -2))); \
  REFUSED(#Layer ": kernel_size: got 4 numbers", Layer({1, 2, 3, 4}));            \
  REFUSED(#Layer ": stride: got 0", Layer(2, {.stride = 0}));                     \
  REFUSED(#Layer ": padding: got -1", Layer(2, {.padding = -1}));                 \
  REFUSED(#Layer ": padding: got 4 numbers", Layer(2, {.padding = {1, 1, 1, 1}}))
#define REFUSES_ADAPTIVE(Layer)                       \
  REFUSED(#Layer ": output_size: got -1", Layer(-1)); \
  REFUSED(#Layer ": output_size: got 4 numbers", Layer({1, 2, 3, 4}))
TEST(LayerChecks, Pooling) {
  REFUSES_POOLING(MaxPool1d, 1);
  REFUSES_POOLING(MaxPool2d, 2);
  REFUSES_POOLING(MaxPool3d, 3);
  REFUSES_POOLING(AvgPool1d, 1);
  REFUSES_POOLING(AvgPool2d, 2);
  REFUSES_POOLING(AvgPool3d, 3);
  REFUSED("MaxPool2d: dilation: got 0", MaxPool2d(2, {.dilation = 0}));
  REFUSED("AvgPool2d: divisor_override: got 0", AvgPool2d(2, {.divisor_override = 0}));
  REFUSES_ADAPTIVE(AdaptiveAvgPool1d);
  REFUSES_ADAPTIVE(AdaptiveAvgPool2d);
  REFUSES_ADAPTIVE(AdaptiveAvgPool3d);
  REFUSES_ADAPTIVE(AdaptiveMaxPool1d);
  REFUSES_ADAPTIVE(AdaptiveMaxPool2d);
  REFUSES_ADAPTIVE(AdaptiveMaxPool3d);
}

TEST(LayerChecks, TheOthers) {
  for (double p : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(Dropout{p}, Error) << p;
    EXPECT_THROW(Dropout2d{p}, Error) << p;
    EXPECT_THROW(CrossEntropyLoss(Tensor(), -100, "mean", p), Error) << p;
  }
  REFUSED("Dropout: p: got 1.5", Dropout(1.5));
  REFUSED("FeatureDropout: p: got -0.5", Dropout2d(-0.5));
  REFUSED("Dropout3d: p: got -0.5", Dropout3d(-0.5));
  REFUSED("AlphaDropout: p: got 2", AlphaDropout(2));
  REFUSED("Bilinear: in1_features: got 0", Bilinear(0, 2, 3));
  REFUSED("Bilinear: out_features: got -3", Bilinear(1, 2, -3));
  REFUSED("ChannelShuffle: groups: got 0", ChannelShuffle(0));
  REFUSED("LSTMCell: input_size: got -1", LSTMCell(-1, 2));
  REFUSED("GRUCell: hidden_size: got 0", GRUCell(1, 0));
  REFUSED("RNNCell: nonlinearity: got \"sine\"", RNNCell(1, 2, {.nonlinearity = "sine"}));
  REFUSED("ZeroPad2d: padding: got 3 numbers, expected one, or 4", ZeroPad2d({1, 2, 3}));
  REFUSED("ConstantPad1d: padding: got 3 numbers, expected one, or 2", ConstantPad1d({1, 2, 3}, 1.0));
  REFUSED("LPPool2d: norm_type: got 0", LPPool2d(0, 2));
  REFUSED("LPPool1d: stride: got 0", LPPool1d(2, 2, {.stride = 0}));
  REFUSED("MaxUnpool2d: padding: got -1", MaxUnpool2d(2, {.padding = -1}));
  REFUSED("MultiMarginLoss: p: got 3", MultiMarginLoss(3));
  REFUSED("TripletMarginLoss: margin: got 0", TripletMarginLoss({.margin = 0}));
  REFUSED("LocalResponseNorm: size: got 0", LocalResponseNorm(0));
  REFUSED("PixelShuffle: upscale_factor: got 0", PixelShuffle(0));
  REFUSED("PixelUnshuffle: downscale_factor: got -1", PixelUnshuffle(-1));
  REFUSED("Unfold: kernel_size: got 0", Unfold(0));
  REFUSED("Unfold: stride: got 0", Unfold(2, {.stride = 0}));
  REFUSED("Unfold: dilation: got 0", Unfold(2, {.dilation = 0}));
  REFUSED("Fold: output_size: got 0", Fold(0, 2));
  REFUSED("Fold: kernel_size: got 3 numbers", Fold(4, {1, 2, 3}));
  REFUSED("Fold: padding: got -1", Fold(4, 2, {.padding = -1}));
  REFUSED("Upsample: size: got neither", Upsample(UpsampleOptions{}));
  REFUSED("Upsample: size: got size and scale_factor", Upsample({.size = 3, .scale_factor = {2}}));
  REFUSED("Upsample: size: got 0", Upsample({.size = {3, 0}}));
  REFUSED("Upsample: scale_factor: got -2", Upsample({.scale_factor = {2, -2}}));
}

// Sizes of 0 are sizes, as in PyTorch.
TEST(LayerChecks, WhatIsRightIsMade) {
  EXPECT_EQ(Linear(0, 3)(zeros({2, 0})).sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(Linear(3, 0)(zeros({2, 3})).numel(), 0);
  EXPECT_NO_THROW(Conv2d(4, 8, {1, 3}, {.stride = {1, 2}, .padding = {0, 1}, .groups = 4}));
  EXPECT_NO_THROW(Conv2d(0, 8, 3));
  EXPECT_NO_THROW(MaxPool2d({2, 3}, {.stride = {1, 2}}));
  EXPECT_NO_THROW(AdaptiveAvgPool2d({0, 3}));
  EXPECT_NO_THROW(Dropout(1.0));
  EXPECT_NO_THROW(Embedding(0, 3));
}

struct OwnImpl : Module {
  Linear first{2, 3}, second;
  explicit OwnImpl(int64_t width) : second(3, width) {}  // the line of the user's module
  static constexpr int kLine = __LINE__ - 1;
};
INGOT_MODULE(Own, first, second);

TEST(LayerChecks, AModuleOfTheUsersHasItsOwnLines) {
  const std::string place = "nn_checks_test.cpp:" + std::to_string(OwnImpl::kLine) + ")";
  const std::string message = message_of([] { Own(-1); });
  EXPECT_NE(message.find(place), std::string::npos) << message;
  REFUSED("Linear: out_features: got -1", Sequential{ReLU(), Linear(3, -1)});
}

}  // namespace
}  // namespace ingot
