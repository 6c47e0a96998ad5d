#include "codegen/x86/vectors.h"

#include <bit>

namespace ingot::codegen::x86 {

int Vectors::parts_of(Type t) const {
  if (t == Type::mask) return wide_isa_ ? 1 : 2;
  return kLanes * static_cast<int>(size_of(t)) / code_.width;
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

Vector Vectors::logical_not(Vector& m) {
  Vector v = like(Type::mask, m.uniform);
  std::array<VReg, 4> in = narrow_mask(m);
  for (int p = 0; p < v.parts; ++p)
    v.part[p] = wide_isa_ ? emit_mask(VOp::knot, in[p]) : emit(VOp::vxor, in[p], code_.splat32(~0u));
  return v;
}

Vector Vectors::mask_logic(Op op, Vector& a, Vector& b, const Vector* into) {
  VOp k = op == Op::bit_and ? VOp::kand : op == Op::bit_or ? VOp::kor : VOp::kxor;
  VOp v = op == Op::bit_and ? VOp::vand : op == Op::bit_or ? VOp::vor : VOp::vxor;
  Vector out = like(Type::mask, a.uniform && b.uniform);
  auto logic = [&](VReg x, VReg y, VReg dst) {
    if (!wide_isa_) return emit(v, x, y, 0, dst);
    if (dst == kNoReg) dst = code_.mask();
    code_.add({.op = k, .dst = dst, .a = x, .b = y});
    return dst;
  };
  // Masks of 64-bit elements stay in their form.
  if (!into && a.parts == 0 && b.parts == 0 && !out.uniform) {
    out.parts = 0;
    for (int p = 0; p < parts_of(Type::f64); ++p) out.wide[p] = logic(a.wide_at(p), b.wide_at(p), kNoReg);
    return out;
  }
  std::array<VReg, 4> x = narrow_mask(a), y = narrow_mask(b);
  for (int p = 0; p < out.parts; ++p) out.part[p] = logic(x[p], y[p], into ? into->reg(p) : kNoReg);
  return out;
}

Vector Vectors::compare(Op op, Vector& a, Vector& b) {
  Type t = a.type;
  bool uniform = a.uniform && b.uniform, wide = size_of(t) == 8;
  Vector out = like(Type::mask, uniform);
  int parts = uniform ? 1 : parts_of(t);
  for (int p = 0; p < parts; ++p) {
    Source x = a.at(p), y = b.at(p);
    VReg r;
    if (wide_isa_) {
      VOp vop = t == Type::f32 ? VOp::cmp_ps : t == Type::f64 ? VOp::cmp_pd : t == Type::i32 ? VOp::cmp_d : VOp::cmp_q;
      // Predicates: quiet and ordered but for ne (floats); integers have their own numbers.
      int imm = is_float(t) ? (op == Op::eq   ? 0
                               : op == Op::ne ? 4
                               : op == Op::lt ? 17
                                              : 18)
                            : (op == Op::eq   ? 0
                               : op == Op::ne ? 4
                               : op == Op::lt ? 1
                                              : 2);
      Inst inst{.op = vop, .width = static_cast<uint8_t>(code_.width), .imm = static_cast<uint8_t>(imm)};
      inst.a = force(x);
      inst.b = y.reg;
      inst.mem = y.mem;
      inst.dst = r = code_.mask();
      code_.add(inst);
    } else if (is_float(t)) {
      int imm = op == Op::eq ? 0 : op == Op::ne ? 4 : op == Op::lt ? 17 : 18;
      r = emit(t == Type::f32 ? VOp::vcmpps : VOp::vcmppd, x, y, imm);
    } else {
      bool equality = op == Op::eq || op == Op::ne;
      VOp vop = equality ? (wide ? VOp::vpcmpeqq : VOp::vpcmpeqd) : (wide ? VOp::vpcmpgtq : VOp::vpcmpgtd);
      // a < b is b > a; a <= b is not a > b.
      r = op == Op::lt ? emit(vop, force(y), x) : emit(vop, x, y);
      if (op == Op::ne || op == Op::le) r = emit(VOp::vxor, r, code_.splat32(~0u));
    }
    (wide ? out.wide[p] : out.part[p].reg) = r;
  }
  if (!wide) return out;
  out.parts = 0;
  if (uniform) {  // both forms at once: the value may be used where nothing can be added to it
    out.part[0] = wide_isa_ ? emit_mask(VOp::kunpack, out.wide[0], out.wide[0]) : out.wide[0];
    out.parts = 1;
  }
  return out;
}

Vector Vectors::select(Vector& mask, Vector& yes, Vector& no) {
  if (yes.type == Type::mask) {
    Vector inverse = logical_not(mask), x = mask_logic(Op::bit_and, mask, yes, nullptr),
           y = mask_logic(Op::bit_and, inverse, no, nullptr);
    return mask_logic(Op::bit_or, x, y, nullptr);
  }
  Vector out = like(yes.type, mask.uniform && yes.uniform && no.uniform);
  bool wide = size_of(yes.type) == 8;
  for (int p = 0; p < out.parts; ++p) {
    VReg m = mask_for(yes.type, mask, p);
    Inst inst{.op = wide_isa_ ? (wide ? VOp::blendm_pd : VOp::blendm_ps) : (wide ? VOp::blend_pd : VOp::blend_ps),
              .width = static_cast<uint8_t>(code_.width)};
    (wide_isa_ ? inst.pred : inst.c) = m;
    inst.a = force(no.at(p));
    inst.b = yes.at(p).reg;
    inst.mem = yes.at(p).mem;
    inst.dst = code_.vector();
    code_.add(inst);
    out.part[p] = inst.dst;
  }
  return out;
}

std::vector<VReg> Vectors::transposed(std::vector<VReg> x, int element) {
  const int lanes = static_cast<int>(x.size());
  auto pairs = [&](VOp low, VOp high, int distance) {
    std::vector<VReg> y(x.size());
    for (int i = 0; i < lanes; ++i) {
      if (i & distance) continue;
      size_t a = static_cast<size_t>(i), b = static_cast<size_t>(i + distance);
      y[a] = emit(low, x[a], x[b]);
      y[b] = emit(high, x[a], x[b]);
    }
    x = y;
  };
  // Inside of 128-bit lanes. Afterwards register i holds, in each lane l, element (i % n) of group l of n columns.
  if (element == 4) {
    pairs(VOp::vunpcklps, VOp::vunpckhps, 1);
    pairs(VOp::vunpcklpd, VOp::vunpckhpd, 2);
    // Positions 1 and 2 of each four have changed places.
    for (size_t i = 0; i < x.size(); i += 4) std::swap(x[i + 1], x[i + 2]);
  } else {
    pairs(VOp::vunpcklpd, VOp::vunpckhpd, 1);
  }
  const int n = 16 / element;  // elements of a 128-bit lane
  std::vector<VReg> y(x.size());
  if (!avx512()) {
    for (int i = 0; i < n; ++i) {
      size_t a = static_cast<size_t>(i), b = static_cast<size_t>(i + n);
      y[a] = emit(VOp::vperm2f128, x[a], x[b], 0x20);
      y[b] = emit(VOp::vperm2f128, x[a], x[b], 0x31);
    }
    return y;
  }
  for (int i = 0; i < n; ++i) {
    auto at = [&](int group) { return x[static_cast<size_t>(i + group * n)]; };
    VReg a = emit(VOp::vshuff32x4, at(0), at(1), 0x88), b = emit(VOp::vshuff32x4, at(0), at(1), 0xdd),
         c = emit(VOp::vshuff32x4, at(2), at(3), 0x88), d = emit(VOp::vshuff32x4, at(2), at(3), 0xdd);
    y[static_cast<size_t>(i)] = emit(VOp::vshuff32x4, a, c, 0x88);
    y[static_cast<size_t>(i + n)] = emit(VOp::vshuff32x4, b, d, 0x88);
    y[static_cast<size_t>(i + 2 * n)] = emit(VOp::vshuff32x4, a, c, 0xdd);
    y[static_cast<size_t>(i + 3 * n)] = emit(VOp::vshuff32x4, b, d, 0xdd);
  }
  return y;
}

}  // namespace ingot::codegen::x86
