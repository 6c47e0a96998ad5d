// `ingot bench math`: what each function of one number costs in L1, beside its accuracy.
#pragma once
#include "cli/commands.h"

namespace ingot::cli {

int bench_math(const BenchOptions& options);

}  // namespace ingot::cli
