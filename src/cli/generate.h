// Language models that go on with a text: a folder as Hugging Face's `save_pretrained` leaves it, and the loop of
// tokens.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cli/tokenizer.h"
#include "ingot.h"

namespace ingot::cli {

/// A model with a memory of the tokens it has seen, its type forgotten.
struct LanguageModel {
  std::string type;  // as config.json names it
  int64_t vocab_size = 0, most_tokens = 0, parameters = 0;
  std::vector<int64_t> ends;  // tokens behind which nothing follows
  /// i64 [1, T] behind `position` others that it has seen, to the logits of the last, f32 [vocab_size]. Forgets what it
  /// saw from `position` on.
  using Next = std::function<Tensor(const Tensor& ids, int64_t position)>;
  /// With a memory of its own for so many tokens.
  std::function<Next(int64_t most_tokens)> start;
};

/// Reads config.json, and model.safetensors or the parts that model.safetensors.index.json names: GPT-2 (`gpt2`) or
/// Llama (`llama`), weights of any floating dtype, computed in f32. Those of linear layers are kept in the format of
/// that name (weight_formats() in cli/zoo.h), without a way through f32 where the file has them so. Throws Error that
/// names the file and what is wrong with it; a model is whole or not there.
LanguageModel read_language_model(const std::string& folder, const std::string& weight_format = "f32");
/// All tensors of the folder's checkpoint. Throws Error for a part that is missing, or that lacks what the index says.
StateDict read_checkpoint(const std::string& folder);

/// How a token is chosen from logits: the largest at temperature 0; else drawn by their softmax, of the `top_k` largest
/// (0: all), of the fewest of those that have a share of at least `top_p` together (Holtzman et al., "The Curious Case
/// of Neural Text Degeneration", 2020).
struct Sampling {
  double temperature = 0, top_p = 1;
  int64_t top_k = 0;
  uint64_t seed = 0;
};
/// The token that a draw in [0, 1) gives. Throws Error for logits of which none is a number.
int64_t sample(const Tensor& logits, const Sampling& sampling, double draw);

struct Generation {
  std::vector<int64_t> prompt, tokens;  // those that followed; without the one that ended it
  bool ended = false;                   // by a token that ends texts
  double prompt_seconds = 0, token_seconds = 0;
};
/// Throws Error for a prompt that is empty, longer than the model's positions, or of tokens that it has not.
void check_prompt(const LanguageModel& model, const std::vector<int64_t>& prompt);
/// Goes on for at most `count` tokens, and as far as the model has positions; `eager`: not compiled. `told` of each
/// token as it comes. Throws Error as check_prompt() does.
Generation generate(const LanguageModel& model, const std::vector<int64_t>& prompt, int64_t count,
                    const Sampling& sampling, bool eager, const std::function<void(int64_t token)>& told = nullptr);

}  // namespace ingot::cli
