// Orthogonal polynomials (torch.special).
#pragma once
#include "eager/ops/functions.h"

namespace ingot::special {

/// The polynomial of degree n of each x; n is cut to a whole number, and below 0 the result is 0. Both broadcast,
/// either may be a number; integers give f32. By the recurrence of three terms (NIST Digital Library of Mathematical
/// Functions, 18.9), in double and rounded once, in a time that grows with n. No gradient. They read values: a graph
/// break in compiled code.
INGOT_API Tensor chebyshev_polynomial_t(const OperandArg& x, const OperandArg& n);
INGOT_API Tensor chebyshev_polynomial_u(const OperandArg& x, const OperandArg& n);
INGOT_API Tensor chebyshev_polynomial_v(const OperandArg& x, const OperandArg& n);
INGOT_API Tensor chebyshev_polynomial_w(const OperandArg& x, const OperandArg& n);
/// Of 2 x - 1: for x from 0 to 1.
INGOT_API Tensor shifted_chebyshev_polynomial_t(const OperandArg& x, const OperandArg& n);
INGOT_API Tensor shifted_chebyshev_polynomial_u(const OperandArg& x, const OperandArg& n);
INGOT_API Tensor shifted_chebyshev_polynomial_v(const OperandArg& x, const OperandArg& n);
INGOT_API Tensor shifted_chebyshev_polynomial_w(const OperandArg& x, const OperandArg& n);
/// Hermite's, the physicist's (h) and the probabilist's (he).
INGOT_API Tensor hermite_polynomial_h(const OperandArg& x, const OperandArg& n);
INGOT_API Tensor hermite_polynomial_he(const OperandArg& x, const OperandArg& n);
INGOT_API Tensor laguerre_polynomial_l(const OperandArg& x, const OperandArg& n);
INGOT_API Tensor legendre_polynomial_p(const OperandArg& x, const OperandArg& n);

}  // namespace ingot::special
