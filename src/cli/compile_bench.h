// `ingot bench compile`: what compiling and replaying take against the length of a function.
#pragma once
#include "cli/commands.h"

namespace ingot::cli {

int bench_compile(const BenchOptions& options);

}  // namespace ingot::cli
