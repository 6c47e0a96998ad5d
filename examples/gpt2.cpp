// A published model from its published weights: parameters have the names of the file. Without arguments, a small one
// that this program writes itself.
//
//   example_gpt2 [model.safetensors of huggingface.co/openai-community/gpt2] [tokens of a prompt]
#include "models/gpt2.h"

#include <cstdio>
#include <cstdlib>

using namespace ingot;

int main(int argc, char** argv) {
  const NoGradGuard no_grad;
  models::GPT2Config config;
  std::string path = argc > 1 ? argv[1] : "gpt2_small.safetensors";
  if (argc < 2) {
    config = {.vocab_size = 100, .n_positions = 32, .n_embd = 32, .n_layer = 2, .n_head = 2};
    manual_seed(1);
    save(models::GPT2Model(config)->state_dict(), path);
  }

  // No number is drawn and none is copied: the parameters are the mapped file. It has buffers that the model has not.
  models::GPT2LMHeadModel gpt = [&] {
    const nn::SkipInit skip;
    return models::GPT2LMHeadModel(config);
  }();
  auto keys = gpt->transformer->load_state_dict(load(path), {.strict = false, .assign = true});
  std::printf("%d parameters, %d of them not in the file\n", static_cast<int>(gpt->parameters().size()),
              static_cast<int>(keys.missing_keys.size()));
  gpt->eval();

  std::vector<int64_t> prompt;
  for (int i = 2; i < argc; ++i) prompt.push_back(std::atoll(argv[i]));
  if (prompt.empty()) prompt = {40, 41, 42};
  Tensor ids = tensor(prompt).unsqueeze(0);
  auto fast = compile(gpt);
  bool same = true;
  for (int i = 0; i < 12; ++i) {
    Tensor logits = fast(ids);
    same = same && bitwise_equal(logits, gpt(ids));
    ids = cat({ids, logits.select(1, -1).argmax(-1, true)}, 1);
    std::printf("%d ", static_cast<int>(ids.select(1, -1).item<int64_t>()));
  }
  std::printf("\n12 lengths, %d compilations, same bits: %s\n", static_cast<int>(fast.stats().compilations),
              same ? "yes" : "no");
  if (argc < 2) std::remove(path.c_str());
}
