// Comparison, logic, bits, minimum and maximum, and choice by a mask.
#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

template <class F>
void each_comparison(ReferenceContext& c, F f) {
  map_both(c, {"self", "other"}, f);
}
template <class F>
void logical(ReferenceContext& c, F f) {
  map_both(c, {"self", "other"}, [f](auto a, auto b) { return f(a != 0, b != 0); });
}
template <class F>
void bits(ReferenceContext& c, F f) {
  const std::string_view names[] = {"self", "other"};
  map(
      c, names, c.out().dtype, [](auto...) -> double { return 0; }, f);
}
template <class F>
void test(ReferenceContext& c, F f) {
  const std::string_view names[] = {"self"};
  DType compute = c.meeting_dtype({"self"});
  map(c, names, is_floating(compute) ? compute : DType::f64, f, [](auto...) { return false; });
}

/// A shift by as many bits as there are, or by a negative number, shifts everything out.
bool shifts_out(DType dtype, int64_t by) { return by < 0 || by >= 8 * size_of(dtype); }

/// Bounds by a scalar or a tensor; either may be absent.
void bound(ReferenceContext& c, std::string_view low, std::string_view high) {
  ReferenceTensor& out = c.out();
  // A bound may lie past the numbers of an integer dtype.
  const DType compute = is_integral(out.dtype) ? DType::i64 : out.dtype;
  Reader self(c, c.argument("self"), out.shape, compute);
  std::vector<Reader> lower, upper;
  if (!low.empty() && c.argument(low).present) lower.emplace_back(c, c.argument(low), out.shape, compute);
  if (!high.empty() && c.argument(high).present) upper.emplace_back(c, c.argument(high), out.shape, compute);
  for (int64_t i = 0, n = out.size(); i < n; ++i) {
    if (is_floating(compute)) {
      double x = self.real(i);
      for (Reader& r : lower) x = greatest(x, r.real(i));
      for (Reader& r : upper) x = least(x, r.real(i));
      put(out, i, x);
    } else {
      int64_t x = self.integer(i);
      for (Reader& r : lower) x = greatest(x, r.integer(i));
      for (Reader& r : upper) x = least(x, r.integer(i));
      put(out, i, x);
    }
  }
}

/// out = mask ? chosen : other, in the output's dtype.
void choose(ReferenceContext& c, std::string_view mask, std::string_view chosen, std::string_view other) {
  ReferenceTensor& out = c.out();
  Reader m(c, c.argument(mask), out.shape, c.tensor(mask).dtype);
  Reader a(c, c.argument(chosen), out.shape, out.dtype), b(c, c.argument(other), out.shape, out.dtype);
  for (int64_t i = 0, n = out.size(); i < n; ++i) {
    const Reader& r = m.integer(i) != 0 ? a : b;
    if (out.floating())
      out.real[i] = r.real(i);
    else
      out.integer[i] = r.integer(i);
  }
}

double largest_of(DType dtype) {
  return dtype == DType::f64    ? std::numeric_limits<double>::max()
         : dtype == DType::f32  ? static_cast<double>(std::numeric_limits<float>::max())
         : dtype == DType::bf16 ? std::ldexp(2 - std::ldexp(1.0, -7), 127)
                                : 65504;
}

}  // namespace

void eq(ReferenceContext& c) {
  each_comparison(c, [](auto a, auto b) { return a == b; });
}
void ne(ReferenceContext& c) {
  each_comparison(c, [](auto a, auto b) { return a != b; });
}
void lt(ReferenceContext& c) {
  each_comparison(c, [](auto a, auto b) { return a < b; });
}
void le(ReferenceContext& c) {
  each_comparison(c, [](auto a, auto b) { return a <= b; });
}
void gt(ReferenceContext& c) {
  each_comparison(c, [](auto a, auto b) { return a > b; });
}
void ge(ReferenceContext& c) {
  each_comparison(c, [](auto a, auto b) { return a >= b; });
}

void logical_and(ReferenceContext& c) {
  logical(c, [](bool a, bool b) { return a && b; });
}
void logical_or(ReferenceContext& c) {
  logical(c, [](bool a, bool b) { return a || b; });
}
void logical_xor(ReferenceContext& c) {
  logical(c, [](bool a, bool b) { return a != b; });
}
void logical_not(ReferenceContext& c) {
  map_both(c, {"self"}, [](auto a) { return a == 0; });
}

void bitwise_and(ReferenceContext& c) {
  bits(c, [](int64_t a, int64_t b) { return a & b; });
}
void bitwise_or(ReferenceContext& c) {
  bits(c, [](int64_t a, int64_t b) { return a | b; });
}
void bitwise_xor(ReferenceContext& c) {
  bits(c, [](int64_t a, int64_t b) { return a ^ b; });
}
void bitwise_not(ReferenceContext& c) {
  const std::string_view names[] = {"self"};
  bool boolean = c.out().dtype == DType::bool_;
  map(
      c, names, c.out().dtype, [](double) -> double { return 0; },
      [=](int64_t a) { return boolean ? static_cast<int64_t>(a == 0) : ~a; });
}
void bitwise_left_shift(ReferenceContext& c) {
  DType dtype = c.out().dtype;
  bits(c, [=](int64_t a, int64_t by) {
    return shifts_out(dtype, by) ? int64_t{0} : static_cast<int64_t>(static_cast<uint64_t>(a) << by);
  });
}
void bitwise_right_shift(ReferenceContext& c) {
  DType dtype = c.out().dtype;
  bits(c, [=](int64_t a, int64_t by) { return shifts_out(dtype, by) ? int64_t{a < 0 ? -1 : 0} : a >> by; });
}

void maximum(ReferenceContext& c) {
  map_both(c, {"self", "other"}, [](auto a, auto b) { return greatest(a, b); });
}
void minimum(ReferenceContext& c) {
  map_both(c, {"self", "other"}, [](auto a, auto b) { return least(a, b); });
}
/// fmax and fmin: a number wins over NaN.
void fmax(ReferenceContext& c) {
  map_both(c, {"self", "other"}, [](auto a, auto b) { return a != a ? b : b != b ? a : greatest(a, b); });
}
void fmin(ReferenceContext& c) {
  map_both(c, {"self", "other"}, [](auto a, auto b) { return a != a ? b : b != b ? a : least(a, b); });
}
/// An upper bound wins over a lower one above it.
void clamp(ReferenceContext& c) { bound(c, "min", "max"); }
void clamp_min(ReferenceContext& c) { bound(c, "min", ""); }
void clamp_max(ReferenceContext& c) { bound(c, "", "max"); }

void where(ReferenceContext& c) { choose(c, "condition", "self", "other"); }
void masked_fill(ReferenceContext& c) { choose(c, "mask", "value", "self"); }

void isnan(ReferenceContext& c) {
  test(c, [](double x) { return std::isnan(x); });
}
void isinf(ReferenceContext& c) {
  test(c, [](double x) { return std::isinf(x); });
}
void isposinf(ReferenceContext& c) {
  test(c, [](double x) { return x == kInfinity; });
}
void isneginf(ReferenceContext& c) {
  test(c, [](double x) { return x == -kInfinity; });
}
void isfinite(ReferenceContext& c) {
  map_both(c, {"self"}, [](auto x) { return std::isfinite(static_cast<double>(x)); });
}
void signbit(ReferenceContext& c) {
  const std::string_view names[] = {"self"};
  map(
      c, names, c.meeting_dtype(), [](double x) { return std::signbit(x); }, [](int64_t x) { return x < 0; });
}
void heaviside(ReferenceContext& c) {
  map_both(c, {"self", "values"},
           [](auto x, auto at_zero) { return x == 0 ? at_zero : static_cast<decltype(x)>(x > 0); });
}

/// Infinities become the largest and lowest numbers of the dtype, unless values are given.
void nan_to_num(ReferenceContext& c) {
  double top = largest_of(c.out().dtype);
  double nan = c.has("nan") ? c.number("nan") : 0;
  double positive = c.has("posinf") ? c.number("posinf") : top;
  double negative = c.has("neginf") ? c.number("neginf") : -top;
  map_both(c, {"self"}, [=](auto x) -> decltype(x) {
    double real = static_cast<double>(x);
    if (std::isnan(real)) return static_cast<decltype(x)>(nan);
    return real == kInfinity    ? static_cast<decltype(x)>(positive)
           : real == -kInfinity ? static_cast<decltype(x)>(negative)
                                : x;
  });
}

/// |self - other| <= atol + |rtol * other|, or equal; integers in double.
void isclose(ReferenceContext& c) {
  DType dtype = c.tensor("self").dtype, working = is_floating(dtype) ? dtype : DType::f64;
  double rtol = c.number("rtol", working), atol = c.number("atol", working);
  bool equal_nan = c.flag("equal_nan");
  const std::string_view names[] = {"self", "other"};
  auto close = [=](double a, double b) {
    double apart = std::fabs(a - b);
    return a == b || (equal_nan && std::isnan(a) && std::isnan(b)) ||
           (std::isfinite(apart) && apart <= atol + std::fabs(rtol * b));
  };
  map(c, names, dtype, close,
      [=](int64_t a, int64_t b) { return a == b || close(static_cast<double>(a), static_cast<double>(b)); });
}

}  // namespace ingot::ir::reference
