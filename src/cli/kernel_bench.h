// `ingot bench` of one kernel: eager and compiled, checked against f64, beside the roof of this machine.
#pragma once
#include "cli/commands.h"
#include "cli/kernel_cases.h"

namespace ingot::cli {

int bench_kernel(const KernelBench& bench, const BenchOptions& options);

}  // namespace ingot::cli
