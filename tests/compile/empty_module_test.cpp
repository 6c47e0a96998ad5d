// Empty modules: calling one is an error that names its type and the caller's line; a model passes over those it holds.
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <string>

#include "support.h"

namespace ingot {
namespace {

using test::error_of;
using test::same_bits;

std::string place(int line) { return std::string(__FILE__) + ":" + std::to_string(line); }

// Functions, not templates: each of the modules below would compile them anew.
void expect_says(const char* type, int line, const char* what, const std::function<void()>& call) {
  EXPECT_EQ(error_of(call), std::string(type) + ": self: got an empty module, expected one that holds a " + type +
                                " (" + place(line) + ")")
      << what;
}
void expect_begins(const char* type, const std::function<void()>& call) {
  EXPECT_EQ(error_of(call).find(std::string(type) + ": self: got an empty module"), 0u);
}
void expect_names(const std::string& text, const std::function<void()>& call) {
  EXPECT_NE(error_of(call).find(text), std::string::npos) << text;
}
void expect_refused_within(const char* type, CompileMode mode, const std::function<void(const Tensor&)>& call) {
  auto within = compile([&](const Tensor& t) { return call(t * 2), t; }, {.mode = mode});
  for (int time = 0; time < 3; ++time) expect_begins(type, [&] { within(ones({2, 4})); });
}

#define EXPECT_SAYS(expression, type) expect_says(type, __LINE__, #expression, [&] { static_cast<void>(expression); })

void expect_refused_in(const nn::Sequential& model, const char* type) {
  const Tensor x = ones({2, 4});
  EXPECT_SAYS(model(x), type);
  EXPECT_SAYS(compile(model)(x), type);
  EXPECT_EQ(model->named_modules().size(), 3u) << type;  // the model, and two of its three
}

// With as many tensors as its forward takes.
constexpr auto call_of = [](const auto& function, const Tensor& t) {
  if constexpr (std::is_invocable_v<decltype(function), Tensor>)
    return function(t);
  else if constexpr (std::is_invocable_v<decltype(function), Tensor, Tensor>)
    return function(t, t);
  else if constexpr (std::is_invocable_v<decltype(function), Tensor, Tensor, Tensor>)
    return function(t, t, t);
  else
    return function(t, t, t, t);
};

template <class M>
void expect_refused(const char* type) {
  const Tensor x = ones({2, 4});
  const M empty{nullptr};
  EXPECT_FALSE(empty) << type;
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen})
    expect_refused_within(type, mode, [&](const Tensor& t) { call_of(empty, t); });
  if constexpr (std::is_invocable_r_v<Tensor, M, Tensor>) {
    EXPECT_SAYS(empty(x), type);
    expect_refused_in(nn::Sequential{nn::Flatten(), empty, nn::ReLU()}, type);
  }
  expect_names(std::string(type) + ": self: got an empty module", [&] { empty->eval(); });
  expect_names(type, [&] { (*empty).eval(); });
}

template <class M>
void expect_refused_compiled(const char* type) {
  const Tensor x = ones({2, 4});
  const M empty{nullptr};
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(empty, {.mode = mode});
    for (int time = 0; time < 3; ++time) expect_begins(type, [&] { call_of(fast, x); });
  }
  if constexpr (std::is_invocable_r_v<Tensor, M, Tensor>) EXPECT_SAYS(compile(empty)(x), type);
}

// clang-format off
#define EVERY_MODULE(X) \
  X(AdaptiveAvgPool1d) X(AdaptiveAvgPool2d) X(AdaptiveAvgPool3d) X(AdaptiveLogSoftmaxWithLoss) X(AdaptiveMaxPool1d) X(AdaptiveMaxPool2d) \
  X(AdaptiveMaxPool3d) X(AlphaDropout) X(AvgPool1d) X(AvgPool2d) X(AvgPool3d) X(BCELoss) \
  X(BCEWithLogitsLoss) X(BatchNorm) X(BatchNorm1d) X(BatchNorm2d) X(BatchNorm3d) X(Bilinear) X(CELU) X(CTCLoss) X(ChannelShuffle) X(CircularPad1d) \
  X(CircularPad2d) X(CircularPad3d) X(ConstantPad1d) X(ConstantPad2d) X(ConstantPad3d) X(Conv1d) X(Conv2d) \
  X(Conv3d) X(ConvTranspose1d) X(ConvTranspose2d) X(ConvTranspose3d) X(CosineEmbeddingLoss) \
  X(CosineSimilarity) X(CrossEntropyLoss) X(Dropout) X(Dropout1d) X(Dropout3d) X(ELU) X(Embedding) \
  X(EmbeddingBag) X(FeatureAlphaDropout) X(FeatureDropout) X(Flatten) X(Fold) X(FractionalMaxPool2d) X(FractionalMaxPool3d) X(Functional) X(GELU) X(GLU) \
  X(GRUCell) X(GaussianNLLLoss) X(GroupNorm) X(Hardshrink) X(Hardsigmoid) X(Hardswish) X(Hardtanh) \
  X(HingeEmbeddingLoss) X(HuberLoss) X(Identity) X(InstanceNorm) X(KLDivLoss) X(L1Loss) X(LPPool1d) \
  X(LPPool2d) X(LPPool3d) X(LSTMCell) X(LayerNorm) X(LeakyReLU) X(Linear) X(LocalResponseNorm) \
  X(LogSigmoid) X(LogSoftmax) X(MSELoss) X(MarginRankingLoss) X(MaxPool1d) X(MaxPool2d) X(MaxPool3d) \
  X(MaxUnpool1d) X(MaxUnpool2d) X(MaxUnpool3d) X(Mish) X(MultiLabelMarginLoss) X(MultiLabelSoftMarginLoss) \
  X(MultiMarginLoss) X(MultiheadAttention) X(NLLLoss) X(PReLU) X(PairwiseDistance) X(PixelShuffle) \
  X(PixelUnshuffle) X(PoissonNLLLoss) X(RMSNorm) X(RNNCell) X(RReLU) X(ReLU) X(ReLU6) X(ReflectionPad1d) \
  X(ReflectionPad2d) X(ReflectionPad3d) X(ReplicationPad1d) X(ReplicationPad2d) X(ReplicationPad3d) X(SELU) \
  X(Sequential) X(SiLU) X(Sigmoid) X(SmoothL1Loss) X(SoftMarginLoss) X(Softmax) X(Softmax2d) X(Softmin) \
  X(Softplus) X(Softshrink) X(Softsign) X(Tanh) X(Tanhshrink) X(Threshold) X(Transformer) X(TransformerDecoder) \
  X(TransformerDecoderLayer) X(TransformerEncoder) X(TransformerEncoderLayer) X(TripletMarginLoss) \
  X(TripletMarginWithDistanceLoss) X(Unflatten) X(Unfold) X(Upsample) X(ZeroPad1d) X(ZeroPad2d) \
  X(ZeroPad3d)
// clang-format on

// Every handle that the headers make: read from them, so that a new one is asked for here.
std::set<std::string> handles_in_headers() {
  std::set<std::string> names;
  const std::regex made(R"(^\s*INGOT_[A-Z_0-9]+\((\w+))"), by_hand(R"(^class (\w+) : public (?:\w*Handle)<)");
  for (const char* header : {"layers.h", "activation_layers.h", "convolution_layers.h", "loss_layers.h", "pad_layers.h",
                             "recurrent_cells.h", "transformer_layers.h", "window_layers.h", "adaptive_softmax.h"}) {
    std::ifstream file(std::string(INGOT_SOURCE_DIR "/src/eager/nn/") + header);
    EXPECT_TRUE(file) << header;
    for (std::string line; std::getline(file, line);)
      for (const std::regex& form : {made, by_hand})
        if (std::smatch match;
            std::regex_search(line, match, form) && match[1] != "NAME" && !match[1].str().ends_with("Handle"))
          names.insert(match[1]);
  }
  return names;
}

TEST(EmptyModule, OfEveryTypeIsRefusedByNameAndLine) {
  std::set<std::string> tried;
#define TRY(name)                  \
  expect_refused<nn::name>(#name); \
  tried.insert(#name);
  EVERY_MODULE(TRY)
#undef TRY
  EXPECT_EQ(tried, handles_in_headers());
}

// One of each form of call, and what modules are made of: compile() of the others is the same templates again.
TEST(EmptyModule, CompiledByItselfIsRefusedByNameAndLine) {
  expect_refused_compiled<nn::Linear>("Linear");
  expect_refused_compiled<nn::Conv2d>("Conv2d");
  expect_refused_compiled<nn::Embedding>("Embedding");
  expect_refused_compiled<nn::Sequential>("Sequential");
  expect_refused_compiled<nn::MSELoss>("MSELoss");
  expect_refused_compiled<nn::MultiheadAttention>("MultiheadAttention");
}

struct BlockImpl : nn::Module {
  nn::Conv2d conv{3, 3, 1}, downsample{nullptr};
  nn::Linear head{nullptr};
  nn::Sequential tail{nullptr};
  std::vector<nn::Linear> layers{nn::Linear(2, 2), nn::Linear(nullptr), nn::Linear(2, 2)};
  std::optional<nn::BatchNorm2d> norm = nn::BatchNorm2d(nullptr);
  bool careless = false;
  int line_of_call = 0;
  Tensor forward(const Tensor& x) {
    Tensor y = conv(x);
    line_of_call = __LINE__ + 1;
    if (careless) y = downsample(y);
    return downsample ? y + downsample(x) : y + x;
  }
};
INGOT_MODULE(Block, conv, downsample, head, tail, layers, norm);
struct OuterImpl : nn::Module {
  Block first, second{nullptr};
  Tensor forward(const Tensor& x) { return first(x); }
};
INGOT_MODULE(Outer, first, second);

template <class List>
std::set<std::string> names(const List& list) {
  std::set<std::string> result;
  for (const auto& item : list) result.insert(item.first);
  return result;
}

TEST(EmptyModule, InsideAModelIsNothing) {
  Outer model;
  const std::set<std::string> tensors{"first.conv.weight",   "first.conv.bias",       "first.layers.0.weight",
                                      "first.layers.0.bias", "first.layers.2.weight", "first.layers.2.bias"};
  EXPECT_EQ(names(model->named_parameters()), tensors);
  EXPECT_EQ(names(model->state_dict()), tensors);
  EXPECT_EQ(model->parameters().size(), tensors.size());
  EXPECT_TRUE(model->buffers().empty());
  EXPECT_EQ(names(model->named_modules()),
            (std::set<std::string>{"", "first", "first.conv", "first.layers.0", "first.layers.2"}));
  EXPECT_EQ(names(model->named_children()), (std::set<std::string>{"first"}));
  int applied = 0;
  model->apply([&](nn::Module&) { ++applied; });
  EXPECT_EQ(applied, 5);
  model->eval();
  model->to(kFloat64);
  Outer other;
  other->to(kFloat64);
  other->load_state_dict(model->state_dict());
  EXPECT_TRUE(same_bits(other->first->conv->weight, model->first->conv->weight));
  StateDict foreign = model->state_dict();
  foreign["first.downsample.weight"] = ones({3, 3, 1, 1});
  EXPECT_NE(error_of([&] { other->load_state_dict(foreign); }).find("first.downsample.weight"), std::string::npos);
}

TEST(EmptyModule, OfAUserInsideAUsersModule) {
  const Tensor x = randn({2, 3, 4, 4});
  Outer model;
  auto fast = compile(model);
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(same_bits(fast(x), model(x)));  // the check before the call sees that there is none
    model->first->careless = true;
    const std::string expected = "Conv2d: self: got an empty module, expected one that holds a Conv2d (" +
                                 place(model->first->line_of_call) + ", in first)";
    EXPECT_EQ(error_of([&] { model(x); }), expected);
    EXPECT_EQ(error_of([&] { fast(x); }), expected);
    model->first->careless = false;
  }
  // Fields are assigned: filled, and emptied again.
  model->first->downsample = nn::Conv2d(3, 3, 1);
  EXPECT_TRUE(same_bits(fast(x), model(x)));
  EXPECT_EQ(model->parameters().size(), 8u);
  model->first->downsample = nullptr;
  EXPECT_TRUE(same_bits(fast(x), model(x)));
  EXPECT_EQ(model->parameters().size(), 6u);
  EXPECT_SAYS(model->second(x), "Block");
  model->first = nullptr;
  EXPECT_EQ(error_of([&] { fast(x); }).find("Block: self: got an empty module"), 0u);
  model = nullptr;
  EXPECT_SAYS(model(x), "Outer");
  EXPECT_NE(error_of([&] { model->parameters(); }).find("Outer"), std::string::npos);
}

struct OfListImpl : nn::Module {
  Tensor forward(const std::vector<Tensor>& list) { return list[0] + list[1]; }
};
INGOT_MODULE(OfList);
struct OfNothingImpl : nn::Module {
  Tensor forward() { return ones({2}); }
};
INGOT_MODULE(OfNothing);
struct OfManyImpl : nn::Module {
  Tensor forward(double factor, const Tensor& x) { return x * factor; }
};
INGOT_MODULE(OfMany);

TEST(EmptyModule, WhoseArgumentsAreNoTensors) {
  const std::vector<Tensor> list{ones({2}), ones({2})};
  const OfList of_list{nullptr};
  const OfNothing of_nothing{nullptr};
  const OfMany of_many{nullptr};
  EXPECT_SAYS(of_list(list), "OfList");
  EXPECT_SAYS(of_nothing(), "OfNothing");
  const std::string refused = ": self: got an empty module, expected one that holds a ";
  EXPECT_EQ(error_of([&] { of_many(2.0, list[0]); }), "OfMany" + refused + "OfMany");
  // A compiled function is told no line of theirs, and names none of its own.
  EXPECT_EQ(error_of([&] { compile(of_list)(list); }), "OfList" + refused + "OfList");
  EXPECT_EQ(error_of([&] { compile(of_nothing)(); }), "OfNothing" + refused + "OfNothing");
  EXPECT_TRUE(same_bits(OfList()(list), list[0] + list[1]));
  EXPECT_TRUE(same_bits(compile(OfList())(list), list[0] + list[1]));
  EXPECT_TRUE(same_bits(compile(OfNothing())(), ones({2})));
  EXPECT_TRUE(same_bits(compile(OfMany())(2.0, list[0]), list[0] * 2));
}

TEST(EmptyModule, LeftBehindByAMove) {
  const Tensor x = ones({2, 4});
  nn::Linear linear(4, 4), taken = std::move(linear);
  EXPECT_SAYS(linear(x), "Linear");
  nn::AnyModule any{nn::ReLU()};
  nn::AnyModule other = std::move(any);
  EXPECT_SAYS(any(x), "ReLU");
  EXPECT_TRUE(same_bits(other(x), relu(x)));
}

}  // namespace
}  // namespace ingot
