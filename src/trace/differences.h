// Why a recorded path or program did not fit a call: the first guard that failed, with what it held and what it met.
#pragma once
#include <span>

#include "trace/flush_point.h"
#include "trace/function.h"
#include "trace/segment.h"

namespace ingot::trace {

/// A call that is not what was recorded at its place, and differs in this.
Recompile difference(const Node& recorded, const eager::OpCall& call, CallMismatch mismatch);
/// A program that does not hold for this call.
Recompile difference(std::span<Node* const> path, const Variant& variant, std::span<const uint32_t> live,
                     std::span<const uint32_t> unseen, std::span<const uint32_t> aliases,
                     std::span<const int64_t> sites);

}  // namespace ingot::trace
