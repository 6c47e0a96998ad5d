// Sums of two floats: what a function needs on the way to keep its result within one unit in the last place. T. J.
// Dekker, A floating-point technique for extending the available precision, 1971; D. E. Knuth, The Art of Computer
// Programming 2, 4.2.2; products by fma.
#pragma once
#include "codegen/math/math.h"

namespace ingot::codegen::math {

inline bool is_f32(Expr x) { return x.type() == Type::f32; }

constexpr double kLn2 = 0x1.62e42fefa39efp-1, kHalfPi = 0x1.921fb54442d18p0;

/// a + b exactly where |a| >= |b| or a is 0.
inline Pair fast_sum(Expr a, Expr b) {
  Expr s = a + b;
  return {s, b - (s - a)};
}
/// a + b exactly.
inline Pair sum(Expr a, Expr b) {
  Expr s = a + b, other = s - a;
  return {s, (a - (s - other)) + (b - other)};
}
inline Pair product(Expr a, Expr b) {
  Expr p = a * b;
  return {p, fma(a, b, -p)};
}
inline Pair operator*(Pair a, Pair b) {
  Pair p = product(a.high, b.high);
  return fast_sum(p.high, fma(a.high, b.low, fma(a.low, b.high, p.low)));
}

/// n / d, rounded once but for terms of second order; n.low may be absent.
inline Expr quotient(Pair n, Pair d) {
  Expr inverse = 1.0 / d.high, q = n.high * inverse;
  Expr rest = fma(-q, d.high, n.high);
  if (n.low.present()) rest = rest + n.low;
  rest = fma(-q, d.low, rest);
  return fma(rest, inverse, q);
}

/// The square root of a positive pair, both parts.
inline Pair sqrt(Pair x) {
  Expr s = codegen::sqrt(x.high);
  return {s, (fma(-s, s, x.high) + x.low) * (0.5 / s)};
}

inline Pair pair(Expr like, double high, double low) { return {lift(like, high), lift(like, low)}; }

}  // namespace ingot::codegen::math
