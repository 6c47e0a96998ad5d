// Error functions. f32: erf t = 1 - 2^-v(t) and the normal distribution 2^-v(t) with polynomials v, since log erfc is
// smooth; no division and no second branch. f64: Shepherd and Laframboise, Chebyshev approximation of (1 + 2x) exp(x^2)
// erfc x, Math. Comp. 36 (1981), with polynomials of our own (tools/minimax.py).
#include "codegen/math/tails.h"

namespace ingot::codegen::math {
namespace {

struct Power {
  Expr n, m;  // 2^-v = (1 + m) 2^n
};

Power power_of_two(Expr v) {
  Expr n = round_even(-v), r = -v - n;
  return {n, r * exp2_tail(r)};
}

Expr erf_f32(Expr x) {
  Expr t = lesser(lift(x, 4.0), abs(x));
  Expr p = polynomial(t, {-0x1.397e6ap-27, 0x1.d63ecap-1, 0x1.2fab4cp-3, -0x1.c4ac2p-6, -0x1.edd042p-13, 0x1.3b905ap-9,
                          -0x1.defceep-11, 0x1.63d56p-13, -0x1.bf1b2ep-17});
  Expr v = fma(t, 0x1.a0be84p0, t * p);
  auto [n, m] = power_of_two(v);
  Expr one = scale(lift(x, 1.0), -n);  // 1 - (1 + m) 2^n = ((2^-n - 1) - m) 2^n
  return copysign(scale((one - 1.0) - m, n), x);
}

// (1 + 2t) exp(t^2) erfc t as a polynomial in (t - 3.75) / (t + 3.75), 0 <= t <= 27.5.
Expr scaled_erfc(Expr t) {
  return polynomial((t - 3.75) / (t + 3.75),
                    {0x1.3ccda0b5d5dc2p0,   -0x1.1f367683f89a6p-3,  0x1.d5f2948159c55p-9,   0x1.510169d09678ap-4,
                     -0x1.bda9309a286d9p-4, 0x1.7a14188a9ae98p-4,   -0x1.e0d0fa6e066f2p-5,  0x1.d0b0037d6eec8p-6,
                     -0x1.3f603c3298b5ap-7, 0x1.cc3a0e61add61p-10,  0x1.33fb238695c84p-12,  -0x1.303fa43b57d22p-12,
                     0x1.b1445fc439194p-15, 0x1.778bfa471e2b6p-16,  -0x1.8008edfddc0c6p-17, -0x1.057994d08618fp-20,
                     0x1.d6a83c2e59a0cp-20, -0x1.e071e043b9fe4p-25, -0x1.179b4a486e7edp-22, 0x1.709950de70f8ep-26,
                     0x1.5376a188f0b39p-25, -0x1.46d1a829a9302p-29, -0x1.620e89b261483p-28, -0x1.0f966bc68cfd2p-33,
                     0x1.3de819072df7cp-32});
}

// erfc t for t >= 0; exp(-t^2) from the square in two parts.
Expr erfc_positive(Expr t) {
  t = lesser(lift(t, 27.5), t);
  Expr square = t * t, low = fma(t, t, -square);
  Expr e = exp(-square);
  return fma(e, -low, e) * (scaled_erfc(t) / fma(t, 2.0, 1.0));
}

// For |x| <= 1.
Expr erf_small(Expr x) {
  return x * polynomial(x * x,
                        {0x1.20dd750429b6dp0, -0x1.812746b03799dp-2, 0x1.ce2f21a03f8bdp-4, -0x1.b82ce311a9b0dp-6,
                         0x1.565bcceee6a78p-8, -0x1.c02daeb9d5469p-11, 0x1.f9a2970f3b5a1p-14, -0x1.f4c835d5c40d3p-17,
                         0x1.b96ba7c799425p-20, -0x1.5b8ea2c961e7bp-23, 0x1.d3eec75a7140ep-27, -0x1.a275ee476177p-31});
}

Expr erfc_f64(Expr x) {
  Expr t = abs(x), y = erfc_positive(t);
  return select(t < 0.5, 1.0 - erf_small(x), select(x < 0.0, 2.0 - y, y));
}

Expr erf_f64(Expr x) {
  Expr t = abs(x);
  return select(t < 1.0, erf_small(x), copysign(1.0 - erfc_positive(t), x));
}

}  // namespace

Expr erf(Expr x) { return x.type() == Type::f32 ? erf_f32(x) : erf_f64(x); }

Expr erfc(Expr x) { return in_double(erfc_f64, x); }

// In f32 the result is 0 below -6, where it is 1e-9: a wider range would cost degree that x * cdf(x) makes no use of.
Expr normal_cdf(Expr x) {
  if (x.type() == Type::f64) return erfc_f64(x * -0x1.6a09e667f3bcdp-1) * 0.5;
  Expr t = lesser(lift(x, 7.0), abs(x));
  Expr v =
      polynomial(t, {0x1p0, 0x1.26aecap0, 0x1.d63d72p-2, 0x1.ad95aap-5, -0x1.c5f76ep-8, -0x1.337f44p-15, 0x1.46cca2p-12,
                     -0x1.8248acp-14, 0x1.039ba6p-16, -0x1.b26c9ep-20, 0x1.a52526p-24, -0x1.69fc0ap-29});
  auto [n, m] = power_of_two(v);
  Expr lower = select(t > 6.0, 0.0, scale(m + 1.0, n));
  return select(x > 0.0, 1.0 - lower, lower);
}

}  // namespace ingot::codegen::math
