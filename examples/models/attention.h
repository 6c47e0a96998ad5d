// What the transformers here share.
#pragma once
#include "input.h"

namespace models {

/// [N, T, heads * width] as [N, heads, T, width].
inline Tensor split_heads(const Tensor& x, int64_t heads) { return x.unflatten(-1, {heads, -1}).transpose(1, 2); }
/// [N, heads, T, width] as [N, T, heads * width].
inline Tensor join_heads(const Tensor& x) { return x.transpose(1, 2).flatten(-2); }

/// Keys and values of each layer, [N, heads, most tokens, width], of which the first so many are there: a call of the
/// model writes those of its tokens at `position` and looks at all up to there.
struct KeyValueCache {
  std::vector<Tensor> keys, values;
  KeyValueCache(int64_t layers, int64_t batch, int64_t heads, int64_t most_tokens, int64_t width) {
    for (int64_t i = 0; i < layers; ++i)
      for (auto* each : {&keys, &values}) each->push_back(zeros({batch, heads, most_tokens, width}));
  }
};

/// Writes keys and values of tokens, [N, heads, T, width], to those of a layer from `position` on, and puts all up to
/// there in their place. Gives which of them each token sees; nothing for one token, which sees all.
inline Tensor remember(Tensor& k, Tensor& v, const Tensor& keys, const Tensor& values, int64_t position) {
  const Size count = k.size(2), end = position + count;
  keys.narrow(2, position, count).copy_(k), values.narrow(2, position, count).copy_(v);
  k = keys.narrow(2, 0, end), v = values.narrow(2, 0, end);
  return count == 1 ? Tensor() : ones({count, end}, kBool).tril(position);
}

}  // namespace models
