// Conversions between f32 and the 16-bit floats: exact upwards, round to nearest even downwards, denormals kept.
#pragma once
#include <bit>
#include <cstdint>

namespace ingot {

inline float f32_from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t bf16_from_f32(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>(bits >> 16 | 0x40u);  // NaN stays NaN, made quiet
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float f32_from_f16(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u)  // infinity or NaN (made quiet)
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13 |
                                (magnitude > 0x7c00u ? 0x400000u : 0u));
  if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  float denormal = static_cast<float>(magnitude) * 0x1p-24f;  // exact: a small integer times a power of two
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(denormal));
}

inline uint16_t f16_from_f32(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 leaves the multiple of 2^-24, rounded to nearest even, in the low bits.
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13));
}

}  // namespace ingot
