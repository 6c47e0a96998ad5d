// Virtual-register code with its allocation -> bytes. The only file that sees Xbyak.
#define XBYAK_NO_OP_NAMES
#include <xbyak/xbyak.h>

#include "base/error.h"
#include "codegen/x86/vcode.h"

namespace ingot::codegen::x86 {
namespace {

using Xbyak::Address;
using Xbyak::Label;
using Xbyak::Operand;
using Xbyak::Opmask;
using Xbyak::Reg32;
using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr Gpr kSaved[] = {Gpr::rbx, Gpr::rbp, Gpr::r12, Gpr::r13, Gpr::r14, Gpr::r15};

class Encoder {
 public:
  Encoder(VCode& code, uint8_t* buffer, size_t size)
      : code_(code),
        alloc_(allocate(code)),
        c_(size, buffer),
        labels_(static_cast<size_t>(code.labels)),
        pool_labels_(2 * code.constants.size()),
        pool_used_(2 * code.constants.size()) {
    c_.setDefaultJmpNEAR(true);
  }

  int64_t run() {
    prologue();
    for (const Inst& inst : code_.insts) encode(inst);
    epilogue();
    int64_t code_bytes = static_cast<int64_t>(c_.getSize());
    pool();
    return code_bytes;
  }
  size_t size() const { return c_.getSize(); }

 private:
  // -- frame and constants
  // ---------------------------------------------------------------------------------------------
  void prologue() {
    if (code_.frame_bytes > 0) saved_rsp_ = code_.reserve(8);
    for (Gpr g : kSaved)
      if (uses(g)) c_.push(r64(g));
    if (code_.frame_bytes > 0) {
      c_.mov(c_.rax, c_.rsp);
      c_.sub(c_.rsp, static_cast<uint32_t>(code_.frame_bytes));
      c_.and_(c_.rsp, -64);
      c_.mov(c_.ptr[c_.rsp + static_cast<int>(saved_rsp_)], c_.rax);
    }
    for (size_t r = 0; r < code_.regs.size(); ++r) {
      int constant = code_.regs[r].constant;
      if (constant >= 0 && alloc_.homes[r].reg >= 0) load_constant(vec(alloc_.homes[r].reg, code_.width), constant);
    }
  }
  void epilogue() {
    if (code_.frame_bytes > 0) c_.mov(c_.rsp, c_.ptr[c_.rsp + static_cast<int>(saved_rsp_)]);
    for (int i = 5; i >= 0; --i)
      if (uses(kSaved[i])) c_.pop(r64(kSaved[i]));
    c_.vzeroupper();
    c_.ret();
  }
  bool uses(Gpr g) const {
    for (const Inst& i : code_.insts)
      if (i.g == g || i.h == g || i.mem.base == g || i.mem.index == g) return true;
    return false;
  }
  void load_constant(const Xmm& reg, int constant) {
    const Constant& value = code_.constants[static_cast<size_t>(constant)];
    bool zero = true;
    for (uint8_t byte : value.bytes) zero &= byte == 0;
    if (zero) {
      wide() ? c_.vpxord(reg, reg, reg) : c_.vpxor(reg, reg, reg);
    } else if (value.splat == 4) {
      c_.vbroadcastss(reg, c_.ptr[c_.rip + pool_label(constant, true)]);
    } else if (value.splat == 8) {
      wide() ? c_.vbroadcastsd(Zmm(reg.getIdx()), c_.ptr[c_.rip + pool_label(constant, true)])
             : c_.vbroadcastsd(Ymm(reg.getIdx()), c_.ptr[c_.rip + pool_label(constant, true)]);
    } else {
      c_.vmovups(reg, c_.ptr[c_.rip + pool_label(constant, false)]);
    }
  }
  const Label& pool_label(int constant, bool one_element) {
    size_t i = static_cast<size_t>(2 * constant + one_element);
    pool_used_[i] = true;
    return pool_labels_[i];
  }
  void pool() {
    for (bool one_element : {false, true}) {
      c_.align(one_element ? 8 : 64, false);
      for (size_t i = 0; i < code_.constants.size(); ++i) {
        if (!pool_used_[2 * i + one_element]) continue;
        c_.L(pool_labels_[2 * i + one_element]);
        const Constant& value = code_.constants[i];
        // Elements of 4 bytes are padded to 8, so that no element of 8 lies across two cache lines.
        int bytes = one_element ? 8 : code_.width;
        for (int b = 0; b < bytes; ++b) c_.db(value.bytes[static_cast<size_t>(b)]);
      }
    }
  }

  // -- operands
  // --------------------------------------------------------------------------------------------------------
  static Xmm vec(int reg, int width) {
    return width == 64 ? static_cast<Xmm>(Zmm(reg)) : width == 32 ? static_cast<Xmm>(Ymm(reg)) : Xmm(reg);
  }
  static Reg64 r64(Gpr g) { return Reg64(static_cast<int>(g)); }
  static Reg32 r32(Gpr g) { return Reg32(static_cast<int>(g)); }
  Address address(const Mem& m) {
    RegExp e = m.kind == Mem::Kind::frame ? RegExp(c_.rsp) : RegExp(r64(m.base));
    if (m.index != Gpr::none) e = e + RegExp(r64(m.index), m.scale);
    return c_.ptr[e + m.disp];
  }
  const Home& home(VReg r) const { return alloc_.homes[r]; }
  Address spill(VReg r) {
    if (code_.regs[r].constant >= 0) return c_.ptr[c_.rip + pool_label(code_.regs[r].constant, false)];
    INGOT_CHECK(home(r).slot >= 0);
    return c_.ptr[c_.rsp + home(r).slot];
  }
  /// The physical register of a source, loaded into scratch register number `scratch` if it lives in memory.
  Xmm source(VReg r, int width, int scratch) {
    if (home(r).reg >= 0) return vec(home(r).reg, width);
    int reg = alloc_.vector_scratch[static_cast<size_t>(scratch)];
    INGOT_CHECK(reg >= 0);
    if (code_.regs[r].constant >= 0 && code_.constants[static_cast<size_t>(code_.regs[r].constant)].splat) {
      load_constant(vec(reg, code_.width), code_.regs[r].constant);
    } else {
      c_.vmovups(vec(reg, code_.width), spill(r));
    }
    return vec(reg, width);
  }
  Opmask mask_source(VReg r, int scratch) {
    if (home(r).reg >= 0) return Opmask(home(r).reg);
    Opmask k(alloc_.mask_scratch[static_cast<size_t>(scratch)]);
    c_.kmovq(k, spill(r));
    return k;
  }
  Xmm destination(const Inst& inst, int width) {
    VReg r = inst.dst;
    if (home(r).reg >= 0) return vec(home(r).reg, width);
    int reg = alloc_.vector_scratch[0];
    INGOT_CHECK(reg >= 0);
    if (inst.reads_dst()) c_.vmovups(vec(reg, code_.width), spill(r));
    return vec(reg, width);
  }
  Opmask mask_destination(const Inst& inst) {
    return Opmask(home(inst.dst).reg >= 0 ? home(inst.dst).reg : alloc_.mask_scratch[0]);
  }
  void finish(const Inst& inst) {
    if (home(inst.dst).reg >= 0) return;
    if (code_.regs[inst.dst].cls == RegClass::mask) {
      c_.kmovq(spill(inst.dst), Opmask(alloc_.mask_scratch[0]));
    } else {
      c_.vmovups(spill(inst.dst), vec(alloc_.vector_scratch[0], code_.width));
    }
  }
  template <class R>
  R masked(R reg, const Inst& inst) {
    if (inst.pred == kNoReg) return reg;
    reg.setOpmaskIdx(mask_source(inst.pred, 1).getIdx());
    if (inst.zeroing) reg.setZero();
    return reg;
  }
  int source_width(const Inst& inst) const { return inst.from ? inst.from : inst.width; }
  /// The last source of an instruction: a register, memory, or where a spilled register lives.
  struct RegOrMem {
    Xmm reg;
    Address mem;
    bool is_mem;
    const Operand& op() const { return is_mem ? static_cast<const Operand&>(mem) : reg; }
  };
  RegOrMem last_source(const Inst& inst, VReg r, int width) {
    if (inst.mem) return {Xmm(0), address(inst.mem), true};
    if (home(r).reg < 0) return {Xmm(0), spill(r), true};
    return {vec(home(r).reg, width), c_.ptr[c_.rsp], false};
  }

  // -- instructions
  // ----------------------------------------------------------------------------------------------------
  void encode(const Inst& inst);
  void encode_mask(const Inst& inst);
  void encode_memory(const Inst& inst);
  void encode_general(const Inst& inst);
  void fma(const Inst& inst);
  bool wide() const { return code_.isa == Isa::avx512; }
  void jump(const Inst& inst);

  VCode& code_;
  Allocation alloc_;
  Xbyak::CodeGenerator c_;
  std::vector<Label> labels_, pool_labels_;
  std::vector<bool> pool_used_;
  int64_t saved_rsp_ = 0;
};

void Encoder::fma(const Inst& inst) {
  bool single = inst.op == VOp::fma_ps;
  VReg a = inst.a, b = inst.b, c = inst.c;
  Xmm dst = destination(inst, inst.width);
  auto is_memory = [&](VReg r) { return r == kNoReg || home(r).reg < 0; };  // no register: inst.mem
  auto memory = [&](VReg r) { return r == kNoReg ? address(inst.mem) : spill(r); };
  auto in_dst = [&](VReg r) { return !is_memory(r) && home(r).reg == dst.getIdx(); };
  auto move = [&](VReg r) {
    if (is_memory(r)) {
      c_.vmovups(dst, memory(r));
    } else if (!in_dst(r)) {
      c_.vmovaps(dst, vec(home(r).reg, inst.width));
    }
  };
  // Only one source can stay in memory: prefer the one of inst.mem.
  if (is_memory(a) && (is_memory(b) || b == a)) {
    Xmm t = a == kNoReg ? Xmm(0) : source(a, inst.width, 1);
    if (a == kNoReg) {
      t = vec(alloc_.vector_scratch[1], inst.width);
      c_.vmovups(t, address(inst.mem));
    }
    bool same = a == b;
    auto multiply_add = [&](const Operand& by) {
      move(c);  // dst is no source here: a and b are in memory
      single ? c_.vfmadd231ps(dst, t, by) : c_.vfmadd231pd(dst, t, by);
    };
    if (same) {
      multiply_add(t);
    } else {
      multiply_add(memory(b));
    }
    return finish(inst);
  }
  if (is_memory(a)) std::swap(a, b);  // now a is a register
  Xmm ra = vec(home(a).reg, inst.width);
  if (is_memory(c)) {
    if (is_memory(b)) {  // b and c in memory: load c, unless dst holds a
      if (in_dst(a)) {
        Xmm t = vec(alloc_.vector_scratch[1], inst.width);
        c_.vmovups(t, memory(c));
        single ? c_.vfmadd132ps(dst, t, memory(b)) : c_.vfmadd132pd(dst, t, memory(b));
      } else {
        move(c);
        single ? c_.vfmadd231ps(dst, ra, memory(b)) : c_.vfmadd231pd(dst, ra, memory(b));
      }
      return finish(inst);
    }
    if (in_dst(b)) std::swap(a, b);
    move(a);
    Xmm rb = vec(home(b).reg, inst.width);
    single ? c_.vfmadd213ps(dst, rb, memory(c)) : c_.vfmadd213pd(dst, rb, memory(c));
    return finish(inst);
  }
  Xmm rc = vec(home(c).reg, inst.width);
  if (is_memory(b)) {
    if (in_dst(a) && !in_dst(c)) {
      single ? c_.vfmadd132ps(dst, rc, memory(b)) : c_.vfmadd132pd(dst, rc, memory(b));
    } else if (in_dst(a)) {  // a and c are the same register: a * b + a
      single ? c_.vfmadd132ps(dst, rc, memory(b)) : c_.vfmadd132pd(dst, rc, memory(b));
    } else {
      move(c);
      single ? c_.vfmadd231ps(dst, ra, memory(b)) : c_.vfmadd231pd(dst, ra, memory(b));
    }
    return finish(inst);
  }
  Xmm rb = vec(home(b).reg, inst.width);
  if (!in_dst(c) && in_dst(a)) {
    single ? c_.vfmadd213ps(dst, rb, rc) : c_.vfmadd213pd(dst, rb, rc);
  } else if (!in_dst(c) && in_dst(b)) {
    single ? c_.vfmadd213ps(dst, ra, rc) : c_.vfmadd213pd(dst, ra, rc);
  } else {
    move(c);
    single ? c_.vfmadd231ps(dst, ra, rb) : c_.vfmadd231pd(dst, ra, rb);
  }
  finish(inst);
}

void Encoder::encode(const Inst& inst) {
  const int width = inst.width;
  switch (inst.op) {
#define X(name)                                                 \
  case VOp::name: {                                             \
    Xmm a = source(inst.a, width, 1);                           \
    RegOrMem b = last_source(inst, inst.b, width);              \
    c_.name(masked(destination(inst, width), inst), a, b.op()); \
    return finish(inst);                                        \
  }
    INGOT_X86_OPS3(X)
#undef X
#define X(name)                                                           \
  case VOp::name: {                                                       \
    Xmm a = source(inst.a, width, 1);                                     \
    RegOrMem b = last_source(inst, inst.b, width);                        \
    c_.name(masked(destination(inst, width), inst), a, b.op(), inst.imm); \
    return finish(inst);                                                  \
  }
    INGOT_X86_OPS3_IMM(X)
#undef X
    // Conversions read no memory but inst.mem: the size of a spilled source would be ambiguous.
#define X(name)                                            \
  case VOp::name: {                                        \
    Xmm dst = masked(destination(inst, width), inst);      \
    if (inst.mem) {                                        \
      c_.name(dst, address(inst.mem));                     \
    } else {                                               \
      c_.name(dst, source(inst.a, source_width(inst), 1)); \
    }                                                      \
    return finish(inst);                                   \
  }
    INGOT_X86_OPS2(X)
#undef X
#define X(name)                                                   \
  case VOp::name: {                                               \
    Xmm a = source(inst.a, source_width(inst), 1);                \
    c_.name(masked(destination(inst, width), inst), a, inst.imm); \
    return finish(inst);                                          \
  }
    INGOT_X86_OPS2_IMM(X)
#undef X
    case VOp::vbroadcastsd: {
      Zmm zmm(destination(inst, width).getIdx());
      Ymm ymm(zmm.getIdx());
      Xmm a = inst.mem ? Xmm(0) : source(inst.a, 16, 1);
      const Ymm& dst = width == 64 ? static_cast<const Ymm&>(zmm) : ymm;
      inst.mem ? c_.vbroadcastsd(dst, address(inst.mem)) : c_.vbroadcastsd(dst, a);
      return finish(inst);
    }
    case VOp::vpermq: {
      Xmm a = source(inst.a, width, 1);
      c_.vpermq(Ymm(destination(inst, width).getIdx()), Ymm(a.getIdx()), inst.imm);
      return finish(inst);
    }
    case VOp::vperm2f128: {
      Xmm a = source(inst.a, width, 1), b = source(inst.b, width, 2);
      c_.vperm2f128(Ymm(destination(inst, width).getIdx()), Ymm(a.getIdx()), Ymm(b.getIdx()), inst.imm);
      return finish(inst);
    }
    case VOp::vshuff64x2:
    case VOp::vshuff32x4: {
      Xmm a = source(inst.a, width, 1), b = source(inst.b, width, 2);
      Zmm dst(destination(inst, width).getIdx());
      inst.op == VOp::vshuff64x2 ? c_.vshuff64x2(dst, Zmm(a.getIdx()), Zmm(b.getIdx()), inst.imm)
                                 : c_.vshuff32x4(dst, Zmm(a.getIdx()), Zmm(b.getIdx()), inst.imm);
      return finish(inst);
    }
#define INGOT_BITWISE(vop, evex, vex)                          \
  case VOp::vop: {                                             \
    Xmm a = source(inst.a, width, 1);                          \
    RegOrMem b = last_source(inst, inst.b, width);             \
    Xmm dst = masked(destination(inst, width), inst);          \
    wide() ? c_.evex(dst, a, b.op()) : c_.vex(dst, a, b.op()); \
    return finish(inst);                                       \
  }
      INGOT_BITWISE(vand, vpandd, vpand)
      INGOT_BITWISE(vor, vpord, vpor)
      INGOT_BITWISE(vxor, vpxord, vpxor)
      INGOT_BITWISE(vandn, vpandnd, vpandn)
#undef INGOT_BITWISE
    case VOp::fma_ps:
    case VOp::fma_pd:
      return fma(inst);
    case VOp::blend_ps:
    case VOp::blend_pd: {
      Xmm a = source(inst.a, width, 0), c = source(inst.c, width, 1);
      RegOrMem b = last_source(inst, inst.b, width);
      Xmm dst = destination(inst, width);
      inst.op == VOp::blend_ps ? c_.vblendvps(dst, a, b.op(), c) : c_.vblendvpd(dst, a, b.op(), c);
      return finish(inst);
    }
    case VOp::blendm_ps:
    case VOp::blendm_pd: {
      Xmm a = source(inst.a, width, 1);
      RegOrMem b = last_source(inst, inst.b, width);
      Xmm dst = masked(destination(inst, width), inst);
      inst.op == VOp::blendm_ps ? c_.vblendmps(dst, a, b.op()) : c_.vblendmpd(dst, a, b.op());
      return finish(inst);
    }
    case VOp::insert_half: {
      Xmm a = source(inst.a, width, 1), b = source(inst.b, width / 2, 2), dst = destination(inst, width);
      width == 64 ? c_.vinsertf32x8(Zmm(dst.getIdx()), Zmm(a.getIdx()), Ymm(b.getIdx()), 1)
                  : c_.vinsertf128(Ymm(dst.getIdx()), Ymm(a.getIdx()), Xmm(b.getIdx()), 1);
      return finish(inst);
    }
    case VOp::extract_half: {
      Xmm a = source(inst.a, 2 * width, 1), dst = destination(inst, width);
      width == 32 ? c_.vextractf32x8(Ymm(dst.getIdx()), Zmm(a.getIdx()), 1)
                  : c_.vextractf128(Xmm(dst.getIdx()), Ymm(a.getIdx()), 1);
      return finish(inst);
    }
    case VOp::narrow: {
      Xmm a = source(inst.a, 2 * width, 1);
      c_.vpmovqd(destination(inst, width), a);
      return finish(inst);
    }
    case VOp::to_half: {
      Xmm a = source(inst.a, 2 * width, 1);
      c_.vcvtps2ph(destination(inst, width), a, inst.imm);
      return finish(inst);
    }
    case VOp::d_from_gpr:
    case VOp::q_from_gpr: {
      Xmm dst = destination(inst, 16);
      inst.op == VOp::d_from_gpr ? c_.vmovd(dst, r32(inst.g)) : c_.vmovq(dst, r64(inst.g));
      return finish(inst);
    }
    case VOp::ss_from_gpr:
    case VOp::sd_from_gpr: {
      Xmm dst = destination(inst, 16);
      wide() ? c_.vpxord(dst, dst, dst) : c_.vpxor(dst, dst, dst);
      inst.op == VOp::ss_from_gpr ? c_.vcvtsi2ss(dst, dst, r64(inst.g)) : c_.vcvtsi2sd(dst, dst, r64(inst.g));
      return finish(inst);
    }
    default:
      break;
  }
  if (inst.op >= VOp::cmp_ps && inst.op <= VOp::v_movmsk) return encode_mask(inst);
  if (inst.op >= VOp::store && inst.op <= VOp::prefetch) return encode_memory(inst);
  encode_general(inst);
}

void Encoder::encode_mask(const Inst& inst) {
  const int width = inst.width;
  switch (inst.op) {
#define INGOT_COMPARE(vop, name)                                        \
  case VOp::vop: {                                                      \
    Xmm a = source(inst.a, width, 1);                                   \
    RegOrMem b = last_source(inst, inst.b, width);                      \
    c_.name(masked(mask_destination(inst), inst), a, b.op(), inst.imm); \
    return finish(inst);                                                \
  }
    INGOT_COMPARE(cmp_ps, vcmpps)
    INGOT_COMPARE(cmp_pd, vcmppd)
    INGOT_COMPARE(cmp_d, vpcmpd)
    INGOT_COMPARE(cmp_q, vpcmpq)
#undef INGOT_COMPARE
    case VOp::test_b:
    case VOp::test_d: {
      Xmm a = source(inst.a, width, 1);
      Opmask k = masked(mask_destination(inst), inst);
      inst.op == VOp::test_b ? c_.vptestmb(k, a, a) : c_.vptestmd(k, a, a);
      return finish(inst);
    }
#define INGOT_MASK_OP(vop, name)                                                     \
  case VOp::vop:                                                                     \
    c_.name(mask_destination(inst), mask_source(inst.a, 0), mask_source(inst.b, 1)); \
    return finish(inst);
      INGOT_MASK_OP(kand, kandw)
      INGOT_MASK_OP(kor, korw)
      INGOT_MASK_OP(kxor, kxorw)
      INGOT_MASK_OP(kandn, kandnw)
      INGOT_MASK_OP(kxnor, kxnorw)
      INGOT_MASK_OP(kunpack, kunpckbw)
#undef INGOT_MASK_OP
    case VOp::knot:
      c_.knotw(mask_destination(inst), mask_source(inst.a, 0));
      return finish(inst);
    case VOp::kmov:
      c_.kmovw(mask_destination(inst), mask_source(inst.a, 0));
      return finish(inst);
    case VOp::kshiftr8:
      c_.kshiftrw(mask_destination(inst), mask_source(inst.a, 0), 8);
      return finish(inst);
    case VOp::k_from_gpr:
      c_.kmovw(mask_destination(inst), r32(inst.g));
      return finish(inst);
    case VOp::k_to_gpr:
      return c_.kmovw(r32(inst.g), mask_source(inst.a, 0));
    case VOp::k_test: {
      Opmask k = mask_source(inst.a, 0);
      return c_.kortestw(k, k);
    }
    case VOp::v_test: {
      Xmm a = source(inst.a, width, 1);
      return c_.vptest(a, a);
    }
    case VOp::v_movmsk:
      return c_.vmovmskps(r32(inst.g), source(inst.a, width, 1));
    default:
      INGOT_CHECK(false, "not a mask instruction");
  }
}

void Encoder::encode_memory(const Inst& inst) {
  const int width = inst.width;
  // Stores are masked by their address.
  auto to = [&] { return masked(address(inst.mem), inst); };
  switch (inst.op) {
    case VOp::store:
      return c_.vmovups(to(), source(inst.a, width, 1));
    case VOp::store_pd:
      return c_.vmovupd(to(), source(inst.a, width, 1));
    case VOp::store_half:
      return c_.vcvtps2ph(to(), source(inst.a, width, 1), inst.imm);
    case VOp::store_words:
      return c_.vpmovdw(to(), source(inst.a, width, 1));
    case VOp::store_bytes:
      return c_.vpmovdb(to(), source(inst.a, width, 1));
    case VOp::store_bytes16: {
      Xmm a = source(inst.a, 16, 1);
      return wide() ? c_.vmovdqu8(to(), a) : c_.vmovups(to(), a);
    }
    case VOp::store_ss:
      return c_.vmovss(address(inst.mem), source(inst.a, 16, 1));
    case VOp::store_sd:
      return c_.vmovsd(address(inst.mem), source(inst.a, 16, 1));
    case VOp::load_bytes: {
      Xmm dst = masked(destination(inst, width), inst);
      inst.mem ? c_.vmovdqu8(dst, address(inst.mem)) : c_.vmovdqu8(dst, source(inst.a, width, 1));
      return finish(inst);
    }
    case VOp::maskload_d:
    case VOp::maskload_q: {
      Xmm m = source(inst.b, width, 1), dst = destination(inst, width);
      inst.op == VOp::maskload_d ? c_.vmaskmovps(dst, m, address(inst.mem)) : c_.vmaskmovpd(dst, m, address(inst.mem));
      return finish(inst);
    }
    case VOp::maskstore_d:
      return c_.vmaskmovps(address(inst.mem), source(inst.b, width, 1), source(inst.a, width, 2));
    case VOp::maskstore_q:
      return c_.vmaskmovpd(address(inst.mem), source(inst.b, width, 1), source(inst.a, width, 2));
    case VOp::gather_ps:
    case VOp::gather_pd: {
      Xmm dst = masked(destination(inst, width), inst);
      Zmm index(source(inst.a, 64, 1).getIdx());
      Address from = c_.ptr[r64(inst.mem.base) + index * 1 + inst.mem.disp];
      inst.op == VOp::gather_ps ? c_.vgatherqps(dst, from) : c_.vgatherqpd(dst, from);
      return finish(inst);
    }
    case VOp::prefetch:
      return c_.prefetcht0(address(inst.mem));
    default:
      INGOT_CHECK(false, "not a memory instruction");
  }
}

void Encoder::encode_general(const Inst& inst) {
  auto imm32 = [&] {
    INGOT_CHECK(inst.value == static_cast<int32_t>(inst.value));
    return static_cast<uint32_t>(inst.value);
  };
  switch (inst.op) {
    case VOp::d_to_gpr:
      return c_.vmovd(r32(inst.g), source(inst.a, 16, 1));
    case VOp::q_to_gpr:
      return c_.vmovq(r64(inst.g), source(inst.a, 16, 1));
    case VOp::ss_to_gpr:
      return c_.vcvttss2si(r64(inst.g), address(inst.mem));
    case VOp::sd_to_gpr:
      return c_.vcvttsd2si(r64(inst.g), address(inst.mem));
    case VOp::g_mov:
      return c_.mov(r64(inst.g), r64(inst.h));
    case VOp::g_imm:
      return c_.mov(r64(inst.g), static_cast<uint64_t>(inst.value));
    case VOp::g_load:
      switch (inst.width) {
        case 1:
          return c_.movzx(r32(inst.g), c_.byte[address(inst.mem).getRegExp()]);
        case 2:
          return c_.movzx(r32(inst.g), c_.word[address(inst.mem).getRegExp()]);
        case 4:
          return c_.mov(r32(inst.g), address(inst.mem));
        default:
          return c_.mov(r64(inst.g), address(inst.mem));
      }
    case VOp::g_store:
      switch (inst.width) {
        case 1:
          return c_.mov(address(inst.mem), Xbyak::Reg8(static_cast<int>(inst.g), static_cast<int>(inst.g) >= 4));
        case 2:
          return c_.mov(address(inst.mem), Xbyak::Reg16(static_cast<int>(inst.g)));
        case 4:
          return c_.mov(address(inst.mem), r32(inst.g));
        default:
          return c_.mov(address(inst.mem), r64(inst.g));
      }
    case VOp::g_lea:
      return c_.lea(r64(inst.g), address(inst.mem));
    case VOp::g_add:
      return c_.add(r64(inst.g), r64(inst.h));
    case VOp::g_addi:
      return c_.add(r64(inst.g), imm32());
    case VOp::g_addm:
      return c_.add(r64(inst.g), address(inst.mem));
    case VOp::g_add_to:
      return c_.add(address(inst.mem), r64(inst.g));
    case VOp::g_addi_to:
      return c_.add(c_.qword[address(inst.mem).getRegExp()], imm32());
    case VOp::g_sub:
      return c_.sub(r64(inst.g), r64(inst.h));
    case VOp::g_imul:
      return c_.imul(r64(inst.g), r64(inst.h));
    case VOp::g_imulm:
      return c_.imul(r64(inst.g), address(inst.mem));
    case VOp::g_andi:
      return c_.and_(r64(inst.g), imm32());
    case VOp::g_shri:
      return c_.shr(r64(inst.g), static_cast<int>(inst.value));
    case VOp::g_shli:
      return c_.shl(r64(inst.g), static_cast<int>(inst.value));
    case VOp::g_neg:
      return c_.neg(r64(inst.g));
    case VOp::g_cmp:
      return c_.cmp(r64(inst.g), r64(inst.h));
    case VOp::g_cmpi:
      return c_.cmp(r64(inst.g), imm32());
    case VOp::g_cmpm:
      return c_.cmp(r64(inst.g), address(inst.mem));
    case VOp::g_cmpi_m:
      return c_.cmp(c_.qword[address(inst.mem).getRegExp()], imm32());
    case VOp::g_testi:
      return c_.test(r64(inst.g), imm32());
    case VOp::g_bzhi:
      return c_.bzhi(r64(inst.g), r64(inst.g), r64(inst.h));
    case VOp::g_idiv:
      if (inst.width == 4) {
        c_.cdq();
        return c_.idiv(r32(inst.g));
      }
      c_.cqo();
      return c_.idiv(r64(inst.g));
    case VOp::g_cmov:
      switch (inst.cond) {
        case Cond::equal:
          return c_.cmove(r64(inst.g), r64(inst.h));
        case Cond::not_equal:
          return c_.cmovne(r64(inst.g), r64(inst.h));
        case Cond::less:
          return c_.cmovl(r64(inst.g), r64(inst.h));
        case Cond::greater:
          return c_.cmovg(r64(inst.g), r64(inst.h));
        case Cond::carry:
          return c_.cmovc(r64(inst.g), r64(inst.h));
        case Cond::not_carry:
          return c_.cmovnc(r64(inst.g), r64(inst.h));
        default:
          INGOT_CHECK(false, "condition of cmov");
      }
      return;
    case VOp::label:
      return c_.L(labels_[static_cast<size_t>(inst.value)]);
    case VOp::align_here:
      return c_.align(static_cast<size_t>(inst.value));
    case VOp::jump:
      return jump(inst);
    default:
      INGOT_CHECK(false, "unknown instruction");
  }
}

void Encoder::jump(const Inst& inst) {
  const Label& to = labels_[static_cast<size_t>(inst.value)];
  switch (inst.cond) {
    case Cond::always:
      return c_.jmp(to);
    case Cond::equal:
      return c_.je(to);
    case Cond::not_equal:
      return c_.jne(to);
    case Cond::less:
      return c_.jl(to);
    case Cond::less_equal:
      return c_.jle(to);
    case Cond::greater:
      return c_.jg(to);
    case Cond::greater_equal:
      return c_.jge(to);
    case Cond::carry:
      return c_.jc(to);
    case Cond::not_carry:
      return c_.jnc(to);
  }
}

}  // namespace

MachineCode encode(VCode& code) {
  // At most 15 bytes an instruction, and a spilled one takes up to five; the pool holds each constant twice at most.
  size_t size = code.insts.size() * 80 + code.regs.size() * 16 + code.constants.size() * 144 + 4096;
  std::vector<uint8_t> buffer(size + 64);
  uint8_t* aligned = buffer.data() + (64 - reinterpret_cast<uintptr_t>(buffer.data()) % 64) % 64;
  MachineCode result;
  try {
    Encoder encoder(code, aligned, size);
    result.code_bytes = encoder.run();
    result.bytes.assign(aligned, aligned + encoder.size());
  } catch (const Xbyak::Error& error) {
    throw InternalError(std::string("x86 encoder: ") + error.what());
  }
  return result;
}

}  // namespace ingot::codegen::x86
