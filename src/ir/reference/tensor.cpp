// Numbers of the reference: rounding to a format in one step, wrapping, and bytes in memory. Independent of base's
// conversions.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ir/reference.h"

namespace ingot::ir {
namespace {

/// A binary floating format: precision with the hidden bit, and the exponent range of normal numbers.
struct Format {
  int precision, min_exponent, max_exponent;
};
constexpr Format kHalfFormat{11, -14, 15}, kBrainFormat{8, -126, 127};

double round_to_format(const Format& format, double x) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = std::max(std::ilogb(x), format.min_exponent);
  int quantum = exponent - (format.precision - 1);
  // Both scalings are exact; the default rounding mode is to nearest even.
  double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -quantum)), quantum);
  return std::fabs(rounded) >= std::ldexp(1.0, format.max_exponent + 1)
             ? std::copysign(std::numeric_limits<double>::infinity(), x)
             : rounded;
}

uint16_t encode(const Format& format, double x) {
  int fraction_bits = format.precision - 1;
  uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  uint16_t top = static_cast<uint16_t>(((1 << (15 - fraction_bits)) - 1) << fraction_bits);
  if (std::isnan(x)) return static_cast<uint16_t>(top | (1 << (fraction_bits - 1)));
  if (std::isinf(x)) return sign | top;
  if (x == 0) return sign;
  int exponent = std::ilogb(x);
  if (exponent < format.min_exponent)
    return sign | static_cast<uint16_t>(std::ldexp(std::fabs(x), fraction_bits - format.min_exponent));
  int fraction = static_cast<int>(std::ldexp(std::fabs(x), fraction_bits - exponent)) - (1 << fraction_bits);
  return sign | static_cast<uint16_t>(((exponent - format.min_exponent + 1) << fraction_bits) | fraction);
}

double decode(const Format& format, uint16_t bits) {
  int fraction_bits = format.precision - 1;
  int fraction = bits & ((1 << fraction_bits) - 1);
  int exponent = (bits & 0x7fff) >> fraction_bits;
  double magnitude;
  if (exponent == (1 << (15 - fraction_bits)) - 1)
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    magnitude = std::ldexp(fraction, format.min_exponent - fraction_bits);
  else
    magnitude = std::ldexp(fraction + (1 << fraction_bits), exponent - 1 + format.min_exponent - fraction_bits);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// Calls f with a zero of the C++ type that holds an element of the dtype; 16-bit floats are held as their bits.
template <class F>
auto with_integer_type(DType dtype, F f) {
  switch (dtype) {
    case DType::i64:
      return f(int64_t{});
    case DType::i32:
      return f(int32_t{});
    case DType::i16:
      return f(int16_t{});
    case DType::i8:
      return f(int8_t{});
    case DType::u8:
      return f(uint8_t{});
    case DType::bool_:
      return f(bool{});
    default:
      INGOT_CHECK(false, "not an integer dtype: " + std::string(name_of(dtype)));
      return f(int64_t{});
  }
}

template <class T>
T load_as(const void* bytes, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(bytes) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void store(void* bytes, int64_t i, T value) {
  std::memcpy(static_cast<char*>(bytes) + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

double round_to(DType dtype, double x) {
  switch (dtype) {
    case DType::f64:
      return x;
    case DType::f32:
      return static_cast<float>(x);
    case DType::f16:
      return round_to_format(kHalfFormat, x);
    case DType::bf16:
      return round_to_format(kBrainFormat, x);
    default:
      INGOT_CHECK(false, "not a floating dtype: " + std::string(name_of(dtype)));
      return x;
  }
}

int64_t wrap_to(DType dtype, int64_t x) {
  return with_integer_type(dtype, [x](auto zero) { return static_cast<int64_t>(static_cast<decltype(zero)>(x)); });
}

int64_t saturate_to(DType dtype, double x) {
  if (dtype == DType::bool_) return x != 0;
  if (std::isnan(x)) return 0;
  return with_integer_type(dtype, [x](auto zero) -> int64_t {
    using Limits = std::numeric_limits<decltype(zero)>;
    // 2^63 - 1 is no double: compare with the power of two above it.
    if (x >= std::ldexp(1.0, Limits::digits)) return static_cast<int64_t>(Limits::max());
    if (x <= static_cast<double>(Limits::min())) return static_cast<int64_t>(Limits::min());
    return static_cast<int64_t>(x);
  });
}

ReferenceTensor::ReferenceTensor(DType d, Ints s) : dtype(d), shape(std::move(s)) {
  if (floating())
    real.resize(size());
  else
    integer.resize(size());
}

ReferenceTensor ReferenceTensor::from_values(DType dtype, Ints shape, std::vector<double> values) {
  ReferenceTensor t(dtype, std::move(shape));
  INGOT_CHECK(t.size() == static_cast<int64_t>(values.size()), "as many values as elements");
  for (int64_t i = 0; i < t.size(); ++i) {
    if (t.floating())
      t.real[i] = round_to(dtype, values[i]);
    else
      t.integer[i] = saturate_to(dtype, values[i]);
  }
  return t;
}

ReferenceTensor ReferenceTensor::from_bytes(DType dtype, Ints shape, const void* bytes) {
  ReferenceTensor t(dtype, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) {
    switch (dtype) {
      case DType::f64:
        t.real[i] = load_as<double>(bytes, i);
        break;
      case DType::f32:
        t.real[i] = load_as<float>(bytes, i);
        break;
      case DType::f16:
        t.real[i] = decode(kHalfFormat, load_as<uint16_t>(bytes, i));
        break;
      case DType::bf16:
        t.real[i] = decode(kBrainFormat, load_as<uint16_t>(bytes, i));
        break;
      case DType::bool_:
        t.integer[i] = load_as<uint8_t>(bytes, i) != 0;
        break;
      default:
        t.integer[i] = with_integer_type(
            dtype, [&](auto zero) { return static_cast<int64_t>(load_as<decltype(zero)>(bytes, i)); });
    }
  }
  return t;
}

void ReferenceTensor::to_bytes(void* bytes) const {
  for (int64_t i = 0; i < size(); ++i) {
    switch (dtype) {
      case DType::f64:
        store(bytes, i, real[i]);
        break;
      case DType::f32:
        store(bytes, i, static_cast<float>(real[i]));
        break;
      case DType::f16:
        store(bytes, i, encode(kHalfFormat, real[i]));
        break;
      case DType::bf16:
        store(bytes, i, encode(kBrainFormat, real[i]));
        break;
      default:
        with_integer_type(dtype, [&](auto zero) { store(bytes, i, static_cast<decltype(zero)>(integer[i])); });
    }
  }
}

int64_t ReferenceTensor::size() const {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

}  // namespace ingot::ir
