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

/// A linear layer whose weight is [in, out].
struct Conv1DImpl : nn::Module {
  Tensor weight, bias;
  Conv1DImpl(int64_t in, int64_t out) : weight(nn::Linear(out, in)->weight.detach()), bias(zeros({out})) {}
  Tensor forward(const Tensor& x) { return F::linear(x, weight.t(), bias); }
};
INGOT_MODULE(Conv1D, weight, bias);

struct GPT2AttentionImpl : nn::Module {
  GPT2Config config;
  Conv1D c_attn, c_proj;
  explicit GPT2AttentionImpl(const GPT2Config& c)
      : config(c), c_attn(c.n_embd, 3 * c.n_embd), c_proj(c.n_embd, c.n_embd) {}
  Tensor forward(const Tensor& x) {
    auto qkv = c_attn(x).chunk(3, -1);
    for (Tensor& part : qkv) part = split_heads(part, config.n_head);
    Tensor y = F::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, is_training() ? config.dropout : 0,
                                               /*is_causal=*/true);
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
  Tensor forward(const Tensor& x) {
    Tensor h = x + attn(ln_1(x));
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
  Tensor forward(const Tensor& ids) {
    Tensor x = drop(wte(ids) + wpe(arange(ids.size(1))));
    for (auto& block : h) x = block(x);
    return ln_f(x);
  }
};
INGOT_MODULE(GPT2Model, wte, wpe, drop, h, ln_f);

/// Tokens i64 [N, T], T <= n_positions, to logits [N, T, vocab_size]: the token table again gives the logits.
struct GPT2LMHeadModelImpl : nn::Module {
  GPT2Model transformer;
  explicit GPT2LMHeadModelImpl(const GPT2Config& config = {}) : transformer(config) {}
  Tensor forward(const Tensor& ids) { return F::linear(transformer(ids), transformer->wte->weight); }
};
INGOT_MODULE(GPT2LMHeadModel, transformer);

}  // namespace models
