// Modules: captured parameters, edited modules, whole models.
#include <unistd.h>

#include <filesystem>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

nn::Sequential mlp() { return {nn::Linear(16, 32), nn::GELU(), nn::Linear(32, 32), nn::ReLU(), nn::Linear(32, 10)}; }

TEST(Modules, AnMlp) {
  nn::Sequential model = mlp();
  auto fast = compile(model);
  for (int64_t batch : {4, 4, 1, 64, 7}) {
    Tensor x = randn({batch, 16});
    EXPECT_TRUE(same_bits(fast(x), model(x))) << batch;
  }
  EXPECT_LE(fast.stats().compilations, 2);
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().graph_breaks, 0);
}

TEST(Modules, MayBeEdited) {
  const NoGradGuard no_grad;
  nn::Sequential model = mlp();
  auto fast = compile(model);
  Tensor x = randn({4, 16});
  auto check = [&] { EXPECT_TRUE(same_bits(fast(x), model(x))); };
  check();
  model->parameters()[0].mul_(0.5);  // values
  check();
  EXPECT_EQ(fast.stats().compilations, 1);
  model->push_back(nn::Tanh());  // another layer
  check();
  EXPECT_EQ(fast.stats().compilations, 2);
  model->modules[1].second = nn::SiLU();
  check();
  EXPECT_EQ(fast.stats().compilations, 3);
  model->modules[0].second = nn::Linear(16, 32);  // another tensor in the same place
  check();
  EXPECT_EQ(fast.stats().compilations, 3);
  model->to(kFloat64);
  x = x.to(kFloat64);
  check();
}

TEST(Modules, TheirPathsStandInTheGraph) {
  nn::Sequential model = mlp();
  auto fast = compile(model);
  fast(randn({2, 16}));
  EXPECT_NE(fast.explain().programs.at(0).trace.find("in \"2\""), std::string::npos)
      << fast.explain().programs[0].trace;
}

TEST(Modules, TrainAndEvalAreTwoPaths) {
  nn::BatchNorm2d norm(3);
  auto fast = compile(norm);
  Tensor x = randn({2, 3, 4, 4});
  norm->eval();
  EXPECT_TRUE(same_bits(fast(x), norm(x)));
  norm->train();
  Tensor mean = norm->running_mean.clone(), var = norm->running_var.clone();
  Tensor y = fast(x), mean_after = norm->running_mean.clone();
  norm->running_mean.copy_(mean);
  norm->running_var.copy_(var);
  EXPECT_TRUE(same_bits(y, norm(x)));
  EXPECT_TRUE(same_bits(mean_after, norm->running_mean));
}

// Copied or taken, from memory or a mapped file, also by a module that was made without memory.
TEST(Modules, NoticeLoadedWeights) {
  const Tensor x = randn({5, 8});
  const std::string file =
      (std::filesystem::temp_directory_path() / ("ingot_weights_" + std::to_string(getpid()) + ".safetensors"))
          .string();
  auto make = [] {
    return nn::Sequential{nn::Linear(8, 16), nn::ReLU(), nn::Sequential{nn::LayerNorm(16), nn::Linear(16, 4, false)}};
  };
  for (bool bare : {false, true})
    for (bool assign : {false, true})
      for (bool mapped : {false, true}) {
        const nn::Sequential net = [&] {
          if (!bare) return make();
          nn::SkipInit skip;
          return make();
        }();
        auto fast = compile(net);
        for (int i = 0; i < 4; ++i) {
          EXPECT_TRUE(same_bits(fast(x), net(x))) << bare << assign << mapped << i;
          StateDict state;
          for (const auto& [name, tensor] : make()->state_dict())
            state[name] = i == 2 && !assign ? tensor.to(kFloat64) : tensor;  // a copy is cast
          if (mapped) save(state, file), state = load(file);
          net->load_state_dict(state, {.assign = assign});
          for (int again = 0; again < 2; ++again)
            EXPECT_TRUE(same_bits(fast(x), net(x))) << bare << assign << mapped << i;
        }
      }
  std::filesystem::remove(file);
}

struct MixtureImpl : nn::Module {
  nn::Embedding table{9, 8, {.padding_idx = 0, .max_norm = 2}};
  nn::EmbeddingBag bag{9, 8, {.mode = "sum"}};
  nn::TransformerEncoderLayer encoder{8, 2, {.dim_feedforward = 16, .norm_first = true}};
  nn::TransformerDecoderLayer decoder{8, 2, {.dim_feedforward = 16, .activation = "gelu"}};
  nn::Conv1d around{8, 8, 4, {.padding = "same", .padding_mode = "circular"}};
  std::map<std::string, nn::Linear> heads{{"a", nn::Linear(8, 3)}, {"b", nn::Linear(8, 3)}};
  Tensor forward(const Tensor& ids, const Tensor& hidden) {
    const Tensor x = table(ids), memory = bag(ids).unsqueeze(1);
    Tensor y = encoder(x, Tensor(), hidden, true);
    y = decoder(y, memory) + around(y.transpose(1, 2)).transpose(1, 2);
    return heads.at("a")(y) + heads.at("b")(y.flip({1}));
  }
};
INGOT_MODULE(Mixture, table, bag, encoder, decoder, around, heads);

// Whole steps in training: a table that is scaled down in place, masks, dropout, sizes from 4 positions on, none and
// one sample, ids that are a view, two threads; with the parameters afterwards.
TEST(Modules, LayersOfTransformersAndTablesHaveEagersBits) {
  auto make = [] {
    manual_seed(4);
    return Mixture();
  };
  test::on_every_target({1, 2}, [&] {
    Mixture eager = make(), compiled = make();
    optim::SGD eager_opt(eager->parameters(), {.lr = 0.1}), compiled_opt(compiled->parameters(), {.lr = 0.1});
    auto step_of = [](Mixture model, optim::SGD& opt) {
      return [model, &opt](const Tensor& ids, const Tensor& hidden) {
        const Tensor loss = model(ids, hidden).square().sum();
        loss.backward();
        opt.step();
        opt.zero_grad();
        return loss.detach();
      };
    };
    auto one = step_of(eager, eager_opt);
    auto other = compile(step_of(compiled, compiled_opt), {.recompile_limit = 30});
    int step = 0;
    for (const auto& [n, t] : {std::pair<int64_t, int64_t>{3, 5}, {3, 5}, {1, 4}, {2, 7}, {0, 5}, {3, 6}, {1, 9}}) {
      manual_seed(static_cast<uint64_t>(++step));
      const Tensor ids = randint(0, 9, {n, 2 * t}).narrow(1, t, t), hidden = rand({n, t}) < 0.2;
      hidden.narrow(1, 0, 1).fill_(false);
      manual_seed(7);
      const Tensor expected = one(ids, hidden);
      manual_seed(7);
      EXPECT_TRUE(same_bits(other(ids, hidden), expected)) << n << " x " << t;
      const auto a = eager->parameters(), b = compiled->parameters();
      for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i].detach(), b[i].detach())) << n << " x " << t;
    }
    EXPECT_EQ(other.stats().fallbacks, 0);
  });
}

TEST(Modules, AFrozenFunctionNoticesAModuleOfAMap) {
  const NoGradGuard no_grad;
  Mixture model;
  model->eval();
  auto whole = compile(model, {.mode = CompileMode::frozen});
  const Tensor ids = randint(0, 9, {2, 5}), hidden = zeros({2, 5}, kBool);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(whole(ids, hidden), model(ids, hidden)));
  model->heads.at("b") = nn::Linear(8, 3);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(whole(ids, hidden), model(ids, hidden)));
  model->heads.at("a")->weight.fill_(0.5);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(whole(ids, hidden), model(ids, hidden)));
}

// One product for q, k and v, or one each: the same bits.
TEST(Modules, AttentionsPackedProjectionHasTheBitsOfThree) {
  const NoGradGuard no_grad;
  nn::MultiheadAttention attention(24, 3);
  for (int64_t t : {1, 5, 70}) {
    const Tensor x = randn({2, t, 24}), other = x.clone();
    EXPECT_TRUE(same_bits(attention(x), attention(x, other, other))) << t;
    EXPECT_TRUE(same_bits(compile(attention)(x), attention(x))) << t;
  }
}

// A clone has the weights of each call, and what is done to it is not done to the original.
TEST(Modules, AreClonedInsideACompiledFunction) {
  nn::Linear original(6, 4);
  auto of = [&](const Tensor& x) {
    nn::Linear copy = original.clone();
    const NoGradGuard no_grad;
    copy->bias.add_(1.0);
    return copy(x) - original(x);
  };
  auto fast = compile(of);
  const Tensor bias = original->bias.detach().clone();
  for (int i = 0; i < 4; ++i) {
    const NoGradGuard no_grad;
    const Tensor x = randn({3 + i, 6});
    EXPECT_TRUE(same_bits(fast(x), of(x))) << i;
    EXPECT_TRUE(same_bits(original->bias, bias)) << i;
    original->weight.mul_(1.5);
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

}  // namespace
}  // namespace ingot
