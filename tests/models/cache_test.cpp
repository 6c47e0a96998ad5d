// Generation with keys and values that `cat` makes longer at each token, a function from a state to a state, beside the
// cache that is written in place: the same logits to the bit, and the tokens of `transformers`.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/generate.h"
#include "compile/support.h"
#include "models/gpt2.h"
#include "models/llama.h"

namespace models {
namespace {

using test::same_bits;

/// Keys and values of each layer, in turns.
using State = std::vector<Tensor>;
using Result = std::pair<Tensor, State>;

/// Puts a layer's keys and values behind those of the state, and gives what the queries make of them.
Tensor attend(State& state, size_t layer, const Tensor& q, const Tensor& k, const Tensor& v) {
  for (auto [at, more] : {std::pair{2 * layer, &k}, {2 * layer + 1, &v}}) state[at] = cat({state[at], *more}, 2);
  const Tensor &keys = state[2 * layer], &values = state[2 * layer + 1];
  const Size count = q.size(2), all = keys.size(2);
  const Tensor mask = count == 1 ? Tensor() : ones({count, all}, kBool).tril(all - count);
  return join_heads(F::scaled_dot_product_attention(q, keys, values, mask, 0, false, {}, q.size(1) != k.size(1)));
}

struct LlamaByCat {
  using Model = LlamaForCausalLM;
  using Cache = LlamaCache;
  static constexpr const char* kName = "llama";
  static constexpr size_t kLayers = 2;
  LlamaConfig config{.vocab_size = 401,
                     .hidden_size = 32,
                     .intermediate_size = 48,
                     .num_hidden_layers = 2,
                     .num_attention_heads = 4,
                     .num_key_value_heads = 2,
                     .max_position_embeddings = 48,
                     .rms_norm_eps = 1e-5,
                     .rope_theta = 500000};
  Model model{config};
  State empty_state() const { return State(2 * kLayers, zeros({1, 2, 0, 8})); }
  Result operator()(const Tensor& ids, State state) const {
    const auto& m = model->model;
    Tensor x = m->embed_tokens(ids);
    const Rotary turned{m->rotary_emb->cos.narrow(0, state[0].size(2), ids.size(1)),
                        m->rotary_emb->sin.narrow(0, state[0].size(2), ids.size(1))};
    for (size_t i = 0; i < kLayers; ++i) {
      auto& layer = m->layers[i];
      auto& a = layer->self_attn;
      const Tensor h = layer->input_layernorm(x);
      x = x + a->o_proj(attend(state, i, turned(split_heads(a->q_proj(h), 4)), turned(split_heads(a->k_proj(h), 2)),
                               split_heads(a->v_proj(h), 2)));
      x = x + layer->mlp(layer->post_attention_layernorm(x));
    }
    return {model->lm_head(m->norm(x)), state};
  }
};

struct GPT2ByCat {
  using Model = GPT2LMHeadModel;
  using Cache = GPT2Cache;
  static constexpr const char* kName = "gpt2";
  static constexpr size_t kLayers = 2;
  GPT2Config config{.vocab_size = 401, .n_positions = 48, .n_embd = 32, .n_layer = 2, .n_head = 4};
  Model model{config};
  State empty_state() const { return State(2 * kLayers, zeros({1, 4, 0, 8})); }
  Result operator()(const Tensor& ids, State state) const {
    const auto& t = model->transformer;
    Tensor x = t->wte(ids) + t->wpe->weight.narrow(0, state[0].size(2), ids.size(1));
    for (size_t i = 0; i < kLayers; ++i) {
      auto& block = t->h[i];
      auto qkv = block->attn->c_attn(block->ln_1(x)).chunk(3, -1);
      for (Tensor& part : qkv) part = split_heads(part, 4);
      x = x + block->attn->c_proj(attend(state, i, qkv[0], qkv[1], qkv[2]));
      x = x + block->mlp(block->ln_2(x));
    }
    return {model->logits(t->ln_f(x)), state};
  }
};

template <class ByCat>
void expect_same() {
  const NoGradGuard no_grad;
  const std::string folder = INGOT_SOURCE_DIR "/tests/data/generate/" + std::string(ByCat::kName);
  const nlohmann::json greedy = nlohmann::json::parse(std::ifstream(folder + "/expected.json"))["greedy"];
  const auto prompt = greedy["prompt"].get<std::vector<int64_t>>(),
             tokens = greedy["tokens"].get<std::vector<int64_t>>();
  ByCat by_cat;
  by_cat.model->eval();
  StateDict weights = cli::read_checkpoint(folder);
  for (auto& [name, t] : weights) t = t.to(kFloat32);
  by_cat.model->load_state_dict(weights);
  const auto most = static_cast<int64_t>(prompt.size() + tokens.size());
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) {
    SCOPED_TRACE(mode == CompileMode::frozen ? "frozen" : "checked");
    const auto fast =
        compile([&](const Tensor& ids, const State& state) { return by_cat(ids, state); }, {.mode = mode});
    typename ByCat::Cache cache(by_cat.config, 1, most);
    State state = by_cat.empty_state(), eager_state = state;
    std::vector<int64_t> ids = prompt, made;
    int64_t position = 0;
    while (made.size() < tokens.size()) {
      SCOPED_TRACE(position);
      const Tensor given = tensor(ids).unsqueeze(0), in_place = by_cat.model(given, cache, position);
      Tensor logits, eager_logits;
      std::tie(eager_logits, eager_state) = by_cat(given, eager_state);
      std::tie(logits, state) = fast(given, state);
      ASSERT_TRUE(same_bits(logits, eager_logits));
      ASSERT_TRUE(same_bits(logits, in_place));
      position += given.size(1);
      for (size_t i = 0; i < ByCat::kLayers; ++i) {
        ASSERT_TRUE(same_bits(state[2 * i], cache.keys[i].narrow(2, 0, position)));
        ASSERT_TRUE(same_bits(state[2 * i + 1], cache.values[i].narrow(2, 0, position)));
      }
      made.push_back(logits.select(1, -1).flatten().argmax().template item<int64_t>());
      ids = {made.back()};
    }
    EXPECT_EQ(made, tokens);
    EXPECT_EQ(fast.stats().fallbacks, 0);
    EXPECT_LE(fast.stats().compilations, 4) << fast.explain().str();
  }
}

TEST(CacheByCat, OfLlamaGivesTheBitsOfTheOneInPlace) { expect_same<LlamaByCat>(); }
TEST(CacheByCat, OfGPT2GivesTheBitsOfTheOneInPlace) { expect_same<GPT2ByCat>(); }

}  // namespace
}  // namespace models
