// What the instruction set allows, read back from the bytes.
#include "codegen/x86_harness.h"

namespace ingot::codegen::test {
namespace {

Kernel everything() {
  KernelBuilder k;
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
    sources.push_back(generate(
        TileSpec{d == DType::bf16 ? DType::f32 : d, d, max_tile_rows(target, d), max_tile_vectors(target, d)}, target));
    for (bool transposed : {false, true}) sources.push_back(generate(PackSpec{d, 1, transposed}, target));
  }
  for (const KernelPtr& source : sources) EXPECT_EQ(instructions_of_avx512(*source), 0) << source->name;
}

TEST(X86Isa, Avx512CodeUsesWideRegisters) {
  EXPECT_GT(instructions_of_avx512(*generate(everything(), {Isa::avx512, false}, "everything")), 50);
}

}  // namespace
}  // namespace ingot::codegen::test
