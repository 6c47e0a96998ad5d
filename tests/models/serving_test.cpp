// The models as a server calls them: from many threads, at many sizes, with images in either order of memory, on a
// processor without machine code, and in as few steps as they have convolutions.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "bounded.h"
#include "cli/zoo.h"
#include "compile/support.h"
#include "models/llama.h"
#include "models/small_llama.h"
#include "runtime/profiler.h"

namespace models {
namespace {

using cli::Inputs;
using cli::ModelFile;
using cli::ZooModel;
using test::same_bits;

struct Loaded : ModelFile {
  ZooModel model;
  explicit Loaded(const std::string& name)
      : ModelFile(INGOT_SOURCE_DIR "/tests/data/zoo/" + name + ".safetensors"),
        model(cli::zoo_model(*cli::find_zoo_row(name), *this)) {
    model.module->eval();
  }
  Tensor eager(const Inputs& in) const { return model.forward(in); }
};
constexpr std::array kModes = {CompileMode::checked, CompileMode::frozen};
constexpr std::array kImages = {"resnet18",      "resnet50", "mobilenet_v2", "efficientnet_b0",
                                "convnext_tiny", "vit",      "unet"};

/// For suites of one test a model, which record no gradients.
struct Each : testing::TestWithParam<const char*> {
  const NoGradGuard no_grad;
  const test::RestoredSettings restored;
};
auto named = [](const auto& of) { return std::string(of.param); };

// Eight threads call one frozen function, each with inputs of its own, at several batch sizes: the bits of eager on one
// thread.
struct ManyThreads : Each {};
TEST_P(ManyThreads, CallOneFrozenModel) {
  constexpr int kThreads = 8, kInputs = 3, kRounds = 9;
  const Loaded zoo(GetParam());
  std::vector<std::vector<Inputs>> inputs(kThreads);
  std::vector<std::vector<Tensor>> expected(kThreads);
  set_num_threads(1);
  for (int t = 0; t < kThreads; ++t)
    for (int i = 0; i < kInputs; ++i) {
      manual_seed(static_cast<uint64_t>(100 * t + i));
      inputs[t].push_back(zoo.model.example(1 + (t + i) % 3, 12));
      expected[t].push_back(zoo.eager(inputs[t].back()));
    }
  EXPECT_FALSE(same_bits(expected[0][0], expected[3][0])) << "each thread has inputs of its own";
  for (int pool : {1, 2}) {
    SCOPED_TRACE(pool);
    set_num_threads(pool);
    const auto fast = compile(zoo.model.forward, {.mode = CompileMode::frozen});
    std::atomic<int> waiting{kThreads}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        const NoGradGuard none;
        --waiting;
        if (!test::eventually([&] { return waiting.load() <= 0; })) ++wrong;
        for (int round = 0; round < kRounds; ++round) {
          const int i = (t + round) % kInputs;
          wrong += !same_bits(fast(inputs[t][i]), expected[t][i]);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(fast.stats().frozen_calls, 0) << fast.explain().frozen;
    EXPECT_EQ(fast.stats().fallbacks, 0);
    // Each call in progress has a recorder that learns by itself which sizes are free.
    EXPECT_EQ(fast.stats().recompile_limit_hits, 0) << fast.explain().str();
  }
}
INSTANTIATE_TEST_SUITE_P(Models, ManyThreads,
                         testing::Values("resnet18", "mobilenet_v2", "unet", "vit", "bert", "llama", "lstm_lm", "dlrm"),
                         named);

/// Whatever comes, it has the bits of eager, and three compilations are enough.
void expect_few_compilations(const Loaded& zoo, const std::vector<Inputs>& calls) {
  for (CompileMode mode : kModes) {
    const auto fast = compile(zoo.model.forward, {.mode = mode});
    for (int round = 0; round < 2; ++round)
      for (const Inputs& in : calls) ASSERT_TRUE(same_bits(fast(in), zoo.eager(in))) << in[0].sizes();
    EXPECT_EQ(fast.stats().fallbacks, 0);
    EXPECT_EQ(fast.stats().graph_breaks, 0);
    EXPECT_LE(fast.stats().compilations, 3) << fast.explain().str();
    EXPECT_LE(fast.explain().programs.size(), 3u);
  }
}

struct ImageSizes : Each {};
TEST_P(ImageSizes, AndBatchesTakeThreeCompilations) {
  const std::string name = GetParam();
  const Loaded zoo(name);
  const int64_t channels = zoo.inputs[0].size(1), own = zoo.inputs[0].size(2);
  const bool one_size = name == "vit";  // of which it has positions
  std::vector<Inputs> calls;
  int64_t seed = 0;
  for (int64_t side : {own, own + 16, own + 32, 2 * own})
    for (int64_t n : {1, 2, 3, 4, 5, 6, 7, 8}) {
      if ((side != own && (one_size || n > 2))) continue;
      manual_seed(static_cast<uint64_t>(++seed));
      calls.push_back({randn({n, channels, side, n == 2 && !one_size ? side + 16 : side})});
    }
  expect_few_compilations(zoo, calls);
}
INSTANTIATE_TEST_SUITE_P(Models, ImageSizes, testing::ValuesIn(kImages), named);

struct Lengths : Each {};
TEST_P(Lengths, AndBatchesTakeThreeCompilations) {
  const Loaded zoo(GetParam());
  std::vector<Inputs> calls;
  for (int64_t length : {5, 6, 9, 12, 15, 16, 20, 23})
    for (int64_t n : {2, 3, 1}) calls.push_back(zoo.model.example(n, length));
  expect_few_compilations(zoo, calls);
}
INSTANTIATE_TEST_SUITE_P(Models, Lengths, testing::Values("bert", "gpt2", "llama"), named);

// Of a recurrent model, too, whose steps are as many ops: each length is a program of its own.
struct Batches : Each {};
TEST_P(Batches, TakeThreeCompilations) {
  const Loaded zoo(GetParam());
  std::vector<Inputs> calls;
  for (int64_t n : {4, 1, 2, 3, 5, 8, 13, 21}) calls.push_back(zoo.model.example(n, 0));
  expect_few_compilations(zoo, calls);
}
INSTANTIATE_TEST_SUITE_P(Models, Batches, testing::Values("mlp", "dlrm", "lstm_lm"), named);

/// The same image with its channels innermost in memory.
Tensor channels_last(const Tensor& x) { return x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2}); }

/// Both orders of memory, eager, checked and frozen, by one function and by one each: the same bits.
template <class F>
void expect_same_in_both_orders(const F& f, const Tensor& x) {
  const Tensor y = channels_last(x), expected = f(x);
  ASSERT_NE(x.strides(), y.strides());
  EXPECT_TRUE(same_bits(f(y), expected)) << "eager";
  for (CompileMode mode : kModes) {
    SCOPED_TRACE(mode == CompileMode::frozen ? "frozen" : "checked");
    auto both = compile(f, {.mode = mode}), rows = compile(f, {.mode = mode}), last = compile(f, {.mode = mode});
    for (int call = 0; call < 4; ++call) {
      EXPECT_TRUE(same_bits(rows(x), expected));
      EXPECT_TRUE(same_bits(last(y), expected));
      EXPECT_TRUE(same_bits(both(call % 2 ? x : y), expected));
    }
    EXPECT_EQ(both.stats().fallbacks, 0);
  }
}

struct Orders : Each {};
TEST_P(Orders, OfImagesInMemoryChangeNoBit) {
  const Loaded zoo(GetParam());
  test::on_every_target({2}, [&] {
    if (runtime::host_target().isa != Isa::none)
      expect_same_in_both_orders([&](const Tensor& x) { return zoo.eager({x}); }, zoo.inputs[0].narrow(0, 0, 2));
  });
}
INSTANTIATE_TEST_SUITE_P(Models, Orders, testing::ValuesIn(kImages), named);

TEST(Orders, OfImagesOfOneLayerChangeNoBit) {
  const NoGradGuard no_grad;
  struct Layer {
    int64_t in, out, kernel, stride, padding, dilation, groups;
  };
  test::on_every_target({2}, [] {
    for (const Layer l : {Layer{3, 24, 7, 2, 3, 1, 1}, Layer{20, 33, 1, 1, 0, 1, 1}, Layer{20, 32, 3, 1, 1, 1, 1},
                          Layer{18, 16, 3, 2, 1, 1, 1}, Layer{16, 12, 3, 1, 2, 2, 1}, Layer{24, 24, 3, 1, 1, 1, 24},
                          Layer{17, 34, 5, 2, 2, 1, 17}, Layer{32, 48, 3, 1, 1, 1, 4}, Layer{1, 5, 3, 1, 0, 1, 1}}) {
      SCOPED_TRACE(std::to_string(l.in) + " to " + std::to_string(l.out) + " channels, kernel " +
                   std::to_string(l.kernel) + ", groups " + std::to_string(l.groups));
      nn::Conv2d conv(
          l.in, l.out, l.kernel,
          {.stride = l.stride, .padding = l.padding, .dilation = l.dilation, .groups = static_cast<int>(l.groups)});
      // Of one channel both orders are one.
      const Tensor x = randn({2, l.in, 15, 18});
      if (l.in > 1) {
        expect_same_in_both_orders([&](const Tensor& t) { return conv(t); }, x);
        expect_same_in_both_orders([&](const Tensor& t) { return F::relu(conv(t) + 1).mean({2, 3}); }, x);
      }
      // The weight's order, too.
      nn::Conv2d other = conv.clone();
      other->weight = channels_last(conv->weight);
      EXPECT_TRUE(same_bits(other(x), conv(x)));
      EXPECT_TRUE(same_bits(compile(other)(x), conv(x)));
    }
    const Tensor x = randn({2, 20, 15, 18});
    expect_same_in_both_orders([](const Tensor& t) { return F::max_pool2d(t, 3, 2, 1); }, x);
    expect_same_in_both_orders([](const Tensor& t) { return F::avg_pool2d(t, 2); }, x);
    expect_same_in_both_orders([](const Tensor& t) { return F::group_norm(t, 5); }, x);
  });
}

// Interpreted: what PyTorch gives, and the bits of generated code, eager and compiled.
struct Interpreted : Each {};
TEST_P(Interpreted, GivesWhatPyTorchDoes) {
  const Loaded zoo(GetParam());
  const Tensor native = zoo.eager(zoo.inputs), expected = zoo.tensors.at("eval_output");
  runtime::set_host_target(runtime::target_of(Isa::none));
  const Tensor eager = zoo.eager(zoo.inputs);
  EXPECT_TRUE(same_bits(eager, native));
  EXPECT_LE((eager.to(kFloat64) - expected.to(kFloat64)).abs().max().item<double>(),
            1e-4 * expected.to(kFloat64).abs().max().item<double>());
  for (CompileMode mode : kModes) {
    const auto fast = compile(zoo.model.forward, {.mode = mode});
    for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(fast(zoo.inputs), native));
    EXPECT_EQ(fast.stats().fallbacks, 0);
    EXPECT_EQ(fast.explain().target, runtime::target_of(Isa::none).str());
  }
}
INSTANTIATE_TEST_SUITE_P(Models, Interpreted,
                         testing::Values("mlp", "resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0",
                                         "convnext_tiny", "vit", "unet", "bert", "gpt2", "llama", "lstm_lm", "dlrm"),
                         named);

// Batch norm, activation and what is added are part of the convolutions, in every stage: beside them a call runs the
// stem's pooling, the mean and the last layer.
TEST(Steps, OfResNet18AreItsConvolutionsAndFewMore) {
  const NoGradGuard no_grad;
  const Loaded zoo("resnet18");
  for (CompileMode mode : kModes) {
    const auto fast = compile(zoo.model.forward, {.mode = mode});
    for (int call = 0; call < 4; ++call) (void)fast(zoo.inputs);
    runtime::Profile profile;
    (void)fast(zoo.inputs);
    const auto steps = fast.explain().programs.back().steps;
    int convolutions = 0, products = 0, activations = 0, added = 0;
    for (const runtime::StepTime& time : profile.steps()) {
      const auto& step = steps.at(time.step);
      SCOPED_TRACE(step.name);
      auto has = [&](const char* op) { return std::find(step.ops.begin(), step.ops.end(), op) != step.ops.end(); };
      if (step.form == "conv2d") {
        ++convolutions, activations += has("relu"), added += has("add");
      } else if (step.form == "matmul") {
        ++products;
      } else {
        for (const std::string& op : step.ops)
          EXPECT_TRUE(op == "maximum" || op == "cat" || op == "sum" || op == "div" || op == "mul") << op;
      }
    }
    EXPECT_EQ(convolutions, 20);
    EXPECT_EQ(products, 1);
    EXPECT_EQ(activations, 17) << "the stem's, and two a block";
    EXPECT_EQ(added, 8) << "one a block";
  }
}

// The tables of positions are no part of a checkpoint, and follow the model's dtype.
TEST(Llama, TablesOfPositionsFollowTheModel) {
  const NoGradGuard no_grad;
  const Loaded zoo("llama");
  const LlamaConfig config = small_llama();
  LlamaForCausalLM llama(config);
  llama->load_state_dict(zoo.weights);
  for (const auto& [name, t] : llama->state_dict()) EXPECT_EQ(name.find("rotary"), std::string::npos) << name;
  const Tensor cos = llama->model->rotary_emb->cos, sin = llama->model->rotary_emb->sin, wide = llama(zoo.inputs[0]);
  ASSERT_EQ(cos.dtype(), kFloat32);
  llama->to(kBFloat16);
  const auto& tables = llama->model->rotary_emb;
  EXPECT_TRUE(same_bits(tables->cos, cos.to(kBFloat16)));
  EXPECT_TRUE(same_bits(tables->sin, sin.to(kBFloat16)));
  const Tensor narrow = llama(zoo.inputs[0]);
  EXPECT_EQ(narrow.dtype(), kBFloat16);
  EXPECT_LT((narrow.to(kFloat32) - wide).abs().max().item<double>(), 0.1 * wide.abs().max().item<double>());
  for (CompileMode mode : kModes) {
    const auto fast = compile(llama, {.mode = mode});
    for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(fast(zoo.inputs[0]), narrow));
  }
}

}  // namespace
}  // namespace models
