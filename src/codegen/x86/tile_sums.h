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

  /// Takes the registers, all zero.
  void clear();
  /// Rows-major.
  std::span<const VReg> all() const { return sums_; }
  /// sums[row][p] += a(row) * b(p); the side that is held in registers is the one that fits beside the sums.
  template <class A, class B>
  void multiply(A a, B b) {
    const int registers = v_.avx512() ? 32 : 16;
    if (spec_.rows * parts_ + parts_ + 1 <= registers) {
      std::vector<VReg> held;
      for (int p = 0; p < parts_; ++p) held.push_back(b(p));
      for (int row = 0; row < spec_.rows; ++row) {
        VReg x = a(row);
        for (int p = 0; p < parts_; ++p) add(row, p, x, held[static_cast<size_t>(p)]);
      }
      return;
    }
    std::vector<VReg> held;
    for (int row = 0; row < spec_.rows; ++row) held.push_back(a(row));
    for (int p = 0; p < parts_; ++p) {
      VReg y = b(p);
      for (int row = 0; row < spec_.rows; ++row) add(row, p, held[static_cast<size_t>(row)], y);
    }
  }
  void add(int row, int p, const Source& a, VReg b);

  /// One mask a part; rax: the columns that exist.
  std::vector<VReg> edge_masks();
  /// What lies there, zero where the mask (or kNoReg) is not set.
  VReg held(const Mem& at, VReg mask);
  /// Into C, or added to what it holds where `accumulate`, the frame's by default, is not 0.
  void store();
  void store(const Mem& accumulate);

 private:
  VReg sum_at(int row, int p) const { return sums_[static_cast<size_t>(row * parts_ + p)]; }
  uint8_t width() const { return static_cast<uint8_t>(v_.code().width); }
  void write(const std::vector<VReg>& masks);
  void rows(const std::vector<VReg>& masks, bool accumulate);

  const TileSpec& spec_;
  Vectors& v_;
  VCode& code_;
  Type type_;
  int parts_;  // registers a row
  bool half_;  // of the last register of a row, no more than half exists: some processors multiply it in half the time
  std::vector<VReg> sums_;
};

}  // namespace ingot::codegen::x86
