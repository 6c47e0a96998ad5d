// `ingot bench bind`: what a size that a program was not bound to before adds to a call.
#pragma once
#include "cli/commands.h"

namespace ingot::cli {

int bench_bind(const BenchOptions& options);

}  // namespace ingot::cli
