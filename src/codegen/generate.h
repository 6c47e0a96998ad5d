// From kernel IR to a kernel that can be loaded. A pure function of its arguments.
#pragma once
#include "base/program.h"
#include "codegen/kernel_ir.h"

namespace ingot::codegen {

/// Machine code for target.isa, or the scalar executor where it is none; CUDA text for a CUDA target, whose launch
/// iterates over the `outer` dims outside of rows and columns as well. Equal arguments give equal bytes.
KernelPtr generate(const Kernel& kernel, const Target& target, const std::string& name, int outer = 0);
/// KernelSource::key of a kernel, tile or packing with this text.
std::string kernel_key(const std::string& text, const Target& target, int outer = 0);
/// Products on a GPU are a library's: these are for processors.
KernelPtr generate(const TileSpec& tile, const Target& target);
KernelPtr generate(const PackSpec& pack, const Target& target);

/// The largest tile of a matrix product on this target: rows, and columns in units of 16.
int max_tile_rows(const Target& target, DType dtype, RowsOfA rows_of_a = RowsOfA::along);
int max_tile_vectors(const Target& target, DType dtype);
/// Of an A of this type, for tiles that take all of k (TileSpec::panels).
int max_tile_panels(const Target& target, DType dtype, int rows);
/// Whether a tile can run this epilogue on its sums: vector registers are left for it, and all that it reads and writes
/// lies side by side.
bool may_finish(const Target& target, const Kernel& epilogue);

}  // namespace ingot::codegen
