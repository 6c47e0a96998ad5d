// What the instruction set allows, read back from the bytes.
#include <Zydis/Zydis.h>

#include "codegen/x86_harness.h"

namespace ingot::codegen::test {
namespace {

/// Decodes all of a kernel's instructions; the text of each.
std::vector<ZydisDisassembledInstruction> disassemble(const KernelSource& source) {
  std::vector<ZydisDisassembledInstruction> out;
  for (int64_t at = 0; at < source.code_bytes;) {
    ZydisDisassembledInstruction instruction;
    ZyanStatus status = ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, 0, source.code.data() + at,
                                              static_cast<ZyanUSize>(source.code_bytes - at), &instruction);
    EXPECT_TRUE(ZYAN_SUCCESS(status)) << "byte " << at;
    if (!ZYAN_SUCCESS(status)) break;
    out.push_back(instruction);
    at += instruction.info.length;
  }
  return out;
}

bool only_avx2(const ZydisDisassembledInstruction& i) {
  if (i.info.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) return false;
  std::string text = i.text;
  return text.find("zmm") == std::string::npos && text.find(" k") == std::string::npos;
}

Kernel everything() {
  KernelBuilder k;
  Expr sum;
  for (DType d : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    Expr x = k.input(d), y = k.input(d, Access::strided),
         z = k.b.load(k.table(d, Access::dense), k.input(DType::i64) & 3);
    Expr r = select((x < y) & ~eq(y, z), x * y + z, x / (y - z));
    if (is_floating(d)) r = scale(sqrt(fma(r, min(x, y), max(y, z))), round_even(z));
    for (DType to : {DType::f32, DType::f64, DType::i32, DType::i64})
      k.output(to, to == d ? r : convert(r, register_type(to)));
    for (Combiner c : {Combiner::sum, Combiner::max, Combiner::argmin}) k.reduce(c, r);
    k.reduce(Combiner::any, x < r);
  }
  for (DType d : {DType::f16, DType::bf16}) k.output(d, k.input(d) * 3);
  for (DType d : {DType::i16, DType::i8, DType::u8}) k.output(d, wrap(k.input(d) + 3, d));
  k.output(DType::bool_, ~k.input(DType::bool_));
  return k.kernel;
}

TEST(X86Isa, Avx2CodeHasNoInstructionOfAvx512) {
  const Target target{Isa::avx2, false};
  Kernel kernel = everything();
  std::vector<KernelPtr> sources{generate(kernel, target, "everything")};
  for (DType d : {DType::f32, DType::f64, DType::bf16}) {
    sources.push_back(generate(TileSpec{d, max_tile_rows(target, d), max_tile_vectors(target, d)}, target));
    for (bool transposed : {false, true}) sources.push_back(generate(PackSpec{d, 1, transposed}, target));
  }
  for (const KernelPtr& source : sources) {
    std::vector<ZydisDisassembledInstruction> code = disassemble(*source);
    EXPECT_GT(code.size(), 10u);
    for (const auto& i : code) EXPECT_TRUE(only_avx2(i)) << source->name << ": " << i.text;
  }
}

TEST(X86Isa, Avx512CodeUsesWideRegisters) {
  KernelPtr source = generate(everything(), {Isa::avx512, false}, "everything");
  int wide = 0;
  for (const auto& i : disassemble(*source)) wide += !only_avx2(i);
  EXPECT_GT(wide, 50);
}

}  // namespace
}  // namespace ingot::codegen::test
