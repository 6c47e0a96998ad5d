// Code of matrix-product tiles and of the panels they read.
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
void emit_pack(const PackSpec& spec, VCode& code);

}  // namespace ingot::codegen::x86
