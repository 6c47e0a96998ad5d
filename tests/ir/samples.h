// One graph for each op of the table, in IR text: what every-op tests run over.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace ingot::ir {

struct Sample {
  const OpInfo* op;
  std::string text;
};

/// At least one sample for each op; elementwise ones are made from the signature.
std::vector<Sample> samples();

/// True if the op is in the form that the rest of the compiler takes after decomposition.
inline bool is_primitive(const OpInfo& op) { return op.kind != OpKind::composite; }

}  // namespace ingot::ir
