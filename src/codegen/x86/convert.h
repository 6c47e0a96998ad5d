// Conversions of logical vectors, scaling by powers of two, 16-bit roundings.
#pragma once
#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {

Vector convert(Vectors& v, Type to, Vector& a);
/// Elements half as wide, by an instruction that narrows.
Vector narrow(Vectors& v, Type to, Vector& a, VOp op);
/// a * 2^b; `kind` is the imm of Op::scale.
Vector scale(Vectors& v, Vector& a, Vector& b, uint64_t kind);
Vector round_to(Vectors& v, Vector& a, DType d);
Vector wrap(Vectors& v, Vector& a, DType d);
/// The 16-bit float bits of f32 lanes, one a dword (bf16) or word (f16, half as wide).
VReg bf16_bits(Vectors& v, VReg x);
/// Those of bf16 numbers in f32 lanes, as i32.
Vector high_words(Vectors& v, Vector& a);

}  // namespace ingot::codegen::x86
