#include "codegen/scalar/lanes.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/half.h"

namespace ingot::codegen::scalar {
namespace {

template <class T>
T* of(Lanes* l) {
  return reinterpret_cast<T*>(l);
}
template <class T>
const T* of(const Lanes* l) {
  return reinterpret_cast<const T*>(l);
}

template <class R, class T, class F>
void map(const Lanes* a, Lanes* out, F f) {
  for (int i = 0; i < kLanes; ++i) of<R>(out)[i] = f(of<T>(a)[i]);
}
template <class R, class T, class F>
void map(const Lanes* a, const Lanes* b, Lanes* out, F f) {
  for (int i = 0; i < kLanes; ++i) of<R>(out)[i] = f(of<T>(a)[i], of<T>(b)[i]);
}

// Wrapping integer arithmetic goes through the unsigned type.
template <class T, class F>
T wrapping(T a, T b, F f) {
  if constexpr (std::is_floating_point_v<T>) {
    return f(a, b);
  } else {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  }
}

template <class T>
T divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else {
    if (b == 0) return 0;
    return b == -1 ? wrapping(T(0), a, [](auto x, auto y) { return x - y; }) : a / b;
  }
}

template <class T>
T round(T x, uint64_t mode) {
  switch (mode) {
    case 0:
      return std::nearbyint(x);
    case 1:
      return std::floor(x);
    case 2:
      return std::ceil(x);
    default:
      return std::trunc(x);
  }
}

template <class T>
T scaled(T x, T power) {
  if (std::isnan(power)) return power;
  // Past these limits every finite x has become zero or infinite.
  constexpr T limit = 4 * std::numeric_limits<T>::max_exponent;
  return std::ldexp(x, static_cast<int>(std::fmin(std::fmax(power, -limit), limit)));
}

template <class R, class T>
R converted(T x) {
  if constexpr (std::is_floating_point_v<T> && std::is_integral_v<R>) {
    constexpr T limit = static_cast<T>(uint64_t(1) << (sizeof(R) * 8 - 1));  // 2^31 or 2^63, exact
    if (std::isnan(x)) return 0;
    if (x >= limit) return std::numeric_limits<R>::max();
    if (x < -limit) return std::numeric_limits<R>::min();
    return static_cast<R>(x);
  } else {
    return static_cast<R>(x);
  }
}

template <class T>
bool evaluate_arithmetic(const Node& n, const Lanes* a, const Lanes* b, [[maybe_unused]] const Lanes* c, Lanes* out) {
  switch (n.op) {
    case Op::add:
      map<T, T>(a, b, out, [](T x, T y) { return wrapping(x, y, [](auto p, auto q) { return p + q; }); });
      return true;
    case Op::sub:
      map<T, T>(a, b, out, [](T x, T y) { return wrapping(x, y, [](auto p, auto q) { return p - q; }); });
      return true;
    case Op::mul:
      map<T, T>(a, b, out, [](T x, T y) { return wrapping(x, y, [](auto p, auto q) { return p * q; }); });
      return true;
    case Op::div:
      map<T, T>(a, b, out, divide<T>);
      return true;
    case Op::min:
      map<T, T>(a, b, out, minimum<T>);
      return true;
    case Op::max:
      map<T, T>(a, b, out, maximum<T>);
      return true;
    case Op::eq:
      map<uint8_t, T>(a, b, out, [](T x, T y) { return x == y; });
      return true;
    case Op::ne:
      map<uint8_t, T>(a, b, out, [](T x, T y) { return x != y; });
      return true;
    case Op::lt:
      map<uint8_t, T>(a, b, out, [](T x, T y) { return x < y; });
      return true;
    case Op::le:
      map<uint8_t, T>(a, b, out, [](T x, T y) { return x <= y; });
      return true;
    case Op::convert:
      switch (n.type) {
        case Type::f32:
          map<float, T>(a, out, converted<float, T>);
          return true;
        case Type::f64:
          map<double, T>(a, out, converted<double, T>);
          return true;
        case Type::i32:
          map<int32_t, T>(a, out, converted<int32_t, T>);
          return true;
        case Type::i64:
          map<int64_t, T>(a, out, converted<int64_t, T>);
          return true;
        case Type::mask:
          return false;
      }
      return false;
    default:
      return false;
  }
}

template <class T>
bool evaluate_floating(const Node& n, const Lanes* a, const Lanes* b, const Lanes* c, Lanes* out) {
  switch (n.op) {
    case Op::fma:
      for (int i = 0; i < kLanes; ++i) of<T>(out)[i] = std::fma(of<T>(a)[i], of<T>(b)[i], of<T>(c)[i]);
      return true;
    case Op::sqrt:
      map<T, T>(a, out, [](T x) { return std::sqrt(x); });
      return true;
    case Op::round:
      map<T, T>(a, out, [&](T x) { return round(x, n.imm); });
      return true;
    case Op::scale:
      map<T, T>(a, b, out, scaled<T>);
      return true;
    case Op::round_to: {
      DType d = static_cast<DType>(n.imm);
      map<float, float>(a, out, [&](float x) { return from_half(d, to_half(d, x)); });
      return true;
    }
    default:
      return evaluate_arithmetic<T>(n, a, b, c, out);
  }
}

template <class T>
bool evaluate_bits(const Node& n, const Lanes* a, const Lanes* b, Lanes* out) {
  using U = std::make_unsigned_t<T>;
  switch (n.op) {
    case Op::bit_and:
      map<T, T>(a, b, out, [](T x, T y) { return static_cast<T>(x & y); });
      return true;
    case Op::bit_or:
      map<T, T>(a, b, out, [](T x, T y) { return static_cast<T>(x | y); });
      return true;
    case Op::bit_xor:
      map<T, T>(a, b, out, [](T x, T y) { return static_cast<T>(x ^ y); });
      return true;
    case Op::shl:
      map<T, T>(a, b, out, [](T x, T y) { return static_cast<T>(static_cast<U>(x) << y); });
      return true;
    case Op::shr:
      map<T, T>(a, b, out, [](T x, T y) { return static_cast<T>(static_cast<U>(x) >> y); });
      return true;
    case Op::sar:
      map<T, T>(a, b, out, [](T x, T y) { return static_cast<T>(x >> y); });
      return true;
    default:
      return false;
  }
}

template <class T>
void choose(const Lanes* mask, const Lanes* yes, const Lanes* no, Lanes* out) {
  for (int i = 0; i < kLanes; ++i) of<T>(out)[i] = mask->mask[i] ? of<T>(yes)[i] : of<T>(no)[i];
}

void choose(Type type, const Lanes* mask, const Lanes* yes, const Lanes* no, Lanes* out) {
  switch (codegen::size_of(type)) {
    case 1:
      return choose<uint8_t>(mask, yes, no, out);
    case 4:
      return choose<uint32_t>(mask, yes, no, out);
    default:
      return choose<uint64_t>(mask, yes, no, out);
  }
}

template <class T>
bool evaluate_integer(const Node& n, const Lanes* a, const Lanes* b, const Lanes* c, Lanes* out) {
  return evaluate_bits<T>(n, a, b, out) || evaluate_arithmetic<T>(n, a, b, c, out);
}

bool evaluate_mask(const Node& n, const Lanes* a, const Lanes* b, Lanes* out) {
  if (n.op != Op::convert) return evaluate_bits<uint8_t>(n, a, b, out);
  switch (n.type) {
    case Type::f32:
      map<float, uint8_t>(a, out, [](uint8_t x) { return static_cast<float>(x); });
      return true;
    case Type::f64:
      map<double, uint8_t>(a, out, [](uint8_t x) { return static_cast<double>(x); });
      return true;
    case Type::i32:
      map<int32_t, uint8_t>(a, out, [](uint8_t x) { return x; });
      return true;
    case Type::i64:
      map<int64_t, uint8_t>(a, out, [](uint8_t x) { return x; });
      return true;
    case Type::mask:
      return false;
  }
  return false;
}

template <class T>
Lanes fill(T x) {
  Lanes out;
  for (int i = 0; i < kLanes; ++i) of<T>(&out)[i] = x;
  return out;
}

}  // namespace

template <class T>
T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}

template <class T>
T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}

template float minimum(float, float);
template double minimum(double, double);
template int32_t minimum(int32_t, int32_t);
template int64_t minimum(int64_t, int64_t);
template float maximum(float, float);
template double maximum(double, double);
template int32_t maximum(int32_t, int32_t);
template int64_t maximum(int64_t, int64_t);

uint16_t to_half(DType d, float x) { return d == DType::bf16 ? bf16_from_f32(x) : f16_from_f32(x); }
float from_half(DType d, uint16_t bits) { return d == DType::bf16 ? f32_from_bf16(bits) : f32_from_f16(bits); }

int32_t wrap(DType d, int32_t x) {
  switch (d) {
    case DType::i16:
      return static_cast<int16_t>(x);
    case DType::i8:
      return static_cast<int8_t>(x);
    case DType::u8:
      return static_cast<uint8_t>(x);
    default:
      return x;
  }
}

Lanes broadcast(Type type, uint64_t bits) {
  switch (codegen::size_of(type)) {
    case 1:
      return fill(static_cast<uint8_t>(bits & 1));
    case 4:
      return fill(static_cast<uint32_t>(bits));
    default:
      return fill(bits);
  }
}

uint64_t lane_bits(Type type, const Lanes& lanes, int lane) {
  switch (codegen::size_of(type)) {
    case 1:
      return lanes.mask[lane];
    case 4:
      return static_cast<uint32_t>(lanes.i32[lane]);
    default:
      return static_cast<uint64_t>(lanes.i64[lane]);
  }
}

void evaluate(const Node& n, Type operand, const Lanes* a, const Lanes* b, const Lanes* c, Lanes* out) {
  bool known = true;
  switch (n.op) {
    case Op::select:
      return choose(n.type, a, b, c, out);
    case Op::rare:
      return choose(n.type, a, c, b, out);
    case Op::bitcast:
      *out = *a;
      return;
    case Op::wrap:
      map<int32_t, int32_t>(a, out, [&](int32_t x) { return wrap(static_cast<DType>(n.imm), x); });
      return;
    default:
      break;
  }
  switch (operand) {
    case Type::f32:
      known = evaluate_floating<float>(n, a, b, c, out);
      break;
    case Type::f64:
      known = evaluate_floating<double>(n, a, b, c, out);
      break;
    case Type::i32:
      known = evaluate_integer<int32_t>(n, a, b, c, out);
      break;
    case Type::i64:
      known = evaluate_integer<int64_t>(n, a, b, c, out);
      break;
    case Type::mask:
      known = evaluate_mask(n, a, b, out);
      break;
  }
  INGOT_CHECK(known, std::string(name_of(n.op)) + " on " + name_of(operand));
}

}  // namespace ingot::codegen::scalar
