// Sixteen outputs of a product with one row of A, where B's k is contiguous: squares of B are transposed in registers
// and used at once.
#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "codegen/x86/formats.h"
#include "codegen/x86/lanes.h"
#include "codegen/x86/tile.h"
#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {
namespace {

/// AVX2: two squares of eight columns each, one after the other, as sixteen registers hold no more.
class TransposedTile {
  static constexpr Gpr kA = Gpr::rsi, kK = Gpr::rcx, kStride = Gpr::r9, kStride3 = Gpr::r10, kAhead = Gpr::rdx;
  static constexpr Gpr kRows[] = {Gpr::r11, Gpr::r12, Gpr::r13, Gpr::r14};  // every fourth column of B
  static constexpr int kLine = 64;                                          // bytes

 public:
  TransposedTile(DType b, VCode& code) : b_(b), code_(code), v_(code), lanes_(code.width / 4) {}

  void emit() {
    load(kA, offsetof(TileFrame, a));
    load(kRows[0], offsetof(TileFrame, b));
    load(kStride, offsetof(TileFrame, b_stride));
    load(kK, offsetof(TileFrame, k));
    code_.add({.op = VOp::g_lea, .g = kStride3, .mem = Mem::at(kStride, kStride, 2)});
    for (int i = 1; i < 4; ++i) code_.add({.op = VOp::g_lea, .g = kRows[i], .mem = Mem::at(kRows[i - 1], kStride, 4)});
    code_.g(VOp::g_mov, kAhead, kStride);
    code_.g(VOp::g_shli, kAhead, 5);
    for (int part = 0; part < kLanes / lanes_; ++part) {
      sums_.push_back(code_.vector());
      code_.add({.op = VOp::vmovups, .width = width(), .dst = sums_.back(), .a = code_.splat32(0)});
    }

    const int64_t rest = code_.label(), done = code_.label(), first = code_.label();
    // Squares of a line of memory follow one another: columns that lie in the same set of L1 leave no line for later.
    const int squares = std::max(1, kLine / static_cast<int>(lanes_ * ingot::size_of(b_)));
    for (int side_by_side = squares; side_by_side > 0; side_by_side = side_by_side > 1 ? 1 : 0) {
      const int64_t fewer = side_by_side > 1 ? code_.label() : rest;
      const int count = side_by_side * lanes_;
      const Loop loop = code_.begin_loop();
      code_.g(VOp::g_cmpi, kK, count);
      code_.jump(fewer, Cond::less);
      ask_ahead();
      for (size_t part = 0; part < sums_.size(); ++part)
        for (int64_t step = 0; step < count;)
          for (VReg x : square(part, step, kNoReg)) multiply(part, x, step++);
      code_.g(VOp::g_addi, kA, count * 4);
      for (Gpr row : kRows) code_.g(VOp::g_addi, row, count * ingot::size_of(b_));
      code_.g(VOp::g_addi, kK, -count);
      code_.end_loop(loop);
      if (side_by_side > 1) code_.place(fewer);
    }
    code_.place(rest);
    code_.g(VOp::g_cmpi, kK, 0);
    code_.jump(done, Cond::less_equal);
    const VReg mask = mask_of_rest();
    for (size_t part = 0; part < sums_.size(); ++part) {
      const int64_t next = code_.label();
      int64_t step = 0;
      for (VReg x : square(part, 0, mask)) {
        code_.g(VOp::g_cmpi, kK, step);
        code_.jump(next, Cond::less_equal);
        multiply(part, x, step++);
      }
      code_.place(next);
    }
    code_.place(done);

    load(Gpr::rax, offsetof(TileFrame, c));
    load(kK, offsetof(TileFrame, accumulate));
    code_.g(VOp::g_cmpi, kK, 0);
    code_.jump(first, Cond::equal);
    for (size_t part = 0; part < sums_.size(); ++part)
      v_.emit(VOp::vaddps, v_.force(Source(result(part))), sums_[part], 0, sums_[part]);
    code_.place(first);
    for (size_t part = 0; part < sums_.size(); ++part)
      code_.add({.op = VOp::store, .width = width(), .a = sums_[part], .mem = result(part)});
  }

 private:
  void load(Gpr to, size_t offset) { code_.load(to, Mem::at(Gpr::rdi, static_cast<int64_t>(offset))); }
  uint8_t width() const { return static_cast<uint8_t>(code_.width); }
  Mem result(size_t part) const { return Mem::at(Gpr::rax, static_cast<int64_t>(part) * code_.width); }

  /// Of the first kK lanes, which are fewer than all.
  VReg mask_of_rest() {
    if (v_.avx512()) {
      code_.g(VOp::g_imm, Gpr::rax, -1);
      code_.g(VOp::g_bzhi, Gpr::rax, kK);
      const VReg mask = code_.mask();
      code_.add({.op = VOp::k_from_gpr, .g = Gpr::rax, .dst = mask});
      return mask;
    }
    const VReg count = code_.vector();
    code_.add({.op = VOp::q_from_gpr, .g = kK, .dst = count});
    return v_.emit(VOp::vpcmpgtd, v_.emit1(VOp::vpbroadcastd, count, 0, code_.width, 16), code_.counting(4, 0));
  }
  VReg load_columns(const Mem& at, VReg mask) {
    if (v_.avx512() || mask == kNoReg) return load_f32(v_, b_, at, mask);
    Inst inst{.op = VOp::maskload_d, .width = width(), .b = mask, .mem = at};
    inst.dst = code_.vector();
    code_.add(inst);
    return inst.dst;
  }
  Mem column(Gpr base, int i, int64_t bytes = 0) const {
    return i % 4 == 0   ? Mem::at(base, bytes)
           : i % 4 == 3 ? Mem::at(base, kStride3, 1, bytes)
                        : Mem::at(base, kStride, i % 4, bytes);
  }
  /// For the same of k of the next sixteen columns, which lie where nothing in order would be asked for: some rows of
  /// a line or two each.
  void ask_ahead() {
    for (Gpr base : kRows) {
      code_.add({.op = VOp::g_lea, .g = Gpr::rax, .mem = Mem::at(base, kAhead, 1)});
      for (int i = 0; i < 4; ++i) code_.add({.op = VOp::prefetch, .mem = column(Gpr::rax, i), .value = 1});
    }
  }
  /// Of k from `step` on, as many as lanes, each over as many columns; under a mask, fewer.
  std::vector<VReg> square(size_t part, int64_t step, VReg mask) {
    std::vector<VReg> x;
    const int first = static_cast<int>(part) * lanes_;
    for (int i = first; i < first + lanes_; ++i) {
      x.push_back(load_columns(column(kRows[i / 4], i, step * ingot::size_of(b_)), mask));
    }
    return transposed(v_, std::move(x), 4);
  }
  void multiply(size_t part, VReg x, int64_t step) {
    const VReg a = v_.emit1(VOp::vbroadcastss, Source(Mem::at(kA, 4 * step)));
    code_.add({.op = VOp::fma_ps, .width = width(), .dst = sums_[part], .a = x, .b = a, .c = sums_[part]});
  }

  const DType b_;
  VCode& code_;
  Vectors v_;
  const int lanes_;
  std::vector<VReg> sums_;  // sixteen columns
};

}  // namespace

void emit_transposed_tile(const TileSpec& spec, const Target& target, VCode& code) {
  INGOT_CHECK(may_be_transposed(target, spec.a, spec.b) && spec.rows == 1 && spec.vectors == 1,
              "a tile of a B as it lies");
  TransposedTile(spec.b, code).emit();
}

}  // namespace ingot::codegen::x86
