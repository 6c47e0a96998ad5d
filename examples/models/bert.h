// BERT (Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2018), with
// the names of Hugging Face's BertModel.
#pragma once
#include "attention.h"

namespace models {

/// BERT-base: 109 million parameters.
struct BertConfig {
  int64_t vocab_size = 30522, hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12,
          intermediate_size = 3072, max_position_embeddings = 512, type_vocab_size = 2;
  bool add_pooling_layer = true;
  double dropout = 0.1, layer_norm_eps = 1e-12;
};

struct BertEmbeddingsImpl : nn::Module {
  nn::Embedding word_embeddings, position_embeddings, token_type_embeddings;
  nn::LayerNorm LayerNorm;
  nn::Dropout dropout;
  explicit BertEmbeddingsImpl(const BertConfig& c)
      : word_embeddings(c.vocab_size, c.hidden_size, {.padding_idx = 0}),
        position_embeddings(c.max_position_embeddings, c.hidden_size),
        token_type_embeddings(c.type_vocab_size, c.hidden_size),
        LayerNorm(c.hidden_size, {.eps = c.layer_norm_eps}),
        dropout(c.dropout) {}
  Tensor forward(const Tensor& ids, const Tensor& token_type_ids) {
    Tensor types = token_type_ids.defined() ? token_type_embeddings(token_type_ids) : token_type_embeddings->weight[0];
    return dropout(LayerNorm(word_embeddings(ids) + types + position_embeddings(arange(ids.size(1)))));
  }
};
INGOT_MODULE(BertEmbeddings, word_embeddings, position_embeddings, token_type_embeddings, LayerNorm, dropout);

struct BertSelfAttentionImpl : nn::Module {
  BertConfig config;
  nn::Linear query, key, value;
  explicit BertSelfAttentionImpl(const BertConfig& c)
      : config(c),
        query(c.hidden_size, c.hidden_size),
        key(c.hidden_size, c.hidden_size),
        value(c.hidden_size, c.hidden_size) {}
  Tensor forward(const Tensor& x, const Tensor& mask) {
    auto heads = [&](const Tensor& y) { return split_heads(y, config.num_attention_heads); };
    return join_heads(F::scaled_dot_product_attention(heads(query(x)), heads(key(x)), heads(value(x)), mask,
                                                      is_training() ? config.dropout : 0));
  }
};
INGOT_MODULE(BertSelfAttention, query, key, value);

/// Ends both halves of a layer.
struct BertOutputImpl : nn::Module {
  nn::Linear dense;
  nn::LayerNorm LayerNorm;
  nn::Dropout dropout;
  BertOutputImpl(int64_t width, const BertConfig& c)
      : dense(width, c.hidden_size), LayerNorm(c.hidden_size, {.eps = c.layer_norm_eps}), dropout(c.dropout) {}
  Tensor forward(const Tensor& x, const Tensor& residual) { return LayerNorm(dropout(dense(x)) + residual); }
};
INGOT_MODULE(BertOutput, dense, LayerNorm, dropout);

struct BertAttentionImpl : nn::Module {
  BertSelfAttention self;
  BertOutput output;
  explicit BertAttentionImpl(const BertConfig& c) : self(c), output(c.hidden_size, c) {}
  Tensor forward(const Tensor& x, const Tensor& mask) { return output(self(x, mask), x); }
};
INGOT_MODULE(BertAttention, self, output);

struct BertIntermediateImpl : nn::Module {
  nn::Linear dense;
  explicit BertIntermediateImpl(const BertConfig& c) : dense(c.hidden_size, c.intermediate_size) {}
  Tensor forward(const Tensor& x) { return F::gelu(dense(x)); }
};
INGOT_MODULE(BertIntermediate, dense);

struct BertLayerImpl : nn::Module {
  BertAttention attention;
  BertIntermediate intermediate;
  BertOutput output;
  explicit BertLayerImpl(const BertConfig& c) : attention(c), intermediate(c), output(c.intermediate_size, c) {}
  Tensor forward(const Tensor& x, const Tensor& mask) {
    Tensor h = attention(x, mask);
    return output(intermediate(h), h);
  }
};
INGOT_MODULE(BertLayer, attention, intermediate, output);

struct BertEncoderImpl : nn::Module {
  std::vector<BertLayer> layer;
  explicit BertEncoderImpl(const BertConfig& c) {
    for (int64_t i = 0; i < c.num_hidden_layers; ++i) layer.emplace_back(c);
  }
  Tensor forward(Tensor x, const Tensor& mask) {
    for (auto& each : layer) x = each(x, mask);
    return x;
  }
};
INGOT_MODULE(BertEncoder, layer);

/// Of [N, T, hidden_size], the first position.
struct BertPoolerImpl : nn::Module {
  nn::Linear dense;
  explicit BertPoolerImpl(const BertConfig& c) : dense(c.hidden_size, c.hidden_size) {}
  Tensor forward(const Tensor& hidden) { return tanh(dense(hidden.select(1, 0))); }
};
INGOT_MODULE(BertPooler, dense);

/// Tokens i64 [N, T], T <= max_position_embeddings, to the last hidden state [N, T, hidden_size]; `pooler` goes on from
/// there. The mask [N, T], of any dtype, is 0 where a token is not to be looked at; without one all are.
struct BertModelImpl : nn::Module {
  BertEmbeddings embeddings;
  BertEncoder encoder;
  BertPooler pooler;
  explicit BertModelImpl(const BertConfig& config = {})
      : embeddings(config), encoder(config), pooler(config.add_pooling_layer ? BertPooler(config) : nullptr) {}
  Tensor forward(const TensorArg& given, const Tensor& attention_mask = {}, const Tensor& token_type_ids = {}) {
    const Tensor& ids = checked_tokens("BertModel", given, embeddings->position_embeddings->weight.size(0).value());
    Tensor keys;  // [N, 1, 1, T]
    if (attention_mask.defined()) keys = attention_mask.ne(0).unsqueeze(1).unsqueeze(2);
    return encoder(embeddings(ids, token_type_ids), keys);
  }
};
INGOT_MODULE(BertModel, embeddings, encoder, pooler);

}  // namespace models
