// What several functions share: the parts of e^x, and polynomials.
#pragma once
#include "codegen/math/pair.h"

namespace ingot::codegen::math {

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
