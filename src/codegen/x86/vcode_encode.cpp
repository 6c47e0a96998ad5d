// Virtual-register code with its allocation -> bytes. The only file that sees Xbyak.
#define XBYAK_NO_OP_NAMES
#include <xbyak/xbyak.h>

#include <string>

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
  Encoder(VCode& code, const std::vector<int16_t>& homes, uint8_t* buffer, size_t size)
      : code_(code),
        homes_(homes),
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
  // frame and constants
  void prologue() {
    if (code_.frame_bytes > 0) saved_rsp_ = code_.reserve(8);
    for (Gpr g : kSaved)
      if (uses(g)) c_.push(r64(g));
    if (code_.frame_bytes > 0) {
      // Every page is touched in turn: a stack that is too short ends at its guard page, not beyond it.
      constexpr int64_t kPage = 4096;
      INGOT_CHECK(code_.frame_bytes <= kMostFrame, std::to_string(code_.frame_bytes) + " bytes of a kernel's frame");
      c_.mov(c_.rax, c_.rsp);
      for (int64_t at = kPage; at < code_.frame_bytes; at += kPage)
        c_.test(c_.ptr[c_.rsp - static_cast<int>(at)], c_.rax);
      c_.sub(c_.rsp, static_cast<uint32_t>(code_.frame_bytes));
      c_.and_(c_.rsp, -64);
      c_.mov(c_.ptr[c_.rsp + static_cast<int>(saved_rsp_)], c_.rax);
    }
    for (size_t r = 0; r < code_.regs.size(); ++r) {
      int constant = code_.regs[r].constant;
      if (constant >= 0 && homes_[r] >= 0) load_constant(physical(homes_[r], code_.width), constant);
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

  // operands
  static Xmm physical(int reg, int width) {
    return width == 64 ? static_cast<Xmm>(Zmm(reg)) : width == 32 ? static_cast<Xmm>(Ymm(reg)) : Xmm(reg);
  }
  static Reg64 r64(Gpr g) { return Reg64(static_cast<int>(g)); }
  static Reg32 r32(Gpr g) { return Reg32(static_cast<int>(g)); }
  Address address(const Mem& m) {
    if (m.kind == Mem::Kind::constant) return c_.ptr[c_.rip + pool_label(m.disp, false)];
    RegExp e = m.kind == Mem::Kind::frame ? RegExp(c_.rsp) : RegExp(r64(m.base));
    if (m.index != Gpr::none) e = e + RegExp(r64(m.index), m.scale);
    return c_.ptr[e + m.disp];
  }
  Xmm vec(VReg r, int width) const {
    INGOT_CHECK(homes_[r] >= 0);
    return physical(homes_[r], width);
  }
  Ymm ymm(VReg r) const { return Ymm(homes_[r]); }
  Zmm zmm(VReg r) const { return Zmm(homes_[r]); }
  Opmask mask(VReg r) const { return Opmask(homes_[r]); }
  template <class R>
  R masked(R reg, const Inst& inst) const {
    if (inst.pred == kNoReg) return reg;
    reg.setOpmaskIdx(homes_[inst.pred]);
    if (inst.zeroing) reg.setZero();
    return reg;
  }
  /// The destination, with the mask of the instruction.
  Xmm dst(const Inst& inst) const { return masked(vec(inst.dst, inst.width), inst); }
  Opmask mask_dst(const Inst& inst) const { return masked(mask(inst.dst), inst); }
  int source_width(const Inst& inst) const { return inst.from ? inst.from : inst.width; }
  /// The last source of an instruction: a register or memory.
  struct RegOrMem {
    Xmm reg;
    Address mem;
    bool is_mem;
    const Operand& op() const { return is_mem ? static_cast<const Operand&>(mem) : reg; }
  };
  RegOrMem last(const Inst& inst, VReg r, int width) {
    if (inst.mem) return {Xmm(0), address(inst.mem), true};
    return {vec(r, width), c_.ptr[c_.rsp], false};
  }

  // instructions
  void encode(const Inst& inst);
  void encode_mask(const Inst& inst);
  void encode_memory(const Inst& inst);
  void encode_general(const Inst& inst);
  void fma(const Inst& inst);
  void pick(const Inst& inst);
  Address gathered(const Inst& inst) { return c_.ptr[r64(inst.mem.base) + zmm(inst.a) * 1 + inst.mem.disp]; }
  bool wide() const { return code_.isa == Isa::avx512; }
  void jump(const Inst& inst);

  VCode& code_;
  const std::vector<int16_t>& homes_;
  Xbyak::CodeGenerator c_;
  std::vector<Label> labels_, pool_labels_;
  std::vector<bool> pool_used_;
  int64_t saved_rsp_ = 0;
};

// The form is chosen so that dst takes the place of a source that it shares the register with.
void Encoder::fma(const Inst& inst) {
  const bool single = inst.op == VOp::fma_ps;
  const Xmm to = vec(inst.dst, inst.width);
  VReg a = inst.a, b = inst.b;
  const VReg c = inst.c;  // kNoReg: this source is memory
  auto reg = [&](VReg r) { return vec(r, inst.width); };
  auto in_dst = [&](VReg r) { return r != kNoReg && homes_[r] == to.getIdx(); };
  auto move = [&](VReg r) {
    if (!in_dst(r)) c_.vmovaps(to, reg(r));
  };
  if (a == kNoReg) std::swap(a, b);
  if (c == kNoReg) {
    if (in_dst(b)) std::swap(a, b);
    move(a);
    Address memory = address(inst.mem);
    return single ? c_.vfmadd213ps(to, reg(b), memory) : c_.vfmadd213pd(to, reg(b), memory);
  }
  if (b == kNoReg) {
    Address memory = address(inst.mem);
    if (in_dst(a)) return single ? c_.vfmadd132ps(to, reg(c), memory) : c_.vfmadd132pd(to, reg(c), memory);
    move(c);
    return single ? c_.vfmadd231ps(to, reg(a), memory) : c_.vfmadd231pd(to, reg(a), memory);
  }
  if (!in_dst(c) && in_dst(b)) std::swap(a, b);
  if (!in_dst(c) && in_dst(a)) return single ? c_.vfmadd213ps(to, reg(b), reg(c)) : c_.vfmadd213pd(to, reg(b), reg(c));
  move(c);
  single ? c_.vfmadd231ps(to, reg(a), reg(b)) : c_.vfmadd231pd(to, reg(a), reg(b));
}

// Either what is picked from or the numbers are overwritten.
void Encoder::pick(const Inst& inst) {
  const Zmm to = zmm(inst.dst), a = zmm(inst.a), numbers = zmm(inst.c);
  const Address memory = address(inst.mem);
  const bool single = inst.op == VOp::pick_ps;
  if (to.getIdx() == numbers.getIdx()) return single ? c_.vpermi2ps(to, a, memory) : c_.vpermi2pd(to, a, memory);
  if (to.getIdx() != a.getIdx()) c_.vmovaps(to, a);
  single ? c_.vpermt2ps(to, numbers, memory) : c_.vpermt2pd(to, numbers, memory);
}

void Encoder::encode(const Inst& inst) {
  const int width = inst.width;
  switch (inst.op) {
#define X(name)   \
  case VOp::name: \
    return c_.name(dst(inst), vec(inst.a, width), last(inst, inst.b, width).op());
    INGOT_X86_OPS3(X)
#undef X
#define X(name)   \
  case VOp::name: \
    return c_.name(dst(inst), vec(inst.a, width), last(inst, inst.b, width).op(), inst.imm);
    INGOT_X86_OPS3_IMM(X)
#undef X
#define X(name)   \
  case VOp::name: \
    return inst.mem ? c_.name(dst(inst), address(inst.mem)) : c_.name(dst(inst), vec(inst.a, source_width(inst)));
    INGOT_X86_OPS2(X)
#undef X
#define X(name)   \
  case VOp::name: \
    return c_.name(dst(inst), vec(inst.a, source_width(inst)), inst.imm);
    INGOT_X86_OPS2_IMM(X)
#undef X
#define INGOT_BITWISE(vop, evex, vex)                                                                               \
  case VOp::vop: {                                                                                                  \
    RegOrMem b = last(inst, inst.b, width);                                                                         \
    return wide() ? c_.evex(dst(inst), vec(inst.a, width), b.op()) : c_.vex(dst(inst), vec(inst.a, width), b.op()); \
  }
    INGOT_BITWISE(vand, vpandd, vpand)
    INGOT_BITWISE(vor, vpord, vpor)
    INGOT_BITWISE(vxor, vpxord, vpxor)
    INGOT_BITWISE(vandn, vpandnd, vpandn)
#undef INGOT_BITWISE
    case VOp::vmovups:
      if (inst.mem.kind == Mem::Kind::constant && inst.pred == kNoReg) return load_constant(dst(inst), inst.mem.disp);
      if (!inst.mem && inst.pred == kNoReg && width == code_.width && homes_[inst.dst] == homes_[inst.a]) return;
      return inst.mem ? c_.vmovups(dst(inst), address(inst.mem)) : c_.vmovups(dst(inst), vec(inst.a, width));
    case VOp::vbroadcastsd: {
      RegOrMem a = last(inst, inst.a, 16);
      return width == 64 ? c_.vbroadcastsd(zmm(inst.dst), a.op()) : c_.vbroadcastsd(ymm(inst.dst), a.op());
    }
    case VOp::vpermq:
      return c_.vpermq(ymm(inst.dst), ymm(inst.a), inst.imm);
    case VOp::vperm2f128:
      return c_.vperm2f128(ymm(inst.dst), ymm(inst.a), ymm(inst.b), inst.imm);
    case VOp::vshuff64x2:
      return c_.vshuff64x2(zmm(inst.dst), zmm(inst.a), zmm(inst.b), inst.imm);
    case VOp::vshuff32x4:
      return c_.vshuff32x4(zmm(inst.dst), zmm(inst.a), zmm(inst.b), inst.imm);
    case VOp::fma_ps:
    case VOp::fma_pd:
      return fma(inst);
    case VOp::vpermps:
      return c_.vpermps(zmm(inst.dst), zmm(inst.a), zmm(inst.b));
    case VOp::vpermpd:
      return c_.vpermpd(zmm(inst.dst), zmm(inst.a), zmm(inst.b));
    case VOp::pick_ps:
    case VOp::pick_pd:
      return pick(inst);
    case VOp::blend_ps:
      return c_.vblendvps(dst(inst), vec(inst.a, width), last(inst, inst.b, width).op(), vec(inst.c, width));
    case VOp::blend_pd:
      return c_.vblendvpd(dst(inst), vec(inst.a, width), last(inst, inst.b, width).op(), vec(inst.c, width));
    case VOp::blendm_ps:
      return c_.vblendmps(dst(inst), vec(inst.a, width), last(inst, inst.b, width).op());
    case VOp::blendm_pd:
      return c_.vblendmpd(dst(inst), vec(inst.a, width), last(inst, inst.b, width).op());
    case VOp::insert_half:
      return width == 64 ? c_.vinsertf32x8(zmm(inst.dst), zmm(inst.a), ymm(inst.b), 1)
                         : c_.vinsertf128(ymm(inst.dst), ymm(inst.a), Xmm(homes_[inst.b]), 1);
    case VOp::extract_half:
      return width == 32 ? c_.vextractf32x8(ymm(inst.dst), zmm(inst.a), 1)
                         : c_.vextractf128(Xmm(homes_[inst.dst]), ymm(inst.a), 1);
    case VOp::narrow:
      return c_.vpmovqd(vec(inst.dst, width), vec(inst.a, 2 * width));
    case VOp::to_half:
      return c_.vcvtps2ph(vec(inst.dst, width), vec(inst.a, 2 * width), inst.imm);
    case VOp::d_from_gpr:
      return c_.vmovd(vec(inst.dst, 16), r32(inst.g));
    case VOp::q_from_gpr:
      return c_.vmovq(vec(inst.dst, 16), r64(inst.g));
    case VOp::ss_from_gpr:
    case VOp::sd_from_gpr: {
      Xmm to = vec(inst.dst, 16);
      wide() ? c_.vpxord(to, to, to) : c_.vpxor(to, to, to);
      return inst.op == VOp::ss_from_gpr ? c_.vcvtsi2ss(to, to, r64(inst.g)) : c_.vcvtsi2sd(to, to, r64(inst.g));
    }
    default:
      break;
  }
  if (inst.op >= VOp::cmp_ps && inst.op <= VOp::v_test) return encode_mask(inst);
  if (inst.op >= VOp::store && inst.op <= VOp::prefetch) return encode_memory(inst);
  encode_general(inst);
}

void Encoder::encode_mask(const Inst& inst) {
  const int width = inst.width;
  switch (inst.op) {
#define INGOT_COMPARE(vop, name) \
  case VOp::vop:                 \
    return c_.name(mask_dst(inst), vec(inst.a, width), last(inst, inst.b, width).op(), inst.imm);
    INGOT_COMPARE(cmp_ps, vcmpps)
    INGOT_COMPARE(cmp_pd, vcmppd)
    INGOT_COMPARE(cmp_d, vpcmpd)
    INGOT_COMPARE(cmp_q, vpcmpq)
#undef INGOT_COMPARE
#define INGOT_MASK_OP(vop, name) \
  case VOp::vop:                 \
    return c_.name(mask(inst.dst), mask(inst.a), mask(inst.b));
    INGOT_MASK_OP(kand, kandw)
    INGOT_MASK_OP(kor, korw)
    INGOT_MASK_OP(kxor, kxorw)
    INGOT_MASK_OP(kunpack, kunpckbw)
#undef INGOT_MASK_OP
    case VOp::test_b:
      return c_.vptestmb(mask_dst(inst), vec(inst.a, width), vec(inst.a, width));
    case VOp::test_d:
      return c_.vptestmd(mask_dst(inst), vec(inst.a, width), last(inst, inst.b, width).op());
    case VOp::knot:
      return c_.knotw(mask(inst.dst), mask(inst.a));
    case VOp::kmov:
      return inst.mem ? c_.kmovw(mask(inst.dst), address(inst.mem)) : c_.kmovw(mask(inst.dst), mask(inst.a));
    case VOp::k_store:
      return c_.kmovw(address(inst.mem), mask(inst.a));
    case VOp::kshiftr8:
      return c_.kshiftrw(mask(inst.dst), mask(inst.a), 8);
    case VOp::k_from_gpr:
      return c_.kmovw(mask(inst.dst), r32(inst.g));
    case VOp::k_to_gpr:
      return c_.kmovw(r32(inst.g), mask(inst.a));
    case VOp::k_test:
      return c_.kortestw(mask(inst.a), mask(inst.a));
    case VOp::v_test:
      return c_.vptest(vec(inst.a, width), vec(inst.a, width));
    default:
      INGOT_CHECK(false, "not a mask instruction");
  }
}

void Encoder::encode_memory(const Inst& inst) {
  const int width = inst.width;
  // A masked store carries its mask on the address.
  const Address to = masked(address(inst.mem), inst);
  auto a = [&] { return vec(inst.a, width); };
  switch (inst.op) {
    case VOp::store:
      return c_.vmovups(to, a());
    case VOp::store_pd:
      return c_.vmovupd(to, a());
    case VOp::store_streaming:
      return c_.vmovntps(to, a());
    case VOp::store_half:
      return c_.vcvtps2ph(to, a(), inst.imm);
    case VOp::store_words:
      return c_.vpmovdw(to, a());
    case VOp::store_bytes:
      return c_.vpmovdb(to, a());
    case VOp::store_bytes16:
      return wide() ? c_.vmovdqu8(to, vec(inst.a, 16)) : c_.vmovups(to, vec(inst.a, 16));
    case VOp::store_ss:
      return c_.vmovss(to, vec(inst.a, 16));
    case VOp::store_sd:
      return c_.vmovsd(to, vec(inst.a, 16));
    case VOp::load_bytes:
      return inst.a == kNoReg ? c_.vmovdqu8(dst(inst), address(inst.mem)) : c_.vmovdqu8(dst(inst), a());
    case VOp::maskload_d:
      return c_.vmaskmovps(dst(inst), vec(inst.b, width), to);
    case VOp::maskload_q:
      return c_.vmaskmovpd(dst(inst), vec(inst.b, width), to);
    case VOp::maskstore_d:
      return c_.vmaskmovps(to, vec(inst.b, width), a());
    case VOp::maskstore_q:
      return c_.vmaskmovpd(to, vec(inst.b, width), a());
    case VOp::gather_ps:
      return c_.vgatherqps(dst(inst), gathered(inst));
    case VOp::gather_pd:
      return c_.vgatherqpd(dst(inst), gathered(inst));
    case VOp::prefetch:
      return inst.value == 0 ? c_.prefetcht0(to) : inst.value == 1 ? c_.prefetcht1(to) : c_.prefetchw(to);
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
      return c_.vmovd(r32(inst.g), vec(inst.a, 16));
    case VOp::q_to_gpr:
      return c_.vmovq(r64(inst.g), vec(inst.a, 16));
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
  const std::vector<int16_t> homes = allocate(code);
  // At most 15 bytes an instruction; the pool holds each constant twice at most.
  size_t size = code.insts.size() * 16 + code.regs.size() * 16 + code.constants.size() * 144 + 4096;
  std::vector<uint8_t> buffer(size + 64);
  uint8_t* aligned = buffer.data() + (64 - reinterpret_cast<uintptr_t>(buffer.data()) % 64) % 64;
  MachineCode result;
  try {
    Encoder encoder(code, homes, aligned, size);
    result.code_bytes = encoder.run();
    result.bytes.assign(aligned, aligned + encoder.size());
  } catch (const Xbyak::Error& error) {
    throw InternalError(std::string("x86 encoder: ") + error.what());
  }
  return result;
}

}  // namespace ingot::codegen::x86
