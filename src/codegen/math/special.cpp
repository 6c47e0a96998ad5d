// Inverse error function and the gamma function's logarithm and its derivative, in f64 (f32 through it).
// erfinv: over its argument a function of w = -log(1 - x^2) (M. Giles, Approximating the erfinv function, GPU Computing
// Gems 2, 2011); of f64 that is a start, then Halley's steps.
// lgamma, digamma: Stirling's series (M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 6.1.41, 6.3.18)
// after shifting the argument up by 8, and the reflection formulas below zero.
#include "codegen/math/pair.h"

namespace ingot::codegen::math {
namespace {

constexpr double kPi = 0x1.921fb54442d18p1;

// For t in [0, 1): a start that is good to 2^-20 (2^-9 past 1 - 2^-24), then steps that triple the correct digits.
Expr erfinv_positive(Expr t) {
  Expr w = -log1p(t * -t);
  Expr near = polynomial(w - 2.5, {1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
                                   -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08});
  Expr far = polynomial(codegen::sqrt(w) - 3.0, {2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
                                                 -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257});
  Expr y = t * select(w < 5.0, near, far);
  // erfc y ~ exp(-y^2) / (y sqrt pi)
  y = select(w > 16.0, codegen::sqrt(w + 0.693 - log(w * kPi) * 0.5), y);
  for (int step = 0; step < 2; ++step) {
    Expr error = select(t < 0.5, erf(y) - t, (1.0 - t) - erfc(y));
    Expr f = error * (exp(y * y) * 0x1.c5bf891b4ef6bp-1);  // over erf'
    y = y - f / fma(y, f, 1.0);
  }
  return y;
}

// For t in [0, 1 - 2^-24], as an f32 has it: within 2^-35, through the points of Chebyshev.
Expr erfinv_positive_f32(Expr t) {
  Expr w = -log(fma(-t, t, 1.0));
  Expr near = polynomial(
      w - 2.5, {1.5014093511310715, 0.24664027674226105, -0.004177318042578073, -0.0012527078778638292,
                0.00021825108169578578, -4.996157075714713e-06, -3.417409529690375e-06, 4.788011625385882e-07,
                1.3782110981667457e-08, -1.0897168657016768e-08, 8.198350424588279e-10, 1.2861572678730156e-10,
                -2.0518409614330562e-11, -2.7960410484332195e-13});
  Expr far = polynomial(codegen::sqrt(w) - 3.125,
                        {2.9583201502315455, 1.0037186918201693, 0.007047885511530918, -0.005301013359996793,
                         0.003794398901173853, -0.0025198271754998456, 0.0012608149063740824, -0.0003290816639819233,
                         -8.997982287755968e-05, 0.0001376103397934899, -5.839696247112599e-05, -5.710196604959791e-07,
                         1.1656962829772648e-05, -3.824368764389496e-06});
  return t * select(w < 5.0, near, far);
}

Expr erfinv_with(Expr x, Expr (*positive)(Expr)) {
  Expr t = abs(x), limited = lesser(lift(x, 0x1.fffffffffffffp-1), t);
  Expr y = select(eq(t, 0.0), t, positive(limited));
  y = select(t < 1.0, y, select(eq(t, 1.0), kInfinity, lift(x, kNaN)));
  return copysign(y, x);
}

/// x > 0 shifted to at least 8: log and derivative of log of x (x + 1) ... (x + 7), where it was shifted.
struct Shifted {
  Expr x, product, derivative;  // derivative: of the product
};
Shifted shift_up(Expr x) {
  Expr low = x < 8.0, product = x, derivative = lift(x, 1.0);
  for (int k = 1; k < 8; ++k) {
    Expr factor = x + static_cast<double>(k);
    derivative = fma(derivative, factor, product);
    product = product * factor;
  }
  return {select(low, x + 8.0, x), select(low, product, 1.0), select(low, derivative, 0.0)};
}

// x > 0.
Expr lgamma_positive(Expr x) {
  auto [z, product, derivative] = shift_up(x);
  Expr inverse = 1.0 / z, square = inverse * inverse;
  Expr series = inverse * polynomial(square, {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188,
                                              -691.0 / 360360, 1.0 / 156, -3617.0 / 122400});
  Expr y = fma(z - 0.5, log(z) - 1.0, 0x1.acfe390c97d69p-2) + (series - log(product));
  // At its zeros its own series (Abramowitz and Stegun 6.1.33); log gamma(2 + d) = log(1 + d) + log gamma(1 + d).
  Expr second = x > 1.5, d = x - select(second, lift(x, 2.0), 1.0);
  Expr near =
      d * polynomial(d, {-0x1.2788cfc6fb619p-1, 0x1.a51a6625307d3p-1, -0x1.9a4d55beab2d7p-2, 0x1.151322ac7d848p-2,
                         -0x1.a8b9c17aa6149p-3, 0x1.5b40cb100c306p-3, -0x1.2703a1dcea3aep-3, 0x1.010b36af86397p-3,
                         -0x1.c806706d57db4p-4, 0x1.9a01e385d5f8fp-4, -0x1.748c33114c6d6p-4, 0x1.556ad63243bc4p-4,
                         -0x1.3b1d971fc5985p-4, 0x1.2496df8320c5fp-4, -0x1.11133476e7fep-4, 0x1.00010064cdeb2p-4,
                         -0x1.e1e2d311e8abdp-5});
  near = near + select(second, log1p(d), 0.0);
  return select(abs(d) < 0.1, near, y);
}

Expr digamma_positive(Expr x) {
  auto [z, product, derivative] = shift_up(x);
  Expr inverse = 1.0 / z, square = inverse * inverse;
  Expr series = square * polynomial(square, {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760,
                                             1.0 / 12, -3617.0 / 8160});
  return log(z) - fma(inverse, 0.5, series) - derivative / product;
}

// log |gamma(x)| = log(pi / |x sin(pi x)|) - log gamma(-x); infinite at the poles.
Expr lgamma_f64(Expr x) {
  Expr t = abs(x), y = lgamma_positive(t);
  Expr fraction = x - round_even(x), below = abs(sin(fraction * kPi)) * t;
  Expr reflected = select(eq(fraction, 0.0), kInfinity, log(kPi / below) - y);
  Expr tiny = t < 0x1p-60;
  return select(eq(t, kInfinity), t, select(tiny, -log(t), select(x < 0.0, reflected, y)));
}

// digamma(x) = digamma(1 - x) - pi cot(pi x); PyTorch's values at the poles: NaN below zero, infinity at zero.
Expr digamma_f64(Expr x) {
  Expr left = x < 0.0, y = digamma_positive(select(left, 1.0 - x, x));
  Expr fraction = x - round_even(x), angle = fraction * kPi;
  Expr reflected = select(eq(fraction, 0.0), kNaN, y - kPi * (cos(angle) / sin(angle)));
  y = select(left, reflected, y);
  return select(eq(x, 0.0), copysign(lift(x, kInfinity), -x), select(eq(x, kInfinity), x, y));
}

}  // namespace

Expr erfinv(Expr x) {
  if (x.type() == Type::f64) return erfinv_with(x, erfinv_positive);
  return in_double([](Expr v) { return erfinv_with(v, erfinv_positive_f32); }, x);
}
Expr lgamma(Expr x) { return in_double(lgamma_f64, x); }
Expr digamma(Expr x) { return in_double(digamma_f64, x); }

}  // namespace ingot::codegen::math
