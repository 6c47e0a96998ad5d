// Arithmetic, comparison and choice of logical vectors, as kernel IR has them.
#pragma once
#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {

/// Any node that computes from its operands (not leaves, not rare).
Vector compute(Vectors& v, const Node& node, Vector* a, Vector* b, Vector* c);
/// `into`: registers to write, else new ones.
Vector binary(Vectors& v, Op op, Vector& a, Vector& b, const Vector* into = nullptr);
Vector compare(Vectors& v, Op op, Vector& a, Vector& b);
Vector select(Vectors& v, Vector& mask, Vector& yes, Vector& no);
Vector logical_not(Vectors& v, Vector& m);
/// a < b ? a : b, or (not least) b < a ? a : b: b if they are unordered or equal.
Vector pick(Vectors& v, bool least, Vector& a, Vector& b);
/// Minimum or maximum of floats, of which the result is unspecified where one is NaN; -0 < +0.
Vector ordered_minmax(Vectors& v, bool greatest, Vector& a, Vector& b, const Vector* into);
/// The product of two i64 that hold 32-bit numbers without sign: one instruction.
Vector multiply_u32(Vectors& v, Vector& a, Vector& b);

}  // namespace ingot::codegen::x86
