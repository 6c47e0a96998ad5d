// `ingot bench memory`: what a served model holds in memory beside its weights.
#pragma once
#include "cli/commands.h"

namespace ingot::cli {

int bench_memory(const BenchOptions& options);

}  // namespace ingot::cli
