#include "codegen/x86/vectors.h"

#include <bit>

namespace ingot::codegen::x86 {

int Vectors::parts_of(Type t) const {
  if (t == Type::mask) return wide_isa_ ? 1 : lanes_ * 4 / code_.width;
  return lanes_ * static_cast<int>(size_of(t)) / code_.width;
}

Vector Vectors::like(Type type, bool uniform) const {
  Vector v;
  v.type = type;
  v.uniform = uniform;
  v.parts = uniform ? 1 : parts_of(type);
  return v;
}

Vector Vectors::blank(Type type, bool uniform) {
  Vector v = like(type, uniform);
  for (int p = 0; p < v.parts; ++p) v.part[p] = type == Type::mask && wide_isa_ ? code_.mask() : code_.vector();
  return v;
}

void Vectors::copy(const Vector& to, const Vector& from) {
  Vector source = from;
  if (from.type == Type::mask) {
    std::array<VReg, 4> m = narrow_mask(source);
    for (int p = 0; p < to.parts; ++p)
      code_.add({.op = wide_isa_ ? VOp::kmov : VOp::vmovups,
                 .width = static_cast<uint8_t>(code_.width),
                 .dst = to.part[p].reg,
                 .a = m[from.uniform ? 0 : p]});
    return;
  }
  for (int p = 0; p < to.parts; ++p) {
    Inst move{.op = VOp::vmovups, .width = static_cast<uint8_t>(code_.width), .dst = to.part[p].reg};
    move.a = from.at(p).reg;
    move.mem = from.at(p).mem;
    code_.add(move);
  }
}

Vector Vectors::blank_mask(Type element) {
  if (size_of(element) == 4) return blank(Type::mask);
  Vector m = like(Type::mask, false);
  m.parts = 0;
  for (int p = 0; p < parts_of(element); ++p) m.wide[p] = wide_isa_ ? code_.mask() : code_.vector();
  return m;
}

void Vectors::clear_mask(const Vector& m) {
  for (int p = 0; p < 4; ++p) {
    VReg r = m.parts == 0 ? m.wide[p] : m.part[p].reg;
    if (r == kNoReg) continue;
    if (wide_isa_) {
      code_.add({.op = VOp::g_imm, .g = Gpr::rax, .value = 0});
      code_.add({.op = VOp::k_from_gpr, .g = Gpr::rax, .dst = r});
    } else {
      code_.add({.op = VOp::vmovups, .width = 32, .dst = r, .a = code_.splat32(0)});
    }
  }
}

void Vectors::or_into(Vector& m, Vector& other) {
  const bool wide = m.parts == 0;
  std::array<VReg, 4> from = wide ? wide_mask(other) : narrow_mask(other);
  for (int p = 0; p < 4; ++p) {
    VReg r = wide ? m.wide[p] : m.part[p].reg;
    if (r == kNoReg) continue;
    code_.add({.op = wide_isa_ ? VOp::kor : VOp::vor,
               .width = static_cast<uint8_t>(code_.width),
               .dst = r,
               .a = r,
               .b = from[p]});
  }
}

VReg Vectors::emit(VOp op, const Source& a, const Source& b, int imm, VReg dst, int width) {
  Inst inst{.op = op, .width = static_cast<uint8_t>(width ? width : code_.width), .imm = static_cast<uint8_t>(imm)};
  inst.dst = dst == kNoReg ? code_.vector() : dst;
  inst.a = force(a);
  inst.b = b.reg;
  inst.mem = b.mem;
  code_.add(inst);
  return inst.dst;
}

VReg Vectors::emit1(VOp op, const Source& a, int imm, int width, int from) {
  Inst inst{.op = op,
            .width = static_cast<uint8_t>(width ? width : code_.width),
            .from = static_cast<uint8_t>(from),
            .imm = static_cast<uint8_t>(imm)};
  inst.dst = code_.vector();
  inst.a = a.reg;
  inst.mem = a.mem;
  code_.add(inst);
  return inst.dst;
}

VReg Vectors::emit_mask(VOp op, VReg a, VReg b, int imm) {
  VReg dst = code_.mask();
  code_.add({.op = op,
             .width = static_cast<uint8_t>(code_.width),
             .imm = static_cast<uint8_t>(imm),
             .dst = dst,
             .a = a,
             .b = b});
  return dst;
}

VReg Vectors::force(const Source& s, int width) {
  if (s.reg != kNoReg) return s.reg;
  return emit1(VOp::vmovups, s, 0, width);
}

void Vectors::force(Vector& v) {
  for (int p = 0; p < v.parts; ++p) v.part[p] = force(v.part[p]);
}

Vector Vectors::constant(Type type, uint64_t bits) {
  Vector v = like(type, true);
  if (type != Type::mask) {
    v.part[0] = splat_bits(type, bits);
  } else if (wide_isa_) {
    code_.add({.op = VOp::g_imm, .g = Gpr::rax, .value = bits & 1 ? 0xffff : 0});
    v.part[0] = code_.mask();
    code_.add({.op = VOp::k_from_gpr, .g = Gpr::rax, .dst = v.part[0].reg});
    v.wide[0] = v.part[0].reg;
  } else {
    v.part[0] = code_.splat32(bits & 1 ? ~0u : 0u);
    v.wide[0] = v.part[0].reg;
  }
  return v;
}

VReg Vectors::splat(Type t, double value) {
  return t == Type::f64 ? code_.splat64(std::bit_cast<uint64_t>(value))
                        : code_.splat32(std::bit_cast<uint32_t>(static_cast<float>(value)));
}

std::array<VReg, 4> Vectors::narrow_mask(Vector& m) {
  std::array<VReg, 4> out{kNoReg, kNoReg, kNoReg, kNoReg};
  if (m.parts > 0) {
    for (int p = 0; p < parts_of(Type::mask); ++p) out[p] = m.reg(p);
    return out;
  }
  if (wide_isa_) {
    out[0] = emit_mask(VOp::kunpack, m.wide_at(1), m.wide_at(0));
  } else {
    for (int p = 0; p < 2; ++p)
      out[p] =
          m.uniform ? m.wide[0] : emit1(VOp::vpermq, emit(VOp::vshufps, m.wide[2 * p], m.wide[2 * p + 1], 0x88), 0xd8);
  }
  if (keep_mask_forms) {
    m.parts = m.uniform ? 1 : parts_of(Type::mask);
    for (int p = 0; p < m.parts; ++p) m.part[p] = out[p];
  }
  return out;
}

std::array<VReg, 4> Vectors::wide_mask(Vector& m) {
  std::array<VReg, 4> out{kNoReg, kNoReg, kNoReg, kNoReg};
  int parts = parts_of(Type::f64);
  if (m.wide[0] != kNoReg) {
    for (int p = 0; p < parts; ++p) out[p] = m.wide_at(p);
    return out;
  }
  if (m.uniform) {  // all lanes are equal: the bits serve both forms
    for (int p = 0; p < parts; ++p) out[p] = m.part[0].reg;
  } else if (wide_isa_) {
    out[0] = m.part[0].reg;
    out[1] = emit_mask(VOp::kshiftr8, m.part[0].reg);
  } else {
    for (int p = 0; p < 2; ++p) {
      out[2 * p] = emit1(VOp::vpmovsxdq, m.part[p], 0, 32, 16);
      out[2 * p + 1] = emit1(VOp::vpmovsxdq, emit1(VOp::extract_half, m.part[p], 0, 16), 0, 32, 16);
    }
  }
  if (keep_mask_forms) m.wide = out;
  return out;
}

Mem Vectors::area(int number) {
  if (areas_ < 0) areas_ = code_.reserve(3 * 128, 64);
  return Mem::frame(areas_ + number * 128);
}

}  // namespace ingot::codegen::x86
