// The traits of ops as a table of numbers, for where a call takes less time than a look at its row.
#pragma once
#include <iterator>

#include "ir/op.h"

namespace ingot::ir {

inline constexpr uint32_t kTraitsOf[] = {
#define OP(kind, name, signature, traits, ...) traits,
#include "ir/ops.def"
};
static_assert(std::size(kTraitsOf) == static_cast<size_t>(kOpCount));

constexpr bool has_trait(OpId op, Trait trait) { return kTraitsOf[static_cast<size_t>(op)] & trait; }

}  // namespace ingot::ir
