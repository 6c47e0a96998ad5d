// GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019), with the names and layouts of
// Hugging Face's GPT2LMHeadModel. Files that hold the transformer alone are loaded into `transformer`.
#pragma once
#include "attention.h"

namespace models {

/// The smallest of the four that were published: 124 million parameters.
struct GPT2Config {
  int64_t vocab_size = 50257, n_positions = 1024, n_embd = 768, n_layer = 12, n_head = 12;
  double dropout = 0.1, layer_norm_epsilon = 1e-5;
};

struct GPT2Cache : KeyValueCache {
  GPT2Cache(const GPT2Config& c, int64_t batch, int64_t most_tokens)
      : KeyValueCache(c.n_layer, batch, c.n_head, most_tokens, c.n_embd / c.n_head) {}
};

/// A linear layer whose weight is [in, out].
struct Conv1DImpl : nn::Module, nn::Quantizable {
  Tensor weight, bias;
  nn::FixedBuffer weight_scale;
  Conv1DImpl(int64_t in, int64_t out) : weight(nn::Linear(out, in)->weight.detach()), bias(zeros({out})) {}
  Tensor forward(const Tensor& x) {
    if (weight_scale.defined()) return F::linear_int8(x, weight.t(), weight_scale, bias);
    return F::linear(x, nn::widened(weight.t(), x), bias);
  }
  std::function<void()> converted_weight(DType format, Location location) override {
    if (weight_scale.defined() || weight.dtype() == format) return {};
    if (format != kInt8) return [this, made = nn::round_weight({weight, location}, format)] { weight = made; };
    const nn::Int8Weight made = nn::quantize_int8({weight.t(), location});
    return [this, w = made.weight.t().contiguous(), scale = made.scale] { weight = w, weight_scale = scale; };
  }
};
INGOT_MODULE(Conv1D, weight, weight_scale, bias);

struct GPT2AttentionImpl : nn::Module {
  GPT2Config config;
  Conv1D c_attn, c_proj;
  explicit GPT2AttentionImpl(const GPT2Config& c)
      : config(c), c_attn(c.n_embd, 3 * c.n_embd), c_proj(c.n_embd, c.n_embd) {}
  Tensor forward(const Tensor& x) {
    return attend(x, [](Tensor&, Tensor&) { return Tensor(); });
  }
  /// With keys and values of this layer that are there for the positions before these, and then for these, too.
  Tensor forward(const Tensor& x, const Tensor& keys, const Tensor& values, int64_t position) {
    return attend(x, [&](Tensor& k, Tensor& v) { return remember(k, v, keys, values, position); });
  }

 private:
  /// `past` may put keys and values before these, and gives the mask then; without one, and of several, each sees those
  /// up to itself.
  template <class Past>
  Tensor attend(const Tensor& x, Past past) {
    auto qkv = c_attn(x).chunk(3, -1);
    for (Tensor& part : qkv) part = split_heads(part, config.n_head);
    const Tensor mask = past(qkv[1], qkv[2]);
    Tensor y = F::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], mask, is_training() ? config.dropout : 0,
                                               /*is_causal=*/!mask.defined() && qkv[0].size(2) > 1);
    return F::dropout(c_proj(join_heads(y)), config.dropout, is_training());
  }
};
INGOT_MODULE(GPT2Attention, c_attn, c_proj);

struct GPT2MLPImpl : nn::Module {
  Conv1D c_fc, c_proj;
  nn::Dropout dropout;
  explicit GPT2MLPImpl(const GPT2Config& c)
      : c_fc(c.n_embd, 4 * c.n_embd), c_proj(4 * c.n_embd, c.n_embd), dropout(c.dropout) {}
  Tensor forward(const Tensor& x) { return dropout(c_proj(F::gelu(c_fc(x), "tanh"))); }
};
INGOT_MODULE(GPT2MLP, c_fc, c_proj, dropout);

struct GPT2BlockImpl : nn::Module {
  nn::LayerNorm ln_1, ln_2;
  GPT2Attention attn;
  GPT2MLP mlp;
  explicit GPT2BlockImpl(const GPT2Config& c)
      : ln_1(c.n_embd, {.eps = c.layer_norm_epsilon}), ln_2(c.n_embd, {.eps = c.layer_norm_epsilon}), attn(c), mlp(c) {}
  /// `past`: keys, values and a position, or nothing.
  template <class... Past>
  Tensor forward(const Tensor& x, const Past&... past) {
    Tensor h = x + attn(ln_1(x), past...);
    return h + mlp(ln_2(h));
  }
};
INGOT_MODULE(GPT2Block, ln_1, attn, ln_2, mlp);

struct GPT2ModelImpl : nn::Module {
  nn::Embedding wte, wpe;
  nn::Dropout drop;
  std::vector<GPT2Block> h;
  nn::LayerNorm ln_f;
  explicit GPT2ModelImpl(const GPT2Config& c)
      : wte(c.vocab_size, c.n_embd),
        wpe(c.n_positions, c.n_embd),
        drop(c.dropout),
        ln_f(c.n_embd, {.eps = c.layer_norm_epsilon}) {
    for (int64_t i = 0; i < c.n_layer; ++i) h.emplace_back(c);
  }
  Tensor forward(const TensorArg& given) {
    const Tensor& ids = checked_tokens("GPT2Model", given, wpe->weight.size(0).value());
    Tensor x = drop(wte(ids) + wpe(arange(ids.size(1))));
    for (auto& block : h) x = block(x);
    return ln_f(x);
  }
  Tensor forward(const TensorArg& given, GPT2Cache& cache, int64_t position) {
    const Tensor& ids = checked_tokens("GPT2Model", given, wpe->weight.size(0).value());
    Tensor x = drop(wte(ids) + wpe->weight.narrow(0, position, ids.size(1)));
    for (size_t i = 0; i < h.size(); ++i) x = h[i](x, cache.keys[i], cache.values[i], position);
    return ln_f(x);
  }
};
INGOT_MODULE(GPT2Model, wte, wpe, drop, h, ln_f);

/// Tokens i64 [N, T], T <= n_positions, to logits [N, T, vocab_size]: the token table again gives the logits, or a
/// copy of it in fewer bytes.
struct GPT2LMHeadModelImpl : nn::Module, nn::Quantizable {
  GPT2Model transformer;
  nn::FixedBuffer lm_head, lm_head_scale;
  explicit GPT2LMHeadModelImpl(const GPT2Config& config = {}) : transformer(config) {}
  Tensor forward(const TensorArg& ids) { return logits(transformer(ids)); }
  /// Tokens that stand from `position` on, behind those whose keys and values the cache has; it gets theirs. Without
  /// gradients.
  Tensor forward(const TensorArg& ids, GPT2Cache& cache, int64_t position) {
    return logits(transformer(ids, cache, position));
  }
  /// Of what the transformer gives.
  Tensor logits(const Tensor& h) const {
    if (lm_head_scale.defined()) return F::linear_int8(h, lm_head, lm_head_scale);
    return F::linear(h, lm_head.defined() ? nn::widened(lm_head, h) : transformer->wte->weight);
  }
  std::function<void()> converted_weight(DType format, Location location) override {
    if (lm_head.defined() && (lm_head_scale.defined() || lm_head.dtype() == format)) return {};
    const TensorArg table(transformer->wte->weight, location);
    if (format != kInt8) return [this, made = nn::round_weight(table, format)] { lm_head = made; };
    return [this, made = nn::quantize_int8(table)] { lm_head = made.weight, lm_head_scale = made.scale; };
  }
};
INGOT_MODULE(GPT2LMHeadModel, transformer, lm_head, lm_head_scale);

}  // namespace models
