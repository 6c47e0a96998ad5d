// What searches cost whose length does not follow from what they are about, in steps that are the same on every machine
// at every run: a test holds them to grow with the graph, and not with its square.
#pragma once
#include <cstdint>

#include "base/export.h"

namespace ingot::detail {

/// Adds to the count of the process, which wraps around; once a search.
void count_work(uint64_t steps);
INGOT_API uint64_t counted_work();

}  // namespace ingot::detail
