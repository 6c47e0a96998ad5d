// 16-bit floats that a kernel does not compute with.
#pragma once
#include "codegen/kernel_ir.h"

namespace ingot::codegen {

/// Where all 16-bit floats of a kernel are moved, chosen among, or given another sign, and no more: makes them integers
/// of 16 bits, which are neither widened to f32 nor rounded. Else, nothing.
void move_halves_as_bits(Kernel& kernel);

}  // namespace ingot::codegen
