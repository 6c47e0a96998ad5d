// What a model says of an input that it does not take: the model's input is to blame, not the layer that meets it
// first.
#pragma once
#include <ingot/ingot.h>

#include <string>

namespace models {
using namespace ingot;

[[noreturn]] inline void refuse_input(const char* model, const char* input, const TensorArg& given,
                                      const std::string& expected) {
  std::string sizes;
  for (int64_t size : given.get().sizes()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  throw Error(std::string(model) + ": " + input + ": got [" + sizes + "], expected " + expected +
              place_of(given.location));
}

/// Tokens [N, T], T <= most.
inline const Tensor& checked_tokens(const char* model, const TensorArg& ids, int64_t most) {
  const Tensor& tokens = ids.get();
  if (tokens.dim() != 2 || tokens.size(1) > most)
    refuse_input(model, "ids", ids, "[N, T] with T up to " + std::to_string(most));
  return tokens;
}

}  // namespace models
