// Kernels run directly, without machine code: the same bits as generated code, on any processor.
#pragma once
#include <string>

#include "base/program.h"
#include "codegen/kernel_ir.h"

namespace ingot::codegen::scalar {

/// A kernel without code, whose `interpret` takes the frame of its kind.
KernelPtr interpret(const Kernel& kernel, const std::string& name);
KernelPtr interpret(const TileSpec& tile);
KernelPtr interpret(const PackSpec& pack);

}  // namespace ingot::codegen::scalar
