// Element types and PyTorch's promotion lattice.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <utility>

#include "base/export.h"

namespace ingot {

/// Element type of a tensor. c64 and c128 take part in promotion only; no kernel computes with them yet.
enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, bool_, c64, c128 };
inline constexpr int kDTypeCount = 12;

/// The category of a scalar operand, which is structural: it decides promotion. Ordered: bool < integer < floating <
/// complex.
enum class Category : uint8_t { boolean, integer, floating, complex };

inline constexpr DType kFloat64 = DType::f64, kDouble = DType::f64, kFloat32 = DType::f32, kFloat = DType::f32,
                       kFloat16 = DType::f16, kHalf = DType::f16, kBFloat16 = DType::bf16, kInt64 = DType::i64,
                       kLong = DType::i64, kInt32 = DType::i32, kInt = DType::i32, kInt16 = DType::i16,
                       kShort = DType::i16, kInt8 = DType::i8, kChar = DType::i8, kUInt8 = DType::u8, kByte = DType::u8,
                       kBool = DType::bool_;

/// Bytes of an element.
constexpr int64_t size_of(DType d) {
  // Four bits each: a table would be looked up in memory, or even made there in each call.
  constexpr uint64_t logarithms = 0x430001231123;
  return int64_t{1} << (logarithms >> 4 * static_cast<int>(d) & 15);
}
constexpr Category category_of(DType d) {
  if (d <= DType::bf16) return Category::floating;
  if (d <= DType::u8) return Category::integer;
  return d == DType::bool_ ? Category::boolean : Category::complex;
}
constexpr bool is_floating(DType d) { return category_of(d) == Category::floating; }
constexpr bool is_integral(DType d) { return category_of(d) == Category::integer; }
constexpr bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

/// Short name ("f32", "bool"), the spelling of IR text, conformance cases and messages.
INGOT_API std::string_view name_of(DType d);
/// Its short name.
INGOT_API std::ostream& operator<<(std::ostream& out, DType d);
/// Reverse of name_of; returns false if the name is unknown.
INGOT_API bool parse_dtype(std::string_view name, DType* out);
/// PyTorch's promotion of two tensor dtypes of the same kind of operand (both tensors with dims, or both without).
INGOT_API DType promote(DType a, DType b);
/// The dtype that a scalar of this category has where nothing else decides: bool, i64, f32, c64.
constexpr DType default_dtype(Category c) {
  return c == Category::boolean    ? DType::bool_
         : c == Category::integer  ? DType::i64
         : c == Category::floating ? DType::f32
                                   : DType::c64;
}
/// The smallest and the largest number of an integer dtype.
constexpr std::pair<int64_t, int64_t> integer_range(DType d) {
  const int bits = static_cast<int>(size_of(d)) * 8 - (d == DType::u8 ? 0 : 1);
  const int64_t highest = static_cast<int64_t>((uint64_t{1} << bits) - 1);
  return {d == DType::u8 ? 0 : -highest - 1, highest};
}
/// The type in which elementwise math on this dtype is computed: f32 for 16-bit floats, else itself.
constexpr DType working_dtype(DType d) { return is_half(d) ? DType::f32 : d; }

}  // namespace ingot
