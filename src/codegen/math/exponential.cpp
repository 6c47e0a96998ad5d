// Exponentials: argument reduction by a multiple of ln 2 in two parts (W. J. Cody and W. Waite, Software Manual for the
// Elementary Functions, 1980), minimax polynomials (tools/minimax.py), and scaling by a power of two.
#include "codegen/math/tails.h"

namespace ingot::codegen::math {
namespace {

bool is_f32(Expr x) { return x.type() == Type::f32; }

constexpr double kLog2E = 0x1.71547652b82fep0, kLn2 = 0x1.62e42fefa39efp-1;

struct Reduced {
  Expr n, r;  // x = n ln 2 + r, |r| <= ln 2 / 2, n integral
};

Reduced reduce(Expr x) {
  Expr n = round_even(x * kLog2E);
  bool narrow = is_f32(x);
  // The first product and difference are exact but for the last bits of |n| > 2^10 in f64.
  Expr r = fma(n, narrow ? -0x1.62e43p-1 : -0x1.62e42fefa38p-1, x);
  return {n, fma(n, narrow ? 0x1.05c61p-29 : -0x1.ef35793c7673p-45, r)};
}

// Where results have reached zero, infinity, -1 or 1 for good.
Expr limit_exponent(Expr x, double low32, double high32, double low64, double high64) {
  return is_f32(x) ? limit(x, low32, high32) : limit(x, low64, high64);
}

}  // namespace

Expr exp_tail(Expr r) {
  if (is_f32(r)) return polynomial(r, {0x1.fffffep-2, 0x1.5554aep-3, 0x1.5556c4p-5, 0x1.1229f4p-7, 0x1.6befb8p-10});
  return polynomial(r, {0x1p-1, 0x1.5555555555559p-3, 0x1.5555555555556p-5, 0x1.111111110f6ecp-7, 0x1.6c16c16c18132p-10,
                        0x1.a01a01afb67a7p-13, 0x1.a01a019643e4p-16, 0x1.71ddf8d811d5cp-19, 0x1.27e5094d0b9cfp-22,
                        0x1.af5ddbadc579bp-26, 0x1.1f20fc9fcde93p-29});
}

Expr exp2_tail(Expr r) {
  if (is_f32(r))
    return polynomial(r, {0x1.62e43p-1, 0x1.ebfbdep-3, 0x1.c6af82p-5, 0x1.3b2c04p-7, 0x1.5f0a62p-10, 0x1.430bep-13});
  return polynomial(r, {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58ep-3, 0x1.c6b08d704a0ddp-5, 0x1.3b2ab6fba4ea9p-7,
                        0x1.5d87fe78a404cp-10, 0x1.430912f87497cp-13, 0x1.ffcbfc6dcfabp-17, 0x1.62c0221afee2fp-20,
                        0x1.b524eb6481a18p-24, 0x1.e4cfaf370f9ecp-28, 0x1.e9eceb4a30892p-32, 0x1.c3bd253daa84ap-36});
}

Expr exp(Expr x) {
  auto [n, r] = reduce(limit_exponent(x, -104.5, 89, -746, 710));
  return scale(fma(fma(exp_tail(r), r, 1.0), r, 1.0), n);
}

Expr exp2(Expr x) {
  x = limit_exponent(x, -151, 129, -1076, 1025);
  Expr n = round_even(x), r = x - n;
  return scale(fma(exp2_tail(r), r, 1.0), n);
}

// e^x - 1 = 2^n ((e^r - 1) + (1 - 2^-n)); the sum keeps what r loses in it.
Expr expm1(Expr x) {
  auto [n, r] = reduce(limit_exponent(x, -26, 89, -40, 710));
  Expr whole = 1.0 - scale(lift(x, 1.0), -n);
  Expr sum = whole + r, lost = r - (sum - whole);
  Expr y = scale(sum + fma(exp_tail(r) * r, r, lost), n);
  return bitcast(bitcast(y) | sign_bit(x));  // of -0
}

// With e = e^-|x|, so that nothing overflows.
Expr sigmoid(Expr x) {
  Expr e = exp(bitcast(bitcast(x) | sign_bit(lift(x, -0.0))));
  return select(x < 0.0, e, 1.0) / (e + 1.0);
}

namespace {

// tanh t for t >= 0: t + t * tail below 0.5625, an odd polynomial; 1 - 2 / (e^2t + 1) above. There e^2t needs no second
// part of ln 2, for the result hardly depends on it.
struct TanhParts {
  Expr small, tail, large;
};

TanhParts tanh_parts(Expr t) {
  Expr square = t * t;
  Expr p = is_f32(t)
               ? polynomial(square, {-0x1.55554ap-2, 0x1.110c9ap-3, -0x1.b906dcp-5, 0x1.57e82ap-6, -0x1.929bf2p-8})
               : polynomial(square, {-0x1.5555555555555p-2, 0x1.11111111110b3p-3, -0x1.ba1ba1ba1371fp-5,
                                     0x1.664f488008fb1p-6, -0x1.226e34dc19531p-7, 0x1.d6d3b2815b7fp-9,
                                     -0x1.7da10fd447ddfp-10, 0x1.35391b8b86bafp-11, -0x1.f346a37c9488bp-13,
                                     0x1.88b975c98c1fbp-14, -0x1.10c476251c11ap-15, 0x1.e257c888887b7p-18});
  Expr twice = lesser(lift(t, is_f32(t) ? 20.0 : 40.0), t + t);
  Expr n = round_even(twice * kLog2E), r = fma(n, -kLn2, twice);
  Expr e = scale(fma(fma(exp_tail(r), r, 1.0), r, 1.0), n);
  return {t < 0.5625, p * square, fma(1.0 / (e + 1.0), -2.0, 1.0)};
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

// With m = e^|x| - 1: sinh = (m + m / (m + 1)) / 2. Past the overflow of e^|x|, e^(|x| / 2) / 2 * e^(|x| / 2) has none.
Expr sinh(Expr x) {
  return in_double(
      [](Expr v) {
        Expr t = abs(v), m = expm1(t), half = exp(t * 0.5);
        return copysign(select(t > 709.0, half * 0.5 * half, (m + m / (m + 1.0)) * 0.5), v);
      },
      x);
}

Expr cosh(Expr x) {
  return in_double(
      [](Expr v) {
        Expr t = abs(v), e = exp(t), half = exp(t * 0.5);
        return select(t > 709.0, half * 0.5 * half, fma(e, 0.5, 0.5 / e));
      },
      x);
}

}  // namespace ingot::codegen::math
