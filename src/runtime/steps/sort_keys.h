// Elements as unsigned keys in the order in which sort puts them: NaN last and all alike, -0 equal to +0.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/dtype.h"

namespace ingot::runtime {

/// A key and where its element was, as one number: no two are equal, so any order of comparison is stable.
struct WideItem {
  uint64_t key, index;
  friend bool operator<(const WideItem& a, const WideItem& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};

/// Keys of a dtype. Bits is the unsigned integer of its width; kSign and kExponent are 0 for what has none.
template <class Bits, Bits kSign, Bits kExponent>
struct Keys {
  using Element = Bits;
  static constexpr int kBits = 8 * sizeof(Bits);
  static constexpr bool kWide = kBits > 32;
  static constexpr bool kInvertible = kExponent == 0;  // key() is its own inverse
  using Item = std::conditional_t<kWide, WideItem, uint64_t>;

  /// `flip` is all ones for descending order, else 0.
  static Bits key(Bits x, Bits flip) {
    if constexpr (kExponent != 0) {
      const Bits magnitude = x & static_cast<Bits>(~kSign);
      if (magnitude > kExponent) return static_cast<Bits>(~Bits{0} ^ flip);
      if (magnitude == 0) return static_cast<Bits>(kSign ^ flip);
      return static_cast<Bits>(((x & kSign) ? ~x : x | kSign) ^ flip);
    }
    return static_cast<Bits>(x ^ kSign ^ flip);
  }
  static Item item(Bits key, int64_t index) {
    if constexpr (kWide)
      return {key, static_cast<uint64_t>(index)};
    else
      return static_cast<uint64_t>(key) << 32 | static_cast<uint32_t>(index);
  }
  static Bits key_of(const Item& i) {
    if constexpr (kWide)
      return i.key;
    else
      return static_cast<Bits>(i >> 32);
  }
  static int64_t index_of(const Item& i) {
    if constexpr (kWide)
      return static_cast<int64_t>(i.index);
    else
      return static_cast<int64_t>(i & 0xffffffffu);
  }
};

/// Calls f(Keys<...>()) for a dtype.
template <class F>
auto with_keys(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f(Keys<uint64_t, uint64_t{1} << 63, uint64_t{0x7ff} << 52>());
    case DType::f32:
      return f(Keys<uint32_t, 0x80000000u, 0x7f800000u>());
    case DType::f16:
      return f(Keys<uint16_t, 0x8000, 0x7c00>());
    case DType::bf16:
      return f(Keys<uint16_t, 0x8000, 0x7f80>());
    case DType::i64:
      return f(Keys<uint64_t, uint64_t{1} << 63, 0>());
    case DType::i32:
      return f(Keys<uint32_t, 0x80000000u, 0>());
    case DType::i16:
      return f(Keys<uint16_t, 0x8000, 0>());
    case DType::i8:
      return f(Keys<uint8_t, 0x80, 0>());
    default:
      return f(Keys<uint8_t, 0, 0>());  // u8 and bool
  }
}

}  // namespace ingot::runtime
