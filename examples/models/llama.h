// Llama (Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023), with grouped keys and values as
// in Llama 2 and 3, and the names of Hugging Face's LlamaForCausalLM.
#pragma once
#include <cmath>

#include "attention.h"

namespace models {

/// Llama 7B.
struct LlamaConfig {
  int64_t vocab_size = 32000, hidden_size = 4096, intermediate_size = 11008, num_hidden_layers = 32,
          num_attention_heads = 32, num_key_value_heads = 32, max_position_embeddings = 2048;
  bool tie_word_embeddings = false;  // the table of tokens gives the logits, too
  double rms_norm_eps = 1e-6, rope_theta = 10000;
  /// 125 million parameters, 100 million of them beyond the table of tokens; three queries share a key.
  static LlamaConfig small() {
    return {.hidden_size = 768,
            .intermediate_size = 2048,
            .num_hidden_layers = 12,
            .num_attention_heads = 12,
            .num_key_value_heads = 4};
  }
  int64_t head_dim() const { return hidden_size / num_attention_heads; }
};

/// Cosines and sines [T, head_dim] of rotary positions (Su et al., "RoFormer", 2021); their halves are equal.
struct Rotary {
  Tensor cos, sin;
  /// Turns [N, heads, T, head_dim].
  Tensor operator()(const Tensor& x) const {
    auto halves = x.chunk(2, -1);
    return x * cos + cat({-halves[1], halves[0]}, -1) * sin;
  }
};

struct LlamaRotaryEmbeddingImpl : nn::Module {
  nn::NonPersistentBuffer cos, sin;
  explicit LlamaRotaryEmbeddingImpl(const LlamaConfig& c) {
    Tensor share = arange(0, c.head_dim(), 2, kFloat64) / c.head_dim();
    Tensor angles = outer(arange(0, c.max_position_embeddings, 1, kFloat64), (share * -std::log(c.rope_theta)).exp());
    angles = cat({angles, angles}, -1);
    cos = angles.cos().to(kFloat32), sin = angles.sin().to(kFloat32);
  }
  /// For so many positions from one on.
  Rotary forward(int64_t position, const Size& count) const {
    return {cos.narrow(0, position, count), sin.narrow(0, position, count)};
  }
};
INGOT_MODULE(LlamaRotaryEmbedding, cos, sin);

struct LlamaCache : KeyValueCache {
  LlamaCache(const LlamaConfig& c, int64_t batch, int64_t most_tokens)
      : KeyValueCache(c.num_hidden_layers, batch, c.num_key_value_heads, most_tokens, c.head_dim()) {}
};

struct LlamaAttentionImpl : nn::Module {
  LlamaConfig config;
  nn::Linear q_proj, k_proj, v_proj, o_proj;
  explicit LlamaAttentionImpl(const LlamaConfig& c)
      : config(c),
        q_proj(c.hidden_size, c.num_attention_heads * c.head_dim(), false),
        k_proj(c.hidden_size, c.num_key_value_heads * c.head_dim(), false),
        v_proj(c.hidden_size, c.num_key_value_heads * c.head_dim(), false),
        o_proj(c.num_attention_heads * c.head_dim(), c.hidden_size, false) {}
  Tensor forward(const Tensor& x, const Rotary& turned) {
    return attend(x, turned, [](Tensor&, Tensor&) { return Tensor(); });
  }
  /// With keys and values of this layer that are there for the positions before these, and then for these, too.
  Tensor forward(const Tensor& x, const Rotary& turned, const Tensor& keys, const Tensor& values, int64_t position) {
    return attend(x, turned, [&](Tensor& k, Tensor& v) { return remember(k, v, keys, values, position); });
  }

 private:
  /// `past` may put keys and values before these, and gives the mask then; without one, and of several, each sees those
  /// up to itself.
  template <class Past>
  Tensor attend(const Tensor& x, const Rotary& turned, Past past) {
    Tensor q = turned(split_heads(q_proj(x), config.num_attention_heads));
    Tensor k = turned(split_heads(k_proj(x), config.num_key_value_heads));
    Tensor v = split_heads(v_proj(x), config.num_key_value_heads);
    const Tensor mask = past(k, v);
    return o_proj(join_heads(F::scaled_dot_product_attention(q, k, v, mask, 0, !mask.defined() && q.size(2) > 1, {},
                                                             /*enable_gqa=*/q.size(1) != k.size(1))));
  }
};
INGOT_MODULE(LlamaAttention, q_proj, k_proj, v_proj, o_proj);

struct LlamaMLPImpl : nn::Module {
  nn::Linear gate_proj, up_proj, down_proj;
  explicit LlamaMLPImpl(const LlamaConfig& c)
      : gate_proj(c.hidden_size, c.intermediate_size, false),
        up_proj(c.hidden_size, c.intermediate_size, false),
        down_proj(c.intermediate_size, c.hidden_size, false) {}
  Tensor forward(const Tensor& x) { return down_proj(F::silu(gate_proj(x)) * up_proj(x)); }
};
INGOT_MODULE(LlamaMLP, gate_proj, up_proj, down_proj);

struct LlamaDecoderLayerImpl : nn::Module {
  LlamaAttention self_attn;
  LlamaMLP mlp;
  nn::RMSNorm input_layernorm, post_attention_layernorm;
  explicit LlamaDecoderLayerImpl(const LlamaConfig& c)
      : self_attn(c),
        mlp(c),
        input_layernorm(c.hidden_size, c.rms_norm_eps),
        post_attention_layernorm(c.hidden_size, c.rms_norm_eps) {}
  /// `past`: keys, values and a position, or nothing.
  template <class... Past>
  Tensor forward(const Tensor& x, const Rotary& turned, const Past&... past) {
    Tensor h = x + self_attn(input_layernorm(x), turned, past...);
    return h + mlp(post_attention_layernorm(h));
  }
};
INGOT_MODULE(LlamaDecoderLayer, self_attn, mlp, input_layernorm, post_attention_layernorm);

struct LlamaModelImpl : nn::Module {
  nn::Embedding embed_tokens;
  std::vector<LlamaDecoderLayer> layers;
  nn::RMSNorm norm;
  LlamaRotaryEmbedding rotary_emb;
  explicit LlamaModelImpl(const LlamaConfig& c)
      : embed_tokens(c.vocab_size, c.hidden_size), norm(c.hidden_size, c.rms_norm_eps), rotary_emb(c) {
    for (int64_t i = 0; i < c.num_hidden_layers; ++i) layers.emplace_back(c);
  }
  Tensor forward(const TensorArg& given) {
    const Tensor& ids = checked_tokens("LlamaModel", given, rotary_emb->cos.size(0).value());
    Tensor x = embed_tokens(ids);
    const Rotary turned = rotary_emb(0, ids.size(1));
    for (auto& layer : layers) x = layer(x, turned);
    return norm(x);
  }
  Tensor forward(const TensorArg& given, LlamaCache& cache, int64_t position) {
    const Tensor& ids = checked_tokens("LlamaModel", given, rotary_emb->cos.size(0).value());
    Tensor x = embed_tokens(ids);
    const Rotary turned = rotary_emb(position, ids.size(1));
    for (size_t i = 0; i < layers.size(); ++i) x = layers[i](x, turned, cache.keys[i], cache.values[i], position);
    return norm(x);
  }
};
INGOT_MODULE(LlamaModel, embed_tokens, layers, norm, rotary_emb);

/// Tokens i64 [N, T], T <= max_position_embeddings, to logits [N, T, vocab_size].
struct LlamaForCausalLMImpl : nn::Module {
  LlamaModel model;
  nn::Linear lm_head;
  explicit LlamaForCausalLMImpl(const LlamaConfig& c = {}) : model(c), lm_head(c.hidden_size, c.vocab_size, false) {
    if (c.tie_word_embeddings) lm_head->weight = model->embed_tokens->weight;
  }
  Tensor forward(const TensorArg& ids) { return lm_head(model(ids)); }
  /// Tokens that stand from `position` on, behind those whose keys and values the cache has; it gets theirs. Without
  /// gradients.
  Tensor forward(const TensorArg& ids, LlamaCache& cache, int64_t position) {
    return lm_head(model(ids, cache, position));
  }
};
INGOT_MODULE(LlamaForCausalLM, model, lm_head);

}  // namespace models
