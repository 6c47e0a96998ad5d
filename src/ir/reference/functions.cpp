// Functions of one or two real numbers, from the C library in double.
#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

template <class F>
void real_of_self(ReferenceContext& c, F f) {
  map_real(c, {"self"}, f);
}
template <class F>
void real_of_two(ReferenceContext& c, F f) {
  map_real(c, {"self", "other"}, f);
}
/// Rounding functions leave integers as they are.
template <class F>
void rounded(ReferenceContext& c, F f) {
  const std::string_view names[] = {"self"};
  map(c, names, c.out().dtype, f, [](int64_t a) { return a; });
}

/// Bisection on the C library's erf and erfc.
double erfinv_of(double x) {
  const double t = std::fabs(x);
  if (!(t < 1)) return t == 1 ? std::copysign(kInfinity, x) : kNaN;
  if (t < 1e-8) return x * (std::sqrt(kPi) / 2);  // the next term is x^2 / 4
  double low = 0, high = 6;
  for (int step = 0; step < 120; ++step) {
    const double middle = (low + high) / 2;
    const bool above = t < 0.5 ? std::erf(middle) > t : std::erfc(middle) < 1 - t;
    (above ? high : low) = middle;
  }
  return std::copysign((low + high) / 2, x);
}

/// By its definition; far out, where erfc is too small, by the continued fraction of Laplace.
double erfcx_of(double x) {
  const long double t = x;
  if (x < 50) return static_cast<double>(std::exp(t * t) * std::erfc(t));
  long double fraction = 0;
  for (int k = 60; k > 0; --k) fraction = (k / 2.0L) / (t + fraction);
  return static_cast<double>(1 / ((t + fraction) * std::sqrt(std::acos(-1.0L))));
}

double lgamma_of(double x) {
  if (std::isinf(x)) return kInfinity;
  int sign;
  return lgamma_r(x, &sign);  // std::lgamma writes a global sign
}

/// Shifted up by its recurrence to the range of the asymptotic series; reflected below zero.
double digamma_of(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNaN;
    const double angle = kPi * (x - std::nearbyint(x));
    return digamma_of(1 - x) - kPi / std::tan(angle);
  }
  if (!(x < kInfinity)) return x;
  long double sum = 0, z = x;
  for (; z < 20; z += 1) sum -= 1 / z;
  const long double w = 1 / (z * z);
  const long double series = w * (1.0L / 12 - w * (1.0L / 120 - w * (1.0L / 252 - w * (1.0L / 240 - w / 132))));
  return static_cast<double>(sum + (std::log(z) - 1 / (2 * z) - series));
}

/// By its definition as a sum over x + k, and the asymptotic series from 40 on.
double polygamma_of(int64_t n, double x) {
  if (n == 0) return digamma_of(x);
  if (std::isnan(x)) return x;
  const double sign = n % 2 ? 1 : -1;
  if (std::isinf(x)) return x > 0 ? sign * 0.0 : kNaN;
  if (x <= 0 && x == std::floor(x)) return sign * kInfinity;
  long double sum = 0, z = x;
  for (; z < 40; z += 1) sum += std::pow(z, static_cast<long double>(-n - 1));
  const long double order = static_cast<long double>(n), power = std::pow(z, -order);
  long double tail = power / order + power / (2 * z);
  const long double bernoulli[] = {1.0L / 6, -1.0L / 30, 1.0L / 42, -1.0L / 30, 5.0L / 66};
  for (int k = 1; k <= 5; ++k) {
    const long double factor =
        std::exp(std::lgamma(2.0L * k + order) - std::lgamma(2.0L * k + 1) - std::lgamma(order + 1));
    tail += bernoulli[k - 1] * factor * power / std::pow(z, 2.0L * k);
  }
  return static_cast<double>(sign * std::tgamma(order + 1) * (sum + tail));
}

double log_add(double a, double b, double base_log) {
  if (std::isinf(a) && a == b) return a;
  double top = greatest(a, b);
  return top + std::log1p(std::exp(-std::fabs(a - b) * base_log)) / base_log;
}

}  // namespace

void acos(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::acos(x); });
}
void acosh(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::acosh(x); });
}
void asin(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::asin(x); });
}
void asinh(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::asinh(x); });
}
void atan(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::atan(x); });
}
void atanh(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::atanh(x); });
}
void cos(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::cos(x); });
}
void cosh(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::cosh(x); });
}
void sin(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::sin(x); });
}
void sinh(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::sinh(x); });
}
void tan(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::tan(x); });
}
void tanh(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::tanh(x); });
}
void erf(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::erf(x); });
}
void erfc(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::erfc(x); });
}
void erfcx(ReferenceContext& c) { real_of_self(c, erfcx_of); }
void erfinv(ReferenceContext& c) { real_of_self(c, erfinv_of); }
void lgamma(ReferenceContext& c) { real_of_self(c, lgamma_of); }
void digamma(ReferenceContext& c) { real_of_self(c, digamma_of); }
void polygamma(ReferenceContext& c) {
  const int64_t n = c.integer("n");
  real_of_self(c, [=](double x) { return polygamma_of(n, x); });
}
void exp(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::exp(x); });
}
void exp2(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::exp2(x); });
}
void expm1(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::expm1(x); });
}
void log(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::log(x); });
}
void log10(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::log10(x); });
}
void log1p(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::log1p(x); });
}
void log2(ReferenceContext& c) {
  real_of_self(c, [](double x) { return std::log2(x); });
}
/// Of the angle pi * x as the working precision holds it, which belongs to its definition.
void sinc(ReferenceContext& c) {
  const DType working = working_dtype(floating_dtype(c.tensor("self").dtype));
  const double pi = round_to(working, kPi);
  real_of_self(c, [&](double x) {
    double angle = round_to(working, pi * x);
    return x == 0 ? 1 : std::sin(angle) / angle;
  });
}
void sigmoid(ReferenceContext& c) { real_of_self(c, sigmoid_of); }
void deg2rad(ReferenceContext& c) {
  real_of_self(c, [](double x) { return x * (kPi / 180); });
}
void rad2deg(ReferenceContext& c) {
  real_of_self(c, [](double x) { return x * (180 / kPi); });
}
void frac(ReferenceContext& c) {
  real_of_self(c, [](double x) { return x - std::trunc(x); });
}

/// With eps, what is below eps becomes eps, and only else what is above 1 - eps that.
void logit(ReferenceContext& c) {
  bool bounded = c.has("eps") && c.number("eps") >= 0;
  double eps = bounded ? c.number("eps", floating_dtype(c.out().dtype)) : 0;
  real_of_self(c, [=](double x) {
    if (bounded) x = x < eps ? eps : x > 1 - eps ? 1 - eps : x;
    return std::log(x / (1 - x));
  });
}

void ceil(ReferenceContext& c) {
  rounded(c, [](double x) { return std::ceil(x); });
}
void floor(ReferenceContext& c) {
  rounded(c, [](double x) { return std::floor(x); });
}
void trunc(ReferenceContext& c) {
  rounded(c, [](double x) { return std::trunc(x); });
}
/// Halves go to the even neighbour. Decimals: scaled, rounded and scaled back, each step in working precision; of
/// integers the nearest multiple, 0 for those of a unit that is too large.
void round(ReferenceContext& c) {
  int64_t decimals = c.integer("decimals");
  DType dtype = c.out().dtype;
  double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  const std::string_view names[] = {"self"};
  map(
      c, names, dtype,
      [&](double x) {
        if (decimals == 0) return std::nearbyint(x);
        double scaled = std::nearbyint(to_working(c, dtype, decimals < 0 ? x / power : x * power));
        return decimals < 0 ? scaled * power : scaled / power;
      },
      [&](int64_t a) -> int64_t {
        if (decimals >= 0) return a;
        if (power >= 1e19) return 0;
        const __int128 unit = static_cast<int64_t>(power), below = a - ((a % unit) + unit) % unit;
        const __int128 twice = 2 * (a - below);
        const bool up = twice > unit || (twice == unit && below / unit % 2 != 0);
        return static_cast<int64_t>(up ? below + unit : below);
      });
}

void atan2(ReferenceContext& c) {
  real_of_two(c, [](double y, double x) { return std::atan2(y, x); });
}
void hypot(ReferenceContext& c) {
  real_of_two(c, [](double x, double y) { return std::hypot(x, y); });
}
void copysign(ReferenceContext& c) {
  real_of_two(c, [](double x, double y) { return std::copysign(x, y); });
}
void logaddexp(ReferenceContext& c) {
  real_of_two(c, [](double x, double y) { return log_add(x, y, 1); });
}
void logaddexp2(ReferenceContext& c) {
  real_of_two(c, [](double x, double y) { return log_add(x, y, std::log(2.0)); });
}
/// 0 * log(y) is 0 for every y but NaN.
void xlogy(ReferenceContext& c) {
  real_of_two(c, [](double x, double y) { return std::isnan(y) ? kNaN : x == 0 ? 0 : x * std::log(y); });
}

/// The next value of the result's own dtype, found by its spacing there.
void nextafter(ReferenceContext& c) {
  DType dtype = c.out().dtype;
  real_of_two(c, [=](double x, double toward) -> double {
    if (dtype == DType::f64) return std::nextafter(x, toward);
    if (dtype == DType::f32) return std::nextafterf(static_cast<float>(x), static_cast<float>(toward));
    if (std::isnan(x) || std::isnan(toward)) return kNaN;
    if (x == toward) return toward;
    uint16_t bits = 0;
    if (x != 0) ReferenceTensor::from_values(dtype, {1}, {x}).to_bytes(&bits);
    bool away = x == 0 || (toward > x) == (x > 0);
    bits = static_cast<uint16_t>(away ? bits + 1 : bits - 1);
    double next = ReferenceTensor::from_bytes(dtype, {1}, &bits).real[0];
    return x == 0 ? std::copysign(next, toward) : next;
  });
}

}  // namespace ingot::ir::reference
