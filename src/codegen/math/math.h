// Math functions over the kernel-IR builder, for f32 and f64: the same bits on every target. The largest errors of
// functions of one number stand in their rows of the op table (ir/ops.def), those of two at the group; NaN gives NaN,
// and special values follow IEEE 754 and C.
#pragma once
#include <limits>

#include "codegen/builder.h"

namespace ingot::codegen::math {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Exponentials.
Expr exp(Expr x);
Expr exp2(Expr x);
Expr expm1(Expr x);
/// (e^x - 1) * factor, rounded once.
Expr expm1_times(Expr x, double factor);
Expr sigmoid(Expr x);
/// factor * sigmoid(x) in one quotient.
Expr logistic_product(Expr factor, Expr x);
Expr tanh(Expr x);
/// x - tanh x without cancellation near zero. In f64 a unit of tanh may be 16 of the difference.
Expr tanhshrink(Expr x);
Expr sinh(Expr x);
Expr cosh(Expr x);

// Logarithms.
Expr log(Expr x);
Expr log2(Expr x);
Expr log10(Expr x);
Expr log1p(Expr x);
/// log(1 + e^x).
Expr softplus(Expr x);
Expr asinh(Expr x);
Expr acosh(Expr x);
Expr atanh(Expr x);

// Trigonometric functions. atan2: f32 1, f64 2.
Expr sin(Expr x);
Expr cos(Expr x);
Expr tan(Expr x);
Expr asin(Expr x);
Expr acos(Expr x);
Expr atan(Expr x);
Expr atan2(Expr y, Expr x);

// Error function and gamma function. normal_cdf: absolute error 2^-23 and 2^-52.
Expr erf(Expr x);
Expr erfc(Expr x);
/// (1 + erf(x / sqrt 2)) / 2.
Expr normal_cdf(Expr x);

Expr erfinv(Expr x);
/// log |gamma(x)|.
Expr lgamma(Expr x);
Expr digamma(Expr x);

// f32: 1. f64: 1.5. fmod is exact.
Expr pow(Expr x, Expr y);
Expr hypot(Expr x, Expr y);
/// x - y * trunc(x / y), exact; the sign of x.
Expr fmod(Expr x, Expr y);

inline Expr reciprocal(Expr x) { return 1.0 / x; }
Expr rsqrt(Expr x);
/// x * factor for x >= 0, rounded once though the factor is not an f32.
inline Expr times(Expr x, double factor) {
  if (x.type() == Type::f64) return x * factor;
  const double high = static_cast<float>(factor);
  const Expr finite = select(x < kInfinity, x, std::numeric_limits<float>::max());  // the parts may differ in sign
  return fma(x, high, finite * (factor - high));
}

/// a < b ? a : b and its mirror: b where an operand is NaN. One instruction on x86, where min and max need three.
inline Expr lesser(Expr a, Expr b) { return select(a < b, a, b); }
inline Expr greater(Expr a, Expr b) { return select(b < a, a, b); }
/// x limited to [low, high]; NaN stays.
template <Term L, Term H>
Expr limit(Expr x, L low, H high) {
  return lesser(lift(x, high), greater(lift(x, low), x));
}

/// f32 through the f64 function: one rounding, at about three times the cost.
template <class Function, class... Rest>
Expr in_double(Function f, Expr x, Rest... rest) {
  if (x.type() == Type::f64) return f(x, rest...);
  return convert(f(convert(x, Type::f64), convert(rest, Type::f64)...), Type::f32);
}

// What several of them share.

/// high + low, the second below the last place of the first (codegen/math/pair.h).
struct Pair {
  Expr high, low;
};

/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2.
Expr exp_tail(Expr r);
/// The same to three bits more in f32.
Expr exp_tail_long(Expr r);
/// (2^r - 1) / r for |r| <= 1/2.
Expr exp2_tail(Expr r);

/// e^x = 2^n (1 + p) with |p| < 0.42, for |x| so small that neither is lost (f32: 2^15).
struct Exponential {
  Expr n, p;
};
Exponential exp_parts(Expr x);

/// The same of x + low as 2^n m, to 2^-28 (f32): m.low may be a twentieth of m.high.
struct PairExponential {
  Expr n;
  Pair m;
};
PairExponential exp_pair(Expr x, Expr low = {});

/// log(1 + x) of x = high + low > -1, finite.
Expr log1p_pair(Pair x);

}  // namespace ingot::codegen::math
