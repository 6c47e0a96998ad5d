// `ingot bench update`: optimizers written by hand as in-place ops, in one compiled function over many tensors.
#pragma once
#include "cli/commands.h"

namespace ingot::cli {

int bench_update(const BenchOptions& options);

}  // namespace ingot::cli
