// What a call gives, known before anything is computed; keys of elementwise calls: what decides dtypes and the kernel,
// packed into one number.
#pragma once
#include "eager/call/dispatch.h"

namespace ingot::eager {

/// Types, shapes and layouts of the outputs; throws Error for what the user got wrong. Reads no data.
void infer_outputs(const OpCall& call, std::span<OutputMeta> outputs);

inline constexpr size_t kMaxPointwiseOperands = 5;

/// Op, in-place or not, and of each operand kind, dtype or category, zero-dim or not, and the attribute. 0: does not
/// fit.
uint64_t pointwise_key(const OpCall& call);

}  // namespace ingot::eager
