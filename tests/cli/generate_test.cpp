// How small models of Hugging Face's form go on with a text, against `transformers` (tools/generate_cases.py).
#include "cli/generate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
const std::string kFolder = INGOT_SOURCE_DIR "/tests/data/generate/";

Json read(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}
void write(const std::string& path, const Json& json) { std::ofstream(path) << json.dump(); }

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// A copy of a folder, to be spoiled.
struct Copy {
  std::string path;
  explicit Copy(const std::string& kind)
      : path(testing::TempDir() + "/generate_" + kind + "_" + std::to_string(getpid())) {
    fs::remove_all(path);
    fs::copy(kFolder + kind, path);
  }
  ~Copy() { fs::remove_all(path); }
  std::string operator/(const char* file) const { return path + "/" + file; }
};

class Continues : public testing::TestWithParam<const char*> {};

TEST_P(Continues, AsTheirs) {
  const std::string folder = kFolder + GetParam();
  const LanguageModel model = read_language_model(folder);
  EXPECT_EQ(model.type, GetParam());
  const Json expected = read(folder + "/expected.json")["greedy"];
  const auto prompt = expected["prompt"].get<std::vector<int64_t>>(),
             tokens = expected["tokens"].get<std::vector<int64_t>>();
  LanguageModel endless = model;
  endless.ends.clear();
  for (bool eager : {true, false}) {
    std::vector<int64_t> told;
    const Generation made = generate(endless, prompt, static_cast<int64_t>(tokens.size()), {}, eager,
                                     [&](int64_t token) { told.push_back(token); });
    EXPECT_EQ(made.tokens, tokens) << (eager ? "eager" : "compiled");
    EXPECT_EQ(told, tokens);
    EXPECT_FALSE(made.ended);
  }
  // The logits of the last, with the cache filled in one call, token by token, and over what was there before.
  std::vector<int64_t> all = prompt;
  all.insert(all.end(), tokens.begin(), tokens.end() - 1);
  const auto count = static_cast<int64_t>(all.size());
  const auto next = model.start(count);
  const Tensor ids = tensor(all).unsqueeze(0), exact = tensor(expected["logits"].get<std::vector<double>>());
  const double largest = exact.abs().max().item<double>();
  for (int round = 0; round < 2; ++round) {
    Tensor logits = next(ids, 0);
    EXPECT_LE((logits.to(kFloat64) - exact).abs().max().item<double>(), 1e-5 * largest);
    for (int64_t at = 0; at < count; ++at) logits = next(ids.narrow(1, at, 1), at);
    EXPECT_LE((logits.to(kFloat64) - exact).abs().max().item<double>(), 1e-5 * largest);
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, Continues, testing::Values("gpt2", "llama"));

TEST(Generate, EndsWhereTheModelEndsTextsOrHasNoMorePositions) {
  LanguageModel model = read_language_model(kFolder + "gpt2");
  EXPECT_EQ(model.ends, std::vector<int64_t>{0});
  const Json expected = read(kFolder + "gpt2/expected.json")["greedy"];
  const auto prompt = expected["prompt"].get<std::vector<int64_t>>(),
             tokens = expected["tokens"].get<std::vector<int64_t>>();
  model.ends = {tokens[3]};
  const Generation made = generate(model, prompt, 20, {}, false);
  EXPECT_TRUE(made.ended);
  const auto first = std::find(tokens.begin(), tokens.end(), tokens[3]);
  EXPECT_EQ(made.tokens, std::vector<int64_t>(tokens.begin(), first));
  model.ends.clear();
  const Generation most = generate(model, prompt, 1000, {}, false);
  EXPECT_EQ(most.prompt.size() + most.tokens.size(), 49u);  // the last one has no place of its own
  EXPECT_TRUE(generate(model, prompt, 0, {}, false).tokens.empty());
}

TEST(Generate, ASeedGivesTheSameTokensCompiledAndOnManyThreads) {
  const LanguageModel model = read_language_model(kFolder + "llama");
  const Sampling sampling{.temperature = 1, .top_p = 0.95, .top_k = 50, .seed = 5};
  const std::vector<int64_t> prompt{0, 40, 41}, expected = generate(model, prompt, 30, sampling, true).tokens;
  EXPECT_NE(expected,
            generate(model, prompt, 30, {.temperature = 1, .top_p = 0.95, .top_k = 50, .seed = 6}, true).tokens);
  std::vector<std::thread> threads;
  std::vector<std::vector<int64_t>> got(4);
  for (auto& tokens : got) threads.emplace_back([&] { tokens = generate(model, prompt, 30, sampling, false).tokens; });
  for (auto& thread : threads) thread.join();
  for (const auto& tokens : got) EXPECT_EQ(tokens, expected);
}

// Every matrix of GPT-2's layers and of Llama's is int8 then, and the logits are near those of f32.
TEST(Generate, WithInt8WeightsLogitsAreNear) {
  for (const char* type : {"gpt2", "llama"}) {
    SCOPED_TRACE(type);
    const LanguageModel plain = read_language_model(kFolder + type),
                        narrow = read_language_model(kFolder + type, "int8");
    EXPECT_EQ(plain.parameters, narrow.parameters);
    const Tensor ids = tensor({{1, 2, 3}});
    const Tensor exact = plain.start(4)(ids, 0), near = narrow.start(4)(ids, 0);
    const double apart = (exact - near).abs().amax().item<double>();
    EXPECT_GT(apart, 0);
    EXPECT_LT(apart, 0.1 * exact.abs().amax().item<double>());
    EXPECT_EQ(generate(narrow, {1, 2}, 4, {}, true).tokens, generate(narrow, {1, 2}, 4, {}, false).tokens);
  }
}

// Of each format the logits are those of f32 weights that were rounded so, to the bit.
TEST(Generate, WithHalvesOfWeightsLogitsAreThoseOfRoundedOnes) {
  for (const char* type : {"gpt2", "llama"})
    for (const auto& [format, dtype] : {std::pair{"bf16", kBFloat16}, {"f16", kFloat16}}) {
      SCOPED_TRACE(std::string(type) + " " + format);
      const bool gpt2 = type == std::string("gpt2");
      const Copy folder(type);
      StateDict weights = read_checkpoint(folder.path);
      const Tensor ids = tensor({{1, 2, 3}});
      const LanguageModel narrow = read_language_model(folder.path, format);
      const Tensor got = narrow.start(4)(ids, 0);
      auto rewrite = [&](auto change) {
        StateDict changed;
        for (const auto& [name, t] : weights) {
          const bool layer = name.ends_with(".weight") &&
                             (gpt2 ? name.find(".c_") != std::string::npos
                                   : name.find("_proj.") != std::string::npos || name == "lm_head.weight");
          changed[name] = layer ? change(t) : t.to(kFloat32);
        }
        fs::remove(folder / "model.safetensors.index.json");
        save(changed, folder / "model.safetensors");
      };
      // A file that has them so is read as it is.
      rewrite([wanted = dtype](const Tensor& t) { return t.to(wanted); });
      const LanguageModel kept = read_language_model(folder.path, format);
      EXPECT_TRUE(equal(kept.start(4)(ids, 0), got));
      EXPECT_EQ(kept.parameters, narrow.parameters);
      rewrite([&, dtype = dtype](const Tensor& t) { return t.to(dtype).to(kFloat32); });
      const LanguageModel wide = read_language_model(folder.path);
      EXPECT_EQ(wide.parameters, narrow.parameters);
      const Tensor rounded = wide.start(4)(ids, 0);
      if (gpt2)  // whose head is a rounded copy of the table, which stays f32
        EXPECT_LT((rounded - got).abs().amax().item<double>(), 0.02 * got.abs().amax().item<double>());
      else
        EXPECT_TRUE(equal(rounded, got));
      EXPECT_EQ(generate(narrow, {1, 2}, 6, {}, true).tokens, generate(narrow, {1, 2}, 6, {}, false).tokens);
    }
}

TEST(Generate, ATableThatAlsoGivesTheLogitsIsThereOnce) {
  const Copy folder("llama");
  StateDict weights = read_checkpoint(folder.path);
  const int64_t table = weights.at("lm_head.weight").numel();
  weights.erase("lm_head.weight");
  fs::remove(folder / "model.safetensors.index.json");
  save(weights, folder / "model.safetensors");
  EXPECT_NE(error_of([&] { read_language_model(folder.path); }).find("no tensor for lm_head.weight"), std::string::npos)
      << "where the configuration says that there is one";
  Json config = read(folder / "config.json");
  config["tie_word_embeddings"] = true;
  write(folder / "config.json", config);
  EXPECT_EQ(read_language_model(folder.path).parameters, read_language_model(kFolder + "llama").parameters - table);
}

// Files whose layers are int8, all or some, as a state dict of such a model has them.
TEST(Generate, ReadsInt8Checkpoints) {
  for (const char* type : {"gpt2", "llama"}) {
    SCOPED_TRACE(type);
    const bool gpt2 = type == std::string("gpt2");
    const Tensor ids = tensor({{1, 2, 3}});
    const LanguageModel plain = read_language_model(kFolder + type);
    const Tensor expected = read_language_model(kFolder + type, "int8").start(4)(ids, 0);
    auto narrow = [&](const Copy& folder, const std::function<bool(const std::string&)>& chosen) {
      StateDict weights = read_checkpoint(folder.path), made = weights;
      for (auto& [name, t] : weights) {
        const bool across = gpt2 && name.find(".c_") != std::string::npos;
        const bool layer = across || name.find("_proj.") != std::string::npos || name == "lm_head.weight";
        if (!layer || !name.ends_with(".weight") || !chosen(name)) continue;
        const nn::Int8Weight q = nn::quantize_int8(across ? t.t() : t);
        made[name] = across ? q.weight.t().contiguous() : q.weight;
        made[name + "_scale"] = q.scale;
      }
      if (gpt2 && chosen("lm_head")) {
        const auto table = std::find_if(weights.begin(), weights.end(),
                                        [](const auto& each) { return each.first.ends_with("wte.weight"); });
        const nn::Int8Weight q = nn::quantize_int8(table->second);
        made["lm_head"] = q.weight, made["lm_head_scale"] = q.scale;
      }
      fs::remove(folder / "model.safetensors.index.json");
      save(made, folder / "model.safetensors");
    };
    {
      const Copy folder(type);
      narrow(folder, [](const std::string&) { return true; });
      const LanguageModel read = read_language_model(folder.path);
      EXPECT_EQ(read.parameters, plain.parameters);
      EXPECT_TRUE(equal(read.start(4)(ids, 0), expected));
      EXPECT_TRUE(equal(read_language_model(folder.path, "int8").start(4)(ids, 0), expected));
    }
    {
      const Copy folder(type);
      narrow(folder, [](const std::string& name) { return name.find(".0.") != std::string::npos; });
      const LanguageModel some = read_language_model(folder.path);
      EXPECT_EQ(some.parameters, plain.parameters);
      EXPECT_FALSE(equal(some.start(4)(ids, 0), plain.start(4)(ids, 0)));
      EXPECT_FALSE(equal(some.start(4)(ids, 0), expected));
      EXPECT_EQ(generate(some, {1, 2}, 4, {}, true).tokens, generate(some, {1, 2}, 4, {}, false).tokens);
      StateDict weights = read_checkpoint(folder.path);
      const auto scale =
          std::find_if(weights.begin(), weights.end(), [](const auto& each) { return each.first.ends_with("_scale"); });
      const std::string name = scale->first;
      scale->second = scale->second.narrow(0, 0, 3).contiguous();
      save(weights, folder / "model.safetensors");
      EXPECT_NE(error_of([&] { read_language_model(folder.path); }).find(name), std::string::npos);
      weights.erase(scale);
      save(weights, folder / "model.safetensors");
      EXPECT_NE(error_of([&] { read_language_model(folder.path); }).find("got i8, expected floating weights"),
                std::string::npos);
    }
  }
}

TEST(Generate, PromptsThatDoNotFitAreRefused) {
  const LanguageModel model = read_language_model(kFolder + "gpt2");
  EXPECT_EQ(error_of([&] { generate(model, {}, 1, {}, false); }), "prompt: got no tokens, expected one at least");
  EXPECT_EQ(error_of([&] { generate(model, std::vector<int64_t>(49, 1), 1, {}, false); }),
            "prompt: got 49 tokens, expected at most the model's 48 positions");
  EXPECT_EQ(error_of([&] {
              generate(model, {1, 401}, 1, {}, false);
            }),
            "prompt: got token 401, expected one of the model's 401");
  EXPECT_EQ(generate(model, std::vector<int64_t>(48, 1), 5, {}, false).tokens.size(), 1u);
}

TEST(Sample, DrawsFromTheSharesThatAreLeft) {
  const Tensor logits = tensor(std::vector<float>{std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)});
  EXPECT_EQ(sample(logits, {}, 0.99), 1);
  auto shares = [&](const Sampling& sampling, const Tensor& of) {
    std::vector<double> count(4);
    for (int i = 0; i < 1000; ++i) count[static_cast<size_t>(sample(of, sampling, (i + 0.5) / 1000))] += 0.001;
    return count;
  };
  auto near = [](const std::vector<double>& got, const std::vector<double>& expected) {
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-3) << i;
  };
  near(shares({.temperature = 1}, logits), {0.1, 0.4, 0.2, 0.3});
  near(shares({.temperature = 1, .top_k = 2}, logits), {0, 4. / 7, 0, 3. / 7});
  near(shares({.temperature = 1, .top_p = 0.6}, logits), {0, 4. / 7, 0, 3. / 7});
  near(shares({.temperature = 1, .top_p = 0.75}, logits), {0, 4. / 9, 2. / 9, 3. / 9});
  near(shares({.temperature = 1, .top_p = 0}, logits), {0, 1, 0, 0});
  near(shares({.temperature = 0.5}, logits), {1. / 30, 16. / 30, 4. / 30, 9. / 30});
  near(shares({.temperature = 2, .top_p = 0.5, .top_k = 3}, logits),
       {0, std::sqrt(.4) / (std::sqrt(.4) + std::sqrt(.3)), 0, std::sqrt(.3) / (std::sqrt(.4) + std::sqrt(.3))});
  // Of equal ones the first; infinities; numbers only.
  const float inf = INFINITY, nan = NAN;
  EXPECT_EQ(sample(tensor(std::vector<float>{1, 2, 2, 0}), {}, 0), 1);
  near(shares({.temperature = 1}, tensor(std::vector<float>{-inf, 0, -inf, nan})), {0, 1, 0, 0});
  near(shares({.temperature = 1}, tensor(std::vector<float>{0, inf, 5, inf})), {0, 0.5, 0, 0.5});
  EXPECT_EQ(error_of([&] {
              sample(tensor(std::vector<float>{nan, nan}), {}, 0);
            }),
            "sample: got logits of which none is a number");
  EXPECT_EQ(error_of([&] { sample(logits, {.temperature = nan}, 0); }), "temperature: got nan, expected 0 or more");
  EXPECT_EQ(error_of([&] { sample(logits, {.temperature = -1}, 0); }), "temperature: got -1, expected 0 or more");
  EXPECT_EQ(error_of([&] { sample(logits, {.temperature = 1, .top_p = nan}, 0); }),
            "top_p: got nan, expected a share from 0 to 1");
}

TEST(LanguageModelFolder, WhatIsWrongIsNamed) {
  auto expect = [](const std::string& kind, const std::string& part, const std::function<void(const Copy&)>& spoil) {
    const Copy copy(kind);
    spoil(copy);
    const std::string error = error_of([&] { read_language_model(copy.path); });
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_NE(error.find(copy.path), std::string::npos) << error;
  };
  auto config = [](const char* key, Json value) {
    return [=](const Copy& copy) {
      Json json = read(copy / "config.json");
      json[key] = value;
      write(copy / "config.json", json);
    };
  };
  expect("gpt2", "config.json: cannot open", [](const Copy& c) { fs::remove(c / "config.json"); });
  expect("gpt2", "config.json", [](const Copy& c) { fs::resize_file(c / "config.json", 100); });
  expect("gpt2", "model_type: got \"bert\"", config("model_type", "bert"));
  expect("gpt2", "n_embd: got 0", config("n_embd", 0));
  expect("gpt2", "n_embd: got \"many\"", config("n_embd", "many"));
  expect("gpt2", "n_head: got 5", config("n_head", 5));
  expect("gpt2", "n_layer: got nothing", config("n_layer", nullptr));
  expect("gpt2", "activation_function: got \"relu\"", config("activation_function", "relu"));
  expect("gpt2", "n_inner: got 5", config("n_inner", 5));
  expect("llama", "rope_type: got \"llama3\"", config("rope_parameters", {{"rope_type", "llama3"}}));
  expect("llama", "rope_scaling: got", config("rope_scaling", {{"type", "linear"}}));
  expect("llama", "attention_bias: got true", config("attention_bias", true));
  expect("llama", "num_key_value_heads: got 3", config("num_key_value_heads", 3));
  expect("llama", "head_dim: got 16", config("head_dim", 16));
  expect("llama", "tie_word_embeddings: got 1, expected true or false", config("tie_word_embeddings", 1));
  // Sizes that are not the file's.
  expect("gpt2", "transformer.h.2.ln_1.weight", config("n_layer", 3));
  expect("gpt2", "transformer.h.1.ln_1.weight", config("n_layer", 1));
  expect("gpt2", "transformer.wpe.weight", config("n_positions", 64));
  expect("gpt2", "transformer.wte.weight", config("vocab_size", 400));
  expect("gpt2", "model.safetensors", [](const Copy& c) { fs::remove(c / "model.safetensors"); });
  expect("gpt2", "model.safetensors", [](const Copy& c) { fs::resize_file(c / "model.safetensors", 50000); });
  const char* part = "model-00002-of-00003.safetensors";
  const char* index = "model.safetensors.index.json";
  expect("llama", std::string("names ") + part + ", which is not there", [&](const Copy& c) { fs::remove(c / part); });
  expect("llama", part, [&](const Copy& c) { fs::resize_file(c / part, 20000); });
  expect("llama", "lacks", [&](const Copy& c) {
    fs::copy_file(c / "model-00001-of-00003.safetensors", c / part, fs::copy_options::overwrite_existing);
  });
  auto indexed = [&](Json value) {
    return [=](const Copy& c) {
      Json json = read(c / index);
      json["weight_map"] = value;
      write(c / index, json);
    };
  };
  expect("llama", "weight_map: got none", indexed(nullptr));
  expect("llama", "expected a file of this folder", indexed({{"lm_head.weight", "../gpt2/model.safetensors"}}));
  expect("llama", "lacks lm_head.weight", indexed({{"lm_head.weight", "model-00001-of-00003.safetensors"}}));
  EXPECT_NE(error_of([] { read_language_model("/no/such/folder"); }).find("/no/such/folder"), std::string::npos);
}

}  // namespace
}  // namespace ingot::cli
