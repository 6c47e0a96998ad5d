// Outputs of a program that may be the memory of one of its inputs: what is written in place.
#pragma once
#include <cstdint>

#include "base/program.h"

namespace ingot::runtime {

/// True if this output may be written over this input, of the same sizes and strides, while the program runs: all who
/// read the input come before who writes the output first, or it is that step itself, which then reads of each element
/// nothing but what it overwrites. (Steps run in order where they touch inputs and outputs, see BoundProgram.)
bool may_write_over(const Program& program, uint32_t output, uint32_t input);

}  // namespace ingot::runtime
