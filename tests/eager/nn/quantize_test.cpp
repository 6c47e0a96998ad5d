// Weights of linear layers in fewer bytes: what is made of a weight, and what a module with one does.
#include "eager/nn/quantize.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "../support.h"
#include "eager/nn/layers.h"
#include "eager/serialization.h"

namespace ingot {
namespace {

struct NetImpl : nn::Module {
  nn::Linear first{20, 33}, last{33, 7, false};
  nn::LayerNorm norm{33};
  Tensor forward(const Tensor& x) const { return last(F::gelu(norm(first(x)))); }
};
INGOT_MODULE(Net, first, last, norm);

bool equal(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && (a == b).all().item<bool>();
}
TEST(Quantize, ARowIsItsLargestOver127) {
  const Tensor w = tensor({{1.0f, -2.0f, 0.5f}, {0.0f, 0.0f, 0.0f}, {127.0f, 0.5f, 1.5f}});
  const nn::Int8Weight q = nn::quantize_int8(w);
  EXPECT_TRUE(equal(q.weight, tensor({{64, -127, 32}, {0, 0, 0}, {127, 0, 2}}).to(kInt8)));
  EXPECT_TRUE(equal(q.scale, tensor({2.0f / 127, 1.0f, 1.0f})));
  for (DType dtype : {kFloat16, kBFloat16, kFloat64})
    EXPECT_TRUE(equal(nn::quantize_int8(w.to(dtype)).weight, q.weight));
  const Tensor random = randn({40, 300});
  const nn::Int8Weight r = nn::quantize_int8(random);
  EXPECT_EQ(r.weight.to(kInt32).abs().amax({1}).min().item<int>(), 127);
  EXPECT_LE(((r.weight.to(kFloat32) * r.scale.unsqueeze(1) - random).abs() / r.scale.unsqueeze(1)).max().item<float>(),
            0.5001f);
  EXPECT_EQ(nn::quantize_int8(zeros({3, 0})).weight.sizes(), IntArrayRef({3, 0}));
}

TEST(Quantize, RefusesWhatIsNoFiniteMatrix) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_NE(test::message_of([&] {
              nn::quantize_int8(tensor({{1.0f, inf}}));
            }).find("got NaN or infinities"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] { nn::quantize_int8(tensor({{1.0f, inf - inf}})); }).find("NaN"), std::string::npos);
  EXPECT_NE(test::message_of([&] { nn::quantize_int8(ones({3})); }).find("got 1 dims"), std::string::npos);
  EXPECT_NE(test::message_of([&] { nn::quantize_int8(ones({3, 3}, kInt8)); }).find("got i8"), std::string::npos);
  EXPECT_NE(test::message_of([&] { nn::quantize_int8(Tensor()); }).find("got none"), std::string::npos);
}

TEST(Quantize, LayersOfATreeOnceAndByName) {
  const NoGradGuard no_grad;
  Net net;
  const Tensor x = randn({5, 20}), before = net(x);
  EXPECT_EQ(nn::quantize_weights(*net, [](const std::string& name, nn::Module&) { return name == "first"; }), 1);
  EXPECT_EQ(net->first->weight.dtype(), kInt8);
  EXPECT_EQ(net->last->weight.dtype(), kFloat32);
  EXPECT_EQ(nn::quantize_weights(*net), 1) << "the other";
  EXPECT_EQ(nn::quantize_weights(*net), 0);
  EXPECT_LT((net(x) - before).abs().max().item<float>(), 0.05f);
  std::vector<std::string> parameters, buffers;
  for (const auto& [name, t] : net->named_parameters()) parameters.push_back(name);
  for (const auto& [name, t] : net->named_buffers()) buffers.push_back(name);
  EXPECT_EQ(parameters, (std::vector<std::string>{"first.bias", "norm.weight", "norm.bias"}));
  EXPECT_EQ(buffers,
            (std::vector<std::string>{"first.weight", "first.weight_scale", "last.weight", "last.weight_scale"}));
}

TEST(Quantize, DtypesOfScalesStay) {
  const NoGradGuard no_grad;
  Net net;
  nn::quantize_weights(*net);
  const Tensor x = randn({5, 20}), f32 = net(x);
  Net copy = net.clone();
  EXPECT_TRUE(equal(copy(x), f32));
  EXPECT_NE(copy->first->weight.data_ptr(), net->first->weight.data_ptr());
  for (DType dtype : {kBFloat16, kFloat16, kFloat64}) {
    copy->to(dtype);
    EXPECT_EQ(copy->first->weight.dtype(), kInt8);
    EXPECT_EQ(copy->first->weight_scale.dtype(), kFloat32);
    EXPECT_EQ(copy->first->bias.dtype(), dtype);
    const Tensor y = copy(x.to(dtype));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_LT((y.to(kFloat32) - f32).abs().max().item<float>(), 0.1f);
  }
}

TEST(Quantize, StateIsSavedAndLoaded) {
  const NoGradGuard no_grad;
  Net net;
  nn::quantize_weights(*net);
  const Tensor x = randn({5, 20});
  const std::string path = (std::filesystem::temp_directory_path() / "ingot_quantized.safetensors").string();
  save(net->state_dict(), path);
  for (bool assign : {false, true}) {
    Net other = [] {
      nn::SkipInit skip;
      return Net();
    }();
    EXPECT_EQ(nn::quantize_weights(*other), 2);
    other->load_state_dict(load(path), {.assign = assign});
    EXPECT_TRUE(equal(other(x), net(x)));
  }
  std::filesystem::remove(path);
}

TEST(Quantize, OtherStatesAreRefused) {
  Net plain, net;
  nn::quantize_weights(*net);
  auto error = [](nn::Module& module, const StateDict& state) {
    return test::message_of([&] { module.load_state_dict(state); });
  };
  EXPECT_NE(error(*plain, net->state_dict()).find("first.weight_scale"), std::string::npos);
  const std::string floats = error(*net, plain->state_dict());
  EXPECT_NE(floats.find("no tensor for first.weight_scale"), std::string::npos) << floats;
  EXPECT_NE(floats.find("wrong dtypes: first.weight: f32 for i8"), std::string::npos) << floats;
  StateDict state = net->state_dict();
  state["first.weight_scale"] = state["first.weight_scale"].to(kFloat16);
  EXPECT_NE(error(*net, state).find("first.weight_scale: f16 for f32"), std::string::npos);
  state = net->state_dict();
  state["last.weight_scale"] = ones({8});
  EXPECT_NE(error(*net, state).find("last.weight_scale: [8] for [7]"), std::string::npos);
  EXPECT_NE(test::message_of([&] {
              net->load_state_dict({{"last.weight", ones({7, 33}, kInt64)}}, {.strict = false, .assign = true});
            }).find("i64 for i8"),
            std::string::npos);
}

TEST(ConvertWeights, LayersGiveTheProductsOfRoundedWeights) {
  const NoGradGuard no_grad;
  for (DType format : {kBFloat16, kFloat16}) {
    SCOPED_TRACE(name_of(format));
    Net net;
    Net rounded = net.clone();
    for (Tensor* w : {&rounded->first->weight, &rounded->last->weight}) *w = w->to(format).to(kFloat32);
    EXPECT_EQ(nn::convert_weights(*net, format, [](const std::string& name, nn::Module&) { return name == "last"; }),
              1);
    EXPECT_EQ(net->first->weight.dtype(), kFloat32);
    EXPECT_EQ(nn::convert_weights(*net, format), 1) << "the other";
    EXPECT_EQ(nn::convert_weights(*net, format), 0);
    for (const Tensor& w : {net->first->weight, net->last->weight}) EXPECT_EQ(w.dtype(), format);
    EXPECT_EQ(net->first->bias.dtype(), kFloat32);
    EXPECT_EQ(net->named_parameters().size(), 5u) << "they are parameters still";
    for (int64_t rows : {1, 5}) {
      const Tensor x = randn({rows, 20});
      EXPECT_EQ(net(x).dtype(), kFloat32);
      EXPECT_TRUE(equal(net(x), rounded(x)));
      EXPECT_TRUE(equal(net.clone()(x), rounded(x)));
    }
    // From one of them to int8, and no further.
    EXPECT_EQ(nn::quantize_weights(*net), 2);
    EXPECT_EQ(net->first->weight.dtype(), kInt8);
    EXPECT_EQ(nn::convert_weights(*net, format), 0);
  }
}

TEST(ConvertWeights, AnInputThatIsNoWiderIsNotConverted) {
  const NoGradGuard no_grad;
  Net net;
  nn::convert_weights(*net, kBFloat16);
  net->to(kBFloat16);
  Net plain = net.clone();
  plain->first->widens = plain->last->widens = false;
  const Tensor x = randn({5, 20}).to(kBFloat16);
  EXPECT_TRUE(equal(net(x), plain(x)));
  EXPECT_NE(test::message_of([&] { plain(x.to(kFloat32)); }).find("linear"), std::string::npos)
      << "only what was converted is widened";
  EXPECT_NE(test::message_of([&] { net->last(randn({5, 33}).to(kFloat16)); }).find("linear"), std::string::npos);
  net->to(kFloat64);
  EXPECT_EQ(net(x.to(kFloat64)).dtype(), kFloat64);
}

TEST(ConvertWeights, StateIsSavedAndLoaded) {
  const NoGradGuard no_grad;
  const std::string path = (std::filesystem::temp_directory_path() / "ingot_converted.safetensors").string();
  for (DType format : {kBFloat16, kFloat16}) {
    Net plain;
    Net net = plain.clone();
    nn::convert_weights(*net, format);
    const Tensor x = randn({5, 20});
    save(net->state_dict(), path);
    EXPECT_EQ(load(path).at("first.weight").dtype(), format);
    for (bool assign : {false, true}) {
      Net other = [] {
        nn::SkipInit skip;
        return Net();
      }();
      EXPECT_EQ(nn::convert_weights(*other, format), 2);
      other->load_state_dict(load(path), {.assign = assign});
      EXPECT_EQ(other->last->weight.dtype(), format);
      EXPECT_TRUE(equal(other(x), net(x)));
    }
    Net rounded;  // what is loaded becomes what the module has
    nn::convert_weights(*rounded, format);
    rounded->load_state_dict(plain->state_dict());
    EXPECT_TRUE(equal(rounded(x), net(x)));
  }
  std::filesystem::remove(path);
}

TEST(ConvertWeights, RefusesWhatItCannotKeep) {
  const float inf = std::numeric_limits<float>::infinity();
  Net net;
  auto error = [](auto f) { return test::message_of(f); };
  for (DType format : {kFloat32, kFloat64, kInt32, kUInt8, kBool})
    EXPECT_NE(error([&] {
                nn::convert_weights(*net, format);
              }).find("convert_weights: format: got " + std::string(name_of(format)) + ", expected bf16, f16 or i8"),
              std::string::npos);
  EXPECT_EQ(net->first->weight.dtype(), kFloat32);
  EXPECT_NE(error([&] { nn::round_weight(ones({2, 2}), kFloat64); }).find("dtype: got f64"), std::string::npos);
  EXPECT_NE(error([&] {
              nn::round_weight(tensor({{1.0f, inf}}), kBFloat16);
            }).find("NaN or infinities"),
            std::string::npos);
  EXPECT_NE(error([&] {
              nn::round_weight(tensor({{1.0f, -70000.0f}}), kFloat16);
            }).find("got numbers up to 70000.000000, expected those that f16 has"),
            std::string::npos);
  EXPECT_TRUE(equal(nn::round_weight(tensor({{1.0f, 65504.0f}}), kFloat16).to(kFloat32), tensor({{1.0f, 65504.0f}})));
  EXPECT_NE(error([&] { nn::round_weight(ones({3}), kFloat16); }).find("got 1 dims"), std::string::npos);
  EXPECT_NE(error([&] { nn::round_weight(ones({3, 3}, kInt8), kFloat16); }).find("got i8"), std::string::npos);
  EXPECT_NE(error([&] { nn::round_weight(Tensor(), kFloat16); }).find("got none"), std::string::npos);
  EXPECT_EQ(nn::round_weight(zeros({3, 0}), kFloat16).sizes(), IntArrayRef({3, 0}));
}

// The last of them is refused: the layers before it are as they were, a parameter with its gradient in particular.
TEST(ConvertWeights, AllOrNone) {
  const float inf = std::numeric_limits<float>::infinity();
  for (DType format : {kBFloat16, kFloat16, kInt8})
    for (float wrong : {inf, inf - inf, 1e5f}) {
      if (wrong == 1e5f && format != kFloat16) continue;
      SCOPED_TRACE(std::string(name_of(format)) + " " + std::to_string(wrong));
      Net net;
      {
        const NoGradGuard no_grad;
        net->last->weight.select(0, 3).fill_(wrong);
      }
      net(randn({5, 20})).sum().backward();
      const Tensor weight = net->first->weight, copy = weight.detach().clone();
      const std::string error = test::message_of([&] { nn::convert_weights(*net, format); });
      EXPECT_NE(error.find("in last"), std::string::npos) << error;
      EXPECT_TRUE(net->first->weight.is_same(weight));
      EXPECT_TRUE(equal(weight, copy));
      EXPECT_TRUE(weight.grad().defined());
      EXPECT_FALSE(net->first->weight_scale.defined());
      EXPECT_FALSE(net->first->widens);
      EXPECT_EQ(net->named_parameters().size(), 5u);
      const NoGradGuard no_grad;
      net->last->weight.fill_(0.5);
      EXPECT_EQ(nn::convert_weights(*net, format), 2);
      EXPECT_EQ(net->first->weight.dtype(), format);
    }
}

}  // namespace
}  // namespace ingot
