// Sums, products, quotients and powers.
#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

/// self + sign * alpha * other.
void sum_scaled(ReferenceContext& c, std::string_view a, std::string_view b, int64_t sign) {
  DType compute = c.meeting_dtype({a, b});
  double factor =
      static_cast<double>(sign) * to_working(c, is_floating(compute) ? compute : DType::f64, c.number("alpha"));
  int64_t whole_factor = times(sign, saturate_to(DType::i64, c.number("alpha")));
  const std::string_view names[] = {a, b};
  map(
      c, names, compute, [=](double x, double y) { return x + factor * y; },
      [=](int64_t x, int64_t y) { return plus(x, times(whole_factor, y)); });
}

double floor_quotient(double a, double b) {
  if (b == 0) return a / b;
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

double floor_modulo(double a, double b) {
  double m = std::fmod(a, b);
  return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}

// Dividing the least integer by -1 wraps.
int64_t trunc_quotient(int64_t a, int64_t b) { return b == -1 ? minus(0, a) : a / b; }
int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == -1) return minus(0, a);
  int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
int64_t trunc_modulo(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
int64_t floor_modulo(int64_t a, int64_t b) {
  int64_t m = trunc_modulo(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

template <class Real, class Whole>
void divide(ReferenceContext& c, Real real, Whole whole) {
  const std::string_view names[] = {"self", "other"};
  map(c, names, c.meeting_dtype({"self", "other"}), real, [&](int64_t a, int64_t b) {
    if (b == 0) c.refuse("other", "0", "a divisor that is not zero (integer division)");
    return whole(a, b);
  });
}

/// Squaring and multiplying, modulo 2^64. A negative exponent leaves what truncation leaves.
int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  int64_t result = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result = times(result, base);
    base = times(base, base);
  }
  return result;
}

/// A scalar exponent of 1/2 or -1/2 means the square root, which has no value at -infinity.
double real_power(double base, double exponent, bool scalar) {
  if (scalar && exponent == 0.5) return std::sqrt(base);
  if (scalar && exponent == -0.5) return 1 / std::sqrt(base);
  return std::pow(base, exponent);
}

/// Euclid's, on magnitudes.
int64_t divisor_of(int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a < 0 ? minus(0, a) : a), y = static_cast<uint64_t>(b < 0 ? minus(0, b) : b);
  while (y) {
    uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return static_cast<int64_t>(x);
}

template <class Whole>
void whole_pair(ReferenceContext& c, Whole whole) {
  const std::string_view names[] = {"self", "other"};
  map(
      c, names, c.meeting_dtype({"self", "other"}), [](double, double) { return 0.0; }, whole);
}

}  // namespace

void add(ReferenceContext& c) { sum_scaled(c, "self", "other", 1); }
void sub(ReferenceContext& c) { sum_scaled(c, "self", "other", -1); }
void rsub(ReferenceContext& c) { sum_scaled(c, "other", "self", -1); }

void mul(ReferenceContext& c) {
  map_both(c, {"self", "other"}, [](auto a, auto b) { return times(a, b); });
}

void div(ReferenceContext& c) {
  std::string_view rounding = c.mode("rounding_mode");
  if (rounding == "floor")
    divide(
        c, [](double a, double b) { return floor_quotient(a, b); },
        [](int64_t a, int64_t b) { return floor_quotient(a, b); });
  else if (rounding == "trunc")
    divide(
        c, [](double a, double b) { return std::trunc(a / b); },
        [](int64_t a, int64_t b) { return trunc_quotient(a, b); });
  else
    map_real(c, {"self", "other"}, [](double a, double b) { return a / b; });
}

void floor_divide(ReferenceContext& c) {
  divide(
      c, [](double a, double b) { return floor_quotient(a, b); },
      [](int64_t a, int64_t b) { return floor_quotient(a, b); });
}
void fmod(ReferenceContext& c) {
  divide(
      c, [](double a, double b) { return std::fmod(a, b); }, [](int64_t a, int64_t b) { return trunc_modulo(a, b); });
}
void remainder(ReferenceContext& c) {
  divide(
      c, [](double a, double b) { return floor_modulo(a, b); },
      [](int64_t a, int64_t b) { return floor_modulo(a, b); });
}

void gcd(ReferenceContext& c) { whole_pair(c, divisor_of); }
/// The product wraps as a C++ int does, or as an i64, before its sign is taken.
void lcm(ReferenceContext& c) {
  DType working = size_of(c.out().dtype) == 8 ? DType::i64 : DType::i32;
  whole_pair(c, [=](int64_t a, int64_t b) -> int64_t {
    int64_t divisor = divisor_of(a, b);
    if (divisor == 0) return 0;
    int64_t product = wrap_to(working, times(trunc_quotient(a, divisor), b));
    return product < 0 ? minus(0, product) : product;
  });
}

void pow(ReferenceContext& c) {
  const std::string_view names[] = {"self", "exponent"};
  bool scalar = !c.argument("exponent").tensor;
  map(
      c, names, c.meeting_dtype({"self", "exponent"}), [=](double a, double b) { return real_power(a, b, scalar); },
      [](int64_t a, int64_t b) { return integer_power(a, b); });
}
void float_power(ReferenceContext& c) {
  const std::string_view names[] = {"self", "exponent"};
  map(
      c, names, DType::f64, [](double a, double b) { return std::pow(a, b); }, [](auto...) -> double { return 0; });
}

void neg(ReferenceContext& c) {
  const std::string_view names[] = {"self"};
  map(
      c, names, c.out().dtype, [](double a) { return -a; }, [](int64_t a) { return minus(0, a); });
}
void positive(ReferenceContext& c) {
  map_both(c, {"self"}, [](auto a) { return a; });
}
void abs(ReferenceContext& c) {
  const std::string_view names[] = {"self"};
  map(
      c, names, c.out().dtype, [](double a) { return std::fabs(a); },
      [](int64_t a) { return a < 0 ? minus(0, a) : a; });
}
void square(ReferenceContext& c) {
  map_both(c, {"self"}, [](auto a) { return times(a, a); });
}
void reciprocal(ReferenceContext& c) {
  map_real(c, {"self"}, [](double a) { return 1 / a; });
}
void sqrt(ReferenceContext& c) {
  map_real(c, {"self"}, [](double a) { return std::sqrt(a); });
}
void rsqrt(ReferenceContext& c) {
  map_real(c, {"self"}, [](double a) { return 1 / std::sqrt(a); });
}

/// NaN has no sign: 0.
void sign(ReferenceContext& c) {
  map_both(c, {"self"}, [](auto a) { return static_cast<int64_t>(a > 0) - static_cast<int64_t>(a < 0); });
}
void sgn(ReferenceContext& c) { sign(c); }

void addcmul(ReferenceContext& c) {
  double factor = c.number("value");
  int64_t whole_factor = saturate_to(DType::i64, factor);
  const std::string_view names[] = {"self", "tensor1", "tensor2"};
  map(
      c, names, c.out().dtype, [=](double x, double a, double b) { return x + factor * a * b; },
      [=](int64_t x, int64_t a, int64_t b) { return plus(x, times(whole_factor, times(a, b))); });
}
void addcdiv(ReferenceContext& c) {
  double factor = c.number("value");
  const std::string_view names[] = {"self", "tensor1", "tensor2"};
  map(
      c, names, floating_dtype(c.out().dtype), [=](double x, double a, double b) { return x + factor * (a / b); },
      [](auto...) -> double { return 0; });
}

/// From the nearer end, so that both ends are met exactly.
void lerp(ReferenceContext& c) {
  const std::string_view names[] = {"self", "end", "weight"};
  map(
      c, names, floating_dtype(c.out().dtype),
      [](double a, double b, double w) { return std::fabs(w) < 0.5 ? a + w * (b - a) : b - (b - a) * (1 - w); },
      [](auto...) -> double { return 0; });
}

void ldexp(ReferenceContext& c) {
  map_real(c, {"self", "other"}, [](double a, double b) { return a * std::exp2(b); });
}

}  // namespace ingot::ir::reference
