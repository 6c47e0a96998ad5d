// What the transformers here share.
#pragma once
#include <ingot/ingot.h>

namespace models {
using namespace ingot;

/// [N, T, heads * width] as [N, heads, T, width].
inline Tensor split_heads(const Tensor& x, int64_t heads) { return x.unflatten(-1, {heads, -1}).transpose(1, 2); }
/// [N, heads, T, width] as [N, T, heads * width].
inline Tensor join_heads(const Tensor& x) { return x.transpose(1, 2).flatten(-2); }

}  // namespace models
