// The meaning of each scalar operation, 16 lanes at a time: used to run kernels and to fold constants, so both agree.
#pragma once
#include "base/canonical_order.h"
#include "codegen/kernel_ir.h"

namespace ingot::codegen::scalar {

using canonical::kLanes;

/// Values of one node; the member is the node's type. A mask lane is 0 or 1.
union Lanes {
  float f32[kLanes];
  double f64[kLanes];
  int32_t i32[kLanes];
  int64_t i64[kLanes];
  uint8_t mask[kLanes];
};

/// Every lane holds the constant with these bits (see Op::constant).
Lanes broadcast(Type type, uint64_t bits);
/// The bits of one lane, as Op::constant holds them.
uint64_t lane_bits(Type type, const Lanes& lanes, int lane);

/// Computes a node with operands (`operand`: the type of a); operands that it does not have may be null.
void evaluate(const Node& node, Type operand, const Lanes* a, const Lanes* b, const Lanes* c, Lanes* out);

/// The two ways to combine floats and integers of which the smaller or larger wins: NaN wins, -0 < +0.
template <class T>
T minimum(T a, T b);
template <class T>
T maximum(T a, T b);

/// Nearest 16-bit float (ties to even, denormals kept), and back.
uint16_t to_half(DType d, float x);
float from_half(DType d, uint16_t bits);
/// x cut to the range of i16, i8 or u8.
int32_t wrap(DType d, int32_t x);

}  // namespace ingot::codegen::scalar
