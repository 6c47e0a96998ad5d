// Inverse trigonometric functions in f64 (f32 through it): odd minimax polynomials after the classical reductions of W.
// J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980.
#include "codegen/math/math.h"

namespace ingot::codegen::math {
namespace {

constexpr double kHalfPi = 0x1.921fb54442d18p0, kHalfPiLow = 0x1.1a62633145c07p-54;

// atan(a / b) for 0 <= a <= b: above tan(pi / 8), pi / 4 + atan((a - b) / (a + b)).
Expr atan_quotient(Expr a, Expr b) {
  Expr upper = a > b * 0x1.a827999fcef32p-2;
  Expr z = select(upper, a - b, a) / select(upper, a + b, b);
  Expr square = z * z;
  Expr p = polynomial(square, {-0x1.555555555553dp-2, 0x1.9999999995889p-3, -0x1.24924922ae52p-3, 0x1.c71c70e66b43cp-4,
                               -0x1.745cf8e56f2abp-4, 0x1.3b11199eca56cp-4, -0x1.10ebbca5b1723p-4, 0x1.df0f75e44a1f9p-5,
                               -0x1.9cd320442947ep-5, 0x1.37d5ba26e1926p-5, -0x1.25689c114d404p-6});
  Expr low = select(upper, lift(z, kHalfPiLow / 2), 0.0);
  return select(upper, lift(z, kHalfPi / 2), 0.0) + (z + fma(p * square, z, low));
}

Expr atan_f64(Expr x) {
  Expr t = abs(x), one = lift(x, 1.0), inverted = t > 1.0;
  Expr infinite = eq(t, kInfinity);
  Expr y = atan_quotient(select(inverted, one, t), select(inverted, t, one));
  y = select(inverted, kHalfPi - (y - kHalfPiLow), y);
  return copysign(select(infinite, kHalfPi, y), x);
}

Expr atan2_f64(Expr y, Expr x) {
  Expr a = abs(y), b = abs(x), steep = a > b;
  Expr both_zero = eq(a, 0.0) & eq(b, 0.0), both_infinite = eq(a, kInfinity) & eq(b, kInfinity);
  Expr part = select(steep, b, a), whole = select(steep, a, b);
  part = select(both_infinite, 1.0, part);
  whole = select(both_zero | both_infinite, 1.0, whole);
  Expr angle = atan_quotient(part, whole);
  // A quotient with an infinite denominator is zero, but (a - b) / (a + b) would be NaN only for two infinities.
  angle = select(steep, kHalfPi - (angle - kHalfPiLow), angle);
  Expr left = ne(sign_bit(x), 0);
  angle = select(left, 2 * kHalfPi - (angle - 2 * kHalfPiLow), angle);
  return select(is_nan(x) | is_nan(y), kNaN, copysign(angle, y));
}

// (asin x - x) / x for x^2 = square <= 1/4
Expr asin_tail(Expr square) {
  return square *
         polynomial(square, {0x1.5555555555562p-3, 0x1.33333333307ffp-4, 0x1.6db6db708e03bp-5, 0x1.f1c71b0d96506p-6,
                             0x1.6e8bd40b07fb4p-6, 0x1.1c4a8bef74096p-6, 0x1.ca143ac5e240dp-7, 0x1.75ca8b3bd63fap-7,
                             0x1.602fe16f03648p-7, 0x1.ef960f59d68p-9, 0x1.626196153acdcp-6, -0x1.5868dbf77970dp-6,
                             0x1.0c042f2e05c1p-5});
}

// asin x = pi / 2 - 2 asin(sqrt((1 - x) / 2)) above 1/2.
Expr asin_f64(Expr x) {
  Expr t = abs(x), upper = t > 0.5;
  Expr square = select(upper, fma(t, -0.5, 0.5), t * t);
  Expr root = select(upper, sqrt(square), t);
  Expr y = fma(root, asin_tail(square), root);
  return copysign(select(upper, kHalfPi - (y + y - kHalfPiLow), y), x);
}

Expr acos_f64(Expr x) {
  Expr t = abs(x), upper = t > 0.5;
  Expr square = select(upper, fma(t, -0.5, 0.5), t * t);
  Expr root = select(upper, sqrt(square), x);
  Expr y = fma(root, asin_tail(square), root);
  Expr twice = y + y;
  Expr outer = select(x < 0.0, 2 * kHalfPi - (twice - 2 * kHalfPiLow), twice);
  return select(upper, outer, kHalfPi - (y - kHalfPiLow));
}

}  // namespace

Expr atan(Expr x) { return in_double(atan_f64, x); }
Expr atan2(Expr y, Expr x) { return in_double(atan2_f64, y, x); }
Expr asin(Expr x) { return in_double(asin_f64, x); }
Expr acos(Expr x) { return in_double(acos_f64, x); }

}  // namespace ingot::codegen::math
