// Packs a piece of B into a panel. Rows that are contiguous are copied; where k is contiguous, squares are transposed
// in registers; any other strides go element by element.
#include <cstddef>

#include "codegen/x86/lanes.h"
#include "codegen/x86/pack.h"
#include "codegen/x86/tile.h"
#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {
namespace {

class Pack {
  static constexpr Gpr kFrame = Gpr::rdi, kFrom = Gpr::rsi, kPanel = Gpr::rdx, kK = Gpr::rcx, kColumns = Gpr::r8,
                       kStride = Gpr::r9, kStride3 = Gpr::r10;

 public:
  // What is moved about is an element of 4 or 8 bytes: for bf16 a pair of k, for f16 and i8 one in a lane of 4.
  Pack(const PackSpec& spec, VCode& code)
      : spec_(spec),
        code_(code),
        v_(code),
        pairs_(spec.dtype == DType::bf16),
        narrow_(!pairs_ && ingot::size_of(spec.dtype) < 4),
        element_(spec.dtype == DType::f64 ? 8 : 4),
        stored_(narrow_ ? static_cast<int>(ingot::size_of(spec.dtype)) : element_),
        lanes_(code.width / element_),
        columns_(kLanes * spec.vectors) {}

  void emit() {
    int64_t slow = code_.label(), done = code_.label();
    load(kFrom, offsetof(PackFrame, b));
    load(kPanel, offsetof(PackFrame, panel));
    load(kK, offsetof(PackFrame, k));
    load(kColumns, offsetof(PackFrame, columns));
    load(Gpr::rax, spec_.transposed ? offsetof(PackFrame, k_stride) : offsetof(PackFrame, n_stride));
    code_.g(VOp::g_cmpi, Gpr::rax, ingot::size_of(spec_.dtype));
    code_.jump(slow, Cond::not_equal);
    load(kStride, spec_.transposed ? offsetof(PackFrame, n_stride) : offsetof(PackFrame, k_stride));
    if (!has_masks()) {
      code_.g(VOp::g_cmpi, kColumns, columns_);
      code_.jump(slow, Cond::less);
      if (spec_.transposed) {
        code_.g(VOp::g_testi, kK, lanes_ - 1);
        code_.jump(slow, Cond::not_equal);
      }
    }
    if (spec_.transposed) {
      transpose();
    } else {
      if (pairs_) {
        interleave(slow);
      } else {
        copy_rows();
      }
    }
    code_.jump(done);
    code_.place(slow);
    elements();
    code_.place(done);
  }

 private:
  void load(Gpr to, size_t offset) { code_.load(to, Mem::at(kFrame, static_cast<int64_t>(offset))); }
  uint8_t width() const { return static_cast<uint8_t>(code_.width); }
  int parts() const { return columns_ / lanes_; }
  int64_t row_bytes() const { return static_cast<int64_t>(columns_) * stored_; }
  int64_t part_bytes() const { return static_cast<int64_t>(lanes_) * stored_; }
  VReg load(const Mem& from) {
    if (!narrow_) return v_.force(Source(from));
    return v_.emit1(stored_ == 1 ? VOp::vpmovzxbd : VOp::vpmovzxwd, from, 0, code_.width, lanes_ * stored_);
  }
  void store(VReg x, const Mem& at) {
    if (!narrow_) {
      code_.add({.op = VOp::store, .width = width(), .a = x, .mem = at});
    } else if (v_.avx512()) {
      code_.add({.op = stored_ == 1 ? VOp::store_bytes : VOp::store_words, .width = 64, .a = x, .mem = at});
    } else {
      const VReg words = v_.emit1(VOp::vpermq, v_.emit(VOp::vpackusdw, x, x), 0x08);
      if (stored_ == 2)
        code_.add({.op = VOp::store_bytes16, .width = 16, .a = words, .mem = at});
      else
        code_.add({.op = VOp::store_sd, .a = v_.emit(VOp::vpackuswb, words, words), .mem = at});
    }
  }
  template <class F>
  void count_down(Gpr counter, F body) {
    const Loop loop = code_.begin_loop();
    body();
    code_.g(VOp::g_addi, counter, -1);
    code_.end_loop(loop, Cond::not_equal);
  }

  /// Masks of the first `count` lanes over several registers.
  std::vector<VReg> masks(int registers, Gpr count) {
    std::vector<VReg> out;
    const bool wide = element_ == 8;
    VReg first = code_.vector();
    code_.add({.op = VOp::q_from_gpr, .g = count, .dst = first});
    VReg limit = v_.emit1(wide ? VOp::vpbroadcastq : VOp::vpbroadcastd, first, 0, code_.width, 16);
    for (int p = 0; p < registers; ++p) {
      VReg lane = code_.counting(element_, p * lanes_);
      out.push_back(v_.avx512() ? v_.emit_mask(wide ? VOp::cmp_q : VOp::cmp_d, lane, limit, 1)
                                : v_.emit(wide ? VOp::vpcmpgtq : VOp::vpcmpgtd, limit, lane));
    }
    return out;
  }
  VReg masked_load(const Mem& from, VReg mask) {
    const bool wide = element_ == 8;
    Inst inst{.op = narrow_       ? (stored_ == 1 ? VOp::vpmovzxbd : VOp::vpmovzxwd)
                    : v_.avx512() ? (wide ? VOp::vmovupd : VOp::vmovups)
                    : wide        ? VOp::maskload_q
                                  : VOp::maskload_d,
              .width = width(),
              .from = static_cast<uint8_t>(narrow_ ? part_bytes() : 0),
              .zeroing = v_.avx512(),
              .mem = from};
    inst.dst = code_.vector();
    (v_.avx512() ? inst.pred : inst.b) = mask;
    code_.add(inst);
    return inst.dst;
  }

  void copy_rows() {
    int64_t edge = code_.label(), done = code_.label();
    code_.g(VOp::g_cmpi, kColumns, columns_);
    code_.jump(edge, Cond::less);
    auto rows = [&](const std::vector<VReg>& mask) {
      count_down(kK, [&] {
        for (int p = 0; p < parts(); ++p) {
          Mem from = Mem::at(kFrom, p * part_bytes());
          VReg x = mask.empty() ? load(from) : masked_load(from, mask[static_cast<size_t>(p)]);
          store(x, Mem::at(kPanel, p * part_bytes()));
        }
        code_.g(VOp::g_add, kFrom, kStride);
        code_.g(VOp::g_addi, kPanel, row_bytes());
      });
    };
    rows({});
    code_.jump(done);
    code_.place(edge);
    if (has_masks()) rows(masks(parts(), kColumns));
    code_.place(done);
  }
  bool has_masks() const { return !narrow_ || v_.avx512(); }

  /// Two rows of 16-bit elements to one of pairs. AVX2 has no masked loads of 16 bits: it leaves edges to `slow`.
  void interleave(int64_t slow) {
    const int half = code_.width / 2;
    auto row = [&](const std::vector<VReg>& mask, bool two) {
      for (int p = 0; p < parts(); ++p) {
        auto words = [&](const Mem& from) {
          Inst inst{.op = VOp::vpmovzxwd, .width = width(), .from = static_cast<uint8_t>(half), .mem = from};
          inst.dst = code_.vector();
          if (!mask.empty()) inst.pred = mask[static_cast<size_t>(p)];
          inst.zeroing = !mask.empty();
          code_.add(inst);
          return inst.dst;
        };
        VReg pair = words(Mem::at(kFrom, p * half));
        if (two) pair = v_.emit(VOp::vor, pair, v_.emit1(VOp::vpslld, words(Mem::at(kFrom, kStride, 1, p * half)), 16));
        store(pair, Mem::at(kPanel, p * code_.width));
      }
    };
    auto rows = [&](const std::vector<VReg>& mask) {
      int64_t even = code_.label(), done = code_.label();
      code_.g(VOp::g_mov, Gpr::rax, kK);
      code_.g(VOp::g_shri, Gpr::rax, 1);
      code_.jump(even, Cond::equal);
      count_down(Gpr::rax, [&] {
        row(mask, true);
        code_.add({.op = VOp::g_lea, .g = kFrom, .mem = Mem::at(kFrom, kStride, 2)});
        code_.g(VOp::g_addi, kPanel, row_bytes());
      });
      code_.place(even);
      code_.g(VOp::g_testi, kK, 1);
      code_.jump(done, Cond::equal);
      row(mask, false);
      code_.place(done);
    };
    int64_t edge = code_.label(), done = code_.label();
    code_.g(VOp::g_cmpi, kColumns, columns_);
    code_.jump(v_.avx512() ? edge : slow, Cond::less);
    rows({});
    code_.jump(done);
    code_.place(edge);
    if (v_.avx512()) rows(masks(parts(), kColumns));
    code_.place(done);
  }

  /// Column i of the square at r11: the addresses of every fourth column in four registers.
  Mem column(int i) const {
    static constexpr Gpr base[4] = {Gpr::r11, Gpr::r12, Gpr::r13, Gpr::r14};
    switch (i % 4) {
      case 0:
        return Mem::at(base[i / 4]);
      case 1:
        return Mem::at(base[i / 4], kStride, 1);
      case 2:
        return Mem::at(base[i / 4], kStride, 2);
      default:
        return Mem::at(base[i / 4], kStride3, 1);
    }
  }
  void transpose() {
    code_.add({.op = VOp::g_lea, .g = kStride3, .mem = Mem::at(kStride, kStride, 2)});
    if (pairs_) code_.g(VOp::g_shri, kK, 1);
    // A strip of columns at a time. rbp: strips left; rbx: columns of this strip that exist, maybe none; r15: where it
    // stands in the panel.
    int64_t partial = code_.label(), done = code_.label(), end = code_.label();
    code_.g(VOp::g_imm, Gpr::rbp, columns_ / lanes_);
    code_.g(VOp::g_mov, Gpr::rbx, kColumns);
    const Loop strip = code_.begin_loop();
    if (!spec_.padded) {
      code_.g(VOp::g_cmpi, Gpr::rbx, 0);
      code_.jump(end, Cond::less_equal);
    }
    code_.g(VOp::g_mov, Gpr::rax, kK);  // rows left
    code_.g(VOp::g_mov, Gpr::r15, kPanel);
    code_.g(VOp::g_mov, Gpr::r11, kFrom);
    for (Gpr next : {Gpr::r12, Gpr::r13, Gpr::r14})
      code_.add({.op = VOp::g_lea,
                 .g = next,
                 .mem = Mem::at(next == Gpr::r12   ? Gpr::r11
                                : next == Gpr::r13 ? Gpr::r12
                                                   : Gpr::r13,
                                kStride, 4)});
    code_.g(VOp::g_cmpi, Gpr::rbx, lanes_);
    code_.jump(partial, Cond::less);
    const Loop loop = code_.begin_loop();
    code_.g(VOp::g_cmpi, Gpr::rax, lanes_);
    code_.jump(partial, Cond::less);
    whole_square();
    code_.end_loop(loop);
    code_.place(partial);
    if (has_masks()) partial_squares(done);
    code_.place(done);
    // The next strip of columns.
    code_.add({.op = VOp::g_lea, .g = kFrom, .mem = Mem::at(kFrom, kStride, lanes_ == 4 ? 4 : 8)});
    if (lanes_ == 16) code_.add({.op = VOp::g_lea, .g = kFrom, .mem = Mem::at(kFrom, kStride, 8)});
    code_.g(VOp::g_addi, kPanel, part_bytes());
    code_.g(VOp::g_addi, Gpr::rbx, -lanes_);
    code_.g(VOp::g_addi, Gpr::rbp, -1);
    code_.end_loop(strip, Cond::not_equal);
    code_.place(end);
    if (pairs_) odd_pairs();
  }
  void advance() {
    for (Gpr base : {Gpr::r11, Gpr::r12, Gpr::r13, Gpr::r14}) code_.g(VOp::g_addi, base, part_bytes());
    code_.g(VOp::g_addi, Gpr::rax, -lanes_);
  }
  void whole_square() {
    std::vector<VReg> x;
    for (int i = 0; i < lanes_; ++i) x.push_back(load(column(i)));
    x = transposed(v_, x, element_);
    for (int i = 0; i < lanes_; ++i) {
      store(x[static_cast<size_t>(i)], Mem::at(Gpr::r15));
      code_.g(VOp::g_addi, Gpr::r15, row_bytes());
    }
    advance();
  }
  /// Squares at an edge: rax rows are left, rbx columns exist.
  void partial_squares(int64_t done) {
    const Loop loop = code_.begin_loop();
    code_.g(VOp::g_cmpi, Gpr::rax, 0);
    code_.jump(done, Cond::less_equal);
    VReg mask = masks(1, Gpr::rax)[0];
    std::vector<VReg> x;
    for (int i = 0; i < lanes_; ++i) {
      VReg r = code_.vector();
      code_.add({.op = VOp::vmovups, .width = width(), .dst = r, .a = code_.splat32(0)});
      int64_t missing = code_.label();
      code_.g(VOp::g_cmpi, Gpr::rbx, i);
      code_.jump(missing, Cond::less_equal);
      VReg loaded = masked_load(column(i), mask);
      code_.add({.op = VOp::vmovups, .width = width(), .dst = r, .a = loaded});
      code_.place(missing);
      x.push_back(r);
    }
    x = transposed(v_, x, element_);
    for (int i = 0; i < lanes_; ++i) {
      code_.g(VOp::g_cmpi, Gpr::rax, i);
      code_.jump(done, Cond::less_equal);
      store(x[static_cast<size_t>(i)], Mem::at(Gpr::r15));
      code_.g(VOp::g_addi, Gpr::r15, row_bytes());
    }
    advance();
    code_.end_loop(loop);
  }

  /// The odd last row of pairs, whose second elements are zero: by element, as nothing behind it may be read.
  void odd_pairs() {
    int64_t even = code_.label();
    load(kK, offsetof(PackFrame, k));
    load(kPanel, offsetof(PackFrame, panel));
    code_.g(VOp::g_testi, kK, 1);
    code_.jump(even, Cond::equal);
    load(Gpr::rax, offsetof(PackFrame, b));
    code_.add({.op = VOp::g_lea, .g = Gpr::rax, .mem = Mem::at(Gpr::rax, kK, 2, -2)});
    code_.g(VOp::g_shri, kK, 1);
    code_.g(VOp::g_imm, Gpr::rbx, row_bytes());
    code_.g(VOp::g_imul, kK, Gpr::rbx);
    code_.g(VOp::g_add, kPanel, kK);
    row_of_elements(4);
    code_.place(even);
  }

  /// One row of the panel from rax on; r8: the columns that exist. Elements are stored with `bytes`, the others zero.
  void row_of_elements(int bytes) {
    int64_t missing = code_.label();
    code_.g(VOp::g_imm, Gpr::rbx, 0);
    code_.g(VOp::g_mov, Gpr::r15, kPanel);
    const Loop loop = code_.begin_loop();
    code_.g(VOp::g_imm, Gpr::r12, 0);
    code_.g(VOp::g_cmp, Gpr::rbx, kColumns);
    code_.jump(missing, Cond::greater_equal);
    code_.add({.op = VOp::g_load,
               .width = static_cast<uint8_t>(ingot::size_of(spec_.dtype)),
               .g = Gpr::r12,
               .mem = Mem::at(Gpr::rax)});
    code_.place(missing);
    code_.add({.op = VOp::g_store, .width = static_cast<uint8_t>(bytes), .g = Gpr::r12, .mem = Mem::at(Gpr::r15)});
    code_.g(VOp::g_add, Gpr::rax, kStride);
    code_.g(VOp::g_addi, Gpr::r15, stored_);
    code_.g(VOp::g_addi, Gpr::rbx, 1);
    code_.g(VOp::g_cmpi, Gpr::rbx, columns_);
    code_.end_loop(loop, Cond::less);
  }

  void elements() {
    load(Gpr::r10, offsetof(PackFrame, k_stride));
    load(kStride, offsetof(PackFrame, n_stride));
    const int bytes = static_cast<int>(ingot::size_of(spec_.dtype));
    int64_t exists = code_.label(), end = code_.label();
    code_.g(VOp::g_imm, Gpr::r13, 0);
    const Loop loop = code_.begin_loop();
    code_.g(VOp::g_cmp, Gpr::r13, kK);
    code_.jump(exists, Cond::less);
    if (!pairs_) {
      code_.jump(end);
    } else {  // one more row completes an odd last pair, with no columns
      code_.g(VOp::g_testi, Gpr::r13, 1);
      code_.jump(end, Cond::equal);
      code_.g(VOp::g_imm, kColumns, 0);
    }
    code_.place(exists);
    code_.g(VOp::g_mov, Gpr::rax, kFrom);
    row_of_elements(bytes);
    code_.g(VOp::g_add, kFrom, Gpr::r10);
    code_.g(VOp::g_addi, Gpr::r13, 1);
    if (!pairs_) {
      code_.g(VOp::g_addi, kPanel, row_bytes());
    } else {
      int64_t second = code_.label();
      code_.g(VOp::g_addi, kPanel, bytes);
      code_.g(VOp::g_testi, Gpr::r13, 1);
      code_.jump(second, Cond::not_equal);
      code_.g(VOp::g_addi, kPanel, row_bytes() - 2 * bytes);
      code_.place(second);
    }
    code_.end_loop(loop);
    code_.place(end);
  }

  const PackSpec& spec_;
  VCode& code_;
  Vectors v_;
  bool pairs_, narrow_;
  int element_, stored_, lanes_, columns_;  // bytes in a lane, and in the panel
};

}  // namespace

void emit_pack(const PackSpec& spec, VCode& code) { Pack(spec, code).emit(); }

}  // namespace ingot::codegen::x86
