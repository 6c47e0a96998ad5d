// `ingot bench NAME --mode train`: a whole training step, eager against compiled.
#pragma once
#include "cli/commands.h"

namespace ingot::cli {

int bench_train(const BenchOptions& options);

}  // namespace ingot::cli
