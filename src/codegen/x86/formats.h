// Elements between vectors and memory, where they have the format of their dtype.
#pragma once
#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {

/// Whether memory holds the elements as registers do.
inline bool stored_as_it_is(DType d) { return ingot::size_of(d) >= 4; }

/// 16 elements side by side; under a mask, those of its lanes. AVX2 has masks for what is stored as it is only.
Vector load_elements(Vectors& v, DType d, const Mem& from, Vector* mask = nullptr);
/// A register of f32, of elements side by side whose values it holds: f32, 16-bit floats, i8. Masks are AVX-512's.
VReg load_f32(Vectors& v, DType d, const Mem& from, VReg mask = kNoReg);
/// `streams`: past the caches.
void store_elements(Vectors& v, DType d, Vector& x, const Mem& to, Vector* mask = nullptr, bool streams = false);
/// One element in all lanes; clobbers rax.
Vector broadcast_element(Vectors& v, DType d, const Mem& from);

}  // namespace ingot::codegen::x86
