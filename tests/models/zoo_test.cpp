// The models of examples/models in small: what they give and learn against PyTorch in double (tests/data/zoo), and
// compiled against eager to the bit; and that they are the published models where nothing is said.
#include <gtest/gtest.h>

#include <cmath>

#include "compile/support.h"
#include "models/bert.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/mobilenet_v2.h"
#include "models/resnet18.h"
#include "models/vit.h"
#include "runtime/cpu.h"

namespace models {
namespace {

using test::same_bits;
using Inputs = std::vector<Tensor>;

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

struct Zoo {
  StateDict file, weights;
  Inputs inputs;
  explicit Zoo(const std::string& name) : file(load(INGOT_SOURCE_DIR "/tests/data/zoo/" + name + ".safetensors")) {
    weights = named("weight/");
    for (const auto& [key, t] : named("input/")) inputs.push_back(t);
  }
  StateDict named(const std::string& prefix) const {
    StateDict found;
    for (const auto& [name, t] : file)
      if (name.starts_with(prefix)) found[name.substr(prefix.size())] = t;
    return found;
  }
};

double largest(const Tensor& t) { return t.to(kFloat64).abs().max().item<double>(); }
double length(const Tensor& t) { return t.to(kFloat64).norm().item<double>(); }
void near(const Tensor& got, const Tensor& expected, const std::string& what, double at_least = 0) {
  ASSERT_TRUE(got.sizes() == expected.sizes()) << what;
  EXPECT_LE(largest(got.to(kFloat64) - expected.to(kFloat64)), std::max(1e-4 * largest(expected), at_least)) << what;
}

void expect_buffers(nn::Module& module, const Zoo& zoo) {
  const StateDict state = module.state_dict();
  for (const auto& [name, expected] : zoo.named("buffer_after/"))
    if (is_floating(expected.dtype()))
      near(state.at(name), expected, name, 1e-6);  // some means are 0 but for rounding
    else
      EXPECT_TRUE(same_bits(state.at(name), expected)) << name;
}

/// Each parameter has the gradient of the file, within `bound`, and none where the file has none. Gradients of what
/// comes before the parameter `behind_kink` have come over a kink that f32 took from its other side.
void expect_gradients(nn::Module& module, const Zoo& zoo, double bound, const std::string& behind_kink = "") {
  const StateDict gradients = zoo.named("grad/");
  double longest = 0;
  for (const auto& [name, g] : gradients) longest = std::max(longest, length(g));
  bool exact = behind_kink.empty();
  for (const auto& [name, p] : module.named_parameters()) {
    exact = exact || name == behind_kink;
    ASSERT_EQ(p.grad().defined(), gradients.contains(name)) << name;
    if (!p.grad().defined()) continue;
    const Tensor& expected = gradients.at(name);
    EXPECT_LE(length(p.grad().to(kFloat64) - expected.to(kFloat64)),
              (exact ? bound : 0.05) * std::max(length(expected), 1e-3 * longest))
        << name;
  }
  EXPECT_TRUE(exact) << behind_kink;
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

/// What the file holds but rounded to f32, as the file's gradients are: nothing is left to a kink here.
template <class Make, class Apply, class Loss>
void check_in_double(const Zoo& zoo, Make make, Apply apply, Loss loss_of) {
  auto model = make();
  model->load_state_dict(zoo.weights);
  model->to(kFloat64);
  Inputs inputs = zoo.inputs;
  for (Tensor& t : inputs)
    if (is_floating(t.dtype())) t = t.to(kFloat64);
  const Tensor loss = loss_of(apply(model, inputs), inputs);
  loss.backward();
  EXPECT_NEAR(loss.item<double>(), zoo.file.at("loss").item<double>(), 1e-8);
  expect_gradients(*model, zoo, 1e-6);
}

/// `make` gives a model; `apply(model, inputs)` calls it, or what was compiled of it; `loss_of(output, inputs)`.
template <class Make, class Apply, class Loss>
void check(const std::string& name, Make make, Apply apply, Loss loss_of, const std::string& behind_kink = "") {
  const Zoo zoo(name);
  check_in_double(zoo, make, apply, loss_of);
  auto made = [&] {
    auto model = make();
    model->load_state_dict(zoo.weights);  // strict: the names are all there are
    return model;
  };
  StateDict first;  // gradients of the first machine
  for (auto [isa, threads] : {std::pair<std::optional<Isa>, int>{{}, 1}, {{}, 2}, {Isa::avx2, 1}}) {
    SCOPED_TRACE(name + ", threads: " + std::to_string(threads) + (isa ? ", AVX2" : ""));
    const Machine machine(isa, threads);
    auto eager = made(), alone = made(), whole = made();

    auto fast = compile(alone);
    {
      const NoGradGuard no_grad;
      eager->eval(), alone->eval();
      const Tensor expected = apply(eager, zoo.inputs);
      near(expected, zoo.file.at("eval_output"), "eval_output");
      auto frozen = compile(eager, {.mode = CompileMode::frozen});
      for (int call = 0; call < 4; ++call) {
        EXPECT_TRUE(same_bits(apply(fast, zoo.inputs), expected)) << call;
        EXPECT_TRUE(same_bits(apply(frozen, zoo.inputs), expected)) << call;
      }
      expect_no_fallback(fast, 1);
      EXPECT_GT(frozen.stats().frozen_calls, 0) << frozen.explain().frozen;
      eager->train(), alone->train();
    }

    auto step = compile([&](const Inputs& inputs) {
      Tensor loss = loss_of(apply(whole, inputs), inputs);
      loss.backward();
      return loss.detach();
    });
    for (int call = 0; call < 4; ++call) {
      const std::string at = "call " + std::to_string(call);
      // The last call adds to the gradients of the one before.
      if (call < 3) eager->zero_grad(), alone->zero_grad(), whole->zero_grad();
      const Tensor output = apply(eager, zoo.inputs), other = apply(fast, zoo.inputs);
      EXPECT_TRUE(same_bits(output.detach(), other.detach())) << at;
      const Tensor loss = loss_of(output, zoo.inputs), loss_alone = loss_of(other, zoo.inputs);
      loss.backward(), loss_alone.backward();
      EXPECT_TRUE(same_bits(loss_alone.detach(), loss.detach())) << at;
      EXPECT_TRUE(same_bits(step(zoo.inputs), loss.detach())) << at;
      expect_same_gradients(*alone, *eager, "alone, " + at);
      expect_same_gradients(*whole, *eager, "whole step, " + at);
      expect_same_state(*alone, *eager, "alone, " + at);
      expect_same_state(*whole, *eager, "whole step, " + at);
      if (call > 0) continue;
      const NoGradGuard no_grad;
      near(output, zoo.file.at("train_output"), "train_output");
      const double expected = zoo.file.at("loss").item<double>();
      EXPECT_NEAR(loss.item<double>(), expected, 1e-5 * std::max(1.0, std::abs(expected)));
      expect_gradients(*eager, zoo, 1e-3, behind_kink);
      expect_buffers(*eager, zoo);
      for (const auto& [parameter, p] : eager->named_parameters()) {
        if (!p.grad().defined()) continue;
        const Tensor of_first = first.try_emplace(parameter, p.grad().clone()).first->second;
        EXPECT_TRUE(same_bits(p.grad(), of_first)) << parameter;
      }
    }
    expect_no_fallback(fast, 2);  // for inference, for training
    expect_no_fallback(step, 2);  // without gradients, with some
  }
}

/// Of the tokens that follow.
Tensor of_tokens(const Tensor& logits, const Inputs& inputs) {
  return F::cross_entropy(logits.flatten(0, 1), inputs[1].flatten());
}
auto of_classes(const std::vector<int64_t>& labels) {
  return [labels = tensor(labels)](const Tensor& logits, const Inputs&) { return F::cross_entropy(logits, labels); };
}
#define FIRST_INPUT [](auto& model, const Inputs& inputs) { return model(inputs[0]); }

TEST(Zoo, GPT2) {
  auto make = [] {
    return GPT2LMHeadModel(
        GPT2Config{.vocab_size = 97, .n_positions = 24, .n_embd = 32, .n_layer = 2, .n_head = 2, .dropout = 0});
  };
  check("gpt2", make, FIRST_INPUT, of_tokens);
}

TEST(Zoo, Bert) {
  auto make = [] {
    return BertModel(BertConfig{.vocab_size = 97,
                                .hidden_size = 32,
                                .num_hidden_layers = 2,
                                .num_attention_heads = 2,
                                .intermediate_size = 64,
                                .max_position_embeddings = 24,
                                .dropout = 0});
  };
  auto with_mask = [](auto& model, const Inputs& inputs) { return model(inputs[0], inputs[1]); };
  check("bert", make, with_mask, [](const Tensor& hidden, const Inputs&) { return hidden.pow(3).mean(); });
}

TEST(Zoo, Llama) {
  auto make = [] {
    return LlamaForCausalLM(LlamaConfig{.vocab_size = 97,
                                        .hidden_size = 32,
                                        .intermediate_size = 48,
                                        .num_hidden_layers = 2,
                                        .num_attention_heads = 4,
                                        .num_key_value_heads = 2,
                                        .max_position_embeddings = 24});
  };
  check("llama", make, FIRST_INPUT, of_tokens);
}

TEST(Zoo, ViT) {
  auto make = [] {
    return VisionTransformer(ViTConfig{.image_size = 32,
                                       .patch_size = 8,
                                       .num_layers = 2,
                                       .num_heads = 2,
                                       .hidden_dim = 32,
                                       .mlp_dim = 64,
                                       .num_classes = 10});
  };
  check("vit", make, FIRST_INPUT, of_classes({2, 5}));
}

TEST(Zoo, ResNet18) {
  auto make = [] { return ResNet18(ResNetConfig{.width = 4, .num_classes = 10}); };
  check("resnet18", make, FIRST_INPUT, of_classes({5, 8, 8, 9, 8, 5, 4, 6}));
}

TEST(Zoo, MobileNetV2) {
  auto make = [] {
    return MobileNetV2(MobileNetV2Config{.stages = {{1, 4, 1, 1}, {6, 8, 2, 2}, {6, 12, 2, 2}, {6, 16, 1, 1}},
                                         .round_nearest = 4,
                                         .dropout = 0,
                                         .num_classes = 10});
  };
  // The input of one ReLU6 is 1.2e-6 in double, and lies on the other side of 0 in f32, where rounding has come to
  // 5e-6.
  check("mobilenet_v2", make, FIRST_INPUT, of_classes({5, 8, 8, 9, 8, 5, 4, 6}), "features.5.conv.2.weight");
}

// What is dropped is drawn once, forward and backward, and as eager draws it.
TEST(Dropout, OfACompiledStepIsEagers) {
  const Inputs inputs = Zoo("gpt2").inputs;
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

template <class Model>
int64_t parameters_of() {
  const nn::SkipInit skip;
  int64_t count = 0;
  for (const Tensor& p : Model()->parameters()) count += p.numel();
  return count;
}
TEST(FullSize, HasTheParametersOfThePublishedModels) {
  EXPECT_EQ(parameters_of<GPT2LMHeadModel>(), 124'439'808);
  EXPECT_EQ(parameters_of<BertModel>(), 109'482'240);
  EXPECT_EQ(parameters_of<LlamaForCausalLM>(), 6'738'415'616);
  EXPECT_EQ(parameters_of<VisionTransformer>(), 86'567'656);
  EXPECT_EQ(parameters_of<ResNet18>(), 11'689'512);
  EXPECT_EQ(parameters_of<MobileNetV2>(), 3'504'872);
}

}  // namespace
}  // namespace models
