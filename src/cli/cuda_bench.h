// `ingot bench cuda`: generated kernels on a device, each result checked, beside what a copy of its memory takes.
#pragma once
#include "cli/commands.h"

namespace ingot::cli {

/// Throws Error without a driver, a device or NVRTC.
int bench_cuda(const BenchOptions& options);

}  // namespace ingot::cli
