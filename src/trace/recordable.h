// Calls that a graph of values cannot say: they run at once, and what was recorded before them is computed.
#pragma once
#include "eager/call/dispatch.h"

namespace ingot::trace {

/// True if an in-place call writes to a tensor whose elements overlap.
bool writes_overlap(const eager::OpCall& call);
/// True if as_strided may read more than the tensor that it is called on: it looks at a storage then, which no value
/// is.
bool reads_beyond(const eager::OpCall& call);
/// Why a call cannot be recorded; null if it can. It depends on nothing but what a comparison with a node looks at.
const char* why_not_recorded(const eager::OpCall& call);

}  // namespace ingot::trace
