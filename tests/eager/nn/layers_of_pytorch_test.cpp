// Layers against PyTorch 2.15 in double: parameters and inputs are sines of their positions, results are compared by a
// weighted sum.
#include <gtest/gtest.h>

#include <cmath>

#include "eager/nn/layers.h"
#include "eager/nn/pad_layers.h"
#include "eager/nn/transformer_layers.h"
#include "eager/nn/window_layers.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

Tensor positions(const IntList& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes.items()) count *= size;
  return arange(count).to(kFloat64);
}
Tensor input(const IntList& sizes) { return (positions(sizes) * 0.61).cos().reshape(sizes); }
double weighed(const Tensor& y) {
  const NoGradGuard no_grad;
  return (y * (positions({y.numel()}) * 0.3).sin().reshape(y.sizes().vec())).sum().item<double>();
}
template <class M>
M filled(M module) {
  module->to(kFloat64);
  module->eval();
  const NoGradGuard no_grad;
  int64_t number = 0;
  for (const auto& [name, p] : module->named_parameters()) {
    const bool scale = name.find("norm") != std::string::npos && name.find("weight") != std::string::npos;
    p.copy_((positions({p.numel()}) * 0.37 + static_cast<double>(number++)).sin().reshape(p.sizes().vec()) * 0.4 +
            (scale ? 1.0 : 0.0));
  }
  return module;
}
#define EXPECT_PYTORCHS(y, expected) EXPECT_NEAR(weighed(y), expected, 1e-11)

Tensor causal() { return ones({5, 5}, kBool).triu(1); }
Tensor padding() {
  const Tensor mask = zeros({3, 5}, kBool);
  mask.select(0, 1).narrow(0, 4, 1).fill_(true);
  mask.select(0, 2).narrow(0, 2, 3).fill_(true);
  return mask;
}

TEST(LayersOfPyTorch, TransformerEncoderLayer) {
  struct Case {
    nn::TransformerOptions options;
    double plain, causal, padded, both, added, one;
  };
  const Case cases[] = {
      {{.dim_feedforward = 16},
       0.3269804563677892,
       -0.13354586306625182,
       -0.2148274522397352,
       -0.15319707433385943,
       0.09627088600416245,
       1.070279079618344},
      {{.dim_feedforward = 16, .activation = "gelu", .layer_norm_eps = 1e-3, .norm_first = true},
       2.2026001242134248,
       1.8659291812146475,
       2.039420226808722,
       1.5975221959474113,
       2.084676553287717,
       1.9581251348043902},
      {{.dim_feedforward = 16, .bias = false},
       1.9615455125850576,
       1.6135810352179625,
       2.1867433470589903,
       1.5354459870927961,
       1.8382667658605898,
       0.6338007785199955},
  };
  const Tensor src = input({3, 5, 8});
  for (const Case& c : cases) {
    const auto layer = filled(nn::TransformerEncoderLayer(8, 2, c.options));
    EXPECT_PYTORCHS(layer(src), c.plain);
    EXPECT_PYTORCHS(layer(src, causal()), c.causal);
    EXPECT_PYTORCHS(layer(src, Tensor(), Tensor(), true), c.causal);
    EXPECT_PYTORCHS(layer(src, Tensor(), padding()), c.padded);
    EXPECT_PYTORCHS(layer(src, causal(), padding()), c.both);
    EXPECT_PYTORCHS(layer(src, Tensor(), padding(), true), c.both);
    EXPECT_PYTORCHS(layer(src, causal(), Tensor(), true), c.causal);
    EXPECT_PYTORCHS(layer(src, causal().to(kFloat64) * -2.0), c.added);
    EXPECT_PYTORCHS(layer(src.select(0, 0)), c.one);
  }
  // One mask for each head of each sample.
  const Tensor masks = remainder(arange(6 * 5 * 5), 7).eq(3).reshape({6, 5, 5});
  EXPECT_PYTORCHS(filled(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16}))(src, masks), -0.9542580208713151);
}

TEST(LayersOfPyTorch, TransformerDecoderLayer) {
  const Tensor tgt = input({3, 5, 8}), memory = input({3, 4, 8}) * 0.5;
  const Tensor hidden = zeros({3, 4}, kBool);
  hidden.select(0, 0).narrow(0, 3, 1).fill_(true);
  const auto after = filled(nn::TransformerDecoderLayer(8, 2, {.dim_feedforward = 16}));
  EXPECT_PYTORCHS(after(tgt, memory), -2.2945256890208494);
  EXPECT_PYTORCHS(after(tgt, memory, causal(), Tensor(), Tensor(), hidden), -2.240177099890616);
  const auto before =
      filled(nn::TransformerDecoderLayer(8, 2, {.dim_feedforward = 16, .activation = "gelu", .norm_first = true}));
  EXPECT_PYTORCHS(before(tgt, memory), 1.9433829291407216);
  EXPECT_PYTORCHS(before(tgt, memory, causal(), Tensor(), Tensor(), hidden), 0.36895840428724824);
}

TEST(LayersOfPyTorch, TransformerStacks) {
  const Tensor src = input({3, 5, 8});
  const auto encoder = filled(nn::TransformerEncoder(
      [] { return nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16}); }, 2, nn::LayerNorm(8)));
  EXPECT_PYTORCHS(encoder(src, causal()), 0.46408088645266754);
  EXPECT_EQ(encoder->named_parameters().size(), 26u);
  EXPECT_EQ(encoder->named_parameters()[0].first, "layers.0.self_attn.in_proj_weight");
  const auto decoder =
      filled(nn::TransformerDecoder([] { return nn::TransformerDecoderLayer(8, 2, {.dim_feedforward = 16}); }, 2));
  EXPECT_PYTORCHS(decoder(src, input({3, 4, 8}) * 0.5, causal()), -1.6240774212403917);
  // Of one layer: clones of it.
  const nn::TransformerEncoderLayer one(8, 2, {.dim_feedforward = 16});
  const nn::TransformerEncoder clones(one, 2);
  for (const auto& layer : clones->layers) {
    EXPECT_TRUE(equal(layer->linear1->weight, one->linear1->weight));
    EXPECT_FALSE(layer->linear1->weight.shares_storage(one->linear1->weight));
  }
  EXPECT_EQ(nn::TransformerDecoder(nn::TransformerDecoderLayer(8, 2, {.dim_feedforward = 16}), 3)->layers.size(), 3u);
}

TEST(LayersOfPyTorch, TransformerOfEncoderAndDecoder) {
  const auto model =
      filled(nn::Transformer(8, 2, {.num_encoder_layers = 2, .num_decoder_layers = 1, .dim_feedforward = 16}));
  const Tensor src = input({3, 5, 8}), tgt = input({3, 4, 8}) * 0.5;
  EXPECT_PYTORCHS(model(src, tgt), -0.7057466136766417);
  const Tensor ahead = nn::TransformerImpl::generate_square_subsequent_mask(4), none = Tensor();
  EXPECT_EQ(ahead[0][1].item<float>(), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(ahead[1][1].item<float>(), 0);
  try {
    nn::TransformerImpl::generate_square_subsequent_mask(-1);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("layers_of_pytorch_test.cpp"), std::string::npos) << e.what();
  }
  EXPECT_PYTORCHS(model(src, tgt, none, ahead.to(kFloat64)), -0.4092147957055432);
  EXPECT_PYTORCHS(model(src, tgt, none, ones({4, 4}, kBool).triu(1), none, padding(), none, padding()),
                  -0.4231449475061342);
  EXPECT_EQ(model->named_parameters().front().first, "encoder.layers.0.self_attn.in_proj_weight");
  EXPECT_EQ(model->named_parameters().back().first, "decoder.norm.bias");
  EXPECT_EQ(model->named_parameters().size(), 46u);
  // As xavier_uniform_ draws: within sqrt(6 / (fan_in + fan_out)).
  const nn::Transformer fresh(8, 2, {.num_encoder_layers = 1, .num_decoder_layers = 1, .dim_feedforward = 16});
  const Tensor weight = fresh->encoder->layers[0]->linear1->weight;
  EXPECT_LE(weight.abs().max().item<float>(), 0.5f);
  EXPECT_GT(weight.abs().max().item<float>(), 0.4f);
}

TEST(LayersOfPyTorch, TransformersDropInTrainingOnly) {
  const auto layer = filled(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16, .dropout = 0.5}));
  const Tensor src = input({3, 5, 8});
  const double expected = weighed(layer(src));
  EXPECT_EQ(weighed(layer(src)), expected);
  layer->train();
  manual_seed(1);
  const double dropped = weighed(layer(src));
  EXPECT_NE(dropped, expected);
  manual_seed(1);
  EXPECT_EQ(weighed(layer(src)), dropped);
}

TEST(LayersOfPyTorch, PaddingOfConvolutions) {
  struct Case {
    const char* mode;
    nn::ConvPadding padding;
    IntList dilation;
    double expected;
    IntList sizes;
  };
  const Case cases[] = {{"zeros", {1, 2}, 1, 5.863488402203021, {2, 3, 9, 12}},
                        {"zeros", "same", {1, 2}, 22.505349275506187, {2, 3, 9, 11}},
                        {"zeros", "valid", 1, -23.28991567569021, {2, 3, 7, 8}},
                        {"reflect", {1, 2}, 1, 4.290016922887863, {2, 3, 9, 12}},
                        {"reflect", "same", {1, 2}, -1.81654513571248, {2, 3, 9, 11}},
                        {"reflect", "valid", 1, -23.28991567569021, {2, 3, 7, 8}},
                        {"replicate", {1, 2}, 1, 4.25306956668379, {2, 3, 9, 12}},
                        {"replicate", "same", {1, 2}, -8.57739506268684, {2, 3, 9, 11}},
                        {"circular", {1, 2}, 1, 7.996926967239805, {2, 3, 9, 12}},
                        {"circular", "same", {1, 2}, 42.047840509751715, {2, 3, 9, 11}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.mode + std::string(" ") + c.padding.word());
    const auto layer =
        filled(nn::Conv2d(2, 3, {3, 4}, {.padding = c.padding, .dilation = c.dilation, .padding_mode = c.mode}));
    const Tensor y = layer(input({2, 2, 9, 11}));
    EXPECT_EQ(y.sizes(), c.sizes.items());
    EXPECT_PYTORCHS(y, c.expected);
  }
}

TEST(LayersOfPyTorch, Tables) {
  const Tensor indices = tensor({0, 4, 5, 4, 1, 1}).reshape({2, 3});
  const auto padded = filled(nn::Embedding(6, 4, {.padding_idx = -2}));
  EXPECT_PYTORCHS(padded(indices), -0.19050833121332877);
  padded(indices).square().sum().backward();
  EXPECT_PYTORCHS(padded->weight.grad(), 6.353952036577931);
  EXPECT_EQ(nn::Embedding(6, 4, {.padding_idx = 2})->weight.select(0, 2).abs().sum().item<double>(), 0);

  const auto scaled = filled(nn::Embedding(6, 4, {.max_norm = 0.5}));
  EXPECT_PYTORCHS(scaled(indices), -0.06679685744954506);
  EXPECT_PYTORCHS(scaled->weight, 2.475477679813724);

  struct Case {
    const char* mode;
    double rows, offsets;
  };
  for (const auto& [mode, rows, offsets] :
       {Case{"sum", 3.5505816118928974, 2.9867907800404794}, Case{"mean", 1.7752908059464487, 1.4933953900202397},
        Case{"max", 1.861187116873827, 1.8609308070699804}}) {
    const auto bag = filled(nn::EmbeddingBag(6, 4, {.mode = mode, .padding_idx = 4}));
    EXPECT_PYTORCHS(bag(indices), rows);
    EXPECT_PYTORCHS(bag(indices.flatten(), tensor({0, 0, 4})), offsets);
  }
}

struct BranchesImpl : nn::Module {
  std::map<std::string, nn::Linear> heads{{"left", nn::Linear(4, 2)}, {"right", nn::Linear(4, 3)}};
  Tensor forward(const Tensor& x, const std::string& which) { return heads.at(which)(x); }
};
INGOT_MODULE(Branches, heads);

TEST(LayersOfPyTorch, TakeAListOfOneSize) {
  const Tensor x = input({2, 3});
  const Tensor expected = nn::LayerNorm(3)(x.to(kFloat32));
  for (const nn::LayerNorm& norm : {nn::LayerNorm({3}), nn::LayerNorm({x.size(1)}), nn::LayerNorm({3}, {.eps = 1e-5}),
                                    nn::LayerNorm(std::vector<int64_t>{3}), nn::LayerNorm(x.size(1))})
    EXPECT_TRUE(equal(norm(x.to(kFloat32)), expected));
  const nn::LayerNorm copied = nn::LayerNorm({2, 3}), list{{2, 3}}, one{3};
  EXPECT_EQ(copied->weight.dim(), 2);
  EXPECT_EQ(list->weight.dim(), 2);
  EXPECT_EQ(one->weight.dim(), 1);
  EXPECT_EQ(nn::RMSNorm({3})->weight.dim(), 1);
  EXPECT_EQ(nn::RMSNorm({2, 3})->weight.dim(), 2);
  EXPECT_EQ(nn::RMSNorm({3}, 1e-3, false)->eps, 1e-3);
  const Tensor image = ones({1, 1, 4, 4});
  EXPECT_EQ(nn::MaxPool2d({2})(image).size(2), 2);
  EXPECT_EQ(nn::AvgPool2d({2}, {.stride = 1})(image).size(2), 3);
  EXPECT_EQ(nn::AdaptiveAvgPool2d({1})(image).size(2), 1);
  EXPECT_EQ(nn::ZeroPad2d({1})(image).size(2), 6);
  EXPECT_EQ(nn::Unfold({2})(image).size(1), 4);
  EXPECT_FALSE(nn::LayerNorm(nullptr));
}

TEST(Module, AMapNamesItsModulesByItsKeys) {
  Branches branches;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : branches->named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"heads.left.weight", "heads.left.bias", "heads.right.weight",
                                             "heads.right.bias"}));
  EXPECT_EQ(branches(randn({1, 4}), "right").size(1), 3);
}

struct BlockImpl : nn::Module {
  std::vector<std::pair<std::string, nn::Linear>> layers;
  BlockImpl() {
    for (int i = 1; i <= 11; ++i)
      layers.emplace_back(i == 2 ? "" : "layer" + std::to_string(i), nn::Linear(2, 2, false));
  }
  Tensor forward(const Tensor& x) {
    Tensor y = x;
    for (auto& [name, layer] : layers) y = layer(y);
    return y;
  }
};
INGOT_MODULE(Block, layers);

TEST(Module, PairsHaveNamesInAnOrderOfTheirOwn) {
  Block block;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : block->named_parameters()) names.push_back(name);
  EXPECT_EQ(names[0], "layers.layer1.weight");
  EXPECT_EQ(names[1], "layers.1.weight");  // without a name: its place
  EXPECT_EQ(names[10], "layers.layer11.weight");
  Block copy = block.clone();
  const Tensor x = randn({3, 2});
  EXPECT_TRUE(equal(copy(x), block(x)));
  EXPECT_FALSE(copy->layers[3].second->weight.is_same(block->layers[3].second->weight));
  copy->load_state_dict(Block()->state_dict());
  EXPECT_FALSE(equal(copy(x), block(x)));
  // A checkpoint would have one of two tensors of one name.
  const StateDict state = block->state_dict();
  for (const char* taken : {"layer1", "1"}) {
    block->layers[3].first = taken;
    EXPECT_THROW(block->state_dict(), Error);
    EXPECT_THROW(block->load_state_dict(state), Error);
  }
}

TEST(Module, ASequentialHasGivenNames) {
  nn::Sequential net{{"norm", nn::LayerNorm(4)}, {"act", nn::GELU()}, {"fc", nn::Linear(4, 2)}};
  auto names = [&] {
    std::vector<std::string> found;
    for (const auto& [name, module] : net->named_children()) found.push_back(name);
    return found;
  };
  net->push_back(nn::ReLU());
  net->push_back("out", nn::Linear(2, 1));
  EXPECT_EQ(names(), (std::vector<std::string>{"norm", "act", "fc", "3", "out"}));
  const Tensor x = randn({3, 4});
  const auto& m = net->modules;
  EXPECT_TRUE(equal(net(x), m[4].second(m[3].second(m[2].second(m[1].second(m[0].second(x)))))));
  EXPECT_TRUE(equal(net.clone()(x), net(x)));
  std::vector<nn::Module*> modules;
  for (nn::AnyModule& module : *net) modules.push_back(&*module);
  EXPECT_EQ(modules, (std::vector<nn::Module*>{&*net[0], &*net[1], &*net[2], &*net[3], &*net[4]}));
  EXPECT_EQ(net[2]->as<nn::Linear>()->weight.size(0), 2);
  EXPECT_THROW(net[5], Error);
  const nn::Sequential one{{"fc", nn::Linear(4, 2)}};
  EXPECT_EQ(one->named_parameters()[0].first, "fc.weight");
  EXPECT_THROW(net->push_back("fc", nn::ReLU()), Error);
  EXPECT_THROW(net->push_back("3", nn::ReLU()), Error);
  EXPECT_THROW(net->push_back("a.b", nn::ReLU()), Error);
  EXPECT_THROW(net->push_back("", nn::ReLU()), Error);
  EXPECT_THROW((nn::Sequential{{"fc", nn::ReLU()}, {"fc", nn::ReLU()}}), Error);
  EXPECT_EQ(net->modules.size(), 5u);
}

}  // namespace
}  // namespace ingot
