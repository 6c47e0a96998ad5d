// Code of matrix-product tiles.
#pragma once
#include <span>

#include "base/program.h"
#include "codegen/kernel_ir.h"
#include "codegen/x86/vcode.h"

namespace ingot::codegen::x86 {

void emit_tile(const TileSpec& spec, const Target& target, VCode& code);
void emit_transposed_tile(const TileSpec& spec, const Target& target, VCode& code);
/// Runs an epilogue on the sums of a tile, rows-major; rdi: its KernelFrame.
void emit_finish(const Kernel& epilogue, std::span<const VReg> sums, int rows, VCode& code);

/// The largest tile whose sums fit the registers.
int max_tile_rows(const Target& target, DType dtype);
int max_tile_vectors(const Target& target, DType dtype);
bool may_finish(const Target& target, const Kernel& epilogue);

}  // namespace ingot::codegen::x86
