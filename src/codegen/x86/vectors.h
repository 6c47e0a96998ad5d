// Logical vectors of 16 elements and the operations of kernel IR on them, as virtual-register code. An element type
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

  /// Registers that 16 elements of this type take; for masks, of the form for elements of 32 bits.
  int parts_of(Type t) const;
  int lanes_a_part(Type t) const { return kLanes / parts_of(t); }

  Vector constant(Type type, uint64_t bits);
  /// New registers of this shape, to be written by copy().
  Vector blank(Type type, bool uniform = false);
  void copy(const Vector& to, const Vector& from);
  /// A mask in the form of this element type, to be written by clear_mask() and or_into().
  Vector blank_mask(Type element);
  void clear_mask(const Vector& m);
  void or_into(Vector& m, Vector& other);

  /// Any node that computes from its operands (not leaves, not rare). `into`: registers to write, else new ones.
  Vector compute(const Node& node, Vector* a, Vector* b, Vector* c);
  /// a < b ? a : b, or (not least) b < a ? a : b: b if they are unordered or equal.
  Vector pick(bool least, Vector& a, Vector& b);
  /// Minimum or maximum of floats, of which the result is unspecified where one is NaN; -0 < +0.
  Vector ordered_minmax(bool greatest, Vector& a, Vector& b, const Vector* into);
  Vector binary(Op op, Vector& a, Vector& b, const Vector* into = nullptr);
  /// The product of two i64 that hold 32-bit numbers without sign: one instruction.
  Vector multiply_u32(Vector& a, Vector& b);
  Vector compare(Op op, Vector& a, Vector& b);
  Vector select(Vector& mask, Vector& yes, Vector& no);
  Vector convert(Type to, Vector& a);
  Vector logical_not(Vector& m);

  /// Element i of the result is element i + step of a (i < step; the others are unspecified). Unless `keep_shape`, once
  /// the elements that count fit one register, a and the result shrink to it.
  Vector upper(Vector& a, int step, bool keep_shape = false);
  /// Element 0 in all lanes. A mask: its lane 0.
  Vector broadcast_first(const Vector& a);
  /// An element that a general-purpose register holds, in all lanes; a mask: its bit 0. May clobber the register.
  Vector broadcast(Type type, Gpr from);
  /// 0 .. 15, of an integer type.
  Vector lane_numbers(Type type);

  /// The 16-bit float bits of f32 lanes, one a dword (bf16) or word (f16, half as wide).
  VReg bf16_bits(VReg x);
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

  VReg emit(VOp op, const Source& a, const Source& b, int imm = 0, VReg dst = kNoReg, int width = 0);
  VReg emit1(VOp op, const Source& a, int imm = 0, int width = 0, int from = 0);
  /// Rows of a square of elements of 4 or 8 bytes, given its columns; as many as a register has lanes.
  std::vector<VReg> transposed(std::vector<VReg> x, int element);
  VReg emit_mask(VOp op, VReg a, VReg b = kNoReg, int imm = 0);

  /// Bytes of the stack frame for work lane by lane; three areas of 16 elements of 8 bytes.
  Mem area(int number);
  void store_area(int number, Vector& v);
  Vector load_area(int number, Type type, bool uniform = false);
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
  Vector floating(Op op, Vector& a, Vector& b, const Vector* into);
  Vector minmax(bool greatest, Vector& a, Vector& b, const Vector* into);
  Vector bits(Op op, Vector& a, Vector& b, const Vector* into);
  Vector mask_logic(Op op, Vector& a, Vector& b, const Vector* into);
  Vector multiply_i64(Vector& a, Vector& b);
  Vector divide_integer(Vector& a, Vector& b);
  Vector shift(Op op, Vector& a, Vector& b, int64_t amount);
  Vector fma(Vector& a, Vector& b, Vector& c);
  Vector scale(Vector& a, Vector& b);
  Vector round_to(Vector& a, DType d);
  Vector wrap(Vector& a, DType d);
  Vector from_mask(Type to, Vector& m);
  Vector float_to_int(Type to, Vector& a);
  Vector float_to_i64_by_lane(Vector& a);
  Vector i64_to_float_by_lane(Type to, Vector& a);
  Vector widen(Type to, Vector& a, VOp op);
  Vector narrow(Type to, Vector& a, VOp op);
  Vector commutative(VOp vop, Vector& a, Vector& b, const Vector* into);
  Vector integer_min_max(bool greatest, Vector& a, Vector& b, const Vector* into);
  Vector like(Type type, bool uniform) const;
  bool is_float(Type t) const { return t == Type::f32 || t == Type::f64; }
  VReg splat(Type t, double value);
  /// Whether v is one constant in all lanes; if so, its value.
  bool constant_value(const Vector& v, double* value) const;
  VReg splat_bits(Type t, uint64_t bits) {
    return size_of(t) == 8 ? code_.splat64(bits) : code_.splat32(static_cast<uint32_t>(bits));
  }
  VReg target(const Vector* into, int p) { return into ? into->reg(p) : code_.vector(); }

  VCode& code_;
  bool wide_isa_;
  int64_t areas_ = -1;
};

}  // namespace ingot::codegen::x86
