#include "cli/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string_view>

#include "cli/zoo.h"
#include "conformance/json_text.h"
#include "models/gpt2.h"
#include "models/llama.h"

namespace ingot::cli {
namespace {

using ModelJson = nlohmann::json;

ModelJson read_object(const std::string& path) {
  ModelJson json = conformance::read_json(path);
  if (!json.is_object()) throw Error(path + ": got no object, expected one");
  return json;
}

/// config.json, each field checked as it is read.
class Config {
 public:
  explicit Config(const std::string& path) : path_(path), json_(read_object(path)) {}
  Config(std::string path, ModelJson json) : path_(std::move(path)), json_(std::move(json)) {}

  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  int64_t size(const char* key, int64_t otherwise = 0) const {
    if (!has(key) && otherwise) return otherwise;
    const ModelJson& value = at(key);
    if (!value.is_number_integer() || value < 1 || value > 1 << 24) refuse(key, value, "a whole number from 1");
    return value.get<int64_t>();
  }
  double number(const char* key, double otherwise) const {
    if (!has(key)) return otherwise;
    const ModelJson& value = at(key);
    if (!value.is_number() || !(value > 0) || !std::isfinite(value.get<double>()))
      refuse(key, value, "a number above 0");
    return value.get<double>();
  }
  /// What the model here cannot be otherwise.
  void expect(const char* key, const std::vector<ModelJson>& allowed) const {
    if (has(key) && std::find(allowed.begin(), allowed.end(), json_[key]) == allowed.end())
      refuse(key, json_[key], ModelJson(allowed).dump());
  }
  Config within(const char* key) const { return {path_ + ": " + key, at(key)}; }
  bool flag(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!at(key).is_boolean()) refuse(key, at(key), "true or false");
    return at(key).get<bool>();
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) refuse(key, at(key), "a text");
    return at(key).get<std::string>();
  }
  /// One token or several, or none.
  std::vector<int64_t> tokens(const char* key) const {
    std::vector<int64_t> all;
    if (!has(key)) return all;
    for (const ModelJson& value : at(key).is_array() ? at(key) : ModelJson::array({at(key)})) {
      if (!value.is_number_integer()) refuse(key, value, "a token's number");
      all.push_back(value.get<int64_t>());
    }
    return all;
  }
  [[noreturn]] void refuse(const char* key, const ModelJson& got, const std::string& expected) const {
    throw Error(fmt::format("{}: {}: got {}, expected {}", path_, key, got.dump(), expected));
  }

 private:
  const ModelJson& at(const char* key) const {
    if (!has(key)) throw Error(fmt::format("{}: {}: got nothing", path_, key));
    return json_[key];
  }
  std::string path_;
  ModelJson json_;
};

models::GPT2Config gpt2_config(const Config& c) {
  models::GPT2Config config{.vocab_size = c.size("vocab_size"),
                            .n_positions = c.size("n_positions"),
                            .n_embd = c.size("n_embd"),
                            .n_layer = c.size("n_layer"),
                            .n_head = c.size("n_head"),
                            .dropout = 0,
                            .layer_norm_epsilon = c.number("layer_norm_epsilon", 1e-5)};
  if (config.n_embd % config.n_head) c.refuse("n_head", config.n_head, "a divisor of n_embd");
  c.expect("n_inner", {4 * config.n_embd});
  c.expect("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  c.expect("scale_attn_weights", {true});
  c.expect("scale_attn_by_inverse_layer_idx", {false});
  c.expect("tie_word_embeddings", {true});
  return config;
}

models::LlamaConfig llama_config(const Config& c) {
  models::LlamaConfig config{.vocab_size = c.size("vocab_size"),
                             .hidden_size = c.size("hidden_size"),
                             .intermediate_size = c.size("intermediate_size"),
                             .num_hidden_layers = c.size("num_hidden_layers"),
                             .num_attention_heads = c.size("num_attention_heads"),
                             .num_key_value_heads = c.size("num_key_value_heads", c.size("num_attention_heads")),
                             .max_position_embeddings = c.size("max_position_embeddings"),
                             .tie_word_embeddings = c.flag("tie_word_embeddings", false),
                             .rms_norm_eps = c.number("rms_norm_eps", 1e-6),
                             .rope_theta = c.number("rope_theta", 10000)};
  if (config.hidden_size % config.num_attention_heads)
    c.refuse("num_attention_heads", config.num_attention_heads, "a divisor of hidden_size");
  if (config.num_attention_heads % config.num_key_value_heads)
    c.refuse("num_key_value_heads", config.num_key_value_heads, "a divisor of num_attention_heads");
  c.expect("head_dim", {config.head_dim()});
  c.expect("hidden_act", {"silu"});
  c.expect("attention_bias", {false});
  c.expect("mlp_bias", {false});
  c.expect("rope_scaling", {});
  if (c.has("rope_parameters")) {  // where newer files say it
    const Config rope = c.within("rope_parameters");
    rope.expect("rope_type", {"default"});
    config.rope_theta = rope.number("rope_theta", config.rope_theta);
  }
  return config;
}

// How a state dict of int8 weights names their scales, and the head that is a copy of a table.
constexpr std::string_view kScale = "_scale", kHead = "lm_head";

/// Whether these weights hold the scale of a module's own int8 weight.
bool scale_in(const StateDict& weights, const std::string& module) {
  const std::string prefix = module.empty() ? "" : module + ".";
  return weights.contains(prefix + "weight" + std::string(kScale)) ||
         weights.contains(prefix + std::string(kHead) + std::string(kScale));
}

/// The model, its weights, and the part of it that gives what the logits are made of.
template <class Model, class Cache, class ModelConfig, class Logits>
LanguageModel made_language_model(const std::string& type, const ModelConfig& config, int64_t vocabulary,
                                  int64_t positions, const StateDict& read, const std::string& weight_format,
                                  const Logits& logits) {
  Model model = [&] {
    const nn::SkipInit skip;
    Model blank(config);
    nn::quantize_weights(*blank, [&](const std::string& name, nn::Module&) { return scale_in(read, name); });
    // What the file has in the format that is asked for is taken as it is.
    for (const auto& [format, dtype] : weight_formats())
      if (format == weight_format && is_floating(dtype) && dtype != kFloat32)
        nn::convert_weights(*blank, dtype, [&, dtype = dtype](const std::string& name, nn::Module&) {
          const auto weight = read.find(name + ".weight");
          return weight != read.end() && weight->second.dtype() == dtype;
        });
    return blank;
  }();
  model->eval();
  const StateDict own = model->state_dict();
  StateDict weights;
  std::map<std::pair<const void*, DType>, Tensor> cast;  // of each tensor one, whatever its names
  std::set<const void*> counted;                         // a table that also gives the logits once
  LanguageModel made;
  made.type = type, made.vocab_size = vocabulary, made.most_tokens = positions;
  for (const auto& [name, t] : read) {
    const auto slot = own.find(name);
    const DType dtype = !is_floating(t.dtype()) ? t.dtype() : slot == own.end() ? kFloat32 : slot->second.dtype();
    Tensor& one = cast[{t.impl(), dtype}];
    if (!one.defined()) one = t.to(dtype);
    weights[name] = one;
    if (!name.ends_with(kScale) && name != kHead && counted.insert(t.impl()).second) made.parameters += t.numel();
  }
  model->load_state_dict(weights, {.assign = true}, Location::none());
  set_weight_format(*model, weight_format);
  made.start = [=](int64_t most_tokens) -> LanguageModel::Next {
    auto cache = std::make_shared<Cache>(config, 1, most_tokens);
    return [=](const Tensor& ids, int64_t position) {
      const NoGradGuard no_grad;
      return logits(model, ids, *cache, position);
    };
  };
  return made;
}

}  // namespace

StateDict read_checkpoint(const std::string& folder) {
  const std::string whole = folder + "/model.safetensors", index = whole + ".index.json";
  if (std::filesystem::exists(whole)) return load(whole, {.mapped = false}, Location::none());
  if (!std::filesystem::exists(index))
    throw Error(folder + ": got neither model.safetensors nor model.safetensors.index.json");
  const ModelJson json = read_object(index);
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object() || map->empty())
    throw Error(index + ": weight_map: got none, expected the file of each weight");
  std::map<std::string, StateDict> parts;
  StateDict all;
  for (const auto& [name, file] : map->items()) {
    const std::string part = file.is_string() ? file.get<std::string>() : "";
    if (part.empty() || part.find('/') != std::string::npos || part.find('\0') != std::string::npos)
      throw Error(index + ": weight_map: " + name + ": got " + file.dump() + ", expected a file of this folder");
    if (!parts.contains(part)) {
      if (!std::filesystem::exists(folder + "/" + part))
        throw Error(index + ": names " + part + ", which is not there");
      parts[part] = load(folder + "/" + part, {.mapped = false}, Location::none());
    }
    const auto found = parts[part].find(name);
    if (found == parts[part].end())
      throw Error(folder + "/" + part + ": lacks " + name + ", which the index says it has");
    all[name] = found->second;
  }
  return all;
}

LanguageModel read_language_model(const std::string& folder, const std::string& weight_format) {
  if (!std::filesystem::is_directory(folder)) throw Error(folder + ": got no folder, expected one with config.json");
  const Config config(folder + "/config.json");
  const std::string type = config.text("model_type");
  if (type != "gpt2" && type != "llama") config.refuse("model_type", type, "\"gpt2\" or \"llama\"");
  // Sizes first: a configuration that cannot be is told before a large file is read.
  const models::GPT2Config gpt2 = type == "gpt2" ? gpt2_config(config) : models::GPT2Config();
  const models::LlamaConfig llama = type == "llama" ? llama_config(config) : models::LlamaConfig();
  const StateDict weights = find_zoo_row(type)->own_names(read_checkpoint(folder));
  for (const auto& [name, t] : weights) {
    const bool scaled = t.dtype() == kInt8 && weights.contains(name + std::string(kScale));
    if (!scaled && !is_floating(t.dtype()))
      throw Error(folder + ": " + name + ": got " + std::string(name_of(t.dtype())) + ", expected floating weights");
  }
  LanguageModel model;
  try {
    if (type == "gpt2")
      model = made_language_model<models::GPT2LMHeadModel, models::GPT2Cache>(
          type, gpt2, gpt2.vocab_size, gpt2.n_positions, weights, weight_format,
          [](models::GPT2LMHeadModel m, const Tensor& ids, models::GPT2Cache& cache, int64_t position) {
            const Tensor h = m->transformer(ids, cache, position);
            return m->logits(h.select(1, -1)).flatten();
          });
    else
      model = made_language_model<models::LlamaForCausalLM, models::LlamaCache>(
          type, llama, llama.vocab_size, llama.max_position_embeddings, weights, weight_format,
          [](models::LlamaForCausalLM m, const Tensor& ids, models::LlamaCache& cache, int64_t position) {
            return m->lm_head(m->model(ids, cache, position).select(1, -1)).flatten();
          });
  } catch (const Error& error) {
    throw Error(folder + ": " + error.what());
  }
  model.ends = config.tokens("eos_token_id");
  if (std::filesystem::exists(folder + "/generation_config.json"))
    if (const Config more(folder + "/generation_config.json"); more.has("eos_token_id"))
      model.ends = more.tokens("eos_token_id");
  return model;
}

int64_t sample(const Tensor& logits, const Sampling& sampling, double draw) {
  if (!(sampling.temperature >= 0))
    throw Error(fmt::format("temperature: got {}, expected 0 or more", sampling.temperature));
  if (!(sampling.top_p >= 0)) throw Error(fmt::format("top_p: got {}, expected a share from 0 to 1", sampling.top_p));
  const Tensor plain = logits.to(kFloat32).flatten().contiguous();
  const float* x = static_cast<const float*>(plain.data_ptr());
  std::vector<int64_t> order(static_cast<size_t>(plain.numel()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::erase_if(order, [&](int64_t i) { return std::isnan(x[i]); });
  if (order.empty()) throw Error("sample: got logits of which none is a number");
  auto larger = [&](int64_t a, int64_t b) { return x[a] != x[b] ? x[a] > x[b] : a < b; };
  if (sampling.temperature == 0) return *std::min_element(order.begin(), order.end(), larger);
  size_t kept = order.size();
  if (sampling.top_k > 0) kept = std::min(kept, static_cast<size_t>(sampling.top_k));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), larger);
  order.resize(kept);
  std::vector<double> share(kept);
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) {
    const double above = static_cast<double>(x[order[0]]);
    share[i] =
        x[order[i]] == x[order[0]] ? 1 : std::exp((static_cast<double>(x[order[i]]) - above) / sampling.temperature);
    sum += share[i];
  }
  double enough = 0;
  size_t count = 0;
  while (count < kept && (count == 0 || enough < sampling.top_p * sum)) enough += share[count++];
  double at = draw * enough;
  for (size_t i = 0; i + 1 < count; ++i) {
    if (at < share[i]) return order[i];
    at -= share[i];
  }
  return order[count - 1];
}

void check_prompt(const LanguageModel& model, const std::vector<int64_t>& prompt) {
  const auto length = static_cast<int64_t>(prompt.size());
  if (length == 0) throw Error("prompt: got no tokens, expected one at least");
  if (length > model.most_tokens)
    throw Error(
        fmt::format("prompt: got {} tokens, expected at most the model's {} positions", length, model.most_tokens));
  for (const int64_t token : prompt)
    if (token < 0 || token >= model.vocab_size)
      throw Error(fmt::format("prompt: got token {}, expected one of the model's {}", token, model.vocab_size));
}

Generation generate(const LanguageModel& model, const std::vector<int64_t>& prompt, int64_t count,
                    const Sampling& sampling, bool eager, const std::function<void(int64_t)>& told) {
  check_prompt(model, prompt);
  const auto length = static_cast<int64_t>(prompt.size());
  const int64_t most = std::min(model.most_tokens, length + std::max<int64_t>(count, 0));
  const LanguageModel::Next next = model.start(most);
  auto fast = compile([&](const Tensor& ids, int64_t position) { return next(ids, position); },
                      {.mode = CompileMode::frozen, .name = model.type});
  const Generator generator(sampling.seed);
  using Clock = std::chrono::steady_clock;
  auto seconds = [](Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); };
  Generation made;
  made.prompt = prompt;
  std::vector<int64_t> ids = prompt;
  int64_t position = 0;
  auto begin = Clock::now();
  // The last token's own logits are of no use: nothing follows it.
  while (static_cast<int64_t>(made.tokens.size()) < count && position < most) {
    const Tensor tokens = tensor(ids).unsqueeze(0);
    const Tensor logits = eager ? next(tokens, position) : fast(tokens, position);
    const double draw = sampling.temperature == 0 ? 0 : rand({1}, kFloat64, generator).item<double>();
    const int64_t token = sample(logits, sampling, draw);
    position += static_cast<int64_t>(ids.size());
    if (made.tokens.empty()) made.prompt_seconds = seconds(begin), begin = Clock::now();
    if (std::find(model.ends.begin(), model.ends.end(), token) != model.ends.end()) {
      made.ended = true;
      break;
    }
    made.tokens.push_back(token);
    if (told) told(token);
    ids = {token};
  }
  made.token_seconds = made.tokens.size() > 1 ? seconds(begin) : 0;
  return made;
}

}  // namespace ingot::cli
