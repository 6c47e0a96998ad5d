// The models of examples/models in small: what they give and learn against PyTorch in double (tests/data/zoo), and
// compiled against eager to the bit; and that they are the published models where nothing is said.
#include <gtest/gtest.h>

#include <cmath>

#include "cli/zoo.h"
#include "compile/support.h"
#include "models/bert.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/small_llama.h"
#include "models/vit.h"
#include "runtime/cpu.h"

namespace models {
namespace {

using cli::Inputs;
using cli::ModelFile;
using cli::ZooModel;
using test::same_bits;

/// Another target and number of threads, while it lives.
struct Machine {
  int threads = num_threads();
  Machine(std::optional<Isa> isa, int count) {
    if (isa) runtime::set_host_target(runtime::target_of(*isa));
    set_num_threads(count);
  }
  ~Machine() {
    runtime::set_host_target(std::nullopt);
    set_num_threads(threads);
  }
};

double largest(const Tensor& t) { return t.to(kFloat64).abs().max().item<double>(); }
double length(const Tensor& t) { return t.to(kFloat64).norm().item<double>(); }
void near(const Tensor& got, const Tensor& expected, const std::string& what, double at_least = 0) {
  ASSERT_TRUE(got.sizes() == expected.sizes()) << what;
  EXPECT_LE(largest(got.to(kFloat64) - expected.to(kFloat64)), std::max(1e-4 * largest(expected), at_least)) << what;
}

void expect_buffers(nn::Module& module, const ModelFile& zoo) {
  const StateDict state = module.state_dict();
  for (const auto& [name, expected] : zoo.named("buffer_after/"))
    if (is_floating(expected.dtype()))
      near(state.at(name), expected, name, 1e-6);  // some means are 0 but for rounding
    else
      EXPECT_TRUE(same_bits(state.at(name), expected)) << name;
}

/// Each parameter has the gradient of the file, within `bound`, and none where the file has none.
void expect_gradients(nn::Module& module, const ModelFile& zoo, double bound) {
  const StateDict gradients = zoo.named("grad/");
  double longest = 0;
  for (const auto& [name, g] : gradients) longest = std::max(longest, length(g));
  for (const auto& [name, p] : module.named_parameters()) {
    ASSERT_EQ(p.grad().defined(), gradients.contains(name)) << name;
    if (!p.grad().defined()) continue;
    const Tensor& expected = gradients.at(name);
    EXPECT_LE(length(p.grad().to(kFloat64) - expected.to(kFloat64)), bound * std::max(length(expected), 1e-3 * longest))
        << name;
  }
}

void expect_same_gradients(nn::Module& a, nn::Module& b, const std::string& what) {
  const auto one = a.named_parameters(), other = b.named_parameters();
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    const Tensor x = one[i].second.grad(), y = other[i].second.grad();
    ASSERT_EQ(x.defined(), y.defined()) << what << ": " << one[i].first;
    if (x.defined()) EXPECT_TRUE(same_bits(x, y)) << what << ": " << one[i].first;
  }
}
void expect_same_state(nn::Module& a, nn::Module& b, const std::string& what) {
  const StateDict other = b.state_dict();
  for (const auto& [name, t] : a.state_dict()) EXPECT_TRUE(same_bits(t, other.at(name))) << what << ": " << name;
}

template <class Compiled>
void expect_no_fallback(const Compiled& f, int64_t compilations) {
  EXPECT_EQ(f.stats().graph_breaks, 0) << f.explain().str();
  EXPECT_EQ(f.stats().fallbacks, 0) << f.explain().str();
  EXPECT_EQ(f.stats().compilations, compilations);
}

/// The models of a file, and the loss that it names.
struct Zoo : ModelFile {
  const cli::ZooRow& row;
  std::function<Tensor(const Tensor&, const Inputs&)> loss_of;
  explicit Zoo(const std::string& name)
      : ModelFile(INGOT_SOURCE_DIR "/tests/data/zoo/" + name + ".safetensors"),
        row(*cli::find_zoo_row(name)),
        loss_of(cli::zoo_loss(about)) {}
  ZooModel made() const { return cli::zoo_model(row, *this); }  // strict: the names are all there are
};

/// What the file holds but rounded to f32, as the file's gradients are: nothing is left to a kink here.
void check_in_double(const Zoo& zoo) {
  ZooModel model = zoo.made();
  model.module->to(kFloat64);
  Inputs inputs = zoo.inputs;
  for (Tensor& t : inputs)
    if (is_floating(t.dtype())) t = t.to(kFloat64);
  const Tensor loss = zoo.loss_of(model.forward(inputs), inputs);
  loss.backward();
  EXPECT_NEAR(loss.item<double>(), zoo.tensors.at("loss").item<double>(), 1e-8);
  expect_gradients(*model.module, zoo, 1e-6);
}

class ZooTest : public testing::TestWithParam<const char*> {};

TEST_P(ZooTest, GivesAndLearnsWhatPyTorchDoesWithTheSameBitsCompiled) {
  const std::string name = GetParam();
  const Zoo zoo(name);
  const double slack = zoo.row.slack;
  check_in_double(zoo);
  StateDict first;  // gradients of the first machine
  for (auto [isa, threads] : {std::pair<std::optional<Isa>, int>{{}, 1}, {{}, 2}, {Isa::avx2, 1}}) {
    SCOPED_TRACE(name + ", threads: " + std::to_string(threads) + (isa ? ", AVX2" : ""));
    const Machine machine(isa, threads);
    ZooModel eager = zoo.made(), alone = zoo.made(), whole = zoo.made();

    auto fast = compile(alone.forward);
    {
      const NoGradGuard no_grad;
      eager.module->eval(), alone.module->eval();
      const Tensor expected = eager.forward(zoo.inputs);
      near(expected, zoo.tensors.at("eval_output"), "eval_output");
      auto frozen = compile(eager.forward, {.mode = CompileMode::frozen});
      for (int call = 0; call < 4; ++call) {
        EXPECT_TRUE(same_bits(fast(zoo.inputs), expected)) << call;
        EXPECT_TRUE(same_bits(frozen(zoo.inputs), expected)) << call;
      }
      expect_no_fallback(fast, 1);
      EXPECT_GT(frozen.stats().frozen_calls, 0) << frozen.explain().frozen;
      eager.module->train(), alone.module->train();
    }

    auto step = compile([&](const Inputs& inputs) {
      Tensor loss = zoo.loss_of(whole.forward(inputs), inputs);
      loss.backward();
      return loss.detach();
    });
    for (int call = 0; call < 4; ++call) {
      const std::string at = "call " + std::to_string(call);
      // The last call adds to the gradients of the one before.
      if (call < 3) eager.module->zero_grad(), alone.module->zero_grad(), whole.module->zero_grad();
      const Tensor output = eager.forward(zoo.inputs), other = fast(zoo.inputs);
      EXPECT_TRUE(same_bits(output.detach(), other.detach())) << at;
      const Tensor loss = zoo.loss_of(output, zoo.inputs), loss_alone = zoo.loss_of(other, zoo.inputs);
      loss.backward(), loss_alone.backward();
      EXPECT_TRUE(same_bits(loss_alone.detach(), loss.detach())) << at;
      EXPECT_TRUE(same_bits(step(zoo.inputs), loss.detach())) << at;
      expect_same_gradients(*alone.module, *eager.module, "alone, " + at);
      expect_same_gradients(*whole.module, *eager.module, "whole step, " + at);
      expect_same_state(*alone.module, *eager.module, "alone, " + at);
      expect_same_state(*whole.module, *eager.module, "whole step, " + at);
      if (call > 0) continue;
      const NoGradGuard no_grad;
      near(output, zoo.tensors.at("train_output"), "train_output", slack * 1e-4 * largest(output));
      const double expected = zoo.tensors.at("loss").item<double>();
      EXPECT_NEAR(loss.item<double>(), expected, slack * 1e-5 * std::max(1.0, std::abs(expected)));
      expect_gradients(*eager.module, zoo, slack * 1e-3);
      expect_buffers(*eager.module, zoo);
      for (const auto& [parameter, p] : eager.module->named_parameters()) {
        if (!p.grad().defined()) continue;
        const Tensor of_first = first.try_emplace(parameter, p.grad().clone()).first->second;
        EXPECT_TRUE(same_bits(p.grad(), of_first)) << parameter;
      }
    }
    expect_no_fallback(fast, 2);  // for inference, for training
    expect_no_fallback(step, 2);  // without gradients, with some
  }
}
INSTANTIATE_TEST_SUITE_P(Models, ZooTest,
                         testing::Values("mlp", "resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0",
                                         "convnext_tiny", "vit", "unet", "bert", "gpt2", "llama", "lstm_lm", "dlrm"),
                         [](const auto& of) { return std::string(of.param); });

// Files as they are published: without the head's prefix and with masks, with other heads and old names, with one table
// for tokens and logits.
TEST(PublishedNames, AreTakenAsTheyAre) {
  const NoGradGuard no_grad;
  using Change = std::function<void(StateDict&)>;
  auto check = [](
                   const std::string& name, const Change& change, const Change& first = [](StateDict&) {}) {
    ModelFile file(INGOT_SOURCE_DIR "/tests/data/zoo/" + name + ".safetensors");
    first(file.weights);
    const cli::ZooRow& row = *cli::find_zoo_row(name);
    ZooModel own = cli::zoo_model(row, file);
    own.module->eval();
    const Tensor expected = own.forward(file.inputs);
    change(file.weights);
    ZooModel published = cli::zoo_model(row, file);
    published.module->eval();
    EXPECT_TRUE(same_bits(published.forward(file.inputs), expected)) << name;
    file.weights["no.such"] = ones({1});
    EXPECT_THROW(cli::zoo_model(row, file), Error);
  };
  auto renamed = [](StateDict& weights, const std::function<std::string(std::string)>& name) {
    StateDict others;
    for (const auto& [old, t] : weights) others[name(old)] = t;
    weights = others;
  };
  check("gpt2", [&](StateDict& w) {
    renamed(w, [](const std::string& n) { return n.substr(std::string("transformer.").size()); });
    w["h.0.attn.bias"] = ones({1, 1, 24, 24});
  });
  check("gpt2", [](StateDict& w) { w["lm_head.weight"] = w.at("transformer.wte.weight"); });
  check(
      "llama",
      [](StateDict& w) {
        w.erase("lm_head.weight");
        w["model.layers.0.self_attn.rotary_emb.inv_freq"] = ones({4});
      },
      [](StateDict& w) { w["lm_head.weight"] = w.at("model.embed_tokens.weight"); });
  auto old_names = [&](StateDict& w) {
    renamed(w, [](std::string n) {
      if (n.ends_with("LayerNorm.weight")) n = n.substr(0, n.size() - 6) + "gamma";
      if (n.ends_with("LayerNorm.bias")) n = n.substr(0, n.size() - 4) + "beta";
      return n;
    });
  };
  check("bert", [&](StateDict& w) {
    old_names(w);
    w["embeddings.position_ids"] = ones({1, 24}, kInt64);
  });
}

TEST(Bert, PaddingHasNoGradient) {
  const BertEmbeddings embeddings(BertConfig{.vocab_size = 5, .hidden_size = 4});
  embeddings->eval();
  const Tensor y = embeddings(tensor({{0, 1}}), Tensor());
  (y * y * y).sum().backward();
  const Tensor gradient = embeddings->word_embeddings->weight.grad();
  EXPECT_EQ(largest(gradient[0]), 0);
  EXPECT_GT(largest(gradient[1]), 0);
}

// With a cache of keys and values, which is updated in place, a prompt and then token by token, or several at once: the
// logits of the whole text; compiled, the bits of eager, in as many compilations as there are forms of a call.
TEST(Llama, GoesOnFromItsCache) {
  const NoGradGuard no_grad;
  const ModelFile file(INGOT_SOURCE_DIR "/tests/data/zoo/llama.safetensors");
  const LlamaConfig config = small_llama();
  LlamaForCausalLM llama(config);
  llama->load_state_dict(file.weights);
  const Tensor& ids = file.inputs[0];  // [2, 13]
  const Tensor whole = llama(ids);
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    LlamaCache mine(config, 2, 24), theirs(config, 2, 24);
    auto fast =
        compile([&](const Tensor& part, int64_t position) { return llama(part, theirs, position); }, {.mode = mode});
    for (int text = 0; text < 2; ++text) {  // the second writes over the first
      int64_t position = 0;
      for (int64_t count : {5, 1, 1, 1, 3, 1, 1}) {
        const Tensor part = ids.narrow(1, position, count);
        const Tensor logits = llama(part, mine, position);
        EXPECT_TRUE(same_bits(fast(part, position), logits)) << position;
        near(logits, whole.narrow(1, position, count), "position " + std::to_string(position));
        position += count;
      }
      for (size_t i = 0; i < mine.keys.size(); ++i) {
        EXPECT_TRUE(same_bits(mine.keys[i], theirs.keys[i]));
        EXPECT_TRUE(same_bits(mine.values[i], theirs.values[i]));
      }
    }
    expect_no_fallback(fast, fast.stats().compilations);
    EXPECT_LE(fast.stats().compilations, 4) << fast.explain().str();
  }
  LlamaCache cache(config, 2, 8);
  EXPECT_THROW(llama(ids, cache, 0), Error);
}

// What is dropped is drawn once, forward and backward, and as eager draws it.
TEST(Dropout, OfACompiledStepIsEagers) {
  const Inputs inputs = ModelFile(INGOT_SOURCE_DIR "/tests/data/zoo/gpt2.safetensors").inputs;
  auto check = [&](auto eager, auto compiled) {
    compiled->load_state_dict(eager->state_dict());
    auto step_of = [](auto& model) {
      return [&model](const Tensor& ids) {
        Tensor loss = model(ids).square().mean();
        loss.backward();
        return loss.detach();
      };
    };
    auto one = step_of(eager);
    auto other = compile(step_of(compiled));
    for (int call = 0; call < 3; ++call) {
      eager->zero_grad(), compiled->zero_grad();
      manual_seed(call);
      const Tensor expected = one(inputs[0]);
      manual_seed(call);
      EXPECT_TRUE(same_bits(other(inputs[0]), expected)) << call;
      expect_same_gradients(*compiled, *eager, "call " + std::to_string(call));
    }
    expect_no_fallback(other, 1);
  };
  const GPT2Config gpt{.vocab_size = 97, .n_positions = 24, .n_embd = 32, .n_layer = 2, .n_head = 2, .dropout = 0.2};
  check(GPT2LMHeadModel(gpt), GPT2LMHeadModel(gpt));
  const BertConfig bert{.vocab_size = 97, .hidden_size = 32, .num_hidden_layers = 1, .num_attention_heads = 2};
  check(BertModel(bert), BertModel(bert));
}

int64_t parameters_of(nn::Module& module) {
  int64_t count = 0;
  for (const Tensor& p : module.parameters()) count += p.numel();
  return count;
}
TEST(FullSize, HasTheParametersOfThePublishedModels) {
  const nn::SkipInit skip;
  EXPECT_EQ(parameters_of(*LlamaForCausalLM()), 6'738'415'616);
  EXPECT_EQ(parameters_of(*VisionTransformer()), 86'567'656);
  const std::map<std::string, int64_t> published = {{"gpt2", 124'439'808},         {"bert", 109'482'240},
                                                    {"resnet18", 11'689'512},      {"resnet50", 25'557'032},
                                                    {"mobilenet_v2", 3'504'872},   {"efficientnet_b0", 5'288'548},
                                                    {"convnext_tiny", 28'589'128}, {"vit", 22'050'664}};
  for (const auto& [name, count] : published)
    EXPECT_EQ(parameters_of(*cli::find_zoo_row(name)->make(nullptr).module), count) << name;
}

// What a model does not take is said of its input, not of the layer that would meet it first.
TEST(Models, SayWhichInputTheyDoNotTake) {
  const NoGradGuard no_grad;
  const VisionTransformer vit(ViTConfig{.image_size = 32,
                                        .patch_size = 16,
                                        .num_layers = 1,
                                        .num_heads = 2,
                                        .hidden_dim = 8,
                                        .mlp_dim = 8,
                                        .num_classes = 2});
  const GPT2LMHeadModel gpt(
      GPT2Config{.vocab_size = 9, .n_positions = 4, .n_embd = 8, .n_layer = 1, .n_head = 2, .dropout = 0});
  const BertModel bert(BertConfig{.vocab_size = 9,
                                  .hidden_size = 8,
                                  .num_hidden_layers = 1,
                                  .num_attention_heads = 2,
                                  .max_position_embeddings = 4});
  const LlamaForCausalLM llama(small_llama());
  for (const CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    auto images = compile([&](const Tensor& x) { return vit(x); }, {.mode = mode});
    auto tokens = compile([&](const Tensor& x) { return gpt(x); }, {.mode = mode});
    EXPECT_TRUE(same_bits(images(ones({2, 3, 32, 32})), vit(ones({2, 3, 32, 32}))));
    EXPECT_TRUE(same_bits(tokens(zeros({2, 3}, kInt64)), gpt(zeros({2, 3}, kInt64))));
    const auto says = [](const std::string& error, const char* text) {
      EXPECT_NE(error.find(text), std::string::npos) << error;
    };
    says(test::error_of([&] {
           images(ones({1, 3, 48, 48}));
         }),
         "VisionTransformer: images: got [1, 3, 48, 48], expected [N, 3, 32, 32]");
    says(test::error_of([&] { vit(ones({3, 32, 32})); }), "zoo_test.cpp");
    says(test::error_of([&] { tokens(zeros({3}, kInt64)); }),
         "GPT2Model: ids: got [3], expected [N, T] with T up to 4");
    says(test::error_of([&] { tokens(zeros({1, 5}, kInt64)); }), "GPT2Model: ids: got [1, 5]");
    says(test::error_of([&] { gpt(zeros({5}, kInt64)); }), "zoo_test.cpp");
    says(test::error_of([&] { bert(zeros({5}, kInt64)); }), "BertModel: ids: got [5]");
    says(test::error_of([&] { llama(zeros({5}, kInt64)); }), "LlamaModel: ids: got [5]");
  }
}

// Every row runs at full size on the inputs that it makes for itself, but for those that take long.
TEST(FullSize, TakesItsOwnInputs) {
  const NoGradGuard no_grad;
  for (const char* name : {"mlp", "mlp_tiny", "mobilenet_v2", "lstm_lm", "dlrm", "unet"}) {
    const ZooModel model = cli::find_zoo_row(name)->make(nullptr);
    model.module->eval();
    const Inputs inputs = model.example(2, 3);
    EXPECT_EQ(model.forward(inputs).size(0), 2) << name;
  }
}

}  // namespace
}  // namespace models
