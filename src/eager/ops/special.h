// Special functions beyond the op table (torch.special); those of the table have their names there by
// eager/ops/aliases.h. Integers and bools give f32.
#pragma once
#include "eager/ops/functions.h"

namespace ingot {

/// The logarithm of the multivariate gamma function of dimension p, element by element.
INGOT_API Tensor mvlgamma(const TensorArg& self, int64_t p);
/// As special::i0, gammainc and gammaincc.
INGOT_API Tensor i0(const TensorArg& self);
INGOT_API Tensor igamma(const TensorArg& self, const TensorArg& other);
INGOT_API Tensor igammac(const TensorArg& self, const TensorArg& other);

namespace special {

/// -x log(x); 0 at 0, -inf below.
INGOT_API Tensor entr(const TensorArg& self);
/// self * log1p(other); 0 where self is 0 and other is no NaN.
INGOT_API Tensor xlog1py(const OperandArg& self, const OperandArg& other);
/// The area below the standard normal density left of x, and its logarithm.
INGOT_API Tensor ndtr(const TensorArg& self);
INGOT_API Tensor log_ndtr(const TensorArg& self);
/// As mvlgamma.
INGOT_API Tensor multigammaln(const TensorArg& self, int64_t p);

/// Modified Bessel functions of the first kind, of order 0 and 1, and the same times exp(-|x|). These and all below are
/// computed in double: f32 is rounded once, f64 is within 8 ulp.
INGOT_API Tensor i0(const TensorArg& self);
INGOT_API Tensor i0e(const TensorArg& self);
INGOT_API Tensor i1(const TensorArg& self);
INGOT_API Tensor i1e(const TensorArg& self);
/// Bessel functions of the first (j) and second (y) kind; these are NaN below 0. Between their zeros within 1e-15 (y1
/// below 1: times its value), beyond 8 within 1e-15 and what x lacks of digits.
INGOT_API Tensor bessel_j0(const TensorArg& self);
INGOT_API Tensor bessel_j1(const TensorArg& self);
INGOT_API Tensor bessel_y0(const TensorArg& self);
INGOT_API Tensor bessel_y1(const TensorArg& self);
/// Modified Bessel functions of the second kind, and the same times exp(x): inf at 0, NaN below. Within 1e-14 of their
/// value.
INGOT_API Tensor modified_bessel_k0(const TensorArg& self);
INGOT_API Tensor modified_bessel_k1(const TensorArg& self);
INGOT_API Tensor scaled_modified_bessel_k0(const TensorArg& self);
INGOT_API Tensor scaled_modified_bessel_k1(const TensorArg& self);
/// The Airy function Ai; NaN of what is infinite, as PyTorch has it, and without a gradient. Within 1e-14 (below 0) and
/// 1e-13 of its value (above), and what x lacks of digits.
INGOT_API Tensor airy_ai(const TensorArg& self);
/// sin(x) / x; 1 at 0.
INGOT_API Tensor spherical_bessel_j0(const TensorArg& self);

/// The inverse of ndtr: -inf at 0, inf at 1, NaN outside. Relative to its value within 1e-14 (around 1/2: within
/// 1e-16).
INGOT_API Tensor ndtri(const TensorArg& self);
/// Hurwitz's zeta function, the sum of (k + other)^-self over k from 0 on, for other above 0: inf for self 1, NaN
/// below. Where other is 0 or a whole number below it is inf, NaN between those. Within 1e-14 of its value.
INGOT_API Tensor zeta(const OperandArg& self, const OperandArg& other);
/// The regularised incomplete gamma functions: the integrals of t^(self - 1) exp(-t) / gamma(self) from 0 to other, and
/// from there on; NaN for what is negative. Floats of one dtype, which broadcast; the gradient goes to other alone, one
/// that is asked for self is an Error. Within 1e-13 of their value. They read values: a graph break in compiled code.
INGOT_API Tensor gammainc(const TensorArg& self, const TensorArg& other);
INGOT_API Tensor gammaincc(const TensorArg& self, const TensorArg& other);

}  // namespace special
}  // namespace ingot
