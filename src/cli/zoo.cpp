#include "cli/zoo.h"

#include "base/first_use.h"
#include "conformance/json_text.h"
#include "models/bert.h"
#include "models/convnext.h"
#include "models/dlrm.h"
#include "models/efficientnet.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/lstm_lm.h"
#include "models/mlp.h"
#include "models/mobilenet_v2.h"
#include "models/resnet.h"
#include "models/unet.h"
#include "models/vit.h"

namespace ingot::cli {
namespace {

using namespace models;

// What files say of sizes. Each begins with a configuration at full size, which holds where a file says nothing.

std::string numbered(const std::string& before, int64_t i, const std::string& after) {
  return before + std::to_string(i) + after;
}

/// Heads as the description says, else as wide as those of the model at full size.
int64_t heads_of(const ModelFile& file, int64_t width, int64_t full_width, int64_t full_heads) {
  return file.positive_before(" heads", std::max<int64_t>(1, width / (full_width / full_heads)));
}

ResNetConfig sized(ResNetConfig c, const ModelFile& file) {
  c.width = file.size("conv1.weight", 0);
  c.num_classes = file.size("fc.weight", 0);
  c.bottleneck = file.has("layer1.0.conv3.weight");
  for (int64_t stage = 0; stage < 4; ++stage)
    c.layers[stage] = file.count(numbered("layer", stage + 1, "."), ".conv1.weight");
  return c;
}

MobileNetV2Config sized(MobileNetV2Config c, const ModelFile& file) {
  const std::string word = "inverted_residual_setting=";
  if (const size_t at = file.about.find(word); at != std::string::npos) {
    const std::string text = file.about.substr(at + word.size());
    const auto rows = conformance::parse_json(text.substr(0, text.find("]]") + 2));
    c.stages.clear();
    for (const auto& row : rows) {
      if (!row.is_array() || row.size() != 4) throw Error("about: " + word + " has a row without four numbers");
      for (const auto& number : row)
        if (!number.is_number_integer() || number < 1 || number > 1'000'000)
          throw Error("about: " + word + " has " + number.dump() + ", expected numbers from 1");
      c.stages.push_back({row[0], row[1], row[2], row[3]});
    }
  }
  if (const auto multiple = file.number_after("round_nearest=")) c.round_nearest = static_cast<int64_t>(*multiple);
  if (c.round_nearest < 1) throw Error("about: round_nearest: got no number from 1");
  if (const auto width = file.number_after("width_mult=")) c.width = *width;
  c.num_classes = file.size("classifier.1.weight", 0);
  c.dropout = 0;
  return c;
}

EfficientNetConfig sized(EfficientNetConfig c, const ModelFile& file) {
  c.stem = file.size("features.0.0.weight", 0);
  for (size_t i = 0; i < c.stages.size(); ++i) {  // strides are not to be seen in weights: they stay
    auto& stage = c.stages[i];
    const std::string at = numbered("features.", static_cast<int64_t>(i) + 1, ".");
    stage.count = file.count(at, ".block.0.0.weight");
    const bool widens = file.has(at + "0.block.3.0.weight");
    const std::string depthwise = at + (widens ? "0.block.1.0.weight" : "0.block.0.0.weight");
    stage.kernel = file.size(depthwise, 2);
    stage.channels = file.size(at + (widens ? "0.block.3.0.weight" : "0.block.2.0.weight"), 0);
    stage.expand = widens ? file.size(depthwise, 0) / file.size(at + "0.block.0.0.weight", 1) : 1;
  }
  c.last = file.size("classifier.1.weight", 1);
  c.num_classes = file.size("classifier.1.weight", 0);
  c.dropout = c.stochastic_depth = 0;
  return c;
}

ConvNeXtConfig sized(ConvNeXtConfig c, const ModelFile& file) {
  c.depths.clear(), c.dims.clear();
  for (int64_t at = 1; file.has(numbered("features.", at, ".0.layer_scale")); at += 2) {
    c.depths.push_back(file.count(numbered("features.", at, "."), ".layer_scale"));
    c.dims.push_back(file.size(numbered("features.", at, ".0.layer_scale"), 0));
  }
  if (c.dims.empty()) throw Error("the file has no weight 'features.1.0.layer_scale', from which sizes are read");
  c.num_classes = file.size("classifier.2.weight", 0);
  c.stochastic_depth = 0;
  return c;
}

ViTConfig sized(ViTConfig c, const ModelFile& file) {
  const std::string layers = "encoder.layers.encoder_layer_";
  const ViTConfig full = c;
  c.patch_size = file.size("conv_proj.weight", 2);
  c.hidden_dim = file.size("class_token", 2);
  c.num_layers = file.count(layers, ".ln_1.weight");
  c.num_heads = heads_of(file, c.hidden_dim, full.hidden_dim, full.num_heads);
  c.mlp_dim = c.num_layers ? file.size(layers + "0.mlp.0.weight", 0) : 0;
  c.num_classes = file.size("heads.head.weight", 0);
  int64_t side = 1;  // square images
  while ((side + 1) * (side + 1) < file.size("encoder.pos_embedding", 1)) ++side;
  c.image_size = side * c.patch_size;
  c.dropout = 0;
  return c;
}

BertConfig sized(BertConfig c, const ModelFile& file) {
  const BertConfig full = c;
  c.vocab_size = file.size("embeddings.word_embeddings.weight", 0);
  c.hidden_size = file.size("embeddings.word_embeddings.weight", 1);
  c.max_position_embeddings = file.size("embeddings.position_embeddings.weight", 0);
  c.type_vocab_size = file.size("embeddings.token_type_embeddings.weight", 0);
  c.num_hidden_layers = file.count("encoder.layer.", ".intermediate.dense.weight");
  c.num_attention_heads = heads_of(file, c.hidden_size, full.hidden_size, full.num_attention_heads);
  if (c.num_hidden_layers) c.intermediate_size = file.size("encoder.layer.0.intermediate.dense.weight", 0);
  c.add_pooling_layer = file.has("pooler.dense.weight");
  c.dropout = 0;
  return c;
}

GPT2Config sized(GPT2Config c, const ModelFile& file) {
  const GPT2Config full = c;
  c.vocab_size = file.size("transformer.wte.weight", 0);
  c.n_embd = file.size("transformer.wte.weight", 1);
  c.n_positions = file.size("transformer.wpe.weight", 0);
  c.n_layer = file.count("transformer.h.", ".ln_1.weight");
  c.n_head = heads_of(file, c.n_embd, full.n_embd, full.n_head);
  c.dropout = 0;
  return c;
}

LlamaConfig sized(LlamaConfig c, const ModelFile& file) {
  const LlamaConfig full = c;
  c.vocab_size = file.size("model.embed_tokens.weight", 0);
  c.hidden_size = file.size("model.embed_tokens.weight", 1);
  c.num_hidden_layers = file.count("model.layers.", ".input_layernorm.weight");
  c.num_attention_heads = heads_of(file, c.hidden_size, full.hidden_size, full.num_attention_heads);
  if (c.hidden_size % c.num_attention_heads)
    throw Error("about: got " + std::to_string(c.num_attention_heads) + " heads, expected a divisor of the width " +
                std::to_string(c.hidden_size));
  if (c.num_hidden_layers) {
    c.intermediate_size = file.size("model.layers.0.mlp.gate_proj.weight", 0);
    c.num_key_value_heads = std::max<int64_t>(1, file.size("model.layers.0.self_attn.k_proj.weight", 0) / c.head_dim());
  }
  c.tie_word_embeddings = !file.has("lm_head.weight");
  c.rope_theta = file.number_after("rope theta ").value_or(c.rope_theta);
  c.rms_norm_eps = file.number_after("rms eps ").value_or(c.rms_norm_eps);
  return c;
}

LSTMLanguageModelConfig sized(LSTMLanguageModelConfig c, const ModelFile& file) {
  c.vocab_size = file.size("embedding.weight", 0);
  c.embedding_dim = file.size("embedding.weight", 1);
  c.hidden_size = file.size("out.weight", 1);
  c.num_layers = file.count("lstm.weight_ih_l", "");
  return c;
}

/// Of linear layers `prefix`0, `prefix`2, ...: the size of the input (if `input`), then that of each layer.
std::vector<int64_t> linear_sizes(const ModelFile& file, const std::string& prefix, bool input) {
  std::vector<int64_t> sizes;
  if (input) sizes.push_back(file.size(prefix + "0.weight", 1));
  for (int64_t i = 0; file.has(numbered(prefix, i, ".weight")); i += 2)
    sizes.push_back(file.size(numbered(prefix, i, ".weight"), 0));
  if (sizes.empty()) throw Error("the file has no weight '" + prefix + "0.weight', from which sizes are read");
  return sizes;
}
std::vector<int64_t> sized(const std::vector<int64_t>&, const ModelFile& file) { return linear_sizes(file, "", true); }

DLRMConfig sized(DLRMConfig c, const ModelFile& file) {
  c.bottom = linear_sizes(file, "bottom.", true);
  c.top = linear_sizes(file, "top.", false);
  c.tables.resize(file.count("tables.", ".weight"));
  for (size_t i = 0; i < c.tables.size(); ++i)
    c.tables[i] = file.size(numbered("tables.", static_cast<int64_t>(i), ".weight"), 0);
  for (const char* mode : {"sum", "mean", "max"})
    if (file.about.find(std::string(", ") + mode + ")") != std::string::npos) c.bag = mode;
  return c;
}

UNetConfig sized(UNetConfig c, const ModelFile& file) {
  c.channels = file.size("stem.weight", 1);
  c.stem = file.size("stem.weight", 0);
  for (auto [name, width] :
       {std::pair{"down1", &c.down1}, {"down2", &c.down2}, {"mid", &c.mid}, {"up2", &c.up2}, {"up1", &c.up1}})
    *width = file.size(std::string(name) + ".conv2.weight", 0);
  c.heads = file.positive_before(" heads", c.heads);
  const double groups = file.number_after("GroupNorm(").value_or(static_cast<double>(c.groups));
  if (!(groups >= 1 && groups <= 1e6)) throw Error("about: GroupNorm: got no number of groups");
  c.groups = static_cast<int64_t>(groups);
  return c;
}

// Published files that have other names than the models here.

/// Files of GPT-2 hold the transformer alone, masks with it; others the table of tokens twice.
StateDict gpt2_names(const StateDict& published) {
  StateDict own;
  const std::string prefix = published.contains("wte.weight") ? "transformer." : "";
  for (const auto& [name, t] : published)
    if (name != "lm_head.weight" && !name.ends_with(".attn.bias") && !name.ends_with(".attn.masked_bias"))
      own[prefix + name] = t;
  return own;
}

/// Files of BERT hold the heads that it was trained with, and old names of LayerNorm's parameters.
StateDict bert_names(const StateDict& published) {
  const std::string prefix = "bert.";
  const bool whole = published.contains(prefix + "embeddings.word_embeddings.weight");
  StateDict own;
  for (const auto& [name, t] : published) {
    if ((whole && !name.starts_with(prefix)) || name.ends_with("position_ids")) continue;
    std::string mine = whole ? name.substr(prefix.size()) : name;
    for (auto [old, now] : {std::pair{".gamma", ".weight"}, {".beta", ".bias"}})
      if (mine.ends_with(old)) mine = mine.substr(0, mine.size() - std::string(old).size()) + now;
    own[mine] = t;
  }
  return own;
}

/// Older files of Llamas hold the table of positions.
StateDict llama_names(const StateDict& published) {
  StateDict own;
  for (const auto& [name, t] : published)
    if (!name.ends_with("rotary_emb.inv_freq")) own[name] = t;
  return own;
}

// Random inputs.
struct Example {
  std::function<Inputs(int64_t batch, int64_t length)> make;
  bool sequences = false;
};
Example images(int64_t channels, int64_t side) {
  return {[=](int64_t batch, int64_t) { return Inputs{randn({batch, channels, side, side})}; }};
}
Example tokens(int64_t vocabulary, int64_t length) {
  return {[=](int64_t batch, int64_t asked) {
            return Inputs{randint(0, vocabulary, {batch, asked ? asked : length})};
          },
          true};
}
Example example_of(const ResNetConfig&) { return images(3, 224); }
Example example_of(const MobileNetV2Config&) { return images(3, 224); }
Example example_of(const EfficientNetConfig&) { return images(3, 224); }
Example example_of(const ConvNeXtConfig&) { return images(3, 224); }
Example example_of(const ViTConfig& c) { return images(3, c.image_size); }
Example example_of(const UNetConfig& c) { return images(c.channels, 64); }
Example example_of(const BertConfig& c) {
  return tokens(c.vocab_size, std::min<int64_t>(128, c.max_position_embeddings));
}
Example example_of(const GPT2Config& c) { return tokens(c.vocab_size, std::min<int64_t>(128, c.n_positions)); }
Example example_of(const LlamaConfig& c) { return tokens(c.vocab_size, 128); }
Example example_of(const LSTMLanguageModelConfig& c) { return tokens(c.vocab_size, 64); }
Example example_of(const std::vector<int64_t>& sizes) {
  return {[width = sizes.front()](int64_t batch, int64_t) { return Inputs{randn({batch, width})}; }};
}
Example example_of(const DLRMConfig& c) {
  return {[c](int64_t batch, int64_t) {
    std::vector<Tensor> bags;
    for (int64_t rows : c.tables) bags.push_back(randint(0, rows, {batch, 1}));
    return Inputs{randn({batch, c.bottom.front()}), stack(bags, 1)};
  }};
}

/// Calls a model with the inputs that it takes, up to three.
template <class Model>
Tensor call(const Model& model, const Inputs& in) {
  constexpr bool takes_one = requires { model(in[0]); };
  if constexpr (requires { model(in[0], in[1], in[2]); })
    if (in.size() > 2) return model(in[0], in[1], in[2]);
  if constexpr (requires { model(in[0], in[1]); })
    if (in.size() > 1) return model(in[0], in[1]);
  if constexpr (takes_one)
    if (!in.empty()) return model(in[0]);
  throw Error("got " + std::to_string(in.size()) + " inputs, expected " + (takes_one ? "one" : "two"));
}

template <class Make, class Config>
ZooRow row(std::string name, std::string title, std::string input, Make make, Config full) {
  return {std::move(name), std::move(title), std::move(input), [=](const ModelFile* file) {
            const Config config = file ? sized(full, *file) : full;
            auto model = make(config);
            Example example = example_of(config);
            return ZooModel{model.module(), [model](const Inputs& inputs) { return call(model, inputs); },
                            std::move(example.make), example.sequences};
          }};
}
/// One token behind `length` others, whose keys and values are in a cache: the inputs after the token.
ZooRow llama_decode() {
  auto make = [](const ModelFile* file) {
    const LlamaConfig config = file ? sized(LlamaConfig::small(), *file) : LlamaConfig::small();
    LlamaForCausalLM model(config);
    auto example = [config](int64_t batch, int64_t length) {
      length = length ? length : 128;
      LlamaCache cache(config, batch, length + 1);
      Inputs inputs = {randint(0, config.vocab_size, {batch, 1})};
      for (auto* each : {&cache.keys, &cache.values})
        for (const Tensor& t : *each) inputs.push_back(randn(t.sizes()));
      return inputs;
    };
    auto forward = [model, config](const Inputs& inputs) {
      const auto layers = static_cast<size_t>(config.num_hidden_layers);
      if (inputs.size() != 1 + 2 * layers) throw Error("got no cache of keys and values for each layer");
      LlamaCache cache(config, 0, 0);
      cache.keys.assign(inputs.begin() + 1, inputs.begin() + 1 + static_cast<std::ptrdiff_t>(layers));
      cache.values.assign(inputs.begin() + 1 + static_cast<std::ptrdiff_t>(layers), inputs.end());
      return model(inputs[0], cache, inputs[1].size(2) - 1);
    };
    return ZooModel{model.module(), forward, example, true};
  };
  return {"llama_decode", "Llama-style 110M, the next token", "i64 [N, 1] behind 128", make, llama_names, false};
}

template <class Model>
constexpr auto made = [](const auto& config) { return Model(config); };

}  // namespace

const std::vector<ZooRow>& zoo_rows() {
  constinit static FirstUse<std::vector<ZooRow>> rows;
  return rows.get([] {
    const std::string image = "f32 [N, 3, 224, 224]", ids = "i64 [N, 128]";
    ZooRow resnet50 = row("resnet50", "ResNet-50 (torchvision)", image, made<ResNet>, ResNetConfig::resnet50());
    resnet50.slack = 3;  // in small, its batch norms amplify rounding
    ZooRow bert = row("bert", "BERT-base (Hugging Face)", ids, made<BertModel>, BertConfig());
    bert.own_names = bert_names;
    ZooRow gpt2 = row("gpt2", "GPT-2 small (Hugging Face)", ids, made<GPT2LMHeadModel>, GPT2Config());
    gpt2.own_names = gpt2_names;
    ZooRow llama = row("llama", "Llama-style 110M (Hugging Face)", ids, made<LlamaForCausalLM>, LlamaConfig::small());
    llama.own_names = llama_names;
    return std::vector<ZooRow>{
        row("mlp", "MLP 784-1024-1024-10", "f32 [N, 784]", mlp, std::vector<int64_t>{784, 1024, 1024, 10}),
        row("mlp_tiny", "MLP 16-64-64-4", "f32 [N, 16]", mlp, std::vector<int64_t>{16, 64, 64, 4}),
        row("resnet18", "ResNet-18 (torchvision)", image, made<ResNet>, ResNetConfig()),
        resnet50,
        row("mobilenet_v2", "MobileNetV2 (torchvision)", image, made<MobileNetV2>, MobileNetV2Config()),
        row("efficientnet_b0", "EfficientNet-B0 (torchvision)", image, made<EfficientNet>, EfficientNetConfig()),
        row("convnext_tiny", "ConvNeXt-tiny (torchvision)", image, made<ConvNeXt>, ConvNeXtConfig()),
        row("vit", "ViT-small/16 (torchvision)", image, made<VisionTransformer>, ViTConfig::small()),
        row("unet", "U-Net with attention", "f32 [N, 3, 64, 64]", made<UNet>, UNetConfig()),
        bert,
        gpt2,
        llama,
        llama_decode(),
        row("lstm_lm", "LSTM language model, 2 x 512", "i64 [N, 64]", made<LSTMLanguageModel>,
            LSTMLanguageModelConfig()),
        row("dlrm", "DLRM, 26 tables", "f32 [N, 13], i64 [N, 26, 1]", made<DLRM>, DLRMConfig()),
    };
  });
}

}  // namespace ingot::cli
