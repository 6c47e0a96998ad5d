// Roots, exponentials, logarithms, trigonometric functions, rounding and parts of a number.
#include <cmath>

#include "codegen/elementwise/definitions.h"

namespace ingot::codegen::define {
namespace {

constexpr double kPi = 0x1.921fb54442d18p1;

// The next number of a 16-bit float that stands in f32. bf16 has f32's exponents, so a step is one in its last bit; so
// it is for f16 from 2^-14 on, below numbers are multiples of 2^-24.
Expr next_half(DType d, Expr x, Expr away) {
  Expr bits = bitcast(x), last = lift(bits, d == DType::bf16 ? 1 << 16 : 1 << 13);
  Expr outward = bitcast(bits + last), inward = bitcast(bits - last);
  if (d == DType::bf16) return select(away, outward, inward);
  Expr t = codegen::abs(x), step = copysign(lift(x, 0x1p-24), x);
  outward = select(t < 0x1p-14, x + step, outward);
  inward = select(t <= 0x1p-14, x - step, select(codegen::eq(t, kInfinity), copysign(lift(x, 65504.0), x), inward));
  return select(away, outward, inward);
}

// With m the larger: m + log(1 + e^-|a - b|); `small` is that of the difference. Equal infinities stay.
Expr log_of_sum(const ElementwiseContext& c, Expr (*small)(Expr)) {
  Expr a = c.operands[0], b = c.operands[1];
  Expr sum = max(a, b) + small(-codegen::abs(a - b));
  return select(codegen::eq(a, b) & codegen::eq(codegen::abs(a), kInfinity), a, sum);
}

}  // namespace

Expr sqrt(const ElementwiseContext& c) { return codegen::sqrt(c.operands[0]); }
Expr rsqrt(const ElementwiseContext& c) { return math::rsqrt(c.operands[0]); }
Expr exp(const ElementwiseContext& c) { return math::exp(c.operands[0]); }
Expr exp2(const ElementwiseContext& c) { return math::exp2(c.operands[0]); }
Expr expm1(const ElementwiseContext& c) { return math::expm1(c.operands[0]); }
Expr log(const ElementwiseContext& c) { return math::log(c.operands[0]); }
Expr log2(const ElementwiseContext& c) { return math::log2(c.operands[0]); }
Expr log10(const ElementwiseContext& c) { return math::log10(c.operands[0]); }
Expr log1p(const ElementwiseContext& c) { return math::log1p(c.operands[0]); }

// 0 where x is 0, for every y but NaN.
Expr xlogy(const ElementwiseContext& c) {
  Expr x = c.operands[0], y = c.operands[1];
  Expr product = x * math::log(y);
  return select(codegen::eq(x, 0.0) & ~is_nan(y), 0.0, product);
}

Expr logaddexp(const ElementwiseContext& c) {
  return log_of_sum(c, [](Expr d) { return math::log1p(math::exp(d)); });
}
Expr logaddexp2(const ElementwiseContext& c) {
  return log_of_sum(c, [](Expr d) { return math::log1p(math::exp2(d)) * 0x1.71547652b82fep0; });
}

// With eps (not negative), what is below eps becomes eps, and only else what is above 1 - eps becomes that. In f32
// through f64: near 1/2 the logarithm is small, and every rounding before it counts.
Expr logit(const ElementwiseContext& c) {
  Expr x = c.operands[0], eps = c.operands[1];
  if (eps.present()) {
    Expr top = 1.0 - eps;
    x = select(eps < 0.0, x, select(x < eps, eps, select(x > top, top, x)));
  }
  return math::in_double([](Expr v) { return math::log(v / (1.0 - v)); }, x);
}

Expr hypot(const ElementwiseContext& c) { return math::hypot(c.operands[0], c.operands[1]); }
Expr erfinv(const ElementwiseContext& c) { return math::erfinv(c.operands[0]); }
Expr lgamma(const ElementwiseContext& c) { return math::lgamma(c.operands[0]); }
Expr digamma(const ElementwiseContext& c) { return math::digamma(c.operands[0]); }
Expr sin(const ElementwiseContext& c) { return math::sin(c.operands[0]); }
Expr cos(const ElementwiseContext& c) { return math::cos(c.operands[0]); }
Expr tan(const ElementwiseContext& c) { return math::tan(c.operands[0]); }
Expr asin(const ElementwiseContext& c) { return math::asin(c.operands[0]); }
Expr acos(const ElementwiseContext& c) { return math::acos(c.operands[0]); }
Expr atan(const ElementwiseContext& c) { return math::atan(c.operands[0]); }
Expr atan2(const ElementwiseContext& c) { return math::atan2(c.operands[0], c.operands[1]); }
Expr sinh(const ElementwiseContext& c) { return math::sinh(c.operands[0]); }
Expr cosh(const ElementwiseContext& c) { return math::cosh(c.operands[0]); }
Expr tanh(const ElementwiseContext& c) { return math::tanh(c.operands[0]); }
Expr asinh(const ElementwiseContext& c) { return math::asinh(c.operands[0]); }
Expr acosh(const ElementwiseContext& c) { return math::acosh(c.operands[0]); }
Expr atanh(const ElementwiseContext& c) { return math::atanh(c.operands[0]); }
Expr erf(const ElementwiseContext& c) { return math::erf(c.operands[0]); }
Expr erfc(const ElementwiseContext& c) { return math::erfc(c.operands[0]); }

// Of the angle pi * x as the working precision holds it, as in PyTorch; 1 at zero.
Expr sinc(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  Expr quotient = math::in_double([](Expr angle) { return math::sin(angle) / angle; }, x * kPi);
  return select(codegen::eq(x, 0.0), 1.0, quotient);
}

Expr deg2rad(const ElementwiseContext& c) { return c.operands[0] * (kPi / 180); }
Expr rad2deg(const ElementwiseContext& c) { return c.operands[0] * (180 / kPi); }

// Integers are whole.
Expr floor(const ElementwiseContext& c) { return floating(c) ? codegen::floor(c.operands[0]) : c.operands[0]; }
Expr ceil(const ElementwiseContext& c) { return floating(c) ? codegen::ceil(c.operands[0]) : c.operands[0]; }
Expr trunc(const ElementwiseContext& c) { return floating(c) ? codegen::trunc(c.operands[0]) : c.operands[0]; }
Expr frac(const ElementwiseContext& c) { return c.operands[0] - codegen::trunc(c.operands[0]); }

// Halves go to the even neighbour. Decimals: scaled, rounded and scaled back, each step in working precision. Integers
// have none behind the point; of a unit that their type does not hold, they are none.
Expr round(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  int64_t decimals = c.attributes[0].integer;
  if (!floating(c)) {
    if (decimals >= 0) return x;
    if (decimals < (size_of(x.type()) == 4 ? -9 : -18)) return lift(x, 0);
    int64_t unit = 1;
    for (int64_t d = decimals; d < 0; ++d) unit *= 10;
    Expr quotient = x / unit, rest = x - quotient * unit, odd = ne(quotient & 1, 0);
    Expr up = (rest > unit / 2) | (eq(rest, unit / 2) & odd), down = (rest < -unit / 2) | (eq(rest, -unit / 2) & odd);
    return (quotient + convert(up, x.type()) - convert(down, x.type())) * unit;
  }
  if (decimals == 0) return round_even(x);
  double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return decimals < 0 ? round_even(x / power) * power : round_even(x * power) / power;
}

Expr copysign(const ElementwiseContext& c) { return codegen::copysign(c.operands[0], c.operands[1]); }

// The next number of the result's own dtype, of which x is one; from zero the smallest one with the sign of `toward`.
Expr nextafter(const ElementwiseContext& c) {
  Expr x = convert_element(c.operands[0], c.compute), toward = convert_element(c.operands[1], c.compute);
  Expr at_zero = codegen::eq(x, 0.0), away = at_zero | ~((toward > x) ^ (x > 0.0));
  Expr from = select(at_zero, codegen::copysign(x, toward), x), bits = bitcast(from);
  Expr next = is_half(c.compute) ? next_half(c.compute, from, away) : bitcast(select(away, bits + 1, bits - 1));
  return select(is_nan(x) | is_nan(toward), kNaN, select(codegen::eq(x, toward), toward, next));
}

}  // namespace ingot::codegen::define
