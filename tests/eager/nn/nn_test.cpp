// Modules: names, state, handles, layers against their definitions.
#include "eager/nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/module_path.h"
#include "eager/nn/recurrent_layers.h"
#include "eager/ops/factories.h"
#include "eager/ops/random.h"
#include "eager/support.h"
#include "runtime/memory/allocator.h"

namespace ingot {
namespace {

using test::message_of;

struct BlockImpl : nn::Module {
  nn::Linear up{4, 8}, down{8, 4};
  Tensor scale = tensor({1.f, 2.f, 3.f, 4.f});
  std::string seen;
  Tensor forward(const Tensor& x) {
    seen = module_path();
    return x + down(relu(up(x))) * scale;
  }
};
INGOT_MODULE(Block, up, down, scale);

struct NetImpl : nn::Module {
  nn::LayerNorm norm{4};
  std::vector<Block> h{Block(), Block()};
  nn::Linear head{4, 2, false};
  nn::Buffer steps = nn::Buffer(tensor(0));
  bool twice = false;
  Tensor forward(const Tensor& x) {
    Tensor y = norm(x);
    for (Block& block : h) y = block(y);
    return twice ? head(y) * 2 : head(y);
  }
};
INGOT_MODULE(Net, norm, h, head, steps);

struct PairImpl : nn::Module {
  Tensor forward(const Tensor& a, double b) { return a * b; }
};
INGOT_MODULE(Pair);

std::vector<std::string> names(const nn::Module::NamedTensors& named) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : named) result.push_back(name);
  return result;
}

TEST(Module, IsPrintedAsATree) {
  std::ostringstream out;
  out << Net() << '\n' << Pair() << '\n' << Block(nullptr);
  EXPECT_EQ(out.str(), R"(Net(
  steps []
  (norm): LayerNorm(weight [4], bias [4])
  (h.0): Block(
    scale [4]
    (up): Linear(weight [8, 4], bias [8])
    (down): Linear(weight [4, 8], bias [4])
  )
  (h.1): Block(
    scale [4]
    (up): Linear(weight [8, 4], bias [8])
    (down): Linear(weight [4, 8], bias [4])
  )
  (head): Linear(weight [2, 4])
)
Pair()
None)");
}

TEST(Identity, GivesItsInput) {
  nn::Identity same;
  const Tensor x = randn({3, 4}).requires_grad_();
  EXPECT_TRUE(same(x).is_same(x));
  EXPECT_TRUE(same(same(x)).is_same(x)) << "nothing is computed";
  EXPECT_TRUE(same->parameters().empty() && same->buffers().empty() && same->state_dict().empty());
  // In the place of a layer that is left out: names of the others stay, gradients pass.
  nn::Sequential net(nn::Linear(4, 4), nn::Identity(), nn::ReLU());
  EXPECT_EQ(names(net->named_parameters()), (std::vector<std::string>{"0.weight", "0.bias"}));
  same(x).sum().backward();
  EXPECT_TRUE((x.grad() == 1).all().item<bool>());
  const nn::Sequential without(nn::Linear(4, 4), nn::ReLU());
  without->load_state_dict(net->state_dict());
  EXPECT_TRUE((net(x) == without(x)).all().item<bool>());
  EXPECT_TRUE(nn::Identity(same.clone())(x).is_same(x));
}

TEST(Module, NamesAreThoseOfPyTorch) {
  Net net;
  EXPECT_EQ(names(net->named_parameters()),
            (std::vector<std::string>{"norm.weight", "norm.bias", "h.0.up.weight", "h.0.up.bias", "h.0.down.weight",
                                      "h.0.down.bias", "h.0.scale", "h.1.up.weight", "h.1.up.bias", "h.1.down.weight",
                                      "h.1.down.bias", "h.1.scale", "head.weight"}));
  EXPECT_EQ(names(net->named_buffers()), (std::vector<std::string>{"steps"}));
  EXPECT_EQ(net->state_dict().size(), 14u);
  EXPECT_EQ(net->named_modules().size(), 9u);
  EXPECT_EQ(net->named_children().size(), 4u);
  nn::Sequential layers{nn::Linear(2, 3), nn::ReLU(), nn::Linear(3, 1)};
  EXPECT_EQ(names(layers->named_parameters()), (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"}));
}

TEST(Module, HandlesShare) {
  Net a, b = a;
  Tensor x = rand({3, 4});
  Tensor before = b(x);
  a->twice = true;
  EXPECT_TRUE(allclose(b(x), before * 2));
  a->eval();
  EXPECT_FALSE(b->is_training());
  EXPECT_FALSE(b->h[1]->up->is_training());
}

TEST(Module, StateMovesBetweenModules) {
  Net a, b;
  Tensor x = rand({3, 4});
  EXPECT_FALSE(equal(a(x), b(x)));
  b->load_state_dict(a->state_dict());
  EXPECT_TRUE(equal(a(x), b(x)));
  EXPECT_FALSE(a->h[0]->up->weight.shares_storage(b->h[0]->up->weight));
  StateDict state = a->state_dict();
  state.erase("h.1.scale");
  EXPECT_THROW(b->load_state_dict(state), Error);
  EXPECT_NO_THROW(b->load_state_dict(state, false));
  state["h.1.scale"] = rand({5});
  EXPECT_THROW(b->load_state_dict(state), Error);
  state["h.1.scale"] = rand({4});
  state["extra"] = rand({1});
  EXPECT_THROW(b->load_state_dict(state), Error);
}

TEST(Module, LoadingNamesAllThatDoesNotFit) {
  Net a, b;
  const StateDict before = [&] {
    StateDict copy;
    for (const auto& [name, tensor] : b->state_dict()) copy[name] = tensor.clone();
    return copy;
  }();
  StateDict state = a->state_dict();
  state.erase("norm.bias"), state.erase("h.1.scale");
  state["extra"] = state["other.weight"] = rand({1});
  state["h.0.scale"] = rand({5}), state["head.weight"] = rand({4, 2});
  state["h.0.up.bias"] = Tensor();
  std::string message = message_of([&] { b->load_state_dict(state); });
  for (const char* part : {"norm.bias", "h.1.scale", "extra, other.weight", "h.0.scale: [5] for [4]",
                           "head.weight: [4, 2] for [2, 4]", "h.0.up.bias: undefined", "nn_test.cpp:"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  message = message_of([&] { b->load_state_dict(state, false); });  // shapes count always, names do not
  EXPECT_NE(message.find("h.0.scale: [5] for [4]"), std::string::npos) << message;
  EXPECT_EQ(message.find("norm.bias"), std::string::npos) << message;
  EXPECT_NE(message_of([&] { b->load_state_dict(state, {.assign = true}); }).find("norm.bias"), std::string::npos);
  for (const auto& [name, tensor] : b->state_dict()) EXPECT_TRUE(equal(tensor, before.at(name))) << name;

  state["h.0.scale"] = rand({4}), state["head.weight"] = rand({2, 4}), state["h.0.up.bias"] = rand({8});
  const nn::IncompatibleKeys keys = b->load_state_dict(state, false);
  EXPECT_EQ(keys.missing_keys, (std::vector<std::string>{"norm.bias", "h.1.scale"}));
  EXPECT_EQ(keys.unexpected_keys, (std::vector<std::string>{"extra", "other.weight"}));
  EXPECT_TRUE(equal(b->h[0]->scale, state["h.0.scale"]));
  EXPECT_TRUE(b->load_state_dict(a->state_dict()).missing_keys.empty());

  for (int i = 0; i < 25; ++i) state["more." + std::to_string(i)] = rand({1});
  message = message_of([&] { b->load_state_dict(state); });
  EXPECT_NE(message.find(", ... and 17 more"), std::string::npos) << message;
  EXPECT_EQ(message.find("more.22"), std::string::npos) << message;
}

TEST(Module, LoadingMayTakeTheTensorsThemselves) {
  Net net;
  StateDict state;
  for (const auto& [name, tensor] : Net()->state_dict()) state[name] = tensor.clone();
  state["head.weight"] = rand({4, 2}).t();
  state["norm.weight"] = rand({4}, kFloat64);
  net->load_state_dict(state, {.assign = true});
  for (const auto& [name, tensor] : net->state_dict()) EXPECT_TRUE(tensor.shares_storage(state.at(name))) << name;
  EXPECT_EQ(net->norm->weight.dtype(), kFloat64);
  state["norm.weight"].fill_(2);
  EXPECT_EQ(net->norm->weight.sum().item<double>(), 8);
  const nn::IncompatibleKeys keys =
      net->load_state_dict({{"head.weight", rand({2, 4})}, {"what", rand({1})}}, {.strict = false, .assign = true});
  EXPECT_EQ(keys.missing_keys.size(), 13u);
  EXPECT_EQ(keys.unexpected_keys, std::vector<std::string>{"what"});
  EXPECT_FALSE(net->head->weight.is_same(state["head.weight"]));
}

struct TiedImpl : nn::Module {
  nn::Embedding e{5, 3};
  nn::Linear head{3, 5, false};
  TiedImpl() { head->weight = e->weight; }
  Tensor forward(const Tensor& x) { return head(e(x)); }
};
INGOT_MODULE(Tied, e, head);

// A file has what is tied once (safetensors' save_model), or under each name.
TEST(Module, LoadingKeepsTies) {
  const Tensor weight = rand({5, 3});
  for (bool skip : {false, true})
    for (bool assign : {false, true})
      for (const std::vector<const char*>& names :
           {std::vector<const char*>{"e.weight"}, {"head.weight"}, {"e.weight", "head.weight"}}) {
        Tied net = [&] {
          std::optional<nn::SkipInit> active;
          if (skip) active.emplace();
          return Tied();
        }();
        StateDict state;
        for (const char* name : names) state[name] = weight.clone();
        const nn::IncompatibleKeys keys = net->load_state_dict(state, {.strict = names.size() < 2, .assign = assign});
        EXPECT_TRUE(keys.missing_keys.empty());
        EXPECT_TRUE(net->head->weight.is_same(net->e->weight));
        EXPECT_TRUE(equal(net->e->weight, weight));
        EXPECT_TRUE(net->e->weight.requires_grad());
        EXPECT_EQ(net->e->weight.shares_storage(state.at(names.back())), assign);
      }
  EXPECT_THROW(Tied()->load_state_dict(StateDict()), Error);
  Tied net;
  net->load_state_dict(Tied(net)->state_dict(), {.assign = true});
  EXPECT_TRUE(net->head->weight.is_same(net->e->weight));
}

TEST(Module, WithoutInitialValuesNothingIsDrawn) {
  auto make = [] {
    return nn::Sequential{nn::Linear(3, 4),    nn::Conv2d(3, 4, 2),          nn::ConvTranspose1d(4, 2, 3),
                          nn::Embedding(5, 6), nn::MultiheadAttention(4, 2), nn::LayerNorm(4),
                          nn::BatchNorm2d(3)};
  };
  const nn::Sequential whole = make();
  Net filled;
  manual_seed(3);
  const Tensor next = rand({4});
  manual_seed(3);
  {
    nn::SkipInit skip;
    { nn::SkipInit inner; }
    EXPECT_TRUE(nn::SkipInit::active());
    const nn::Sequential bare = make();
    EXPECT_TRUE(equal(rand({4}), next)) << "a number was drawn";
    auto state = bare->state_dict(), expected = whole->state_dict();
    ASSERT_EQ(state.size(), expected.size());
    for (const auto& [name, tensor] : state) EXPECT_EQ(tensor.sizes(), expected.at(name).sizes()) << name;
    EXPECT_TRUE(equal(state.at("5.weight"), ones({4}))) << "a constant is kept";
    EXPECT_TRUE(isnan(state.at("1.weight")).all().item<bool>()) << "what is not loaded shows";
    EXPECT_THROW(state.at("1.weight").zero_(), Error);
    bare->load_state_dict(expected);
    for (const auto& [name, tensor] : bare->state_dict()) EXPECT_TRUE(equal(tensor, expected.at(name))) << name;
    bare->state_dict().at("1.weight").zero_();
    EXPECT_NE(expected.at("1.weight").abs().sum().item<float>(), 0) << "it has memory of its own";
    // Tied weights get one memory.
    Net tied;
    tied->h[0]->up = nn::Linear(4, 8);
    tied->h[1]->up->weight = tied->h[0]->up->weight;
    tied->load_state_dict(filled->state_dict());
    EXPECT_TRUE(tied->h[1]->up->weight.is_same(tied->h[0]->up->weight));
  }
  EXPECT_FALSE(nn::SkipInit::active());
  const int64_t before = runtime::allocator_statistics().live_bytes;
  const nn::Linear large = [] {
    nn::SkipInit skip;
    return nn::Linear(4096, 4096);
  }();
  EXPECT_LT(runtime::allocator_statistics().live_bytes - before, 1 << 20);
  manual_seed(3);
  make();
  EXPECT_FALSE(equal(rand({4}), next));
}

TEST(Module, ThePathNamesTheModuleThatIsRunning) {
  Net net;
  net(rand({1, 4}));
  EXPECT_EQ(net->h[0]->seen, "h.0");
  EXPECT_EQ(net->h[1]->seen, "h.1");
  EXPECT_STREQ(module_path(), "");
  net->h[0] = Block();
  net(rand({1, 4}));
  EXPECT_EQ(net->h[0]->seen, "h.0");
}

TEST(Module, ForwardTakesWhatItDeclares) {
  Pair pair;
  EXPECT_EQ(pair(tensor({2.f}), 1.5).item<float>(), 3);
  static_assert(!std::is_invocable_v<Pair, Tensor>);
  static_assert(std::is_invocable_v<Net, Tensor>);
}

TEST(Module, ToConvertsFloatsAndKeepsTies) {
  Net net;
  net->h[1]->scale = net->h[0]->scale;
  net->to(kFloat64);
  EXPECT_EQ(net->head->weight.dtype(), kFloat64);
  EXPECT_EQ(net->steps.dtype(), kInt64);
  EXPECT_TRUE(net->h[1]->scale.is_same(net->h[0]->scale));
  EXPECT_EQ(net(rand({2, 4}, kFloat64)).dtype(), kFloat64);
}

struct TablesImpl : nn::Module {
  nn::Linear fc{2, 2};
  nn::Buffer mean = nn::Buffer(zeros({2}));
  nn::NonPersistentBuffer table = nn::NonPersistentBuffer(ones({2}));
  Tensor forward(const Tensor& x) { return fc(x) * table + mean; }
};
INGOT_MODULE(Tables, fc, mean, table);

TEST(Module, WhatIsMadeWithItIsNoPartOfItsState) {
  Tables tables;
  EXPECT_EQ(names(tables->named_buffers()), (std::vector<std::string>{"mean", "table"}));
  StateDict state = tables->state_dict();
  EXPECT_EQ(state.count("mean"), 1u);
  EXPECT_EQ(state.count("table"), 0u);
  tables->load_state_dict(state);
  state["table"] = zeros({2});
  const std::string text = message_of([&] { tables->load_state_dict(state); });
  EXPECT_NE(text.find("does not have: table"), std::string::npos) << text;
  tables->to(kBFloat16);
  EXPECT_EQ(tables->table.dtype(), kBFloat16);
  EXPECT_EQ(tables(rand({1, 2}, kBFloat16)).dtype(), kBFloat16);
}

TEST(Module, AClonesTensorsAreItsOwn) {
  Net net;
  net->h[1] = net->h[0];  // a module that stands twice
  net->twice = true;
  net->h[0]->scale.requires_grad_(false);
  net->eval();
  net(rand({2, 4})).sum().backward();
  const Tensor x = rand({2, 4}), before = net(x).detach();
  Net copy = net.clone();
  EXPECT_EQ(names(copy->named_parameters()), names(net->named_parameters()));
  EXPECT_FALSE(copy->is_training());
  EXPECT_FALSE(copy->h[0]->is_training());
  EXPECT_TRUE(copy->twice);
  EXPECT_EQ(copy->h[0].module(), copy->h[1].module());
  EXPECT_NE(copy->h[0].module(), net->h[0].module());
  EXPECT_TRUE(equal(copy(x), before));
  const StateDict theirs = net->state_dict();
  for (const auto& [name, p] : copy->named_parameters()) {
    EXPECT_EQ(p.requires_grad(), name.find("scale") == std::string::npos) << name;
    EXPECT_FALSE(p.grad().defined()) << name;
    EXPECT_NE(p.data_ptr(), theirs.at(name).data_ptr()) << name;
  }
  {
    const NoGradGuard no_grad;
    for (const Tensor& p : copy->parameters()) p.add_(1);
    copy->steps.add_(1);
  }
  EXPECT_TRUE(equal(net(x), before));
  EXPECT_EQ(net->steps.item<int64_t>(), 0);
  EXPECT_FALSE(equal(copy(x), before));
  EXPECT_EQ(copy->h[1]->seen, "h.1");
}

TEST(Module, AClonesTiesAreThoseOfTheOriginal) {
  Net net;
  net->h[1]->scale = net->h[0]->scale;
  Net copy = net.clone();
  EXPECT_TRUE(copy->h[1]->scale.is_same(copy->h[0]->scale));
  EXPECT_FALSE(copy->h[1]->scale.is_same(net->h[0]->scale));
  EXPECT_EQ(copy->parameters().size(), net->parameters().size());
}

TEST(Module, AnyModuleIsClonedWithWhatItHolds) {
  nn::Sequential net(nn::Linear(2, 3), nn::BatchNorm1d(3), nn::ReLU());
  nn::Sequential copy = net.clone();
  const Tensor x = rand({4, 2});
  copy(x);  // statistics of its own
  EXPECT_TRUE(equal(net->state_dict().at("1.running_mean"), zeros({3})));
  EXPECT_FALSE(equal(copy->state_dict().at("1.running_mean"), zeros({3})));
  {
    const NoGradGuard no_grad;
    for (const Tensor& p : net->parameters()) p.fill_(0);
  }
  EXPECT_TRUE(equal(net(x), zeros({4, 3})));
  EXPECT_FALSE(equal(copy(x), zeros({4, 3})));
}

// A module of one module is made from it; from one of its own type it is a copy.
struct ResidualImpl : nn::Module {
  nn::Linear f;
  explicit ResidualImpl(nn::Linear inner) : f(inner) {}
  Tensor forward(const Tensor& x) { return x + f(x); }
};
INGOT_MODULE(Residual, f);
struct WrapperImpl : nn::Module {
  nn::AnyModule inner;
  explicit WrapperImpl(nn::AnyModule any) : inner(any) {}
  Tensor forward(const Tensor& x) { return inner(x); }
};
INGOT_MODULE(Wrapper, inner);

TEST(Module, IsMadeFromOneModule) {
  nn::Linear linear(4, 4);
  Residual residual(linear), copy(residual), moved(Residual{nn::Linear(4, 4)});
  const Residual constant = residual;
  EXPECT_EQ(residual->f.ptr(), linear.ptr());
  EXPECT_EQ(copy.ptr(), residual.ptr());
  EXPECT_EQ(Residual(constant).ptr(), residual.ptr());
  const Tensor x = randn({2, 4});
  EXPECT_TRUE(equal(residual(x), x + linear(x)));
  EXPECT_TRUE(equal(Wrapper(linear)(x), linear(x)));
  EXPECT_TRUE(equal(nn::Sequential(residual, Wrapper(linear))(x), linear(residual(x))));
  EXPECT_TRUE((std::is_constructible_v<Residual, nn::Linear&> && !std::is_constructible_v<Residual, nn::LayerNorm&>));
}

struct UniqueImpl : nn::Module {
  std::unique_ptr<int> count = std::make_unique<int>(0);
  Tensor forward(const Tensor& x) { return x; }
};
INGOT_MODULE(Unique);
struct HolderImpl : nn::Module {
  nn::Linear fc{1, 1};
  Unique unique;
  Tensor forward(const Tensor& x) { return unique(fc(x)); }
};
INGOT_MODULE(Holder, fc, unique);

TEST(Module, WhatCannotBeCopiedIsNamed) {
  Holder holder;
  const std::string text = message_of([&] { holder.clone(); });
  EXPECT_NE(text.find("a Unique without a copy constructor"), std::string::npos) << text;
  EXPECT_NE(text.find("nn_test.cpp"), std::string::npos) << text;
}

TEST(Module, AnErrorInALayerNamesTheCallersLine) {
  nn::Linear layer(4, 2);
  int line = 0;
  try {
    line = __LINE__ + 1;
    layer(rand({3, 5}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("nn_test.cpp:" + std::to_string(line)), std::string::npos) << e.what();
  }
}

TEST(Module, MadeWithoutItsHandleIsRefused) {
  BlockImpl alone;
  EXPECT_THROW(alone.parameters(), Error);
  EXPECT_THROW(alone.eval(), Error);
  EXPECT_THROW(alone.state_dict(), Error);
  EXPECT_THROW(std::make_shared<BlockImpl>()->to(kFloat64), Error);
}

TEST(Module, AsWhatItIs) {
  const Net net;
  size_t layers = 0;
  net->apply([&](nn::Module& module) {
    if (auto* linear = module.as<nn::Linear>()) layers += static_cast<size_t>(linear->weight.dim() == 2);
    EXPECT_EQ(module.as<nn::BatchNorm2d>(), nullptr);
  });
  EXPECT_EQ(layers, 5u);
  EXPECT_EQ(net->as<Net>(), &*net);
}

}  // namespace
}  // namespace ingot
