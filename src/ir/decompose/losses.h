// What losses over classes share with their derivatives.
#pragma once
#include "ir/decompose.h"

namespace ingot::ir {

enum LossReduction : int64_t { kNone, kMean, kSum };  // in the order of the table's words

/// Targets that name a class; the channel dim of the input is `channel`.
struct Targets {
  size_t channel;
  Operand valid;   // bool: not the ignored class
  Operand index;   // a class, 0 where it is ignored
  Operand weight;  // of the target's class, 0 where it is ignored; absent without weights
};
Targets read_targets(GraphBuilder& b, const CompositeCall& call);
/// What a mean divides by: the weights of the targets that count.
Operand weight_total(GraphBuilder& b, const Targets& targets, DType dtype);

}  // namespace ingot::ir
