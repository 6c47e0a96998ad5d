// Errors, records and graph breaks name the line that called into the library, never one of the library's own.
#include <functional>
#include <set>
#include <string>

#include "eager/call/dispatch.h"
#include "support.h"

namespace ingot {
namespace {

using test::error_of;

/// Where the calls and breaks on this thread stand while it lives.
class Lines final : public eager::Interceptor {
 public:
  Lines() : Interceptor(eager::Stage::record) { eager::set_interceptor(stage(), this); }
  ~Lines() override { eager::set_interceptor(stage(), nullptr); }
  using Interceptor::call;
  void call(const eager::OpCall& call, std::span<Tensor> outputs) override {
    seen.insert(caller_line(call.location).str());
    proceed(call, outputs);
  }
  void flush(const char*, Location location) override { seen.insert(caller_line(location).str()); }
  std::set<std::string> seen;
};

template <class F>
void expect_line(const char* what, int line, F f) {
  const std::set<std::string> expected{std::string(__FILE__) + ":" + std::to_string(line)};
  Lines lines;
  f();
  EXPECT_EQ(lines.seen, expected) << what;
}
#define EXPECT_LINE(expression) expect_line(#expression, __LINE__, [&] { static_cast<void>(expression); })

// Made before, since what a layer starts with is drawn where it is made.
#define EXPECT_LAYER(module, ...)                                \
  {                                                              \
    const auto layer = module;                                   \
    expect_line(#module, __LINE__, [&] { layer(__VA_ARGS__); }); \
  }

std::string place(int line) { return std::string(__FILE__) + ":" + std::to_string(line); }

TEST(CallerLine, OfLayers) {
  const Tensor x = randn({4, 6}), line = randn({2, 4, 9}), image = randn({2, 4, 6, 8}), ids = tensor({1, 0, 2});
  const Tensor shares = rand({4, 6}), classes = tensor({0, 3, 1, 2});
  EXPECT_LAYER((nn::Linear(6, 3)), x);
  EXPECT_LAYER((nn::ReLU()), x);
  EXPECT_LAYER((nn::GELU()), x);
  EXPECT_LAYER((nn::Softmax(1)), x);
  EXPECT_LAYER((nn::PReLU()), x);
  EXPECT_LAYER((nn::LayerNorm(6)), x);
  EXPECT_LAYER((nn::RMSNorm(6)), x);
  EXPECT_LAYER((nn::GroupNorm(2, 4)), image);
  EXPECT_LAYER((nn::BatchNorm2d(4)), image);
  EXPECT_LAYER((nn::BatchNorm2d(4, nn::NormOptions{.momentum = std::nullopt})), image);
  EXPECT_LAYER((nn::InstanceNorm2d(4, nn::InstanceNormOptions{.affine = true, .track_running_stats = true})), image);
  EXPECT_LAYER((nn::LocalResponseNorm(2)), image);
  EXPECT_LAYER((nn::Embedding(3, 5)), ids);
  EXPECT_LAYER((nn::Dropout(0.5)), x);
  EXPECT_LAYER((nn::Dropout2d(0.5)), image);
  EXPECT_LAYER((nn::Flatten()), image);
  EXPECT_LAYER((nn::Conv1d(4, 2, 3)), line);
  EXPECT_LAYER((nn::Conv2d(4, 2, 3)), image);
  EXPECT_LAYER((nn::ConvTranspose2d(4, 2, 3)), image);
  EXPECT_LAYER((nn::MaxPool2d(2)), image);
  EXPECT_LAYER((nn::AdaptiveAvgPool2d(3)), image);
  EXPECT_LAYER((nn::PixelShuffle(2)), image);
  EXPECT_LAYER((nn::PixelUnshuffle(2)), image);
  EXPECT_LAYER((nn::Upsample({.scale_factor = {2}, .mode = "bilinear"})), image);
  EXPECT_LAYER((nn::Unfold(3)), image);
  EXPECT_LAYER((nn::MultiheadAttention(6, 2)), x.unsqueeze(0));
  EXPECT_LAYER((nn::TransformerEncoderLayer(6, 2)), x.unsqueeze(0));
  EXPECT_LAYER((nn::EmbeddingBag(3, 5)), ids.unsqueeze(0));
  EXPECT_LAYER((nn::Embedding(3, 5, {.padding_idx = 0, .max_norm = 1})), ids);
  EXPECT_LAYER((nn::Conv2d(4, 2, 3, {.padding = "same", .padding_mode = "reflect"})), image);
  EXPECT_LAYER((nn::MSELoss()), x, shares);
  EXPECT_LAYER((nn::BCELoss()), shares, shares);
  EXPECT_LAYER((nn::CrossEntropyLoss()), x, classes);
  EXPECT_LAYER((nn::ReflectionPad2d(1)), image);
  EXPECT_LAYER((nn::ConstantPad1d({1, 2}, 0.5)), line);
  EXPECT_LAYER((nn::LSTMCell(6, 3)), x);
  EXPECT_LAYER((nn::GRUCell(6, 3)), x, randn({4, 3}));
  EXPECT_LAYER((nn::Bilinear(6, 6, 2)), x, shares);
  EXPECT_LAYER((nn::ChannelShuffle(2)), image);
  EXPECT_LAYER((nn::LPPool2d(2, 2)), image);
  EXPECT_LAYER((nn::AlphaDropout(0.5)), x);
  EXPECT_LAYER((nn::RReLU()), x);
  EXPECT_LAYER((nn::MultiMarginLoss()), x, classes);
  EXPECT_LAYER((nn::TripletMarginLoss()), x, shares, x * 2);
  const nn::MultiheadAttention attention(6, 2);
  EXPECT_LINE(attention(line.narrow(2, 0, 6), line.narrow(2, 0, 6), line.narrow(2, 0, 6), Tensor(), true));
  const nn::Sequential net{nn::Linear(6, 5), nn::BatchNorm1d(5), nn::Sequential{nn::ReLU(), nn::Linear(5, 2)}};
  EXPECT_LINE(net(x));
}

TEST(CallerLine, OfFunctionsThatAreMadeOfOps) {
  const Tensor x = randn({4, 6}), image = randn({2, 4, 6, 8}), kernel = randn({3, 4, 2, 2}), ids = tensor({1, 0, 2});
  EXPECT_LINE(F::pad(image, {1, 2}, "reflect"));
  EXPECT_LINE(F::pad(image, {-1, 2}));
  EXPECT_LINE(F::pad(image, {1, 2, 1, 1}, "circular"));
  EXPECT_LINE(F::conv2d(image, kernel, {}, 1, "same"));
  EXPECT_LINE(F::max_pool2d_with_indices(image, 2));
  EXPECT_LINE(F::adaptive_max_pool2d_with_indices(image, 3));
  EXPECT_LINE(F::feature_dropout(image, 0.5));
  EXPECT_LINE(F::normalize(x));
  EXPECT_LINE(F::ctc_loss(randn({5, 2, 4}), ones({2, 2}, kInt64), {5, 4}, {2, 1}));
  EXPECT_LINE(F::gumbel_softmax(x, 1, true));
  EXPECT_LINE(F::pdist(x));
  EXPECT_LINE(F::bilinear(x, x, randn({2, 6, 6})));
  EXPECT_LINE(F::grid_sample(image, randn({2, 3, 3, 2}), "bicubic", "reflection"));
  EXPECT_LINE(F::affine_grid(randn({2, 2, 3}), {2, 4, 6, 8}));
  EXPECT_LINE(F::multilabel_margin_loss(x, zeros({4, 6}, kInt64)));
  EXPECT_LINE(F::gaussian_nll_loss(x, x, 0.5, true));
  EXPECT_LINE(F::scaled_dot_product_attention(image, image, image, {}, 0.5, true));
  EXPECT_LINE(F::embedding_renorm_(x, ids, 1.0));
  EXPECT_LINE(F::interpolate(image, {3, 5}, {}, "area"));
  EXPECT_LINE(F::embedding_bag(ids.view({1, 3}), x));
  EXPECT_LINE(einsum("ij,kj->ik", {x, x}));
  EXPECT_LINE(tensordot(x, x, {1}, {1}));
  EXPECT_LINE(inner(x, x));
  EXPECT_LINE(one_hot(ids, 4));
  EXPECT_LINE(diff(x, 2));
  EXPECT_LINE(tile(x, {2, 1}));
  EXPECT_LINE(hstack({x, x}));
  EXPECT_LINE(vstack({x, x}));
  EXPECT_LINE(dstack({x, x}));
  EXPECT_LINE(column_stack({x, x}));
  EXPECT_LINE(take(x, ids));
  EXPECT_LINE(masked_select(x, x > 0));
  EXPECT_LINE(masked_scatter(x, x > 0, x));
  EXPECT_LINE(nonzero(x));
  EXPECT_LINE(repeat_interleave(x, 2, 0));
  EXPECT_LINE(index_put(x, {ids}, 1.0));
  EXPECT_LINE(x.index({ids, Slice(0, 3)}));
  EXPECT_LINE(x.std_mean(1));
  EXPECT_LINE(logspace(0, 1, 5));
  EXPECT_LINE(nuclear_norm(x));
  EXPECT_LINE(rand_like(x));
  EXPECT_LINE(x.reshape({3, 8}));
  EXPECT_LINE(x.flatten());
  EXPECT_LINE(x.movedim(0, 1));
}

struct InnerImpl : nn::Module {
  nn::Linear linear{6, 3};
  static inline int own = 0;
  Tensor forward(const Tensor& x) const {
    own = __LINE__ + 1;
    return linear(x).relu();
  }
};
INGOT_MODULE(Inner, linear);

TEST(CallerLine, OfAUsersModuleIsItsOwn) {
  const nn::Sequential net{nn::Identity(), Inner(), nn::Linear(3, 2)};
  const Tensor x = randn({2, 6});
  Lines lines;
  const int outer = __LINE__ + 1;
  net(x);
  EXPECT_EQ(lines.seen, (std::set<std::string>{place(InnerImpl::own), place(outer)}));
}

TEST(CallerLine, StandsInErrorsEagerAndCompiled) {
  const nn::Sequential net{nn::Linear(6, 5), nn::ReLU(), nn::Linear(4, 2)};
  const Tensor x = randn({2, 6});
  auto fast = compile(net);
  const int own = __LINE__ + 1;
  auto with_own = compile([&](const Tensor& t) { return net(t); });
  int line = __LINE__ + 1;
  const std::string eager = error_of([&] { net(x); });
  EXPECT_NE(eager.find(place(line)), std::string::npos) << eager;
  line = __LINE__ + 1;
  const std::string compiled = error_of([&] { fast(x); });
  EXPECT_NE(compiled.find(place(line)), std::string::npos) << compiled;
  const std::string inside = error_of([&] { with_own(x); });
  EXPECT_NE(inside.find(place(own)), std::string::npos) << inside;
  EXPECT_EQ(eager.substr(0, eager.find('(')), compiled.substr(0, compiled.find('(')));
  // The next call has a line of its own.
  line = __LINE__ + 1;
  EXPECT_NE(error_of([&] { matmul(x, x); }).find(place(line)), std::string::npos);
}

struct UnitImpl : nn::Module {
  nn::Conv2d conv1{4, 4, 3, {.padding = 1}};
  nn::BatchNorm2d bn1{4}, bn2{4};
  Tensor shift = zeros({8});
  Tensor forward(const Tensor& x) const { return bn2(relu(bn1(conv1(x)))) + shift; }
};
INGOT_MODULE(Unit, conv1, bn1, bn2, shift);
struct TowerImpl : nn::Module {
  Unit faulty;
  nn::Linear attn{8, 8};
  nn::Sequential layer1{Unit(), Unit()}, layer3{Unit(), faulty};
  std::vector<nn::Sequential> h{nn::Sequential{nn::Linear(8, 8), nn::Softmax(-1)}, nn::Sequential{nn::ReLU(), attn}};
  nn::Embedding table{3, 8};
  Tensor forward(const Tensor& x, const Tensor& ids) const {
    Tensor y = layer3(layer1(x));
    for (const nn::Sequential& block : h) y = block(y);
    return y + table(ids);
  }
};
INGOT_MODULE(Tower, layer1, layer3, h, table);

/// What an error says of the module; "" where it names none.
std::string module_in(const std::string& error) {
  const size_t at = error.find(", in ");
  return at == std::string::npos ? "" : error.substr(at + 5, error.rfind(')') - at - 5);
}

// Where the rules refuse, and where only the data tells.
TEST(CallerLine, ErrorsNameTheModule) {
  const NoGradGuard no_grad;
  const Tensor x = randn({2, 4, 8, 8}), ids = tensor({0, 2, 1, 0, 1, 2, 0, 1});
  struct Fault {
    const char* module;
    std::function<void(TowerImpl&)> make;
    Tensor ids;
  };
  const Fault faults[] = {
      {"layer3.1.bn2", [](TowerImpl& t) { t.faulty->bn2->running_mean = zeros({5}); }, ids},
      {"layer3.1.conv1",
       [](TowerImpl& t) {
         t.faulty->conv1->weight = zeros({4, 3, 3, 3});
       },
       ids},
      {"layer3.1", [](TowerImpl& t) { t.faulty->shift = zeros({7}); }, ids},
      {"h.1.1",
       [](TowerImpl& t) {
         t.attn->weight = zeros({8, 9});
       },
       ids},
      {"table", [](TowerImpl&) {}, ids + 1},
      {"table",
       [](TowerImpl& t) {
         t.table->weight = zeros({2, 8});
       },
       ids},
  };
  for (const Fault& fault : faults) {
    Tower tower;
    tower->eval();
    auto checked = compile(tower), frozen = compile(tower, {.mode = CompileMode::frozen});
    for (int i = 0; i < 4; ++i) checked(x, ids), frozen(x, ids);
    fault.make(*tower);
    const std::string eager = error_of([&] { tower(x, fault.ids); });
    EXPECT_EQ(module_in(eager), fault.module) << eager;
    for (const std::string& compiled :
         {error_of([&] { compile(tower)(x, fault.ids); }), error_of([&] { checked(x, fault.ids); })})
      EXPECT_EQ(module_in(compiled), fault.module) << compiled;
    if (fault.ids.is_same(ids)) continue;  // what is captured is watched by other means
    const std::string of_frozen = error_of([&] { frozen(x, fault.ids); });
    EXPECT_EQ(module_in(of_frozen), fault.module) << of_frozen;
  }
  EXPECT_EQ(module_in(error_of([&] { matmul(x, ids); })), "");
  // The innermost of those that are called, whichever way they are reached.
  const nn::Sequential net{nn::Sequential{nn::ReLU(), nn::Linear(3, 4)}, nn::ReLU()};
  EXPECT_EQ(module_in(error_of([&] { net(x); })), "0.1");
}

TEST(CallerLine, StandsInExplanations) {
  const nn::Sequential net{nn::Linear(6, 5), nn::BatchNorm1d(5), nn::Linear(5, 2)};
  auto fast = compile(net);
  const Tensor x = randn({3, 6});
  const int line = __LINE__ + 1;
  fast(x);
  const Explanation e = fast.explain();
  ASSERT_EQ(e.programs.size(), 1u);
  const std::string expected = "caller_line_test.cpp:" + std::to_string(line);
  EXPECT_FALSE(e.programs[0].traced_ops.empty());
  for (const auto& op : e.programs[0].traced_ops) EXPECT_EQ(op.location, expected) << op.op;
}

}  // namespace
}  // namespace ingot
