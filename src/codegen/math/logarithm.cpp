// Logarithms: x = 2^e m with m in [sqrt 1/2, sqrt 2), and log m from f = m - 1. f32: a minimax polynomial; f64: by
// s = f / (2 + f), log(1 + f) = f - s (f - R(s^2)) (P. T. P. Tang, Table-driven implementation of the logarithm
// function, 1990).
#include "codegen/math/math.h"

namespace ingot::codegen::math {
namespace {

bool is_f32(Expr x) { return x.type() == Type::f32; }

struct Parts {
  Expr e, f;  // x = 2^e (1 + f), e as a float
};

// x positive and normal.
Parts split(Expr x) {
  Builder& b = *x.builder;
  bool narrow = is_f32(x);
  Expr low = b.bits(narrow ? Type::i32 : Type::i64, narrow ? 0x3f3504f3 : 0x3fe6a09e667f3bcd);  // sqrt 1/2
  Expr bits = bitcast(x) - low;
  Expr e = shift_right_arithmetic(bits, narrow ? 23 : 52);
  Expr m = bitcast((bits & b.bits(bits.type(), narrow ? 0x7fffff : 0xfffffffffffff)) + low);
  return {convert(e, x.type()), m - 1.0};
}

// log(1 + f) - f
Expr tail(Expr f) {
  if (is_f32(f))
    return f * f *
           polynomial(f, {-0x1.fffff8p-2, 0x1.55555p-2, -0x1.000428p-2, 0x1.99a3fap-3, -0x1.542786p-3, 0x1.2271acp-3,
                          -0x1.0f3736p-3, 0x1.0848eep-3, -0x1.3830ap-4});
  Expr s = f / (f + 2.0), z = s * s;
  Expr r = z * polynomial(z, {0x1.555555555557cp-1, 0x1.9999999985686p-2, 0x1.2492493df21f5p-2, 0x1.c71c54cf19814p-3,
                              0x1.7465bec5d01cp-3, 0x1.39ad54f0b8671p-3, 0x1.2e9ac922b6f2ep-3});
  return s * (r - f);
}

/// ln 2 and 1 to some base, in two parts each. The first part of ln 2 ends in 8 (f32) or 11 zero bits: times e it is
/// exact.
struct Base {
  double two_high, two_low, e_high = 1, e_low = 0;
};

Expr combine(Expr e, Expr f, Expr rest, const Base& base) {
  if (base.e_high == 1) return fma(e, base.two_high, f + fma(e, base.two_low, rest));
  Expr small = fma(f, base.e_low, rest * base.e_high);
  if (base.two_low != 0) small = fma(e, base.two_low, small);
  return fma(e, base.two_high, fma(f, base.e_high, small));
}

Expr log_to(Expr x, const Base& base) {
  bool narrow = is_f32(x);
  const double least = narrow ? 0x1p-126 : 0x1p-1022, greatest = narrow ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
  Expr usual = (x >= least) & (x <= greatest);
  auto [e, f] = split(x);
  return x.builder->rare(~usual, combine(e, f, tail(f), base), [&] {
    // Denormals are scaled up by 2^60; then zero, infinity, and what has no logarithm.
    auto [e, f] = split(x * 0x1p60);
    Expr y = select(eq(x, 0.0), -kInfinity, combine(e - 60.0, f, tail(f), base));
    return select(x > greatest, x, select(x >= 0.0, y, kNaN));
  });
}

Base natural(Expr x) {
  return is_f32(x) ? Base{0x1.62e4p-1, 0x1.7f7d1cp-20} : Base{0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};
}

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

}  // namespace

Expr log(Expr x) { return log_to(x, natural(x)); }

Expr log2(Expr x) {
  return log_to(
      x, is_f32(x) ? Base{1, 0, 0x1.715476p0, 0x1.4ae0cp-26} : Base{1, 0, 0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56});
}

Expr log10(Expr x) {
  return log_to(x, is_f32(x)
                       ? Base{0x1.3442p-2, -0x1.95ec1p-19, 0x1.bcb7b2p-2, -0x1.5b235ep-27}
                       : Base{0x1.34413509f78p-2, 0x1.fef311f12b358p-46, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57});
}

// 1 + x = u + c exactly (D. E. Knuth's sum of two numbers), and f takes c in.
Expr log1p(Expr x) {
  Expr u = x + 1.0, v = u - 1.0;
  Expr c = (1.0 - (u - v)) + (x - v);
  auto [e, f] = split(u);
  Expr low = scale(c, -e), sum = f + low;
  Expr rest = tail(sum) + ((f - sum) + low);
  Expr y = combine(e, sum, rest, natural(x));
  Expr usual = (x > -1.0) & (x < kInfinity);
  return x.builder->rare(~usual, copysign(y, x),
                         [&] { return select(eq(x, -1.0), -kInfinity, select(x > 0.0, x, kNaN)); });
}

// Above 2^28 the 1 under the root does not count.
Expr asinh(Expr x) {
  return in_double(
      [](Expr v) {
        Expr t = abs(v), square = t * t;
        Expr y = log1p(t + square / (sqrt(square + 1.0) + 1.0));
        return copysign(select(t > 0x1p28, log(t) + kLn2, y), v);
      },
      x);
}

Expr acosh(Expr x) {
  return in_double(
      [](Expr v) {
        Expr t = v - 1.0;
        Expr y = select(v > 0x1p28, log(v) + kLn2, log1p(t + sqrt(fma(t, t, t + t))));
        return select(v < 1.0, kNaN, y);
      },
      x);
}

Expr atanh(Expr x) {
  return in_double(
      [](Expr v) {
        Expr t = abs(v);
        return copysign(log1p((t + t) / (1.0 - t)) * 0.5, v);
      },
      x);
}

}  // namespace ingot::codegen::math
