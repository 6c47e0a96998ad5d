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
  model->modules[1] = nn::SiLU();
  check();
  EXPECT_EQ(fast.stats().compilations, 3);
  model->modules[0] = nn::Linear(16, 32);  // another tensor in the same place
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

}  // namespace
}  // namespace ingot
