// Comparison, logic, bits, minimum and maximum, choice by a mask, conversion and copies.
#include <cmath>

#include "codegen/elementwise/definitions.h"

namespace ingot::codegen::define {
namespace {

Expr truth(Expr x) { return convert(x, Type::mask); }

// Bools are ordered: false < true.
Expr less(Expr a, Expr b) { return a.type() == Type::mask ? ~a & b : a < b; }
Expr equal_values(Expr a, Expr b) { return a.type() == Type::mask ? ~(a ^ b) : codegen::eq(a, b); }

Expr smaller(Expr a, Expr b) { return a.type() == Type::mask ? a & b : min(a, b); }
Expr larger(Expr a, Expr b) { return a.type() == Type::mask ? a | b : max(a, b); }

// A number wins over NaN.
Expr number_of(Expr a, Expr b, Expr otherwise) { return select(is_nan(a), b, select(is_nan(b), a, otherwise)); }

// A shift by as many bits as there are, or by a negative number, shifts everything out.
struct Shift {
  Expr amount, out;
};
Shift shift_of(const ElementwiseContext& c) {
  Expr by = c.operands[1];
  int64_t width = 8 * ingot::size_of(c.compute);
  Expr out = (by < 0) | (by >= width);
  return {select(out, lift(by, 0), by), out};
}

Expr test(const ElementwiseContext& c, Expr (*of_float)(Expr)) {
  return floating(c) ? of_float(c.operands[0]) : c.builder.truth(false);
}

double greatest_number(DType d) {
  switch (d) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

Expr eq(const ElementwiseContext& c) { return equal_values(c.operands[0], c.operands[1]); }
// True for NaN, unlike the others.
Expr ne(const ElementwiseContext& c) {
  Expr a = c.operands[0], b = c.operands[1];
  return boolean(c) ? a ^ b : codegen::ne(a, b);
}
Expr lt(const ElementwiseContext& c) { return less(c.operands[0], c.operands[1]); }
Expr le(const ElementwiseContext& c) {
  Expr a = c.operands[0], b = c.operands[1];
  return boolean(c) ? ~a | b : a <= b;
}
Expr gt(const ElementwiseContext& c) { return less(c.operands[1], c.operands[0]); }
Expr ge(const ElementwiseContext& c) {
  Expr a = c.operands[0], b = c.operands[1];
  return boolean(c) ? a | ~b : b <= a;
}

// A number is true where it is not zero; NaN is true.
Expr logical_and(const ElementwiseContext& c) { return truth(c.operands[0]) & truth(c.operands[1]); }
Expr logical_or(const ElementwiseContext& c) { return truth(c.operands[0]) | truth(c.operands[1]); }
Expr logical_xor(const ElementwiseContext& c) { return truth(c.operands[0]) ^ truth(c.operands[1]); }
Expr logical_not(const ElementwiseContext& c) { return ~truth(c.operands[0]); }

Expr bitwise_and(const ElementwiseContext& c) { return c.operands[0] & c.operands[1]; }
Expr bitwise_or(const ElementwiseContext& c) { return c.operands[0] | c.operands[1]; }
Expr bitwise_xor(const ElementwiseContext& c) { return c.operands[0] ^ c.operands[1]; }
Expr bitwise_not(const ElementwiseContext& c) { return ~c.operands[0]; }

Expr bitwise_left_shift(const ElementwiseContext& c) {
  auto [by, out] = shift_of(c);
  Expr y = c.operands[0] << by;
  return select(out, lift(y, 0), y);
}

// Arithmetic: what was shifted out of a negative number leaves -1.
Expr bitwise_right_shift(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  auto [by, out] = shift_of(c);
  Expr gone = select(x < 0, lift(x, -1), lift(x, 0));
  return select(out, gone, shift_right_arithmetic(x, by));
}

// NaN wins, -0 < +0.
Expr maximum(const ElementwiseContext& c) { return larger(c.operands[0], c.operands[1]); }
Expr minimum(const ElementwiseContext& c) { return smaller(c.operands[0], c.operands[1]); }

Expr fmax(const ElementwiseContext& c) {
  Expr a = c.operands[0], b = c.operands[1], y = larger(a, b);
  return floating(c) ? number_of(a, b, y) : y;
}
Expr fmin(const ElementwiseContext& c) {
  Expr a = c.operands[0], b = c.operands[1], y = smaller(a, b);
  return floating(c) ? number_of(a, b, y) : y;
}

// Either bound may be absent; an upper bound wins over a lower one above it. NaN stays, and a NaN bound wins.
Expr clamp(const ElementwiseContext& c) {
  Expr y = c.operands[0], low = c.operands[1], high = c.operands[2];
  if (low.present()) y = larger(y, low);
  return high.present() ? smaller(y, high) : y;
}
Expr clamp_min(const ElementwiseContext& c) { return larger(c.operands[0], c.operands[1]); }
Expr clamp_max(const ElementwiseContext& c) { return smaller(c.operands[0], c.operands[1]); }

Expr isnan(const ElementwiseContext& c) { return test(c, is_nan); }
Expr isinf(const ElementwiseContext& c) {
  return test(c, [](Expr x) { return codegen::eq(codegen::abs(x), kInfinity); });
}
Expr isposinf(const ElementwiseContext& c) {
  return test(c, [](Expr x) { return codegen::eq(x, kInfinity); });
}
Expr isneginf(const ElementwiseContext& c) {
  return test(c, [](Expr x) { return codegen::eq(x, -kInfinity); });
}
Expr isfinite(const ElementwiseContext& c) {
  return floating(c) ? codegen::abs(c.operands[0]) < kInfinity : c.builder.truth(true);
}
// Of -0 and of a NaN too: the bit.
Expr signbit(const ElementwiseContext& c) {
  if (boolean(c)) return c.builder.truth(false);
  return floating(c) ? codegen::ne(sign_bit(c.operands[0]), 0) : c.operands[0] < 0;
}

// 0 below zero and for NaN, `values` at zero, 1 above.
Expr heaviside(const ElementwiseContext& c) {
  Expr x = c.operands[0], at_zero = c.operands[1];
  if (boolean(c)) return x | at_zero;
  return select(codegen::eq(x, 0), at_zero, select(x > lift(x, 0), lift(x, 1), lift(x, 0)));
}

// Infinities become the greatest and lowest numbers of the dtype, unless values are given; NaN 0.
Expr nan_to_num(const ElementwiseContext& c) {
  Expr x = c.operands[0];
  if (!floating(c)) return x;
  double greatest = greatest_number(c.compute);
  auto given = [&](int i, double otherwise) { return c.operands[i].present() ? c.operands[i] : lift(x, otherwise); };
  Expr y = select(codegen::eq(x, kInfinity), given(2, greatest), x);
  y = select(codegen::eq(x, -kInfinity), given(3, -greatest), y);
  return select(is_nan(x), given(1, 0), y);
}

Expr where(const ElementwiseContext& c) { return select(c.operands[0], c.operands[1], c.operands[2]); }
Expr masked_fill(const ElementwiseContext& c) { return select(c.operands[1], c.operands[2], c.operands[0]); }

// The conversion itself is the last step of every definition.
Expr cast(const ElementwiseContext& c) { return c.operands[0]; }
Expr clone(const ElementwiseContext& c) { return c.operands[0]; }
Expr copy(const ElementwiseContext& c) { return c.operands[1]; }
Expr fill(const ElementwiseContext& c) { return c.operands[1]; }

}  // namespace ingot::codegen::define
