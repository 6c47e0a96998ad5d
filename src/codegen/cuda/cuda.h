// The door of the CUDA generator: kernels as header-less CUDA C++ text. A pure function of its arguments; no CUDA
// header, no device.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/program.h"
#include "codegen/kernel_ir.h"

namespace ingot::codegen::cuda {

/// Architectures that the text is made for and compiled with in tests.
inline constexpr int kArchitectures[] = {80, 90, 100};

/// A kernel whose `cuda` holds its text; `outer`: dims of the space outside of rows and columns.
KernelPtr generate(const Kernel& kernel, const Target& target, const std::string& name, int outer);

/// Prelude and all distinct kernels, in order.
std::string translation_unit(std::span<const KernelPtr> kernels);
/// The same for the kernels of a program.
std::string translation_unit(const Program& program);

/// What every unit begins with.
const char* prelude();

}  // namespace ingot::codegen::cuda
