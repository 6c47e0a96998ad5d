#include "base/dtype.h"

#include <array>
#include <ostream>

namespace ingot {
namespace {
constexpr std::array<std::string_view, kDTypeCount> kDTypeNames = {"f64", "f32", "f16", "bf16", "i64", "i32",
                                                                   "i16", "i8",  "u8",  "bool", "c64", "c128"};
// Rank inside a category; equal ranks (f16 and bf16, i8 and u8) have no order and promote upwards.
constexpr int rank(DType d) {
  constexpr int ranks[kDTypeCount] = {2, 1, 0, 0, 3, 2, 1, 0, 0, 0, 0, 1};
  return ranks[static_cast<int>(d)];
}
}  // namespace

std::string_view name_of(DType d) { return kDTypeNames[static_cast<int>(d)]; }

std::ostream& operator<<(std::ostream& out, DType d) { return out << name_of(d); }

bool parse_dtype(std::string_view name, DType* out) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kDTypeNames[i] == name) return *out = static_cast<DType>(i), true;
  return false;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  Category ca = category_of(a), cb = category_of(b);
  if (ca == Category::complex || cb == Category::complex)
    return (a == DType::c128 || b == DType::c128 || a == DType::f64 || b == DType::f64) ? DType::c128 : DType::c64;
  if (ca != cb) return ca > cb ? a : b;
  if (rank(a) != rank(b)) return rank(a) > rank(b) ? a : b;
  return ca == Category::floating ? DType::f32 : DType::i16;  // f16 with bf16; i8 with u8
}

}  // namespace ingot
