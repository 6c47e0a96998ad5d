// The door of the x86 generator: kernels as machine code for AVX2 or AVX-512.
#pragma once
#include <string>

#include "base/program.h"
#include "codegen/kernel_ir.h"

namespace ingot::codegen::x86 {

KernelPtr compile(const Kernel& kernel, const Target& target, const std::string& name);
KernelPtr compile(const TileSpec& tile, const Target& target);
KernelPtr compile(const PackSpec& pack, const Target& target);

}  // namespace ingot::codegen::x86
