#include "codegen/x86/x86.h"

#include "codegen/generate.h"
#include "codegen/x86/columns.h"
#include "codegen/x86/pack.h"
#include "codegen/x86/rows.h"
#include "codegen/x86/short_columns.h"
#include "codegen/x86/tile.h"

namespace ingot::codegen::x86 {
namespace {

KernelPtr source(VCode& code, std::string text, const Target& target, std::string name, int64_t scratch_bytes) {
  MachineCode machine = encode(code);
  auto out = std::make_shared<KernelSource>();
  out->key = kernel_key(text, target);
  out->name = std::move(name);
  out->text = std::move(text);
  out->code = std::move(machine.bytes);
  out->code_bytes = machine.code_bytes;
  out->scratch_bytes = scratch_bytes;
  return out;
}

}  // namespace

KernelPtr compile(const Kernel& kernel, const Target& target, const std::string& name) {
  VCode code(target.isa);
  Emitter emitter(kernel, code);
  if (kernel.form == Form::rows)
    Rows(emitter).emit();
  else if (sums_in_registers(kernel))
    ShortColumns(emitter).emit();
  else
    Columns(emitter).emit();
  return source(code, print(kernel), target, name, emitter.reductions.scratch_bytes());
}

KernelPtr compile(const TileSpec& tile, const Target& target) {
  VCode code(target.isa);
  emit_tile(tile, target, code);
  const std::string text = print(tile);
  return source(code, text, target, text.substr(0, text.find('\n')), 0);
}

KernelPtr compile(const PackSpec& pack, const Target& target) {
  VCode code(target.isa);
  emit_pack(pack, code);
  return source(code, print(pack), target, print(pack), 0);
}

}  // namespace ingot::codegen::x86
