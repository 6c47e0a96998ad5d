// `ingot bench replay`: what an op recorded in a compiled function costs at each call, with its tape and derivative
// too.
#pragma once
#include "cli/commands.h"

namespace ingot::cli {

int bench_replay(const BenchOptions& options);

}  // namespace ingot::cli
