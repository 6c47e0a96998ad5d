// One graph for each op of the table, in IR text: what every-op tests run over.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/reference.h"

namespace ingot::ir {

struct Sample {
  const OpInfo* op;
  std::string text;
};

/// At least one sample for each op; those of elementwise ones are made from the signature, with a few beside them.
std::vector<Sample> samples();

/// What an op over matrices takes as operand `i`: square ones that are positive and far from singular, their
/// eigenvalues apart; of factorizations that none failed.
void make_regular(const OpInfo& op, size_t i, ReferenceTensor* tensor);

}  // namespace ingot::ir
