// Sums, products, quotients, powers and remainders. Integers wrap; dividing one by zero gives 0 (callers check for it
// first).
#include <bit>

#include "codegen/elementwise/definitions.h"

namespace ingot::codegen::define {
namespace {

// a + factor * b, rounded once for floats. On bools: or, with the factor as a condition.
Expr sum_scaled(const ElementwiseContext& c, Expr a, Expr b, Expr factor) {
  if (boolean(c)) return a | (b & factor);
  return floating(c) ? fma(b, factor, a) : a + b * factor;
}

Expr product(const ElementwiseContext& c, Expr a, Expr b) { return boolean(c) ? a & b : a * b; }

Expr zero(Expr like) { return lift(like, 0); }

// The sign of the divisor, as in Python.
Expr floor_modulo(Expr b, Expr m) {
  Expr other_sign = (m < zero(m)) ^ (b < zero(b));
  return select(ne(m, zero(m)) & other_sign, m + b, m);
}

Expr integer_remainder(Expr a, Expr b) { return a - (a / b) * b; }

// PyTorch's: from the exact remainder, so that floor_divide and remainder agree; a zero quotient keeps its sign.
Expr floor_quotient(const ElementwiseContext& c, Expr a, Expr b) {
  if (!floating(c)) {
    Expr q = a / b, inexact = ne(q * b, a) & ((a < 0) ^ (b < 0)) & ne(b, 0);
    return q - convert(inexact, q.type());
  }
  Expr m = math::fmod(a, b), plain = a / b;
  Expr q = (a - m) / b;
  q = select(ne(m, 0.0) & ((b < 0.0) ^ (m < 0.0)), q - 1.0, q);
  Expr whole = floor(q);
  whole = select(q - whole > 0.5, whole + 1.0, whole);
  return select(eq(b, 0.0), plain, select(eq(q, 0.0), copysign(zero(a), plain), whole));
}

Expr trunc_quotient(const ElementwiseContext& c, Expr a, Expr b) { return floating(c) ? trunc(a / b) : a / b; }

// Squaring and multiplying, modulo 2^width. A negative exponent leaves what truncation leaves of the fraction.
Expr integer_power(Expr base, Expr exponent) {
  Builder& b = *base.builder;
  Expr one = lift(base, 1), result = one, square = base;
  int bits = size_of(base.type()) == 4 ? 31 : 63;
  if (b.is_constant(exponent.value)) bits = std::bit_width(b[exponent.value].imm);
  for (int bit = 0; bit < bits; ++bit) {
    if (bit) square = square * square;
    result = select(ne(exponent & (int64_t(1) << bit), 0), result * square, result);
  }
  Expr odd = ne(exponent & 1, 0);
  Expr fraction = select(eq(base, 1), one, select(eq(base, -1), select(odd, base, one), zero(base)));
  return select(exponent < 0, fraction, result);
}

// Stein's binary algorithm (1967) in a fixed number of steps: b always holds an odd multiple of the common power of
// two, and each step halves a, so that the bits of both together become fewer by one. Magnitudes are compared as signed
// numbers: 2^63 is odd only where the other number is 0 or itself.
Expr greatest_common_divisor(const ElementwiseContext& c) {
  Expr a = codegen::abs(c.operands[0]), b = codegen::abs(c.operands[1]);
  Expr either = a | b, power = either & -either;
  Expr even = eq(b & power, 0), first = a;
  a = select(even, b, a);
  b = select(even, first, b);
  for (int64_t step = 0; step < 16 * size_of(c.compute) - 1; ++step) {
    Expr odd = ne(a & power, 0), swapped = odd & (a < b), apart = codegen::abs(a - b);
    b = select(swapped, a, b);
    a = shift_right_logical(select(odd, apart, a), 1);
  }
  return b;
}

}  // namespace

Expr add(const ElementwiseContext& c) { return sum_scaled(c, c.operands[0], c.operands[1], c.operands[2]); }
Expr sub(const ElementwiseContext& c) { return sum_scaled(c, c.operands[0], c.operands[1], -c.operands[2]); }
Expr rsub(const ElementwiseContext& c) { return sum_scaled(c, c.operands[1], c.operands[0], -c.operands[2]); }
Expr mul(const ElementwiseContext& c) { return product(c, c.operands[0], c.operands[1]); }

Expr div(const ElementwiseContext& c) {
  Expr a = c.operands[0], b = c.operands[1];
  switch (c.attributes[0].integer) {  // {none|floor|trunc}
    case 0:
      return a / b;
    case 1:
      return floor_quotient(c, a, b);
    default:
      return trunc_quotient(c, a, b);
  }
}

Expr floor_divide(const ElementwiseContext& c) { return floor_quotient(c, c.operands[0], c.operands[1]); }

Expr fmod(const ElementwiseContext& c) {
  Expr a = c.operands[0], b = c.operands[1];
  return floating(c) ? math::fmod(a, b) : integer_remainder(a, b);
}

Expr remainder(const ElementwiseContext& c) { return floor_modulo(c.operands[1], fmod(c)); }

// The row's special exponents are products, quotients and roots, as in PyTorch.
Expr pow(const ElementwiseContext& c) {
  Expr x = c.operands[0], y = c.operands[1];
  if (!floating(c)) return integer_power(x, y);
  auto is = [&](double value) { return c.is_literal(1, value); };
  if (is(0)) return lift(x, 1.0);
  if (is(1)) return x;
  if (is(2)) return x * x;
  if (is(3)) return x * x * x;
  if (is(0.5)) return codegen::sqrt(x);
  if (is(-0.5)) return math::rsqrt(x);
  if (is(-1)) return math::reciprocal(x);
  if (is(-2)) return math::reciprocal(x * x);
  return math::pow(x, y);
}

Expr float_power(const ElementwiseContext& c) { return math::pow(c.operands[0], c.operands[1]); }

Expr neg(const ElementwiseContext& c) { return -c.operands[0]; }
Expr positive(const ElementwiseContext& c) { return c.operands[0]; }
Expr abs(const ElementwiseContext& c) { return codegen::abs(c.operands[0]); }
Expr square(const ElementwiseContext& c) { return c.operands[0] * c.operands[0]; }
Expr reciprocal(const ElementwiseContext& c) { return math::reciprocal(c.operands[0]); }

// -1, 0 or 1; NaN has no sign and gives 0, as in PyTorch.
Expr sign(const ElementwiseContext& c) {
  if (boolean(c)) return c.operands[0];
  Expr x = c.operands[0], none = zero(x);
  return select(x > none, lift(x, 1), select(x < none, lift(x, -1), none));
}
Expr sgn(const ElementwiseContext& c) { return sign(c); }

Expr addcmul(const ElementwiseContext& c) {
  Expr scaled = product(c, c.operands[3], c.operands[1]);
  return sum_scaled(c, c.operands[0], c.operands[2], scaled);
}

Expr addcdiv(const ElementwiseContext& c) { return fma(c.operands[1] / c.operands[2], c.operands[3], c.operands[0]); }

Expr gcd(const ElementwiseContext& c) { return greatest_common_divisor(c); }

// 0 where both are: dividing by zero gives 0.
Expr lcm(const ElementwiseContext& c) {
  return codegen::abs(c.operands[0] / greatest_common_divisor(c) * c.operands[1]);
}

// From the nearer end, so that both ends are met exactly.
Expr lerp(const ElementwiseContext& c) {
  Expr a = c.operands[0], b = c.operands[1], weight = c.operands[2];
  Expr near = codegen::abs(weight) < 0.5;
  return fma(b - a, select(near, weight, weight - 1.0), select(near, a, b));
}

// self * 2^other without overflow or loss of bits on the way; an infinite exponent multiplies by 0 or infinity.
Expr ldexp(const ElementwiseContext& c) {
  Expr x = c.operands[0], y = c.operands[1];
  const double up = x.type() == Type::f32 ? 100 : 600;
  Expr small = codegen::abs(x) < 1.0, whole = round_even(math::limit(y, -5000, 5000));
  Expr product = scale(x, select(small, lift(x, up), 0.0)) * math::exp2(y - whole);
  Expr scaled = scale(product, whole - select(small, lift(x, up), 0.0));
  return select(eq(codegen::abs(y), kInfinity), x * max(y, 0.0), scaled);
}

}  // namespace ingot::codegen::define
