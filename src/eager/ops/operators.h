// Arithmetic and comparison of tensors with tensors and numbers.
#pragma once
#include "eager/ops.h"

namespace ingot {

#define INGOT_OPERATOR(symbol, function)                                                            \
  inline Tensor operator symbol(const TensorArg& a, const OperandArg& b) { return function(a, b); } \
  inline Tensor operator symbol(const ScalarArg& a, const TensorArg& b) {                           \
    return function(OperandArg(a.value, b.location), b);                                            \
  }
INGOT_OPERATOR(+, add)
INGOT_OPERATOR(-, sub)
INGOT_OPERATOR(*, mul)
INGOT_OPERATOR(/, div)
INGOT_OPERATOR(%, remainder)
INGOT_OPERATOR(==, eq)
INGOT_OPERATOR(!=, ne)
INGOT_OPERATOR(<, lt)
INGOT_OPERATOR(<=, le)
INGOT_OPERATOR(>, gt)
INGOT_OPERATOR(>=, ge)
INGOT_OPERATOR(&, bitwise_and)
INGOT_OPERATOR(|, bitwise_or)
INGOT_OPERATOR(^, bitwise_xor)
#undef INGOT_OPERATOR

inline Tensor operator-(const TensorArg& a) { return neg(a); }
inline Tensor operator~(const TensorArg& a) { return bitwise_not(a); }
inline Tensor operator!(const Tensor& a) { return logical_not(a); }

}  // namespace ingot
