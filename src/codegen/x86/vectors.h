// Logical vectors of 16 elements as virtual-register code: registers, masks, instructions on each part. An element type
// takes one to four vector registers, by instruction set; a mask is a mask register (AVX-512) or vector masks (AVX2).
#pragma once
#include <array>

#include "base/canonical_order.h"
#include "codegen/kernel_ir.h"
#include "codegen/x86/vcode.h"

namespace ingot::codegen::x86 {

using canonical::kLanes;

/// One register's worth of a vector; or where it lies in memory, if its only reader can take it from there.
struct Source {
  VReg reg = kNoReg;
  Mem mem{};
  Source() = default;
  Source(VReg r) : reg(r) {}
  Source(const Mem& m) : mem(m) {}
};

struct Vector {
  Type type = Type::f32;
  bool uniform = false;  // all elements are equal: the first part stands for all
  std::array<Source, 4> part;
  int parts = 0;  // 0: a mask that only has its wide form
  // Masks: the same lanes for elements of 64 bits. AVX-512: two masks of 8 lanes; AVX2: four vectors. kNoReg: not made.
  std::array<VReg, 4> wide{kNoReg, kNoReg, kNoReg, kNoReg};

  const Source& at(int p) const { return part[static_cast<size_t>(uniform ? 0 : p)]; }
  VReg reg(int p) const { return at(p).reg; }
  VReg wide_at(int p) const { return wide[static_cast<size_t>(uniform ? 0 : p)]; }
};

class Vectors {
 public:
  explicit Vectors(VCode& code) : code_(code), wide_isa_(code.isa == Isa::avx512) {}
  VCode& code() { return code_; }
  bool avx512() const { return wide_isa_; }

  /// Registers that a vector of this type takes; for masks, of the form for elements of 32 bits.
  int parts_of(Type t) const;
  int lanes_a_part(Type t) const { return lanes_ / parts_of(t); }
  /// Vectors of fewer elements than 16 from here on: of f32 and their masks alone, whole registers.
  void work_on(int lanes) { lanes_ = lanes; }
  int lanes() const { return lanes_; }

  /// Of this shape, without registers.
  Vector like(Type type, bool uniform) const;
  Vector constant(Type type, uint64_t bits);
  /// A number in all lanes of a register.
  VReg splat(Type t, double value);
  VReg splat_bits(Type t, uint64_t bits) {
    return size_of(t) == 8 ? code_.splat64(bits) : code_.splat32(static_cast<uint32_t>(bits));
  }
  /// New registers of this shape, to be written by copy().
  Vector blank(Type type, bool uniform = false);
  void copy(const Vector& to, const Vector& from);
  /// A mask in the form of this element type, to be written by clear_mask() and or_into().
  Vector blank_mask(Type element);
  void clear_mask(const Vector& m);
  void or_into(Vector& m, Vector& other);

  /// A part as a register: loads it if it lies in memory.
  VReg force(const Source& s, int width = 0);
  void force(Vector& v);

  /// Forms of a mask.
  std::array<VReg, 4> narrow_mask(Vector& m);
  std::array<VReg, 4> wide_mask(Vector& m);
  /// For an element type: the parts of the mask that go with its registers.
  VReg mask_for(Type type, Vector& m, int p) { return size_of(type) == 8 ? wide_mask(m)[p] : narrow_mask(m)[p]; }
  /// In code that may be jumped over, mask forms made there must not be reused behind it.
  bool keep_mask_forms = true;

  VReg target(const Vector* into, int p) { return into ? into->reg(p) : code_.vector(); }
  VReg emit(VOp op, const Source& a, const Source& b, int imm = 0, VReg dst = kNoReg, int width = 0);
  VReg emit1(VOp op, const Source& a, int imm = 0, int width = 0, int from = 0);
  VReg emit_mask(VOp op, VReg a, VReg b = kNoReg, int imm = 0);

  /// Bytes of the stack frame for work lane by lane; three areas of 16 elements of 8 bytes.
  Mem area(int number);
  /// Emits body once for all lanes, as a loop; r14 counts lanes.
  template <class F>
  void each_lane(F body) {
    code_.add({.op = VOp::g_imm, .g = Gpr::r14, .value = 0});
    const Loop loop = code_.begin_loop();
    body();
    code_.add({.op = VOp::g_addi, .g = Gpr::r14, .value = 1});
    code_.add({.op = VOp::g_cmpi, .g = Gpr::r14, .value = kLanes});
    code_.end_loop(loop, Cond::less);
  }

 private:
  VCode& code_;
  bool wide_isa_;
  int lanes_ = kLanes;
  int64_t areas_ = -1;
};

}  // namespace ingot::codegen::x86
