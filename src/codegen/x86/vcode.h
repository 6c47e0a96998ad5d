// Virtual-register code: x86 vector instructions over virtual registers, before registers are allocated.
// General-purpose registers are physical from the start: they only hold addresses and counters, which the lowering
// assigns by itself.
#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/program.h"

namespace ingot::codegen::x86 {

enum class Gpr : uint8_t { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15, none };

using VReg = uint32_t;
inline constexpr VReg kNoReg = ~0u;
enum class RegClass : uint8_t { vector, mask };

// clang-format off
/// dst = op(a, b); imm where the instruction has one. The last source may be memory.
#define INGOT_X86_OPS3(X)                                                                                           \
  X(vaddps) X(vaddpd) X(vsubps) X(vsubpd) X(vmulps) X(vmulpd) X(vdivps) X(vdivpd) X(vmaxps) X(vmaxpd) X(vminps)     \
  X(vminpd) X(vpaddd) X(vpaddq) X(vpsubd) X(vpsubq) X(vpmulld) X(vpmullq) X(vpmuludq) X(vpminsd) X(vpmaxsd)         \
  X(vpminsq) X(vpmaxsq) X(vpsllvd) X(vpsllvq) X(vpsrlvd) X(vpsrlvq) X(vpsravd) X(vpsravq) X(vscalefps)   \
  X(vscalefpd) X(vpcmpeqd) X(vpcmpeqq) X(vpcmpgtd) X(vpcmpgtq) X(vpackusdw) X(vpackuswb) X(vunpcklps) X(vunpckhps)  \
  X(vunpcklpd) X(vunpckhpd) X(vdpbf16ps)
#define INGOT_X86_OPS3_IMM(X) X(vrangeps) X(vrangepd) X(vcmpps) X(vcmppd) X(vshufps) X(vfixupimmps)
/// dst = op(a); the source may be memory.
#define INGOT_X86_OPS2(X)                                                                                           \
  X(vsqrtps) X(vsqrtpd) X(vcvtps2pd) X(vcvtpd2ps) X(vcvtdq2ps) X(vcvtdq2pd) X(vcvttps2dq) X(vcvttpd2dq)             \
  X(vcvtqq2ps) X(vcvtqq2pd) X(vcvttps2qq) X(vcvttpd2qq) X(vcvtph2ps) X(vpmovsxwd) X(vpmovzxwd) X(vpmovsxbd)         \
  X(vpmovzxbd) X(vpmovsxdq) X(vbroadcastss) X(vpbroadcastd) X(vpbroadcastq) X(vmovupd)
#define INGOT_X86_OPS2_IMM(X)                                                                                       \
  X(vroundps) X(vroundpd) X(vrndscaleps) X(vrndscalepd) X(vpslld) X(vpsllq) X(vpsrld) X(vpsrlq) X(vpsrad) X(vpsraq) \
  X(vpshufd)

enum class VOp : uint8_t {
#define X(name) name,
  INGOT_X86_OPS3(X) INGOT_X86_OPS3_IMM(X) INGOT_X86_OPS2(X) INGOT_X86_OPS2_IMM(X)
#undef X
  vmovups, vbroadcastsd,                       // dst = a or mem
  vpermq, vperm2f128, vshuff64x2, vshuff32x4,  // with imm; registers only
  vand, vor, vxor, vandn,                      // of whole registers, whatever their lanes
  fma_ps, fma_pd,          // dst = a * b + c; any one source may be memory
  blend_ps, blend_pd,      // dst = c ? b : a; c a vector mask (AVX2)
  blendm_ps, blendm_pd,    // dst = pred ? b : a (AVX-512)
  vpermps, vpermpd,        // dst = elements of b by the numbers a; whole registers (AVX-512)
  pick_ps, pick_pd,        // dst = elements of a and mem, by the numbers c: first a's, then mem's (vpermt2ps, vpermt2pd)
  insert_half,             // dst = low half of a, and b as its high half
  extract_half,            // dst = high half of a
  narrow,                  // dst = low half of each element of a (vpmovqd)
  to_half,                 // dst = vcvtps2ph(a)
  // Mask registers (AVX-512).
  cmp_ps, cmp_pd, cmp_d, cmp_q,  // dst (mask) = a imm b
  test_b,                  // dst (mask) = a byte of a has a bit set
  test_d,                  // dst (mask) = a and b have a bit in common
  kand, kor, kxor, knot,
  kmov, k_store,           // dst = a or mem; mem = a
  kshiftr8, kunpack,       // kunpack: b the low 8 lanes, a the high
  k_from_gpr, k_to_gpr,
  k_test,                  // flags: zero if no lane of a is set, carry if all 16 are
  v_test,                  // flags: zero if no bit of vector a is set
  // Memory.
  store, store_pd,         // mem = a; masked by elements of 32 or 64 bits
  store_streaming,         // mem = a, past the caches; aligned
  store_half,              // mem = vcvtps2ph(a)
  store_words, store_bytes,  // mem = the low word or byte of each dword of a (AVX-512)
  store_bytes16,           // the 16 bytes of xmm a
  store_ss, store_sd,      // the first element of a
  load_bytes,              // vmovdqu8 of a or mem, masked
  maskload_d, maskload_q, maskstore_d, maskstore_q,  // b: vector mask (AVX2)
  gather_ps, gather_pd,    // dst{pred} = [mem.base + a]; a: 64-bit offsets; pred is cleared
  prefetch,                // value: 0 into L1, 1 into L2, 2 to be written
  // Between vector and general-purpose registers.
  d_from_gpr, q_from_gpr, d_to_gpr, q_to_gpr,
  ss_from_gpr, sd_from_gpr,  // converts the 64-bit integer g
  ss_to_gpr, sd_to_gpr,    // truncates mem to the 64-bit integer g
  // General-purpose. i: with an immediate, m: with memory, _to: into memory.
  g_mov, g_imm, g_load /* zero-extended, `width` bytes */, g_store, g_lea, g_add, g_addi, g_addm, g_add_to, g_addi_to,
  g_sub, g_imul, g_imulm, g_andi, g_shri, g_shli, g_neg, g_cmp, g_cmpi, g_cmpm, g_cmpi_m, g_testi, g_cmov, g_bzhi,
  g_idiv /* rax / g of 64 bits; clobbers rdx */,
  label, jump, align_here
};
// clang-format on

enum class Cond : uint8_t { always, equal, not_equal, less, less_equal, greater, greater_equal, carry, not_carry };

struct Mem {
  enum class Kind : uint8_t { none, address, frame, constant /* number disp of the pool */ } kind = Kind::none;
  Gpr base = Gpr::none, index = Gpr::none;
  uint8_t scale = 1;
  int32_t disp = 0;
  explicit operator bool() const { return kind != Kind::none; }
  static Mem at(Gpr base, int64_t disp = 0) { return {Kind::address, base, Gpr::none, 1, static_cast<int32_t>(disp)}; }
  static Mem at(Gpr base, Gpr index, int scale, int64_t disp = 0) {
    return {Kind::address, base, index, static_cast<uint8_t>(scale), static_cast<int32_t>(disp)};
  }
  /// A byte of the kernel's own stack frame.
  static Mem frame(int64_t offset) { return {Kind::frame, Gpr::none, Gpr::none, 1, static_cast<int32_t>(offset)}; }
  static Mem frame(int64_t offset, Gpr index, int scale) {
    return {Kind::frame, Gpr::none, index, static_cast<uint8_t>(scale), static_cast<int32_t>(offset)};
  }
  static Mem constant(int32_t number) { return {Kind::constant, Gpr::none, Gpr::none, 1, number}; }
  Mem plus(int64_t bytes) const {
    Mem m = *this;
    m.disp += static_cast<int32_t>(bytes);
    return m;
  }
};

struct Inst {
  VOp op;
  uint8_t width = 0;  // bytes of dst (of a, where there is no vector dst)
  uint8_t from = 0;   // bytes of the source, where it differs
  uint8_t imm = 0;
  bool zeroing = false;  // lanes that pred leaves out: zero, else they keep dst
  Cond cond = Cond::always;
  Gpr g = Gpr::none, h = Gpr::none;
  VReg dst = kNoReg, a = kNoReg, b = kNoReg, c = kNoReg, pred = kNoReg;
  Mem mem{};
  int64_t value = 0;  // immediate of a general-purpose instruction; number of a label
  bool reads_dst() const;
};

/// A vector constant. It lives in a register where one is left, else it is read from the pool behind the code.
struct Constant {
  std::array<uint8_t, 64> bytes{};
  uint8_t splat = 0;  // 4 or 8: all elements of this size are equal; 0: not
  friend bool operator==(const Constant&, const Constant&) = default;
};

struct VRegInfo {
  RegClass cls = RegClass::vector;
  int32_t constant = -1;
  bool short_lived = false;  // holds a spilled value for one instruction
};

struct Range {
  int32_t begin, end;  // instructions
};

struct Loop {
  int64_t head;  // label
  int32_t begin;
};

class VCode {
 public:
  explicit VCode(Isa isa) : isa(isa), width(isa == Isa::avx512 ? 64 : 32) {}

  VReg vector() { return add_reg({RegClass::vector, -1, false}); }
  VReg mask() { return add_reg({RegClass::mask, -1, false}); }
  VReg constant(const Constant& value);
  VReg splat32(uint32_t bits);
  VReg splat64(uint64_t bits);
  /// first, first + 1, ... in integer elements of this size (4 or 8).
  VReg counting(int element_bytes, int first);
  int64_t label() { return labels++; }
  void add(const Inst& inst) { insts.push_back(inst); }
  int32_t position() const { return static_cast<int32_t>(insts.size()); }
  /// The pieces of code that begin at `starts`, the last of which ends here, are mixed instruction by instruction, so
  /// that long chains of theirs run side by side. What they do to registers that they share keeps its order; each must
  /// leave the others' memory alone. Code that is jumped over stays in one piece, between what is mixed before and
  /// behind it; pieces that hold other jumps or general-purpose code stay as they are.
  void interleave(const std::vector<int32_t>& starts);
  /// Reserves bytes of the stack frame.
  int64_t reserve(int64_t bytes, int64_t align = 8);

  // Short forms of general-purpose code; memory here is 8 bytes.
  void g(VOp op, Gpr a, int64_t value) { add({.op = op, .g = a, .value = value}); }
  void g(VOp op, Gpr a, Gpr b) { add({.op = op, .g = a, .h = b}); }
  void g(VOp op, Gpr a, const Mem& m) { add({.op = op, .width = 8, .g = a, .mem = m}); }
  void load(Gpr a, const Mem& from) { g(VOp::g_load, a, from); }
  void store(const Mem& to, Gpr a) { g(VOp::g_store, a, to); }

  void place(int64_t label) { add({.op = VOp::label, .value = label}); }
  void jump(int64_t label, Cond cond = Cond::always) { add({.op = VOp::jump, .cond = cond, .value = label}); }

  /// The code up to end_loop(), which leads back to here under its condition.
  Loop begin_loop() {
    const Loop loop{label(), position()};
    place(loop.head);
    return loop;
  }
  void end_loop(const Loop& loop, Cond back = Cond::always) {
    jump(loop.head, back);
    loops.push_back({loop.begin, position()});
  }

  Isa isa;
  int width;  // bytes of a full vector register
  std::vector<Inst> insts;
  std::vector<VRegInfo> regs;
  std::vector<Constant> constants;
  std::vector<Range> loops;  // a jump leads from end back to begin
  std::vector<Range> cold;   // rarely run
  int64_t labels = 0;
  int64_t frame_bytes = 0;

 private:
  VReg add_reg(VRegInfo info) {
    regs.push_back(info);
    return static_cast<VReg>(regs.size() - 1);
  }
  std::unordered_multimap<uint64_t, VReg> known_constants_;
};

/// Gives each virtual register a physical one (-1: never used) by linear scan over their liveness. What does not fit
/// goes to slots of the stack frame, or is read from the constant pool: the code is rewritten with loads and stores.
/// Deterministic.
std::vector<int16_t> allocate(VCode& code);

/// A kernel's stack frame has no more bytes: what lives at once in one kernel is bounded by fusion and by `chains()`.
inline constexpr int64_t kMostFrame = 64 << 10;

struct MachineCode {
  std::vector<uint8_t> bytes;
  int64_t code_bytes = 0;  // the constant pool follows
};

/// Encodes a function of one pointer argument, which the code finds in rdi.
MachineCode encode(VCode& code);

}  // namespace ingot::codegen::x86
