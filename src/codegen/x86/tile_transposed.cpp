// Sixteen outputs of a product with one row of A, where B's k is contiguous: squares of B are transposed in registers
// and used at once.
#include <cstddef>

#include "base/error.h"
#include "codegen/x86/formats.h"
#include "codegen/x86/lanes.h"
#include "codegen/x86/tile.h"
#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {
namespace {

constexpr Gpr kA = Gpr::rsi, kK = Gpr::rcx, kStride = Gpr::r9, kStride3 = Gpr::r10;
constexpr Gpr kRows[] = {Gpr::r11, Gpr::r12, Gpr::r13, Gpr::r14};  // every fourth column of B

class TransposedTile {
 public:
  TransposedTile(DType b, VCode& code) : b_(b), code_(code), v_(code) {}

  void emit() {
    load(kA, offsetof(TileFrame, a));
    load(kRows[0], offsetof(TileFrame, b));
    load(kStride, offsetof(TileFrame, b_stride));
    load(kK, offsetof(TileFrame, k));
    code_.add({.op = VOp::g_lea, .g = kStride3, .mem = Mem::at(kStride, kStride, 2)});
    for (int i = 1; i < 4; ++i) code_.add({.op = VOp::g_lea, .g = kRows[i], .mem = Mem::at(kRows[i - 1], kStride, 4)});
    sum_ = code_.vector();
    code_.add({.op = VOp::vmovups, .width = 64, .dst = sum_, .a = code_.splat32(0)});

    const int64_t rest = code_.label(), done = code_.label(), first = code_.label();
    const Loop loop = code_.begin_loop();
    code_.g(VOp::g_cmpi, kK, kLanes);
    code_.jump(rest, Cond::less);
    for (VReg x : square(kNoReg)) multiply(x);
    step_ = 0;
    code_.g(VOp::g_addi, kA, kLanes * 4);
    for (Gpr row : kRows) code_.g(VOp::g_addi, row, kLanes * ingot::size_of(b_));
    code_.g(VOp::g_addi, kK, -kLanes);
    code_.end_loop(loop);
    code_.place(rest);
    code_.g(VOp::g_cmpi, kK, 0);
    code_.jump(done, Cond::less_equal);
    code_.g(VOp::g_imm, Gpr::rax, -1);
    code_.g(VOp::g_bzhi, Gpr::rax, kK);
    const VReg mask = code_.mask();
    code_.add({.op = VOp::k_from_gpr, .g = Gpr::rax, .dst = mask});
    for (VReg x : square(mask)) {
      code_.g(VOp::g_cmpi, kK, step_);
      code_.jump(done, Cond::less_equal);
      multiply(x);
    }
    code_.place(done);

    load(Gpr::rax, offsetof(TileFrame, c));
    load(kK, offsetof(TileFrame, accumulate));
    code_.g(VOp::g_cmpi, kK, 0);
    code_.jump(first, Cond::equal);
    v_.emit(VOp::vaddps, v_.force(Source(Mem::at(Gpr::rax))), sum_, 0, sum_);
    code_.place(first);
    code_.add({.op = VOp::store, .width = 64, .a = sum_, .mem = Mem::at(Gpr::rax)});
  }

 private:
  void load(Gpr to, size_t offset) { code_.load(to, Mem::at(Gpr::rdi, static_cast<int64_t>(offset))); }

  /// The next sixteen of k, each over sixteen columns; under a mask, fewer.
  std::vector<VReg> square(VReg mask) {
    std::vector<VReg> x;
    for (int i = 0; i < kLanes; ++i) {
      const Gpr base = kRows[i / 4];
      const Mem at = i % 4 == 0   ? Mem::at(base)
                     : i % 4 == 3 ? Mem::at(base, kStride3, 1)
                                  : Mem::at(base, kStride, i % 4);
      x.push_back(load_f32(v_, b_, at, mask));
    }
    return transposed(v_, std::move(x), 4);
  }
  void multiply(VReg x) {
    const VReg a = v_.emit1(VOp::vbroadcastss, Source(Mem::at(kA, 4 * step_++)));
    code_.add({.op = VOp::fma_ps, .width = 64, .dst = sum_, .a = x, .b = a, .c = sum_});
  }

  const DType b_;
  VCode& code_;
  Vectors v_;
  VReg sum_ = kNoReg;
  int64_t step_ = 0;
};

}  // namespace

void emit_transposed_tile(const TileSpec& spec, const Target& target, VCode& code) {
  INGOT_CHECK(target.isa == Isa::avx512 && spec.a == DType::f32 && spec.rows == 1 && spec.vectors == 1,
              "a tile of a B as it lies");
  TransposedTile(spec.b, code).emit();
}

}  // namespace ingot::codegen::x86
