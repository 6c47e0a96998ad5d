#include "codegen/generate.h"

#include "codegen/cuda/cuda.h"
#include "codegen/scalar/executor.h"
#include "codegen/x86/tile.h"
#include "codegen/x86/x86.h"

namespace ingot::codegen {

KernelPtr generate(const Kernel& kernel, const Target& target, const std::string& name, int outer) {
  if (target.cuda_arch) return cuda::generate(kernel, target, name, outer);
  return target.isa == Isa::none ? scalar::interpret(kernel, name) : x86::compile(kernel, target, name);
}

std::string kernel_key(const std::string& text, const Target& target, int outer) {
  if (target.cuda_arch) return target.str() + " outer " + std::to_string(outer) + "\n" + text;
  return (target.isa == Isa::none ? "interpreted" : target.str()) + "\n" + text;
}

KernelPtr generate(const TileSpec& tile, const Target& target) {
  return target.isa == Isa::none ? scalar::interpret(tile) : x86::compile(tile, target);
}

KernelPtr generate(const PackSpec& pack, const Target& target) {
  return target.isa == Isa::none ? scalar::interpret(pack) : x86::compile(pack, target);
}

int max_tile_rows(const Target& target, DType dtype, RowsOfA rows_of_a) {
  return x86::max_tile_rows(target, dtype, rows_of_a);
}
int max_tile_panels(const Target& target, DType dtype, int rows) { return x86::max_tile_panels(target, dtype, rows); }
int max_tile_vectors(const Target& target, DType dtype) { return x86::max_tile_vectors(target, dtype); }
bool may_finish(const Target& target, const Kernel& epilogue) { return x86::may_finish(target, epilogue); }

}  // namespace ingot::codegen
