// CompileOptions::pack_weights_only: pages of weights that lie in a mapped file go once they are packed, and come again
// for whoever reads them.
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

constexpr int64_t kWidth = 1024, kLayers = 6, kWeightBytes = kWidth * kWidth * 4;

struct WideImpl : nn::Module {
  std::vector<nn::Linear> layers;
  WideImpl() {
    for (int64_t i = 0; i < kLayers; ++i) layers.emplace_back(kWidth, kWidth);
  }
  Tensor forward(const Tensor& x) const {
    Tensor y = x;
    for (const nn::Linear& layer : layers) y = relu(layer(y));
    return y;
  }
};
INGOT_MODULE(Wide, layers);

template <class F>
std::vector<std::string> weights(const F& fast) {
  std::vector<std::string> all;
  for (const auto& program : fast.explain().programs)
    for (const auto& step : program.steps)
      if (!step.weight.empty()) all.push_back(step.weight);
  return all;
}

class PackWeightsOnly : public test::Inference {
 protected:
  PackWeightsOnly() {
    clear_caches();
    save(model->state_dict(), path);
    model->load_state_dict(load(path), {.assign = true});
  }
  ~PackWeightsOnly() override { std::filesystem::remove(path); }

  /// The bytes of the file's pages that are in memory for this process, as the system counts them.
  static int64_t resident() {
    trim_memory();
    return memory_stats().resident_bytes;
  }

  const std::string path =
      (std::filesystem::temp_directory_path() / ("pack_weights_only" + std::to_string(getpid()) + ".safetensors"))
          .string();
  Wide model;
  const Tensor x = randn({8, kWidth});
};

TEST_F(PackWeightsOnly, HalvesWhatAModelKeepsInMemory) {
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    clear_caches();
    const Tensor expected = model(x);  // all pages of the file are in memory
    auto both = compile(model, {.mode = mode}), packed = compile(model, {.mode = mode, .pack_weights_only = true});
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same_bits(both(x), expected));
    EXPECT_EQ(memory_stats().given_back_bytes, 0);
    const int64_t before = resident();
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same_bits(packed(x), expected));
    const int64_t after = resident();
    EXPECT_LT(after, before - kLayers * kWeightBytes * 9 / 10) << before << " " << after;
    EXPECT_EQ(memory_stats().given_back_bytes, kLayers * kWeightBytes);
    EXPECT_EQ(weights(packed), std::vector<std::string>(kLayers, "packed, 4096 KB; its file's pages given back"));
    EXPECT_EQ(weights(both), std::vector<std::string>(kLayers, "packed, 4096 KB"));
    // Whoever reads them finds them, and a packing that went comes again.
    EXPECT_TRUE(same_bits(model(x), expected));
    clear_caches();
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same_bits(packed(x), expected));
    EXPECT_LT(resident(), before - kLayers * kWeightBytes * 9 / 10);
    // Other weights take their place: with the functions, which hold the old ones, these are gone.
    model->load_state_dict(load(path), {.assign = true});
  }
  EXPECT_EQ(memory_stats().given_back_bytes, 0);
}

TEST_F(PackWeightsOnly, StatesAreSavedCopiedAndWrittenToAsEver) {
  const StateDict reference = load(path, {.mapped = false});
  auto packed = compile(model, {.mode = CompileMode::frozen, .pack_weights_only = true});
  auto check = [&] {
    const Tensor expected = model(x);
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same_bits(packed(x), expected));
  };
  check();
  for (const auto& [name, tensor] : model->state_dict()) EXPECT_TRUE(same_bits(tensor, reference.at(name))) << name;
  const std::string copy = path + ".copy";
  save(model->state_dict(), copy);
  for (const auto& [name, tensor] : load(copy)) EXPECT_TRUE(same_bits(tensor, reference.at(name))) << name;
  std::filesystem::remove(copy);
  const Tensor kept = model->layers[2]->weight.clone();
  // What was written to is in no file: it stays, bit for bit.
  model->layers[2]->weight.mul_(1.5);
  model->layers[3]->weight[7].fill_(0.25);
  model->layers[4]->weight.mutable_data_ptr<float>()[5] = 3;
  for (int round = 0; round < 3; ++round) check();
  EXPECT_TRUE(same_bits(model->layers[2]->weight, kept * 1.5));
  EXPECT_TRUE(same_bits(model->layers[3]->weight[7], full({kWidth}, 0.25)));
  EXPECT_EQ(model->layers[4]->weight[0][5].item<float>(), 3);
  EXPECT_TRUE(
      same_bits(model->layers[3]->weight.slice(0, 8, kWidth), reference.at("layers.3.weight").slice(0, 8, kWidth)));
  int64_t stay = 0;
  for (const std::string& weight : weights(packed)) stay += weight.ends_with("; kept as it lies too: no file has it");
  EXPECT_GE(stay, 3);
  model->load_state_dict(reference);
  check();
}

// Of a view nothing goes: another thread may be writing to what is beside it.
TEST_F(PackWeightsOnly, WeightsThatAreNoWholeTensorOfAFileStay) {
  const Tensor whole = model->layers[0]->weight, mine = randn({kWidth, kWidth});
  auto parts =
      compile([&](const Tensor& in) { return linear(in, whole.slice(0, 0, 512)) + linear(in, whole.slice(0, 512)); },
              {.pack_weights_only = true});
  auto columns =
      compile([&](const Tensor& in) { return linear(in, whole.slice(1, 0, 512)); }, {.pack_weights_only = true});
  auto turned = compile([&](const Tensor& in) { return matmul(in, whole); }, {.pack_weights_only = true});
  auto memory = compile([&](const Tensor& in) { return linear(in, mine); }, {.pack_weights_only = true});
  const Tensor half = x.slice(1, 0, 512);
  for (int call = 0; call < 3; ++call) {
    ASSERT_TRUE(same_bits(parts(x), linear(x, whole.slice(0, 0, 512)) + linear(x, whole.slice(0, 512))));
    ASSERT_TRUE(same_bits(columns(half), linear(half, whole.slice(1, 0, 512))));
    ASSERT_TRUE(same_bits(memory(x), linear(x, mine)));
  }
  EXPECT_EQ(memory_stats().given_back_bytes, 0);
  for (const std::string& weight : weights(parts))
    EXPECT_TRUE(weight.ends_with("too: it is a part of a tensor")) << weight;
  for (const std::string& weight : weights(columns))
    EXPECT_TRUE(weight.ends_with("too: it is a part of a tensor")) << weight;
  for (const std::string& weight : weights(memory)) EXPECT_TRUE(weight.ends_with("too: no file has it")) << weight;
  const Tensor expected = matmul(x, whole);
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same_bits(turned(x), expected));
  EXPECT_EQ(memory_stats().given_back_bytes, kWeightBytes);
}

// A table that is looked up, and multiplied.
TEST_F(PackWeightsOnly, ATableThatIsReadAsItLiesToo) {
  const Tensor table = model->layers[0]->weight, at = tensor({int64_t{5}, int64_t{1000}, int64_t{77}});
  auto f = [&](const Tensor& i) { return linear(table.index_select(0, i), table); };
  const Tensor expected = f(at);
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto fast = compile(f, {.mode = mode, .pack_weights_only = true});
    for (int call = 0; call < 5; ++call) ASSERT_TRUE(same_bits(fast(at), expected));
  }
}

TEST_F(PackWeightsOnly, CallsOnSeveralThreads) {
  const Tensor expected = model(x);
  auto packed = compile(model, {.mode = CompileMode::frozen, .pack_weights_only = true});
  auto plain = compile(model);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const NoGradGuard no_grad;
      for (int call = 0; call < 12; ++call) {
        if (t == 0 && call % 4 == 3) clear_caches();
        const Tensor y = t == 1 ? model(x) : t == 2 ? plain(x) : packed(x);
        wrong += !same_bits(y, expected);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ingot
