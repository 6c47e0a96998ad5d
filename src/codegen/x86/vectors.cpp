#include "codegen/x86/vectors.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

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

// masks

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

// arithmetic

Vector Vectors::binary(Op op, Vector& a, Vector& b, const Vector* into) {
  switch (op) {
    case Op::min:
    case Op::max:
      return is_float(a.type) ? minmax(op == Op::max, a, b, into) : integer_min_max(op == Op::max, a, b, into);
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
      return a.type == Type::mask ? mask_logic(op, a, b, into) : bits(op, a, b, into);
    default:
      break;
  }
  if (op == Op::div && !is_float(a.type)) return divide_integer(a, b);
  if (op == Op::mul && a.type == Type::i64 && !wide_isa_) {
    Vector product = multiply_i64(a, b);
    if (!into) return product;
    copy(*into, product);
    return *into;
  }
  return floating(op, a, b, into);
}

Vector Vectors::floating(Op op, Vector& a, Vector& b, const Vector* into) {
  static constexpr VOp table[4][4] = {
      {VOp::vaddps, VOp::vaddpd, VOp::vpaddd, VOp::vpaddq},
      {VOp::vsubps, VOp::vsubpd, VOp::vpsubd, VOp::vpsubq},
      {VOp::vmulps, VOp::vmulpd, VOp::vpmulld, VOp::vpmullq},
      {VOp::vdivps, VOp::vdivpd, VOp::label, VOp::label},
  };
  VOp vop = table[static_cast<int>(op) - static_cast<int>(Op::add)][static_cast<int>(a.type)];
  bool commutes = op == Op::add || op == Op::mul;
  Vector out = like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    Source x = a.at(p), y = b.at(p);
    if (commutes && x.mem) std::swap(x, y);
    out.part[p] = emit(vop, x, y, 0, into ? into->reg(p) : kNoReg);
  }
  return out;
}

Vector Vectors::pick(bool least, Vector& a, Vector& b) {
  const bool single = a.type == Type::f32;
  Vector out = like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p)
    out.part[p] =
        emit(least ? (single ? VOp::vminps : VOp::vminpd) : (single ? VOp::vmaxps : VOp::vmaxpd), a.at(p), b.at(p));
  return out;
}

Vector Vectors::ordered_minmax(bool greatest, Vector& a, Vector& b, const Vector* into) {
  const bool single = a.type == Type::f32;
  Vector out = like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    VReg x = force(a.at(p)), y = force(b.at(p)), dst = target(into, p);
    if (wide_isa_) {
      emit(single ? VOp::vrangeps : VOp::vrangepd, x, y, greatest ? 5 : 4, dst);
    } else {
      VOp op = greatest ? (single ? VOp::vmaxps : VOp::vmaxpd) : (single ? VOp::vminps : VOp::vminpd);
      emit(greatest ? VOp::vand : VOp::vor, emit(op, x, y), emit(op, y, x), 0, dst);
    }
    out.part[p] = dst;
  }
  return out;
}

bool Vectors::constant_value(const Vector& v, double* value) const {
  int32_t number = v.uniform && v.part[0].reg != kNoReg ? code_.regs[v.part[0].reg].constant : -1;
  if (number < 0) return false;
  const auto& bytes = code_.constants[static_cast<size_t>(number)].bytes;
  if (v.type == Type::f32) {
    float x;
    std::memcpy(&x, bytes.data(), sizeof x);
    *value = x;
  } else {
    std::memcpy(value, bytes.data(), sizeof *value);
  }
  return true;
}

// NaN wins and -0 < +0. AVX-512 has an instruction that orders zeros; on AVX2 both orders of operands of the maximum
// differ only for zeros (and NaN, replaced by the sum, which keeps it): and-ing (max) or or-ing (min) them orders the
// signs.
Vector Vectors::minmax(bool greatest, Vector& a, Vector& b, const Vector* into) {
  // The instruction gives its second source if one is NaN or both are zero: with a constant first, only one zero is
  // wrong, and for the maximum adding +0 rights it.
  if (double c; !into && (constant_value(a, &c) || constant_value(b, &c)) && !std::isnan(c) &&
                (greatest || c != 0 || !std::signbit(c))) {
    double unused;
    const bool first = constant_value(a, &unused);
    Vector most = pick(!greatest, first ? a : b, first ? b : a);
    if (!greatest || c != 0 || std::signbit(c)) return most;
    Vector zero = constant(a.type, 0);
    return floating(Op::add, most, zero, nullptr);
  }
  bool single = a.type == Type::f32;
  Vector out = like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    VReg x = force(a.at(p)), y = force(b.at(p));
    VReg dst = target(into, p);
    VReg sum = emit(single ? VOp::vaddps : VOp::vaddpd, x, y);
    uint8_t width = static_cast<uint8_t>(code_.width);
    if (wide_isa_) {
      VReg unordered = emit_mask(single ? VOp::cmp_ps : VOp::cmp_pd, x, y, 3);
      VReg ordered = emit(single ? VOp::vrangeps : VOp::vrangepd, x, y, greatest ? 5 : 4);
      code_.add({.op = single ? VOp::blendm_ps : VOp::blendm_pd,
                 .width = width,
                 .dst = dst,
                 .a = ordered,
                 .b = sum,
                 .pred = unordered});
    } else {
      VOp pick = greatest ? (single ? VOp::vmaxps : VOp::vmaxpd) : (single ? VOp::vminps : VOp::vminpd);
      VReg either = emit(greatest ? VOp::vand : VOp::vor, emit(pick, x, y), emit(pick, y, x));
      VReg unordered = emit(single ? VOp::vcmpps : VOp::vcmppd, x, y, 3);
      code_.add({.op = single ? VOp::blend_ps : VOp::blend_pd,
                 .width = width,
                 .dst = dst,
                 .a = either,
                 .b = sum,
                 .c = unordered});
    }
    out.part[p] = dst;
  }
  return out;
}

Vector Vectors::integer_min_max(bool greatest, Vector& a, Vector& b, const Vector* into) {
  if (a.type == Type::i64 && !wide_isa_) {
    force(a);
    force(b);
    Vector less = compare(Op::lt, a, b);
    Vector out = greatest ? select(less, b, a) : select(less, a, b);
    if (!into) return out;
    copy(*into, out);
    return *into;
  }
  VOp vop = a.type == Type::i32 ? (greatest ? VOp::vpmaxsd : VOp::vpminsd) : (greatest ? VOp::vpmaxsq : VOp::vpminsq);
  Vector out = like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    Source x = a.at(p), y = b.at(p);
    if (x.mem) std::swap(x, y);
    out.part[p] = emit(vop, x, y, 0, into ? into->reg(p) : kNoReg);
  }
  return out;
}

Vector Vectors::bits(Op op, Vector& a, Vector& b, const Vector* into) {
  VOp vop = op == Op::bit_and ? VOp::vand : op == Op::bit_or ? VOp::vor : VOp::vxor;
  Vector out = like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    Source x = a.at(p), y = b.at(p);
    if (x.mem) std::swap(x, y);
    out.part[p] = emit(vop, x, y, 0, into ? into->reg(p) : kNoReg);
  }
  return out;
}

// The low 64 bits of a product from three 32-bit products.
Vector Vectors::multiply_i64(Vector& a, Vector& b) {
  Vector out = like(Type::i64, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    VReg x = force(a.at(p)), y = force(b.at(p));
    VReg cross = emit(VOp::vpaddq, emit(VOp::vpmuludq, emit1(VOp::vpsrlq, x, 32), y),
                      emit(VOp::vpmuludq, emit1(VOp::vpsrlq, y, 32), x));
    out.part[p] = emit(VOp::vpaddq, emit(VOp::vpmuludq, x, y), emit1(VOp::vpsllq, cross, 32));
  }
  return out;
}

Vector Vectors::divide_integer(Vector& a, Vector& b) {
  force(a);
  force(b);
  if (a.type == Type::i32) {
    // The quotient of two 32-bit integers in f64 is at least 2^-31 away from an integer it does not equal, so
    // truncation is exact; INT_MIN / -1 comes out as the conversion's overflow value, INT_MIN.
    Vector x = convert(Type::f64, a), y = convert(Type::f64, b), quotient = floating(Op::div, x, y, nullptr);
    Vector truncated = narrow(Type::i32, quotient, VOp::vcvttpd2dq);
    Vector zero = constant(Type::i32, 0), by_zero = compare(Op::eq, b, zero);
    return select(by_zero, zero, truncated);
  }
  store_area(0, a);
  store_area(1, b);
  each_lane([&] {
    int64_t divide = code_.label(), negate = code_.label(), done = code_.label();
    Mem x = area(0), y = area(1);
    x.index = y.index = Gpr::r14;
    x.scale = y.scale = 8;
    code_.add({.op = VOp::g_load, .width = 8, .g = Gpr::rax, .mem = x});
    code_.add({.op = VOp::g_load, .width = 8, .g = Gpr::rbx, .mem = y});
    code_.add({.op = VOp::g_cmpi, .g = Gpr::rbx, .value = -1});
    code_.jump(negate, Cond::equal);
    code_.add({.op = VOp::g_cmpi, .g = Gpr::rbx, .value = 0});
    code_.jump(divide, Cond::not_equal);
    code_.add({.op = VOp::g_imm, .g = Gpr::rax, .value = 0});
    code_.jump(done);
    code_.place(negate);
    code_.add({.op = VOp::g_neg, .g = Gpr::rax});
    code_.jump(done);
    code_.place(divide);
    code_.add({.op = VOp::g_idiv, .width = 8, .g = Gpr::rbx, .h = Gpr::rdx});
    code_.place(done);
    code_.add({.op = VOp::g_store, .width = 8, .g = Gpr::rax, .mem = x});
  });
  return load_area(0, Type::i64, a.uniform && b.uniform);
}

Vector Vectors::shift(Op op, Vector& a, Vector& b, int64_t amount) {
  bool wide = a.type == Type::i64;
  Vector out = like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    if (op == Op::sar && wide && !wide_isa_) {
      // No 64-bit arithmetic shift before AVX-512: shift the ones' complement of negative values.
      VReg x = force(a.at(p)), sign = emit(VOp::vpcmpgtq, code_.splat64(0), x), positive = emit(VOp::vxor, x, sign);
      VReg shifted =
          amount >= 0 ? emit1(VOp::vpsrlq, positive, static_cast<int>(amount)) : emit(VOp::vpsrlvq, positive, b.at(p));
      out.part[p] = emit(VOp::vxor, shifted, sign);
    } else if (amount >= 0) {
      VOp vop = op == Op::shl   ? (wide ? VOp::vpsllq : VOp::vpslld)
                : op == Op::shr ? (wide ? VOp::vpsrlq : VOp::vpsrld)
                                : (wide ? VOp::vpsraq : VOp::vpsrad);
      out.part[p] = emit1(vop, force(a.at(p)), static_cast<int>(amount));
    } else {
      VOp vop = op == Op::shl   ? (wide ? VOp::vpsllvq : VOp::vpsllvd)
                : op == Op::shr ? (wide ? VOp::vpsrlvq : VOp::vpsrlvd)
                                : (wide ? VOp::vpsravq : VOp::vpsravd);
      out.part[p] = emit(vop, a.at(p), b.at(p));
    }
  }
  return out;
}

Vector Vectors::fma(Vector& a, Vector& b, Vector& c) {
  Vector out = like(a.type, a.uniform && b.uniform && c.uniform);
  for (int p = 0; p < out.parts; ++p) {
    Source x = a.at(p), y = b.at(p), z = c.at(p);
    // One source may stay in memory.
    if (x.mem && (y.mem || z.mem)) x = force(x);
    if (y.mem && z.mem) y = force(y);
    Inst inst{.op = a.type == Type::f32 ? VOp::fma_ps : VOp::fma_pd, .width = static_cast<uint8_t>(code_.width)};
    inst.a = x.reg;
    inst.b = y.reg;
    inst.c = z.reg;
    inst.mem = x.mem ? x.mem : y.mem ? y.mem : z.mem;
    inst.dst = code_.vector();
    code_.add(inst);
    out.part[p] = inst.dst;
  }
  return out;
}

Vector Vectors::compute(const Node& n, Vector* a, Vector* b, Vector* c) {
  auto unary = [&](VOp op, int imm) {
    Vector out = like(a->type, a->uniform);
    for (int p = 0; p < out.parts; ++p) out.part[p] = emit1(op, imm >= 0 ? Source(force(a->at(p))) : a->at(p), imm);
    return out;
  };
  bool single = n.type == Type::f32;
  switch (n.op) {
    case Op::fma:
      return fma(*a, *b, *c);
    case Op::sqrt:
      return unary(single ? VOp::vsqrtps : VOp::vsqrtpd, -1);
    case Op::round:
      return unary(
          wide_isa_ ? (single ? VOp::vrndscaleps : VOp::vrndscalepd) : (single ? VOp::vroundps : VOp::vroundpd),
          static_cast<int>(n.imm) | 8);
    case Op::scale:
      return scale(*a, *b);
    case Op::round_to:
      return round_to(*a, static_cast<DType>(n.imm));
    case Op::wrap:
      return wrap(*a, static_cast<DType>(n.imm));
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
      return compare(n.op, *a, *b);
    case Op::select:
      return select(*a, *b, *c);
    case Op::convert:
      return convert(n.type, *a);
    case Op::bitcast: {
      force(*a);
      Vector out = *a;
      out.type = n.type;
      return out;
    }
    case Op::shl:
    case Op::shr:
    case Op::sar: {
      // A constant amount goes into the instruction.
      int64_t amount = -1;
      int32_t number = b->uniform && b->part[0].reg != kNoReg ? code_.regs[b->part[0].reg].constant : -1;
      if (number >= 0) amount = code_.constants[static_cast<size_t>(number)].bytes[0];
      return shift(n.op, *a, *b, amount);
    }
    default:
      return binary(n.op, *a, *b);
  }
}

}  // namespace ingot::codegen::x86
