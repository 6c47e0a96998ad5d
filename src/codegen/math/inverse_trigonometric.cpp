// Inverse trigonometric functions: odd minimax polynomials after the classical reductions of W.
// J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980.
#include "codegen/math/pair.h"

namespace ingot::codegen::math {
namespace {

constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;

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
  Expr root = select(upper, codegen::sqrt(square), t);
  Expr y = fma(root, asin_tail(square), root);
  return copysign(select(upper, kHalfPi - (y + y - kHalfPiLow), y), x);
}

Expr acos_f64(Expr x) {
  Expr t = abs(x), upper = t > 0.5;
  Expr square = select(upper, fma(t, -0.5, 0.5), t * t);
  Expr root = select(upper, codegen::sqrt(square), x);
  Expr y = fma(root, asin_tail(square), root);
  Expr twice = y + y;
  Expr outer = select(x < 0.0, 2 * kHalfPi - (twice - 2 * kHalfPiLow), twice);
  return select(upper, outer, kHalfPi - (y - kHalfPiLow));
}

constexpr double kHalfPi32 = 0x1.921fb6p0, kHalfPiLow32 = -0x1.777a5cp-25;

// Up to 1/2 a polynomial; pi / 4 + atan((t - 1) / (t + 1)) up to 2, then pi / 2 - atan(1 / t).
Expr atan_f32(Expr x) {
  Expr t = lesser(lift(x, 0x1p100), abs(x)), small = t<0.5, large = t> 2.0;
  Pair above = sum(t, lift(x, 1.0));
  Expr d = select(small, lift(x, 1.0), select(large, t, above.high));
  Expr d_low = select(small | large, lift(x, 0.0), above.low);
  Expr n = select(small, t, select(large, lift(x, -1.0), t - 1.0));
  Expr inverse = 1.0 / d, z = n * inverse, z_low = fma(-z, d_low, fma(-z, d, n)) * inverse;
  Expr square = z * z,
       p = square * polynomial(square, {-0x1.55552p-2, 0x1.997c68p-3, -0x1.2244a6p-3, 0x1.9f381cp-4, -0x1.9fe08cp-5});
  Expr base = select(small, lift(x, 0.0), select(large, lift(x, kHalfPi32), kHalfPi32 / 2));
  Expr base_low = select(small, lift(x, 0.0), select(large, lift(x, kHalfPiLow32), kHalfPiLow32 / 2));
  Pair turned = fast_sum(base, z);
  Expr y = turned.high + (turned.low + fma(p, z, z_low + base_low));
  return copysign(y, x);
}

// asin r = r + r tail(r^2) for |r| <= 1/2; above, with r = sqrt((1 - t) / 2) as a pair.
struct Arcsine {
  Expr upper, root, low;  // asin(root) = root + low
};
Arcsine arcsine_f32(Expr x, Expr t) {
  Expr upper = t > 0.5, square = select(upper, fma(t, -0.5, 0.5), t * t);
  Expr tail = square * polynomial(square, {0x1.5555acp-3, 0x1.330598p-4, 0x1.747634p-5, 0x1.8a2708p-6, 0x1.5c99dcp-5});
  Expr s = codegen::sqrt(square);
  Expr s_low = select(square > 0.0, fma(-s, s, square) * (0.5 / s), 0.0);
  Expr root = select(upper, s, x);
  return {upper, root, fma(root, tail, select(upper, s_low, 0.0))};
}

Expr asin_f32(Expr x) {
  Expr t = abs(x);
  auto [upper, root, low] = arcsine_f32(t, t);
  Pair turned = fast_sum(lift(x, kHalfPi32), root * -2.0);
  Expr y = select(upper, turned.high + (turned.low - fma(low, 2.0, -kHalfPiLow32)), root + low);
  return copysign(select(t > 1.0, kNaN, y), x);
}

// pi / 2 - asin x; above 1/2 it is 2 asin r, below -1/2 pi - 2 asin r.
Expr acos_f32(Expr x) {
  Expr t = abs(x);
  auto [upper, root, low] = arcsine_f32(x, t);
  Expr factor = select(upper, lift(x, 2.0), 1.0), right = x > 0.5;
  Expr taken = root * factor, taken_low = low * factor;
  Pair turned = fast_sum(select(upper, lift(x, 2 * kHalfPi32), kHalfPi32), -taken);
  Expr base_low = select(upper, lift(x, 2 * kHalfPiLow32), kHalfPiLow32);
  Expr y = select(right, taken + taken_low, turned.high + (turned.low - (taken_low - base_low)));
  return select(t > 1.0, kNaN, y);
}

}  // namespace

Expr atan(Expr x) { return x.type() == Type::f32 ? atan_f32(x) : atan_f64(x); }
Expr atan2(Expr y, Expr x) { return in_double(atan2_f64, y, x); }
Expr asin(Expr x) { return x.type() == Type::f32 ? asin_f32(x) : asin_f64(x); }
Expr acos(Expr x) { return x.type() == Type::f32 ? acos_f32(x) : acos_f64(x); }

}  // namespace ingot::codegen::math
