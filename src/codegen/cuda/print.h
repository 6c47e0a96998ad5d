// A mapped kernel as CUDA C++: its argument struct and its entry function.
#pragma once
#include <string>

#include "codegen/cuda/mapping.h"

namespace ingot::codegen::cuda {

std::string print(const Kernel& kernel, const Mapping& mapping, const std::string& entry);

}  // namespace ingot::codegen::cuda
