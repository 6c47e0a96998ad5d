// Exponentials: argument reduction by a multiple of ln 2 in two parts (W. J. Cody and W. Waite, Software Manual for the
// Elementary Functions, 1980), minimax polynomials (tools/minimax.py), and scaling by a power of two.
#include <span>
#include <vector>

#include "codegen/math/pair.h"

namespace ingot::codegen::math {
namespace {

constexpr double kLog2E = 0x1.71547652b82fep0;

/// ln 2 in two parts; the first has zeros at its end, so that its product with an exponent is exact (f32: by fma).
struct Ln2 {
  double high, low;
};
Ln2 ln2_parts(Expr x) {
  return is_f32(x) ? Ln2{0x1.62e43p-1, -0x1.05c61p-29} : Ln2{0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};
}

struct Reduced {
  Expr n, first, r;  // x = n ln 2 + r, |r| <= ln 2 / 2, n integral; first: the first part taken off
};

Reduced reduce(Expr x) {
  Expr n = round_even(x * kLog2E);
  const Ln2 ln2 = ln2_parts(x);
  // The first product and difference are exact but for the last bits of |n| > 2^10 in f64.
  Expr first = fma(n, -ln2.high, x);
  return {n, first, fma(n, -ln2.low, first)};
}

// Where results have reached zero, infinity, -1 or 1 for good.
Expr limit_exponent(Expr x, double low32, double high32, double low64, double high64) {
  return is_f32(x) ? limit(x, low32, high32) : limit(x, low64, high64);
}

}  // namespace

namespace {

std::span<const double> exp_coefficients(Expr r) {
  static constexpr double kF32[] = {0x1.fffffep-2, 0x1.5554aep-3, 0x1.5556c4p-5, 0x1.1229f4p-7, 0x1.6befb8p-10};
  static constexpr double kF64[] = {0x1p-1,
                                    0x1.5555555555559p-3,
                                    0x1.5555555555556p-5,
                                    0x1.111111110f6ecp-7,
                                    0x1.6c16c16c18132p-10,
                                    0x1.a01a01afb67a7p-13,
                                    0x1.a01a019643e4p-16,
                                    0x1.71ddf8d811d5cp-19,
                                    0x1.27e5094d0b9cfp-22,
                                    0x1.af5ddbadc579bp-26,
                                    0x1.1f20fc9fcde93p-29};
  return is_f32(r) ? std::span<const double>(kF32) : kF64;
}

}  // namespace

Expr exp_tail(Expr r) { return polynomial(r, exp_coefficients(r)); }

Expr exp_tail_long(Expr r) {
  if (!is_f32(r)) return exp_tail(r);
  return polynomial(r, {0x1p-1, 0x1.555556p-3, 0x1.55549cp-5, 0x1.11106cp-7, 0x1.6db07ep-10, 0x1.a17d46p-13});
}

Expr exp2_tail(Expr r) {
  if (is_f32(r))
    return polynomial(r, {0x1.62e43p-1, 0x1.ebfbdep-3, 0x1.c6af82p-5, 0x1.3b2c04p-7, 0x1.5f0a62p-10, 0x1.430bep-13});
  return polynomial(r, {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58ep-3, 0x1.c6b08d704a0ddp-5, 0x1.3b2ab6fba4ea9p-7,
                        0x1.5d87fe78a404cp-10, 0x1.430912f87497cp-13, 0x1.ffcbfc6dcfabp-17, 0x1.62c0221afee2fp-20,
                        0x1.b524eb6481a18p-24, 0x1.e4cfaf370f9ecp-28, 0x1.e9eceb4a30892p-32, 0x1.c3bd253daa84ap-36});
}

Exponential exp_parts(Expr x) {
  auto [n, first, r] = reduce(x);
  return {n, fma(exp_tail(r) * r, r, r)};
}

namespace {

/// exp_parts(-x) with -m, to the bit: signs are turned in constants, not in numbers.
Exponential exp_parts_of_minus(Expr x) {
  const Ln2 ln2 = ln2_parts(x);
  Expr n = round_even(x * -kLog2E), minus_r = fma(n, ln2.low, fma(n, ln2.high, x));
  std::vector<double> turned;
  for (double c : exp_coefficients(x)) turned.push_back(turned.size() % 2 ? c : -c);
  return {n, fma(polynomial(minus_r, turned) * minus_r, minus_r, minus_r)};
}

}  // namespace

PairExponential exp_pair(Expr x, Expr low) {
  Reduced reduced = reduce(x);
  Expr n = reduced.n, first = reduced.first, r = reduced.r;
  Expr r_low = fma(n, -ln2_parts(x).low, first - r);
  if (low.present()) {
    Pair whole = fast_sum(r, r_low + low);
    r = whole.high;
    r_low = whole.low;
  }
  Expr high = r + 1.0;
  return {n, {high, (r - (high - 1.0)) + fma(r * r, exp_tail_long(r), r_low)}};
}

Expr exp(Expr x) {
  auto [n, first, r] = reduce(limit_exponent(x, -104.5, 89, -746, 710));
  return scale_near_one(fma(fma(exp_tail(r), r, 1.0), r, 1.0), n);
}

Expr exp2(Expr x) {
  x = limit_exponent(x, -151, 129, -1076, 1025);
  Expr n = round_even(x), r = x - n;
  return scale_near_one(fma(exp2_tail(r), r, 1.0), n);
}

namespace {

// e^x - 1 = 2^n ((e^r - 1) + (1 - 2^-n)); the low part keeps what the sums lose.
PairExponential expm1_pair(Expr x) {
  auto [n, first, r] = reduce(limit_exponent(x, -26, 89, -40, 710));
  Expr power = scale(lift(x, 1.0), -n), whole = 1.0 - power;
  Expr lost = (1.0 - whole) - power;
  Expr sum = whole + r;
  return {n, {sum, fma(exp_tail_long(r) * r, r, (r - (sum - whole)) + lost)}};
}

}  // namespace

Expr expm1(Expr x) {
  auto [n, m] = expm1_pair(x);
  return bitcast(bitcast(scale(m.high + m.low, n)) | sign_bit(x));  // of -0
}

Expr expm1_times(Expr x, double factor) {
  auto [n, m] = expm1_pair(x);
  double high = is_f32(x) ? static_cast<float>(factor) : factor;
  Expr y = scale(fma(m.high, high, fma(m.high, factor - high, m.low * high)), n);
  return bitcast(bitcast(y) | sign_bit(x));
}

// factor / (1 + 2^n (1 + p)) with e^-x = 2^n (1 + p), where 1 + 2^n is exact. Past that, with e = e^-|x|, the result is
// factor (1 - e) or factor (e - e^2).
Expr logistic_product(Expr factor, Expr x) {
  auto [n, minus_p] = exp_parts_of_minus(x);
  Expr minus_power = scale_normal(lift(x, -1.0), n), usual = factor / fma(minus_power, minus_p, 1.0 - minus_power);
  Expr t = abs(x);
  return x.builder->rare(t > (is_f32(x) ? 16.2 : 36.3), usual, [&] {
    // Where nothing is left of e, or of the result: numbers too small to be held would take ten times as long.
    Expr above = x > 0.0, nothing = t > select(above, is_f32(x) ? 18.0 : 40.0, lift(x, is_f32(x) ? 200.0 : 1500.0));
    auto [k, m] = exp_pair(select(nothing, 0.0, -t));
    Expr sum = m.high + m.low, e = scale_normal(sum, greater(lift(x, -100.0), k)), rest = fma(-e, sum, m.low);
    Expr quarter = factor * 0.25;  // whose product does not overflow; an infinite factor gives NaN
    Expr small = scale(fma(quarter, m.high, fma(quarter, rest, factor - factor)), k + 2.0);
    return select(above, select(nothing, factor, fma(-e, factor, factor)), select(nothing, factor * 0.0, small));
  });
}

Expr sigmoid(Expr x) { return logistic_product(lift(x, 1.0), x); }

namespace {

// tanh t for t >= 0: t + t * tail below the limit, an odd polynomial; 1 - 2 / (e^2t + 1) above. There e^2t needs no
// second part of ln 2, for the result hardly depends on it.
struct TanhParts {
  Expr small, tail, large;
};

TanhParts tanh_parts(Expr t) {
  Expr square = t * t;
  Expr p = is_f32(t) ? polynomial(square, {-0x1.555544p-2, 0x1.110cc4p-3, -0x1.b9700cp-5, 0x1.60315p-6, -0x1.0470f8p-7,
                                           0x1.2cda4p-9, -0x1.741dd2p-12})
                     : polynomial(square, {-0x1.5555555555555p-2, 0x1.11111111110b3p-3, -0x1.ba1ba1ba1371fp-5,
                                           0x1.664f488008fb1p-6, -0x1.226e34dc19531p-7, 0x1.d6d3b2815b7fp-9,
                                           -0x1.7da10fd447ddfp-10, 0x1.35391b8b86bafp-11, -0x1.f346a37c9488bp-13,
                                           0x1.88b975c98c1fbp-14, -0x1.10c476251c11ap-15, 0x1.e257c888887b7p-18});
  Expr limited = lesser(lift(t, is_f32(t) ? 10.0 : 20.0), t), twice = limited + limited;
  Expr n = round_even(twice * kLog2E), r = fma(n, -kLn2, twice);
  Expr e = scale_normal(fma(fma(exp_tail(r), r, 1.0), r, 1.0), n);
  return {t < (is_f32(t) ? 1.0 : 0.5625), p * square, fma(1.0 / (e + 1.0), -2.0, 1.0)};
}

}  // namespace

Expr tanh(Expr x) {
  Expr t = abs(x);
  auto [small, tail, large] = tanh_parts(t);
  return copysign(select(small, fma(tail, t, t), large), x);
}

Expr tanhshrink(Expr x) {
  return in_double(
      [](Expr v) {
        Expr t = abs(v);
        auto [small, tail, large] = tanh_parts(t);
        return select(eq(v, 0.0), 0.0, copysign(select(small, -(tail * t), t - large), v));
      },
      x);
}

namespace {

// For t >= 1: 2^(n-1) (m +- 4^-n / m), e^t = 2^n m.
Expr half_exponential(Expr t, double sign) {
  auto [n, m] = exp_pair(t);
  Expr inverse = scale(1.0 / (m.high + m.low), n * -2.0);
  return scale(m.high + fma(inverse, sign, m.low), n - 1.0);
}

// sinh with m = e^|x| - 1: (m + m / (m + 1)) / 2. Past the overflow of e^|x|, e^(|x| / 2) / 2 * e^(|x| / 2) has none.
Expr sinh_f64(Expr x) {
  Expr t = abs(x), m = expm1(t), half = exp(t * 0.5);
  return copysign(select(t > 709.0, half * 0.5 * half, (m + m / (m + 1.0)) * 0.5), x);
}

Expr cosh_f64(Expr x) {
  Expr t = abs(x), e = exp(t), half = exp(t * 0.5);
  return select(t > 709.0, half * 0.5 * half, fma(e, 0.5, 0.5 / e));
}

}  // namespace

Expr sinh(Expr x) {
  if (!is_f32(x)) return sinh_f64(x);
  Expr t = abs(x), square = t * t;
  Expr small = fma(polynomial(square, {0x1.555556p-3, 0x1.111114p-7, 0x1.a002e8p-13, 0x1.7a0c16p-19}) * square, t, t);
  return copysign(select(t < 1.0, small, half_exponential(lesser(lift(x, 91.0), t), -1)), x);
}

Expr cosh(Expr x) { return is_f32(x) ? half_exponential(lesser(lift(x, 91.0), abs(x)), 1) : cosh_f64(x); }

}  // namespace ingot::codegen::math
