// What moves the lanes of logical vectors about.
#pragma once
#include <vector>

#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {

/// Element i of the result is element i + step of a (i < step; the others are unspecified). Unless `keep_shape`, once
/// the elements that count fit one register, a and the result shrink to it.
Vector upper(Vectors& v, Vector& a, int step, bool keep_shape = false);
/// Element 0 in all lanes. A mask: its lane 0.
Vector broadcast_first(Vectors& v, const Vector& a);
/// An element that a general-purpose register holds, in all lanes; a mask: its bit 0. May clobber the register.
Vector broadcast(Vectors& v, Type type, Gpr from);
/// 0 .. 15, of an integer type.
Vector lane_numbers(Vectors& v, Type type);
/// Rows of a square of elements of 4 or 8 bytes, given its columns; as many as a register has lanes.
std::vector<VReg> transposed(Vectors& v, std::vector<VReg> x, int element);
/// To and from an area of the stack frame, for work lane by lane.
void store_area(Vectors& v, int number, Vector& x);
Vector load_area(Vectors& v, int number, Type type, bool uniform = false);

}  // namespace ingot::codegen::x86
