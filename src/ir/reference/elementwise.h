// One element at a time: operands broadcast to the output and read in the dtype in which they meet.
#pragma once
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "ir/reference/context.h"

namespace ingot::ir::reference {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;

/// The dtype for functions that only floats have: integers and bools become f32.
inline DType floating_dtype(DType d) { return is_floating(d) ? d : DType::f32; }

inline void put(ReferenceTensor& out, int64_t i, double x) {
  if (out.floating())
    out.real[i] = x;
  else
    out.integer[i] = saturate_to(out.dtype, x);
}
inline void put(ReferenceTensor& out, int64_t i, int64_t x) {
  if (out.floating())
    out.real[i] = static_cast<double>(x);
  else
    out.integer[i] = x;
}
inline void put(ReferenceTensor& out, int64_t i, bool x) { put(out, i, static_cast<int64_t>(x)); }

using Names = std::initializer_list<std::string_view>;

/// out = real(x, y, ...) in double where `compute` is a float, else whole(x, y, ...) in int64. Wrapping is done at the
/// op's end; sums and products go through unsigned numbers.
template <size_t N, class Real, class Whole>
void map(ReferenceContext& context, const std::string_view (&names)[N], DType compute, Real real, Whole whole) {
  ReferenceTensor& out = context.out();
  std::vector<Reader> readers;
  for (std::string_view name : names) readers.emplace_back(context, context.argument(name), out.shape, compute);
  for (int64_t i = 0, n = out.size(); i < n; ++i) {
    if (is_floating(compute)) {
      std::array<double, N> x;
      for (size_t k = 0; k < N; ++k) x[k] = readers[k].real(i);
      put(out, i, std::apply(real, x));
    } else {
      std::array<int64_t, N> x;
      for (size_t k = 0; k < N; ++k) x[k] = readers[k].integer(i);
      put(out, i, std::apply(whole, x));
    }
  }
}

/// The same for functions that have one definition for floats and integers, generic in the type of its arguments.
template <size_t N, class Both>
void map_both(ReferenceContext& context, const std::string_view (&names)[N], Both both) {
  DType compute = N == 1   ? context.meeting_dtype({names[0]})
                  : N == 2 ? context.meeting_dtype({names[0], names[1 % N]})
                           : context.meeting_dtype({names[0], names[1 % N], names[2 % N]});
  map(context, names, compute, both, both);
}

/// The same for functions of floats alone.
template <size_t N, class Real>
void map_real(ReferenceContext& context, const std::string_view (&names)[N], Real real) {
  DType compute =
      floating_dtype(N == 1 ? context.meeting_dtype({names[0]}) : context.meeting_dtype({names[0], names[N - 1]}));
  auto none = [](auto...) -> double { return 0; };
  map(context, names, compute, real, none);
}

// Arithmetic that wraps in int64 and is ordinary in double.
inline double plus(double a, double b) { return a + b; }
inline double minus(double a, double b) { return a - b; }
inline double times(double a, double b) { return a * b; }
inline int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Minimum and maximum: NaN wins, -0 < +0.
inline double least(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
inline double greatest(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}
inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

inline double sigmoid_of(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
inline double softplus_of(double x) { return greatest(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

}  // namespace ingot::ir::reference
