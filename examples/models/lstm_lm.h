// A language model of LSTM layers (Zaremba et al., "Recurrent Neural Network Regularization", 2014).
#pragma once
#include <ingot/ingot.h>

namespace models {
using namespace ingot;

/// Two layers of 512, 10,000 words.
struct LSTMLanguageModelConfig {
  int64_t vocab_size = 10000, embedding_dim = 512, hidden_size = 512, num_layers = 2;
  double dropout = 0;
};

/// Tokens i64 [N, T] to logits [N, T, vocab_size].
struct LSTMLanguageModelImpl : nn::Module {
  nn::Embedding embedding;
  nn::LSTM lstm;
  nn::Linear out;
  explicit LSTMLanguageModelImpl(const LSTMLanguageModelConfig& c = {})
      : embedding(c.vocab_size, c.embedding_dim),
        lstm(c.embedding_dim, c.hidden_size,
             nn::RNNOptions{.num_layers = c.num_layers, .batch_first = true, .dropout = c.dropout}),
        out(c.hidden_size, c.vocab_size) {}
  Tensor forward(const Tensor& ids) {
    auto [hidden, last_states] = lstm(embedding(ids));
    return out(hidden);
  }
};
INGOT_MODULE(LSTMLanguageModel, embedding, lstm, out);

}  // namespace models
