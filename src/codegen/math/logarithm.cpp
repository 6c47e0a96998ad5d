// Logarithms: x = 2^e m with m in [sqrt 1/2, sqrt 2), and log m from f = m - 1. f32: a minimax polynomial; f64: by
// s = f / (2 + f), log(1 + f) = f - s (f - R(s^2)) (P. T. P. Tang, Table-driven implementation of the logarithm
// function, 1990).
#include "codegen/math/pair.h"

namespace ingot::codegen::math {
namespace {

struct Parts {
  Expr e, f;  // x = 2^e (1 + f), e as a float
};

// x positive and normal.
Parts split_exponent(Expr x) {
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
  if (is_f32(f)) {
    Expr square = f * f;
    Expr p = polynomial(f, {0x1.555554p-2, -0x1.000226p-2, 0x1.99a00cp-3, -0x1.547256p-3, 0x1.22da2ep-3, -0x1.0d8598p-3,
                            0x1.055da8p-3, -0x1.38bd3cp-4});
    return fma(square * f, p, square * -0.5);
  }
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
  Expr low = f * base.e_low;
  if (is_f32(f)) low = fma(fma(f, f, -(f * f)), -0.5 * base.e_high, low);  // what the square in the tail lost
  Expr small = fma(rest, base.e_high, low);
  if (base.two_low != 0) small = fma(e, base.two_low, small);
  return fma(e, base.two_high, fma(f, base.e_high, small));
}

Expr log_to(Expr x, const Base& base) {
  bool narrow = is_f32(x);
  const double least = narrow ? 0x1p-126 : 0x1p-1022, greatest = narrow ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
  Expr usual = (x >= least) & (x <= greatest);
  auto [e, f] = split_exponent(x);
  return x.builder->rare(~usual, combine(e, f, tail(f), base), [&] {
    // Denormals are scaled up by 2^60; then zero, infinity, and what has no logarithm.
    auto [e, f] = split_exponent(x * 0x1p60);
    Expr y = select(eq(x, 0.0), -kInfinity, combine(e - 60.0, f, tail(f), base));
    return select(x > greatest, x, select(x >= 0.0, y, kNaN));
  });
}

Base natural(Expr x) {
  return is_f32(x) ? Base{0x1.62e4p-1, 0x1.7f7d1cp-20} : Base{0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};
}

}  // namespace

Expr log(Expr x) { return log_to(x, natural(x)); }

// f32: the low part of 1 / ln 2 is smaller by 2^-30, so that the largest errors of either sign are alike.
Expr log2(Expr x) {
  return log_to(
      x, is_f32(x) ? Base{1, 0, 0x1.715476p0, 0x1.3ae0cp-26} : Base{1, 0, 0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56});
}

Expr log10(Expr x) {
  return log_to(x, is_f32(x)
                       ? Base{0x1.3442p-2, -0x1.95ec1p-19, 0x1.bcb7b2p-2, -0x1.5b235ep-27}
                       : Base{0x1.34413509f78p-2, 0x1.fef311f12b358p-46, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57});
}

// 1 + high + low = u + c (D. E. Knuth's sum of two numbers), and f takes c in.
Expr log1p_pair(Pair x) {
  Expr u = x.high + 1.0, v = u - 1.0;
  Expr c = (1.0 - (u - v)) + (x.high - v);
  if (x.low.present()) c = c + x.low;
  auto [e, f] = split_exponent(u);
  Expr low = scale(c, -e), sum = f + low;
  const Base base = natural(x.high);
  Expr lost = (f - sum) + low;
  Expr rest = fma(e, base.two_low, fma(lost, 1.0 - sum, tail(sum)));
  Pair y = fast_sum(e * base.two_high, sum);
  return y.high + (y.low + rest);
}

Expr log1p(Expr x) {
  Expr usual = (x > -1.0) & (x < kInfinity);
  return x.builder->rare(~usual, copysign(log1p_pair({x, {}}), x),
                         [&] { return select(eq(x, -1.0), -kInfinity, select(x > 0.0, x, kNaN)); });
}

// log(1 + e^x) in f32: log(1 + e) with e = e^-|x| from e or (e - 1) / 2, and x where it is positive; every sum keeps
// what it loses.
Expr softplus_f32(Expr x) {
  auto [n, m] = exp_pair(greater(lift(x, -104.5), -abs(x)));
  Pair whole = fast_sum(m.high, m.low);
  Expr e = scale(whole.high, n), e_low = scale(whole.low, n), upper = e > 0.5;
  Expr f = select(upper, fma(e, 0.5, -0.5), e), f_low = select(upper, e_low * 0.5, e_low);
  Expr square = f * f;
  Expr p = polynomial(f, {0x1.5555a4p-2, -0x1.00004p-2, 0x1.9969a4p-3, -0x1.54effp-3, 0x1.288458p-3, -0x1.0d89ccp-3,
                          0x1.ac8ee8p-4, -0x1.7139dep-5});
  Expr rest = fma(f_low, fma(f, f, 1.0 - f), fma(square * f, p, square * -0.5));
  Pair first = fast_sum(select(upper, lift(x, 0x1.62e43p-1), 0.0), select(x > 0.0, lesser(lift(x, 200.0), x), 0.0));
  Pair second = fast_sum(first.high, f);
  Expr low = (first.low + second.low) + (rest + select(upper, lift(x, -0x1.05c61p-29), 0.0));
  return select(x < 100.0, second.high + low, select(is_nan(x), kNaN, x));
}

Expr softplus(Expr x) {
  if (is_f32(x)) return softplus_f32(x);
  return max(x, 0.0) + log1p(exp(-abs(x)));
}

namespace {

// For 1/2 <= t: log(1 + (sqrt(t^2 + 1) - 1 + t)), where past 2^40 the argument is 2t.
Expr asinh_f32(Expr x) {
  Expr t = abs(x), square = t * t;
  Expr small = fma(
      square * polynomial(square, {-0x1.55553cp-3, 0x1.33258p-4, -0x1.6b8f22p-5, 0x1.cc96fp-6, -0x1.ad41c8p-7}), t, t);
  Expr limited = lesser(lift(x, 0x1p40), t);
  Pair power = product(limited, limited), under = sum(power.high, lift(x, 1.0));
  Pair root = sqrt(Pair{under.high, under.low + power.low});
  Pair argument = sum(root.high - 1.0, limited);
  argument.low = argument.low + root.low;
  Expr large = select(t > 0x1p40, log(t) + kLn2, log1p_pair(argument));
  return copysign(select(t < 0.5, small, large), x);
}

// With d = x - 1: log(1 + (d + sqrt(d^2 + 2d))).
Expr acosh_f32(Expr x) {
  Expr d = lesser(lift(x, 0x1p40), x) - 1.0;
  Pair power = product(d, d), under = sum(d + d, power.high);
  Pair root = sqrt(Pair{under.high, under.low + power.low});
  Pair argument = fast_sum(root.high, d);
  Expr y = log1p_pair({argument.high, argument.low + select(d > 0.0, root.low, 0.0)});
  return select(x < 1.0, kNaN, select(x > 0x1p40, log(x) + kLn2, y));
}

// From 0.3 on log(1 + 2t / (1 - t)) / 2.
Expr atanh_f32(Expr x) {
  Expr t = abs(x);
  Pair d = fast_sum(lift(x, 1.0), -t);
  Expr inverse = 1.0 / d.high, twice = t + t, q = twice * inverse;
  Expr q_low = (fma(-q, d.high, twice) - q * d.low) * inverse;
  Expr square = t * t,
       small = fma(square * polynomial(square, {0x1.555532p-2, 0x1.99b652p-3, 0x1.20e76ap-3, 0x1.120816p-3}), t, t);
  Expr y = select(t < 0.3, small, log1p_pair({q, q_low}) * 0.5);
  return copysign(select(t < 1.0, y, select(eq(t, 1.0), kInfinity, lift(x, kNaN))), x);
}

}  // namespace

// Above 2^28 the 1 under the root does not count.
Expr asinh(Expr x) {
  if (is_f32(x)) return asinh_f32(x);
  Expr t = abs(x), square = t * t;
  Expr y = log1p(t + square / (codegen::sqrt(square + 1.0) + 1.0));
  return copysign(select(t > 0x1p28, log(t) + kLn2, y), x);
}

Expr acosh(Expr x) {
  if (is_f32(x)) return acosh_f32(x);
  Expr t = x - 1.0;
  Expr y = select(x > 0x1p28, log(x) + kLn2, log1p(t + codegen::sqrt(fma(t, t, t + t))));
  return select(x < 1.0, kNaN, y);
}

Expr atanh(Expr x) {
  if (is_f32(x)) return atanh_f32(x);
  Expr t = abs(x);
  return copysign(log1p((t + t) / (1.0 - t)) * 0.5, x);
}

}  // namespace ingot::codegen::math
