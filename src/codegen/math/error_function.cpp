// Error functions. f32: an odd polynomial near zero, else 1 - 2^-v(t) with a polynomial v, since log erfc is smooth.
// Where relative accuracy counts, and in f64: M. Shepherd and J. Laframboise, Chebyshev approximation of (1 + 2x)
// exp(x^2) erfc x, Math. Comp. 36 (1981), with polynomials of our own (tools/minimax.py).
#include "codegen/elementwise/definitions.h"
#include "codegen/math/pair.h"

namespace ingot::codegen::math {
namespace {

struct Power {
  Expr n, m;  // 2^-v = (1 + m) 2^n
};

Power power_of_two(Expr v) {
  Expr n = round_even(-v), r = -v - n;
  return {n, r * exp2_tail(r)};
}

// erf x = x + x * tail(x^2) for |x| <= 0.95.
Expr erf_tail(Expr square) {
  return polynomial(square, {0x1.06eba8p-3, -0x1.812742p-2, 0x1.ce2daap-4, -0x1.b80684p-6, 0x1.547bf4p-8,
                             -0x1.a7ac36p-11, 0x1.548882p-14});
}

Expr erf_f32(Expr x) {
  Expr t = abs(x), small = fma(erf_tail(t * t), t, t);
  // v to more than its last place: the fraction of its exponent takes the rest.
  Expr limited = lesser(lift(x, 4.0), t), slope = polynomial(limited, {0x1.a06f8ep0, 0x1.d6d2dcp-1, 0x1.328328p-3,
                                                                       -0x1.0599b8p-5, 0x1.1d8e06p-8, -0x1.24df68p-12});
  Expr v = fma(limited, slope, 0x1.587d46p-12), v_low = fma(limited, slope, 0x1.587d46p-12 - v);
  Expr n = round_even(-v), r = (-v - n) - v_low, power = scale_normal(lift(x, -1.0), n);
  Expr large = fma(power, r * exp2_tail(r), power + 1.0);
  return copysign(select(t < 0.95, small, large), x);
}

// exp(t^2) erfc t for 1/2 <= t <= 11 from 1 + 2t: a polynomial in u = (t - 2) / (t + 2), and both quotients from one.
Pair scaled_erfc_f32(Expr t) {
  Pair linear = fast_sum(t + t, lift(t, 1.0));
  Expr above = t + 2.0, inverse = 1.0 / (above * linear.high);
  Expr u = (t - 2.0) * (linear.high * inverse), v = above * inverse;
  v = fma(fma(-v, linear.high, 1.0) - v * linear.low, v, v);
  Expr v_low = fma(-v, linear.high, 1.0) - v * linear.low;  // relative
  Expr rise = u * polynomial(u, {-0x1.7bf5dcp-4, -0x1.5407f8p-3, 0x1.4ff8d6p-3, -0x1.bc195ap-5, -0x1.065b74p-7,
                                 0x1.1bc078p-7, 0x1.2d422p-10, -0x1.4bdd4ap-10, -0x1.def092p-13});
  Expr p = rise + 0x1.46e80ep0, p_low = rise - (p - 0x1.46e80ep0) + 0x1.872276p-27;
  Pair product = math::product(v, p);
  product.low = fma(v, p_low, fma(product.high, v_low, product.low));
  return product;
}

/// e^exponent * factor, rounded once.
Expr exp_times(Pair exponent, Pair factor) {
  auto [n, m] = exp_pair(exponent.high, exponent.low);
  return scale(fma(m.high, factor.high, fma(m.high, factor.low, m.low * factor.high)), n);
}

/// erfc t for 1/2 <= t <= 11 from t^2.
Expr erfc_positive_f32(Pair square, Expr t) { return exp_times({-square.high, -square.low}, scaled_erfc_f32(t)); }

/// erfc x for |x| <= 0.65.
Pair erfc_small_f32(Expr x) {
  Pair rest = fast_sum(lift(x, 1.0), -x);
  return {rest.high, fma(erf_tail(x * x), -x, rest.low)};
}

Expr erfc_f32(Expr x) {
  Expr t = lesser(lift(x, 10.5), abs(x)), tail = erfc_positive_f32(product(t, t), greater(lift(x, 0.5), t));
  Pair small = erfc_small_f32(x);
  return select(t < 0.65, small.high + small.low, select(x < 0.0, 2.0 - tail, tail));
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

constexpr double kInverseRootPi = 0x1.20dd750429b6dp-1;

// exp(t^2) erfc t of large t: 1 / (t sqrt pi) (1 - 1/2 t^-2 + 3/4 t^-4 - 15/8 t^-6 ...). f32: from 10 on, f64:
// from 27.5.
Expr scaled_erfc_far(Expr t) {
  constexpr double kSmall = 0x1p-20;  // keeps the low parts of what is nearly too small
  t = t * kSmall;
  Expr q = 1.0 / t, near = q * kSmall, w = near * near;
  Expr rest = w * polynomial(w, {-0.5, 0.75, -1.875, 6.5625, -29.53125, 162.421875});
  const double high = t.type() == Type::f32 ? static_cast<float>(kInverseRootPi) : kInverseRootPi;
  Expr q_low = fma(-q, t, 1.0) * q;
  Expr scaled = fma(q, high, fma(q, fma(rest, high, kInverseRootPi - high), q_low * high));
  return select(t < kInfinity, scaled * kSmall, q);
}

// Below zero: 2 exp(x^2) - exp(x^2) erfc |x|.
Expr erfcx_f32(Expr x) {
  Expr t = abs(x), near = lesser(lift(x, 10.0), t);
  Pair square = product(near, near), tail = scaled_erfc_f32(greater(lift(x, 0.5), near));
  auto [n, m] = exp_pair(square.high, square.low);
  Expr twice = scale(m.high, n + 1.0);
  Pair below = fast_sum(twice, -tail.high);
  Expr negative = select(twice < kInfinity, below.high + (below.low + (scale(m.low, n + 1.0) - tail.low)), twice);
  Expr positive = select(t < 10.0, tail.high + tail.low, scaled_erfc_far(t));
  Pair small = erfc_small_f32(x);
  Expr central = exp_times(square, fast_sum(small.high, small.low));
  return select(t < 0.5, central, select(x < 0.0, negative, positive));
}

Expr erfcx_f64(Expr x) {
  Expr t = abs(x), square = t * t, e = exp(square);
  Expr power = select(e < kInfinity, fma(e, fma(t, t, -square), e), e);
  Expr positive = select(t < 27.5, scaled_erfc(lesser(lift(x, 27.5), t)) / fma(t, 2.0, 1.0), scaled_erfc_far(t));
  Expr small = power * (1.0 - erf_small(x));
  return select(t < 0.5, small, select(x < 0.0, fma(power, 2.0, -positive), positive));
}

}  // namespace

Expr erf(Expr x) { return x.type() == Type::f32 ? erf_f32(x) : erf_f64(x); }

Expr erfc(Expr x) { return x.type() == Type::f32 ? erfc_f32(x) : erfc_f64(x); }

// f32: 2^-v down to -5, below by erfc; above 5, where its error grows, less and less of it is left beside 1.
Expr normal_cdf(Expr x) {
  constexpr double kRootHalf = 0x1.6a09e667f3bcdp-1;
  if (x.type() == Type::f64) return erfc_f64(x * -kRootHalf) * 0.5;
  Expr t = abs(x);
  Expr v = polynomial(t, {0x1p0, 0x1.26aed4p0, 0x1.d63c04p-2, 0x1.adc3dcp-5, -0x1.c8de56p-8, 0x1.cbe19ap-17,
                          0x1.22470cp-12, -0x1.42b888p-14, 0x1.7b8276p-17, -0x1.ed046cp-21, 0x1.15fd74p-25});
  auto [n, m] = power_of_two(lesser(lift(x, 100.0), v));
  Expr lower = scale_normal(m + 1.0, n);
  Expr usual = select(x > 0.0, 1.0 - lower, lower);
  return x.builder->rare(x < -5.0, usual, [&] {
    // Where nothing is left, numbers too small to be held would take a hundred times as long.
    Expr nothing = t >= 14.5, limited = select(nothing, 1.0, t), half = limited * 0.5;
    return select(nothing, 0.0, erfc_positive_f32(product(limited, half), limited * kRootHalf) * 0.5);
  });
}

}  // namespace ingot::codegen::math

namespace ingot::codegen::define {
// exp(x^2) erfc x.
Expr erfcx(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  return x.type() == Type::f32 ? math::erfcx_f32(x) : math::erfcx_f64(x);
}
}  // namespace ingot::codegen::define
