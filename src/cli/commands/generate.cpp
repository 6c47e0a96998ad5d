// `ingot generate`.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/generate.h"

namespace ingot::cli {

int run_generate(const GenerateOptions& options) {
  if (options.threads) set_num_threads(options.threads);
  const Tokenizer tokenizer(options.weights + "/tokenizer.json");
  const LanguageModel model = read_language_model(options.weights, options.weight_format);
  if (!options.name.empty() && options.name != model.type)
    throw Error(options.weights + ": got a " + model.type + ", expected a " + options.name);
  const std::vector<int64_t> prompt = tokenizer.encode(options.prompt);
  check_prompt(model, prompt);  // before anything is shown
  Utf8Stream stream;
  std::string text;
  auto show = [&](const std::string& part) {
    text += part;
    if (options.json) return;
    std::fwrite(part.data(), 1, part.size(), stdout);
    std::fflush(stdout);
  };
  if (!options.json) fmt::print("{}", options.prompt), std::fflush(stdout);
  const Generation made =
      generate(model, prompt, options.tokens, options.sampling, options.mode == "eager", [&](int64_t token) {
        // A model may have more numbers than its tokenizer has tokens.
        if (token < tokenizer.size()) show(stream.add(tokenizer.bytes_of(token)));
      });
  show(stream.finish());
  const auto behind = static_cast<double>(made.tokens.size()) - 1;
  const double rate = made.token_seconds > 0 ? behind / made.token_seconds : 0;
  if (options.json) {
    const nlohmann::json result = {{"model", model.type},
                                   {"parameters", model.parameters},
                                   {"prompt_tokens", made.prompt},
                                   {"tokens", made.tokens},
                                   {"text", text},
                                   {"ended", made.ended},
                                   {"mode", options.mode},
                                   {"weight_format", options.weight_format},
                                   {"threads", num_threads()},
                                   {"seed", options.sampling.seed},
                                   {"prompt_ms", made.prompt_seconds * 1e3},
                                   {"tokens_per_second", rate}};
    fmt::print("{}\n", result.dump(2));
    return 0;
  }
  fmt::print("\n\n{:.1f} million parameters, {} threads: {} tokens of the prompt in {:.1f} ms", model.parameters / 1e6,
             num_threads(), prompt.size(), made.prompt_seconds * 1e3);
  if (rate > 0) fmt::print(", then {:.1f} tokens/s", rate);
  fmt::print("{}\n", made.ended ? "; the text ended" : "");
  return 0;
}

}  // namespace ingot::cli
