// Powers and remainders.
#include <vector>

#include "codegen/math/pair.h"

namespace ingot::codegen::math {
namespace {

// log2 of a positive f64 with an error of about 2^-66: 2^e (1 + f), and log(1 + f) = 2 (s + s^3 / 3 + ...) with s = f /
// (2 + f) and its leading terms as pairs.
Pair log2_pair(Expr x) {
  Builder& b = *x.builder;
  Expr denormal = x < 0x1p-1022;
  Expr low = b.bits(Type::i64, 0x3fe6a09e667f3bcd);
  Expr bits = bitcast(select(denormal, x * 0x1p60, x)) - low;
  Expr e = convert(shift_right_arithmetic(bits, 52), Type::f64) - select(denormal, lift(x, 60.0), 0.0);
  Expr f = bitcast((bits & 0xfffffffffffff) + low) - 1.0;

  Pair d = fast_sum(lift(x, 2.0), f);
  Expr s_high = f / d.high;
  Pair s = {s_high, fma(s_high, -d.low, fma(s_high, -d.high, f)) / d.high};
  Pair z = s * s;
  // log((1 + s) / (1 - s)) = 2s + s z (2/3 + z P(z))
  Expr p = polynomial(z.high, {0x1.9999999999996p-2, 0x1.2492492493044p-2, 0x1.c71c71c57dcbcp-3, 0x1.745d183377bc3p-3,
                               0x1.3b136267c83a5p-3, 0x1.1120c1658127fp-3, 0x1.de3192b80697ap-4, 0x1.eb20b11431eb9p-4});
  Pair third = fast_sum(lift(x, 0x1.5555555555555p-1), fma(z.high, p, 0x1.5555555555555p-55));
  Pair tail = s * z * third;
  Pair log = fast_sum(s.high + s.high, tail.high);
  log.low = log.low + (tail.low + (s.low + s.low));
  Pair y = log * pair(x, 0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56);
  Pair sum = fast_sum(e, y.high);
  // e may be smaller than y only where it is zero.
  return {select(eq(e, 0.0), y.high, sum.high), select(eq(e, 0.0), y.low, sum.low + y.low)};
}

Expr pow_f64(Expr x, Expr y) {
  Expr t = abs(x);
  Pair l = log2_pair(t);
  Pair p = product(l.high, y);
  Expr low = fma(l.low, y, p.low);
  // Past these limits the result is 0 or infinite; where the product is, its low part is NaN.
  Expr high = limit(p.high, -1100, 1100);
  low = select(eq(high, p.high), low, 0.0);
  Expr n = round_even(high), r = high - n;
  Pair a = product(r, lift(x, 0x1.62e42fefa39efp-1));  // r ln 2
  Expr rest = fma(r, 0x1.abc9e3b39803fp-56, fma(low, 0x1.62e42fefa39efp-1, a.low));
  // e^(a + rest) = e^a + e^a rest
  Expr m = fma(a.high * a.high, exp_tail(a.high), a.high);
  return scale(fma(m, rest, rest) + m + 1.0, n);
}

// C's table of special cases over the value for finite positive |x|.
Expr special_cases(Expr x, Expr y, Expr value) {
  Expr t = abs(x), infinite_y = eq(abs(y), kInfinity);
  Expr integral = eq(floor(y), y), half = y * 0.5;
  Expr odd = integral & ne(floor(half), half) & ~infinite_y;
  Expr edge = eq(t, 0.0) | eq(t, kInfinity) | infinite_y;
  // Infinite where the base moves away from 1 in the direction of y.
  Expr grows = (t > 1.0) ^ (y < 0.0);
  value = select(edge, select(grows, lift(x, kInfinity), 0.0), value);
  value = select(x < 0.0, select(integral, value, kNaN), value);
  value = select(odd, copysign(value, x), value);
  // Infinite bases are numbers with any exponent.
  value = select(eq(t, kInfinity) & ~integral, select(grows, lift(x, kInfinity), 0.0), value);
  value = select(is_nan(x) | is_nan(y), kNaN, value);
  Expr one = eq(y, 0.0) | eq(x, 1.0) | (eq(x, -1.0) & infinite_y);
  return select(one, 1.0, value);
}

// The remainder where the quotient is at most 2^bits; then at most one step too far.
Expr fmod_step(Expr x, Expr y) {
  Expr q = trunc(x / y);
  Expr r = fma(-q, y, x);
  return select(r < 0.0, r + y, r);
}

// f32 computes log2 and exp2 in f64, to 2^-33 and 2^-31: times 150, the largest exponent, far below its last place.
Expr pow_f32(Expr x, Expr y) {
  Builder& b = *x.builder;
  Expr low = b.bits(Type::i64, 0x3fe6a09e667f3bcd);  // sqrt 1/2
  Expr bits = bitcast(convert(abs(x), Type::f64)) - low;
  Expr e = convert(convert(shift_right_arithmetic(bits, 52), Type::i32), Type::f64);
  Expr f = bitcast((bits & 0xfffffffffffff) + low) - 1.0;
  Expr log = fma(f,
                 polynomial(f, {0x1.71547652a1e87p0, -0x1.715476565d54ep-1, 0x1.ec709ebb9736cp-2, -0x1.715470976cbe1p-2,
                                0x1.277651fb5ed0ep-2, -0x1.ec72b5a5068cap-3, 0x1.a63f44918d086p-3,
                                -0x1.71417019cbcb2p-3, 0x1.452916f60a1e1p-3, -0x1.252f3c9226e84p-3,
                                0x1.2871f0bafdfc3p-3, -0x1.2488e679dff6ap-3, 0x1.3ce875cbb0a71p-4}),
                 e);
  Expr power = limit(log * convert(y, Type::f64), -200, 200), n = round_even(power), r = power - n;
  Expr p = polynomial(r, {0x1.62e42fefd3e3ap-1, 0x1.ebfbe0461cebp-3, 0x1.c6b08caf0a419p-5, 0x1.3b2a1af972024p-7,
                          0x1.5d88bf5e4819cp-10, 0x1.44409f8ddf67dp-13, 0x1.ffcba6ddbcd54p-17});
  return convert(scale(fma(p, r, 1.0), n), Type::f32);
}

}  // namespace

Expr pow(Expr x, Expr y) {
  if (x.type() == Type::f64) return special_cases(x, y, pow_f64(x, y));
  Expr value = pow_f32(x, y), usual = (x > 0.0) & (x < kInfinity) & (abs(y) < kInfinity);
  return x.builder->rare(~usual, value, [&] { return special_cases(x, y, value); });
}

// The root of the quotient: the quotient's error halves. Where that leaves the normal numbers, both are scaled.
Expr rsqrt(Expr x) {
  const bool narrow = x.type() == Type::f32;
  const double limit = narrow ? 0x1p125 : 0x1p1021, step = narrow ? 0x1p32 : 0x1p256;
  Expr usual = (x >= 1 / limit) & (x <= limit);
  return x.builder->rare(~usual, codegen::sqrt(1.0 / x), [&] {
    Expr small = x < 1.0;
    Expr scaled = x * select(small, lift(x, step * step), 1 / (step * step));
    Expr y = codegen::sqrt(1.0 / scaled) * select(small, lift(x, step), 1 / step);
    return select(eq(x, 0.0), 1.0 / x, select(x < 0.0, kNaN, y));
  });
}

Expr hypot(Expr x, Expr y) {
  Expr infinite = eq(abs(x), kInfinity) | eq(abs(y), kInfinity);
  auto root = [](Expr a, Expr b) { return codegen::sqrt(fma(a, a, b * b)); };
  if (x.type() == Type::f32) return select(infinite, kInfinity, in_double(root, x, y));
  Expr a = abs(x), b = abs(y), large = select(a < b, b, a);
  Expr power = select(large > 0x1p500, lift(x, -600.0), select(large < 0x1p-450, lift(x, 600.0), 0.0));
  return select(infinite, kInfinity, scale(root(scale(a, power), scale(b, power)), -power));
}

// x - trunc(x / y) y is exact where the quotient fits the mantissa; a larger quotient is taken off in steps, with y
// scaled up.
Expr fmod(Expr x, Expr y) {
  if (x.type() == Type::f32) {
    Expr a = convert(abs(x), Type::f64), b = convert(abs(y), Type::f64);
    Expr usual = fmod_step(a, b);
    Expr r = x.builder->rare((a > b * 0x1p50) & (b > 0.0) & (a < kInfinity), usual, [&] {
      Expr rest = a;
      for (int power = 250; power >= 0; power -= 50) rest = fmod_step(rest, b * __builtin_ldexp(1, power));
      return rest;
    });
    r = select(eq(b, kInfinity) & (a < kInfinity), a, r);
    return copysign(convert(r, Type::f32), x);
  }
  Expr a = abs(x), b = abs(y);
  Expr r = x.builder->rare((a > b * 0x1p50) & (b > 0.0) & (a < kInfinity), fmod_step(a, b), [&] {
    // Multiples by 2^50, the last of them past every number or infinite.
    std::vector<Expr> multiples = {b};
    while (multiples.size() <= 2100 / 50) multiples.push_back(multiples.back() * 0x1p50);
    Expr rest = a;
    for (; !multiples.empty(); multiples.pop_back())
      rest = select(multiples.back() > rest, rest, fmod_step(rest, multiples.back()));
    return rest;
  });
  return copysign(select(eq(b, kInfinity) & (a < kInfinity), a, r), x);
}

}  // namespace ingot::codegen::math
