// The sums of a tile, which stay in registers over all of k: what is added to them, and where they go.
#pragma once
#include <span>
#include <vector>

#include "codegen/kernel_ir.h"
#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {

class TileSums {
 public:
  TileSums(const TileSpec& spec, Vectors& vectors);

  /// Takes registers, all zero, for these parts of each row.
  void clear(int first, int last);
  void clear() { clear(0, parts_); }
  /// Nothing more is added to a part: it goes where it may lie in memory, the same place on all ways through the code.
  void end(int part);
  /// Rows-major.
  std::span<const VReg> all() const { return ends_.empty() ? sums_ : ends_; }
  /// Of each row, the sum in this part.
  std::vector<VReg> of_part(int part) const;
  /// sums[row][p] += a(row) * b(p); the side that is held in registers is the one that fits beside the sums.
  template <class A, class B>
  void multiply(A a, B b) {
    const int registers = v_.avx512() ? 32 : 16;
    if (spec_.rows * parts_ + parts_ + 1 <= registers) {
      std::vector<VReg> held;
      for (int p = 0; p < existing_; ++p) held.push_back(b(p));
      for (int row = 0; row < spec_.rows; ++row) {
        VReg x = a(row);
        for (int p = 0; p < existing_; ++p) add(row, p, x, held[static_cast<size_t>(p)]);
      }
      return;
    }
    std::vector<VReg> held;
    for (int row = 0; row < spec_.rows; ++row) held.push_back(a(row));
    for (int p = 0; p < existing_; ++p) {
      VReg y = b(p);
      for (int row = 0; row < spec_.rows; ++row) add(row, p, held[static_cast<size_t>(row)], y);
    }
  }
  void add(int row, int p, const Source& a, VReg b);

  /// Parts of a row that hold columns that exist: the first so many.
  int existing() const { return existing_; }
  /// Of the columns that exist, one a part; none: all do. Where registers are few, they may be in memory.
  struct Masks : std::vector<Source> {
    Source of(int p) const { return empty() ? Source() : (*this)[static_cast<size_t>(p)]; }
  };
  /// rax: how many exist.
  Masks edge_masks(bool in_registers = true);
  /// What lies there, zero where the mask, if any, is not set.
  VReg held(const Mem& at, const Source& mask);
  /// Into C, whose address is there, or added to what it holds where `accumulate` is not 0.
  void store(const Mem& c, const Mem& accumulate);

 private:
  size_t index(int row, int p) const { return static_cast<size_t>(row * parts_ + p); }
  uint8_t width() const { return static_cast<uint8_t>(v_.code().width); }
  void write(const Masks& masks);
  void rows(const Masks& masks, bool accumulate);

  const TileSpec& spec_;
  Vectors& v_;
  VCode& code_;
  Type type_;
  int parts_;     // registers a row
  int existing_;  // those that hold columns that exist; the others stay zero
  bool half_;  // of the last register of a row, no more than half exists: some processors multiply it in half the time
  std::vector<VReg> sums_, ends_;
};

}  // namespace ingot::codegen::x86
