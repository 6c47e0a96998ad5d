// The Llama of tests/data/zoo/llama.safetensors.
#pragma once
#include "models/llama.h"

namespace models {

inline LlamaConfig small_llama() {
  return {.vocab_size = 97,
          .hidden_size = 32,
          .intermediate_size = 48,
          .num_hidden_layers = 2,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .max_position_embeddings = 24};
}

}  // namespace models
