// Training of the demo's models: against a run in double (tests/data/training.json), and compiled against eager.
#include "cli/train.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "cli/train_run.h"
#include "runtime/cpu.h"

namespace ingot::cli {
namespace {

const std::string kFolder = INGOT_SOURCE_DIR "/examples/data";

// PyTorch's runs, from the weights that ship.
class Followed {
 public:
  explicit Followed(const std::string& name) {
    std::ifstream file(INGOT_SOURCE_DIR "/tests/data/training.json");
    expected_ = nlohmann::json::parse(file)[name];
  }
  /// `update` gives loss and norm of a batch, `batch` that of a step.
  void follow(nn::Module& model, const std::function<Batch(int64_t)>& batch,
              const std::function<StepResult(const Batch&)>& update) const {
    for (size_t step = 0; step < 20; ++step) {
      const StepResult got = update(batch(static_cast<int64_t>(step)));
      near(got.loss.item<double>(), expected_["losses"][step], "loss of step " + std::to_string(step));
      if (got.norm)
        near(got.norm->item<double>(), expected_["gradient_norms_before_clipping"][step],
             "norm of step " + std::to_string(step));
    }
    const NoGradGuard no_grad;
    const StateDict state = model.state_dict();
    for (const auto& [name, norm] : expected_["parameter_norms_after"].items())
      near(state.at(name).norm().item<double>(), norm, name);
  }

 private:
  static void near(double got, double expected, const std::string& what) {
    EXPECT_NEAR(got, expected, 1e-4 * std::abs(expected)) << what;
  }
  nlohmann::json expected_;
};

void follow_bytegpt(bool compiled) {
  std::ifstream file(kFolder + "/text.txt", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ByteGpt gpt;
  gpt->load_state_dict(load(kFolder + "/bytegpt.safetensors"));
  optim::AdamW optimizer(gpt->parameters(), {.lr = 1e-4, .betas = {0.9, 0.95}, .eps = 1e-8, .weight_decay = 0.1});
  std::function<StepResult(const Batch&)> update = [&](const Batch& b) -> StepResult {
    Tensor loss = F::cross_entropy(gpt(b.x).reshape({-1, 256}), b.y.reshape({-1}));
    loss.backward();
    Tensor norm = nn::utils::clip_grad_norm_(gpt->parameters(), 1.0);
    optimizer.step();
    optimizer.zero_grad();
    return {loss.detach(), norm};
  };
  auto windows = [&](int64_t step) {
    std::vector<int64_t> x, y;
    for (int64_t row = 0; row < 8; ++row) {
      const int64_t from = (8 * step + row) * 1009 % (static_cast<int64_t>(text.size()) - 129);
      for (int64_t i = from; i < from + 128; ++i)
        x.push_back(static_cast<unsigned char>(text[i])), y.push_back(static_cast<unsigned char>(text[i + 1]));
    }
    return Batch{tensor(x).reshape({8, 128}), tensor(y).reshape({8, 128})};
  };
  const Followed expected("bytegpt");
  if (compiled)
    expected.follow(*gpt, windows, compile(update));
  else
    expected.follow(*gpt, windows, update);
}
TEST(TrainingFollowsDouble, ByteGptEager) { follow_bytegpt(false); }
TEST(TrainingFollowsDouble, ByteGptCompiled) { follow_bytegpt(true); }

void follow_digits(bool compiled) {
  const Digits digits = load_digits(kFolder);
  DigitsCnn cnn;
  cnn->load_state_dict(load(kFolder + "/digits_cnn.safetensors"));
  optim::SGD optimizer(cnn->parameters(), {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3, .nesterov = true});
  std::function<StepResult(const Batch&)> update = [&](const Batch& b) -> StepResult {
    Tensor loss = F::cross_entropy(cnn(b.x), b.y);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return {loss.detach(), {}};
  };
  auto images = [&](int64_t step) {
    const Tensor at = (arange(32) + 32 * step) % digits.labels.size(0);
    return Batch{digits.images.index_select(0, at), digits.labels.index_select(0, at)};
  };
  const Followed expected("digits_cnn");
  if (compiled)
    expected.follow(*cnn, images, compile(update));
  else
    expected.follow(*cnn, images, update);
}
TEST(TrainingFollowsDouble, DigitsCnnEager) { follow_digits(false); }
TEST(TrainingFollowsDouble, DigitsCnnCompiled) { follow_digits(true); }

TEST(TrainingCheckpoint, NumbersThatNoRunHasAreRefused) {
  const std::string whole = testing::TempDir() + "/training_whole.ckpt", wrong = testing::TempDir() + "/training.ckpt";
  const RecipeNumbers numbers = {{"steps", 9}, {"batch", 2}};
  Training("digits_cnn", kFolder, "", numbers).save(whole);
  auto said = [](const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const auto& [name, number, part] :
       {std::tuple{"step", 1e300, "step: got 1e+300, expected a whole number from 0"},
        {"step", 2.5, "step: got 2.5"},
        {"batch", -5.0, "batch: got -5, expected a whole number from 1"},
        {"seed", INFINITY, "seed: got inf"},
        {"lr", NAN, "lr: got nan, expected a finite number above 0"},
        {"clip", -1.0, "clip: got -1, expected a finite number from 0 on"}}) {
    StateDict state = load(whole, {.mapped = false});
    state[std::string("numbers.") + name] = tensor(number, kFloat64);
    save(state, wrong, load_metadata(whole));
    Training training("digits_cnn", kFolder, "", numbers);
    EXPECT_EQ(said([&] { training.load(wrong, {}); }).find(wrong + ": " + part), 0U) << name;
    if (std::string(name) == "step") continue;
    EXPECT_EQ(said([&] {
                Training("digits_cnn", kFolder, "", {{name, number}});
              }).find("train: " + std::string(part)),
              0U)
        << name;
  }
  std::remove(whole.c_str()), std::remove(wrong.c_str());
}

// ---- Compiled against eager, to the bit. ----

/// Another target and number of threads, while it lives.
struct Machine {
  int threads = num_threads();
  Machine(Isa isa, int count) {
    runtime::set_host_target(runtime::target_of(isa));
    set_num_threads(count);
  }
  ~Machine() {
    runtime::set_host_target(std::nullopt);
    set_num_threads(threads);
  }
};

/// 200 by the target training_200.
int64_t steps() {
  const char* said = std::getenv("INGOT_TRAINING_STEPS");
  return said ? std::atoll(said) : 24;
}

/// Trains two copies, and gives what was learnt.
StateDict train_both(const std::string& name, int64_t count, int64_t batch_size, int64_t length = kWindow) {
  auto make = [&] {
    return std::make_unique<Training>(
        name, kFolder, "",
        RecipeNumbers{
            {"batch", static_cast<double>(batch_size)}, {"steps", static_cast<double>(count)}, {"warmup", 4}});
  };
  Contender eager(Compiled::nothing, make), compiled(Compiled::step, make);
  for (int64_t step = 0; step < count; ++step) {
    Batch batch = eager.training().next_batch();
    if (length < kWindow)
      batch = {batch.x.narrow(1, 0, length).contiguous(), batch.y.narrow(1, 0, length).contiguous()};
    EXPECT_TRUE(bitwise_equal(eager.step(batch).loss, compiled.step(batch).loss)) << name << ", step " << step;
  }
  EXPECT_TRUE(same_state(eager.training(), compiled.training())) << name;
  const Statistics s = compiled.explain().statistics;
  EXPECT_EQ(s.graph_breaks, 0);
  EXPECT_EQ(s.fallbacks, 0);
  EXPECT_EQ(s.compilations, 2);  // the first step makes the optimizer's state
  return compiled.training().state();
}

void expect_same(const StateDict& a, const StateDict& b) {
  for (const auto& [name, t] : a) EXPECT_TRUE(bitwise_equal(t, b.at(name))) << name;
}

TEST(TrainingBits, AreEagersOnEveryTargetAndNumberOfThreads) {
  const bool avx512 = runtime::detected_target().isa == Isa::avx512;
  for (const char* name : {"bytegpt", "digits_cnn"}) {
    StateDict first;
    for (Isa isa : {Isa::avx512, Isa::avx2}) {
      if (isa == Isa::avx512 && !avx512) continue;
      for (int threads : {1, 2}) {
        SCOPED_TRACE(std::string(name) + (isa == Isa::avx2 ? ", AVX2, " : ", AVX-512, ") + std::to_string(threads));
        const Machine machine(isa, threads);
        const StateDict learnt = train_both(name, steps(), name == std::string("bytegpt") ? 2 : 16);
        if (first.empty()) first = learnt;
        expect_same(learnt, first);
      }
    }
  }
}

TEST(TrainingBits, AreThoseOfTheScalarExecutor) {
  StateDict gpt, cnn;
  {
    const Machine machine(Isa::none, 1);
    gpt = train_both("bytegpt", 5, 1, 4), cnn = train_both("digits_cnn", 5, 2);
  }
  expect_same(gpt, train_both("bytegpt", 5, 1, 4));
  expect_same(cnn, train_both("digits_cnn", 5, 2));
}

// ---- What is learnt. ----

/// The whole recipes by the target training_recipes; else their beginning.
bool whole_recipes() { return std::getenv("INGOT_TRAINING_RECIPES") != nullptr; }

double learnt(const std::string& name, const RecipeNumbers& beginning) {
  TrainOptions options;
  options.name = name, options.data = kFolder, options.sample_every = 0;
  if (!whole_recipes()) options.numbers = beginning;
  const double value = train(options, [](const TrainStep&, const TrainReport&) {}).value;
  std::printf("%s: %.4f\n", name.c_str(), value);
  return value;
}

TEST(TrainingRecipes, TheByteLevelGptReachesThreeQuartersOfABitAByte) {
  EXPECT_LE(learnt("bytegpt", {{"steps", 60}, {"batch", 8}, {"warmup", 10}}), whole_recipes() ? 0.75 : 4.2);
}
TEST(TrainingRecipes, TheCnnKnowsThreeHundredAndFiftyFiveOf360) {
  EXPECT_GE(learnt("digits_cnn", {{"steps", 60}}), whole_recipes() ? 355 : 330);
}

/// Two copies of the byte-level GPT after three steps in turns: eager's, then the compiled one's.
struct TrainedInTurns {
  std::vector<std::unique_ptr<Contender>> contenders;
  int64_t parameters = 0;
  TrainedInTurns(double batch_size, size_t first) {
    auto make = [=] {
      return std::make_unique<Training>("bytegpt", kFolder, "", RecipeNumbers{{"batch", batch_size}});
    };
    for (Compiled what : {Compiled::nothing, Compiled::step})
      contenders.push_back(std::make_unique<Contender>(what, make));
    for (const auto& [name, t] : contenders[0]->training().state()) parameters += t.nbytes();
    for (int i = 0; i < 3; ++i) {
      const Batch batch = contenders[0]->training().next_batch();
      for (size_t turn : {first, 1 - first}) (void)contenders[turn]->step(batch);
    }
  }
};

TEST(TrainingPeak, OfACompiledStepIsCounted) {
  const TrainedInTurns trained(2, 0);
  // Parameters, two moments and gradients at least, and what backward reads.
  for (const auto& c : trained.contenders) {
    EXPECT_GT(c->peak_bytes(), 4 * trained.parameters);
    EXPECT_LT(c->peak_bytes(), 40 * trained.parameters);
  }
}

// Threads keep their scratch memory: who trained first must not be the one who has it in his peak.
TEST(TrainingPeak, IsTheSameWhoeverTrainsFirst) {
  std::vector<int64_t> peaks[2];
  for (size_t first : {0, 1}) {
    std::thread([&] {
      clear_caches(), trim_memory();  // scratch memory is taken anew
      const TrainedInTurns trained(2, first);
      for (const auto& c : trained.contenders) peaks[first].push_back(c->peak_bytes());
    }).join();
  }
  for (size_t who : {0, 1})
    EXPECT_NEAR(static_cast<double>(peaks[0][who]), static_cast<double>(peaks[1][who]), 256 << 10) << who;
}

TEST(TrainingPeak, OfACompiledStepIsSevenTenthsOfEagers) {
  const TrainedInTurns trained(4, 0);
  auto beyond = [&](const Contender& c) {
    return static_cast<double>(c.step_bytes() - trained.parameters);  // its gradients
  };
  EXPECT_LE(beyond(*trained.contenders[1]), 0.7 * beyond(*trained.contenders[0]));
}

}  // namespace
}  // namespace ingot::cli
