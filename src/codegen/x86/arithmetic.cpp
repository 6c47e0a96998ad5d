#include "codegen/x86/arithmetic.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "codegen/x86/convert.h"
#include "codegen/x86/lanes.h"

namespace ingot::codegen::x86 {
namespace {

Vector floating(Vectors& v, Op op, Vector& a, Vector& b, const Vector* into) {
  static constexpr VOp table[4][4] = {
      {VOp::vaddps, VOp::vaddpd, VOp::vpaddd, VOp::vpaddq},
      {VOp::vsubps, VOp::vsubpd, VOp::vpsubd, VOp::vpsubq},
      {VOp::vmulps, VOp::vmulpd, VOp::vpmulld, VOp::vpmullq},
      {VOp::vdivps, VOp::vdivpd, VOp::label, VOp::label},
  };
  VOp vop = table[static_cast<int>(op) - static_cast<int>(Op::add)][static_cast<int>(a.type)];
  bool commutes = op == Op::add || op == Op::mul;
  Vector out = v.like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    Source x = a.at(p), y = b.at(p);
    if (commutes && x.mem) std::swap(x, y);
    out.part[p] = v.emit(vop, x, y, 0, into ? into->reg(p) : kNoReg);
  }
  return out;
}

/// Whether x is one constant in all lanes; if so, its value.
bool constant_value(Vectors& v, const Vector& x, double* value) {
  int32_t constant = x.uniform && x.part[0].reg != kNoReg ? v.code().regs[x.part[0].reg].constant : -1;
  if (constant < 0) return false;
  const auto& bytes = v.code().constants[static_cast<size_t>(constant)].bytes;
  if (x.type == Type::f32) {
    float number;
    std::memcpy(&number, bytes.data(), sizeof number);
    *value = number;
  } else {
    std::memcpy(value, bytes.data(), sizeof *value);
  }
  return true;
}

// NaN wins and -0 < +0. AVX-512 has an instruction that orders zeros; on AVX2 both orders of operands of the maximum
// differ only for zeros (and NaN, replaced by the sum, which keeps it): and-ing (max) or or-ing (min) them orders the
// signs.
Vector minmax(Vectors& v, bool greatest, Vector& a, Vector& b, const Vector* into) {
  // The instruction gives its second source if one is NaN or both are zero: with a constant first, only one zero is
  // wrong, and for the maximum adding +0 rights it.
  if (double c; !into && (constant_value(v, a, &c) || constant_value(v, b, &c)) && !std::isnan(c) &&
                (greatest || c != 0 || !std::signbit(c))) {
    double unused;
    const bool first = constant_value(v, a, &unused);
    Vector most = pick(v, !greatest, first ? a : b, first ? b : a);
    if (!greatest || c != 0 || std::signbit(c)) return most;
    Vector zero = v.constant(a.type, 0);
    return floating(v, Op::add, most, zero, nullptr);
  }
  bool single = a.type == Type::f32;
  Vector out = v.like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    VReg x = v.force(a.at(p)), y = v.force(b.at(p));
    VReg dst = v.target(into, p);
    VReg sum = v.emit(single ? VOp::vaddps : VOp::vaddpd, x, y);
    uint8_t width = static_cast<uint8_t>(v.code().width);
    if (v.avx512()) {
      VReg unordered = v.emit_mask(single ? VOp::cmp_ps : VOp::cmp_pd, x, y, 3);
      VReg ordered = v.emit(single ? VOp::vrangeps : VOp::vrangepd, x, y, greatest ? 5 : 4);
      v.code().add({.op = single ? VOp::blendm_ps : VOp::blendm_pd,
                    .width = width,
                    .dst = dst,
                    .a = ordered,
                    .b = sum,
                    .pred = unordered});
    } else {
      VOp pick = greatest ? (single ? VOp::vmaxps : VOp::vmaxpd) : (single ? VOp::vminps : VOp::vminpd);
      VReg either = v.emit(greatest ? VOp::vand : VOp::vor, v.emit(pick, x, y), v.emit(pick, y, x));
      VReg unordered = v.emit(single ? VOp::vcmpps : VOp::vcmppd, x, y, 3);
      v.code().add({.op = single ? VOp::blend_ps : VOp::blend_pd,
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

/// An instruction whose operands may change places, so that one in memory comes second.
Vector commutative(Vectors& v, VOp vop, Vector& a, Vector& b, const Vector* into) {
  Vector out = v.like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    Source x = a.at(p), y = b.at(p);
    if (x.mem) std::swap(x, y);
    out.part[p] = v.emit(vop, x, y, 0, into ? into->reg(p) : kNoReg);
  }
  return out;
}

Vector integer_min_max(Vectors& v, bool greatest, Vector& a, Vector& b, const Vector* into) {
  if (a.type == Type::i64 && !v.avx512()) {
    v.force(a);
    v.force(b);
    Vector less = compare(v, Op::lt, a, b);
    Vector out = greatest ? select(v, less, b, a) : select(v, less, a, b);
    if (!into) return out;
    v.copy(*into, out);
    return *into;
  }
  VOp vop = a.type == Type::i32 ? (greatest ? VOp::vpmaxsd : VOp::vpminsd) : (greatest ? VOp::vpmaxsq : VOp::vpminsq);
  return commutative(v, vop, a, b, into);
}

Vector bits(Vectors& v, Op op, Vector& a, Vector& b, const Vector* into) {
  VOp vop = op == Op::bit_and ? VOp::vand : op == Op::bit_or ? VOp::vor : VOp::vxor;
  return commutative(v, vop, a, b, into);
}

Vector mask_logic(Vectors& v, Op op, Vector& a, Vector& b, const Vector* into) {
  VOp k = op == Op::bit_and ? VOp::kand : op == Op::bit_or ? VOp::kor : VOp::kxor;
  VOp vector_op = op == Op::bit_and ? VOp::vand : op == Op::bit_or ? VOp::vor : VOp::vxor;
  Vector out = v.like(Type::mask, a.uniform && b.uniform);
  auto logic = [&](VReg x, VReg y, VReg dst) {
    if (!v.avx512()) return v.emit(vector_op, x, y, 0, dst);
    if (dst == kNoReg) dst = v.code().mask();
    v.code().add({.op = k, .dst = dst, .a = x, .b = y});
    return dst;
  };
  // Masks of 64-bit elements stay in their form.
  if (!into && a.parts == 0 && b.parts == 0 && !out.uniform) {
    out.parts = 0;
    for (int p = 0; p < v.parts_of(Type::f64); ++p) out.wide[p] = logic(a.wide_at(p), b.wide_at(p), kNoReg);
    return out;
  }
  std::array<VReg, 4> x = v.narrow_mask(a), y = v.narrow_mask(b);
  for (int p = 0; p < out.parts; ++p) out.part[p] = logic(x[p], y[p], into ? into->reg(p) : kNoReg);
  return out;
}

// The low 64 bits of a product from three 32-bit products.
Vector multiply_i64(Vectors& v, Vector& a, Vector& b) {
  Vector out = v.like(Type::i64, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    VReg x = v.force(a.at(p)), y = v.force(b.at(p));
    VReg cross = v.emit(VOp::vpaddq, v.emit(VOp::vpmuludq, v.emit1(VOp::vpsrlq, x, 32), y),
                        v.emit(VOp::vpmuludq, v.emit1(VOp::vpsrlq, y, 32), x));
    out.part[p] = v.emit(VOp::vpaddq, v.emit(VOp::vpmuludq, x, y), v.emit1(VOp::vpsllq, cross, 32));
  }
  return out;
}

Vector divide_integer(Vectors& v, Vector& a, Vector& b) {
  v.force(a);
  v.force(b);
  if (a.type == Type::i32) {
    // The quotient of two 32-bit integers in f64 is at least 2^-31 away from an integer it does not equal, so
    // truncation is exact; INT_MIN / -1 comes out as the conversion's overflow value, INT_MIN.
    Vector x = convert(v, Type::f64, a), y = convert(v, Type::f64, b), quotient = floating(v, Op::div, x, y, nullptr);
    Vector truncated = narrow(v, Type::i32, quotient, VOp::vcvttpd2dq);
    Vector zero = v.constant(Type::i32, 0), by_zero = compare(v, Op::eq, b, zero);
    return select(v, by_zero, zero, truncated);
  }
  store_area(v, 0, a);
  store_area(v, 1, b);
  v.each_lane([&] {
    int64_t divide = v.code().label(), negate = v.code().label(), done = v.code().label();
    Mem x = v.area(0), y = v.area(1);
    x.index = y.index = Gpr::r14;
    x.scale = y.scale = 8;
    v.code().add({.op = VOp::g_load, .width = 8, .g = Gpr::rax, .mem = x});
    v.code().add({.op = VOp::g_load, .width = 8, .g = Gpr::rbx, .mem = y});
    v.code().add({.op = VOp::g_cmpi, .g = Gpr::rbx, .value = -1});
    v.code().jump(negate, Cond::equal);
    v.code().add({.op = VOp::g_cmpi, .g = Gpr::rbx, .value = 0});
    v.code().jump(divide, Cond::not_equal);
    v.code().add({.op = VOp::g_imm, .g = Gpr::rax, .value = 0});
    v.code().jump(done);
    v.code().place(negate);
    v.code().add({.op = VOp::g_neg, .g = Gpr::rax});
    v.code().jump(done);
    v.code().place(divide);
    v.code().add({.op = VOp::g_idiv, .width = 8, .g = Gpr::rbx, .h = Gpr::rdx});
    v.code().place(done);
    v.code().add({.op = VOp::g_store, .width = 8, .g = Gpr::rax, .mem = x});
  });
  return load_area(v, 0, Type::i64, a.uniform && b.uniform);
}

Vector shift(Vectors& v, Op op, Vector& a, Vector& b, int64_t amount) {
  bool wide = a.type == Type::i64;
  Vector out = v.like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    if (op == Op::sar && wide && !v.avx512()) {
      // No 64-bit arithmetic shift before AVX-512: shift the ones' complement of negative values.
      VReg x = v.force(a.at(p)), sign = v.emit(VOp::vpcmpgtq, v.code().splat64(0), x),
           positive = v.emit(VOp::vxor, x, sign);
      VReg shifted = amount >= 0 ? v.emit1(VOp::vpsrlq, positive, static_cast<int>(amount))
                                 : v.emit(VOp::vpsrlvq, positive, b.at(p));
      out.part[p] = v.emit(VOp::vxor, shifted, sign);
    } else if (amount >= 0) {
      VOp vop = op == Op::shl   ? (wide ? VOp::vpsllq : VOp::vpslld)
                : op == Op::shr ? (wide ? VOp::vpsrlq : VOp::vpsrld)
                                : (wide ? VOp::vpsraq : VOp::vpsrad);
      out.part[p] = v.emit1(vop, v.force(a.at(p)), static_cast<int>(amount));
    } else {
      VOp vop = op == Op::shl   ? (wide ? VOp::vpsllvq : VOp::vpsllvd)
                : op == Op::shr ? (wide ? VOp::vpsrlvq : VOp::vpsrlvd)
                                : (wide ? VOp::vpsravq : VOp::vpsravd);
      out.part[p] = v.emit(vop, a.at(p), b.at(p));
    }
  }
  return out;
}

Vector multiply_add(Vectors& v, Vector& a, Vector& b, Vector& c) {
  Vector out = v.like(a.type, a.uniform && b.uniform && c.uniform);
  for (int p = 0; p < out.parts; ++p) {
    Source x = a.at(p), y = b.at(p), z = c.at(p);
    // One source may stay in memory.
    if (x.mem && (y.mem || z.mem)) x = v.force(x);
    if (y.mem && z.mem) y = v.force(y);
    Inst inst{.op = a.type == Type::f32 ? VOp::fma_ps : VOp::fma_pd, .width = static_cast<uint8_t>(v.code().width)};
    inst.a = x.reg;
    inst.b = y.reg;
    inst.c = z.reg;
    inst.mem = x.mem ? x.mem : y.mem ? y.mem : z.mem;
    inst.dst = v.code().vector();
    v.code().add(inst);
    out.part[p] = inst.dst;
  }
  return out;
}

}  // namespace

Vector binary(Vectors& v, Op op, Vector& a, Vector& b, const Vector* into) {
  switch (op) {
    case Op::min:
    case Op::max:
      return is_float(a.type) ? minmax(v, op == Op::max, a, b, into) : integer_min_max(v, op == Op::max, a, b, into);
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
      return a.type == Type::mask ? mask_logic(v, op, a, b, into) : bits(v, op, a, b, into);
    default:
      break;
  }
  if (op == Op::div && !is_float(a.type)) return divide_integer(v, a, b);
  if (op == Op::mul && a.type == Type::i64 && !v.avx512()) {
    Vector product = multiply_i64(v, a, b);
    if (!into) return product;
    v.copy(*into, product);
    return *into;
  }
  return floating(v, op, a, b, into);
}

Vector pick(Vectors& v, bool least, Vector& a, Vector& b) {
  const bool single = a.type == Type::f32;
  Vector out = v.like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p)
    out.part[p] =
        v.emit(least ? (single ? VOp::vminps : VOp::vminpd) : (single ? VOp::vmaxps : VOp::vmaxpd), a.at(p), b.at(p));
  return out;
}

Vector ordered_minmax(Vectors& v, bool greatest, Vector& a, Vector& b, const Vector* into) {
  const bool single = a.type == Type::f32;
  Vector out = v.like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    VReg x = v.force(a.at(p)), y = v.force(b.at(p)), dst = v.target(into, p);
    if (v.avx512()) {
      v.emit(single ? VOp::vrangeps : VOp::vrangepd, x, y, greatest ? 5 : 4, dst);
    } else {
      VOp op = greatest ? (single ? VOp::vmaxps : VOp::vmaxpd) : (single ? VOp::vminps : VOp::vminpd);
      v.emit(greatest ? VOp::vand : VOp::vor, v.emit(op, x, y), v.emit(op, y, x), 0, dst);
    }
    out.part[p] = dst;
  }
  return out;
}

Vector multiply_u32(Vectors& v, Vector& a, Vector& b) {
  Vector out = v.like(Type::i64, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) out.part[p] = v.emit(VOp::vpmuludq, v.force(a.at(p)), v.force(b.at(p)));
  return out;
}

Vector compare(Vectors& v, Op op, Vector& a, Vector& b) {
  Type t = a.type;
  bool uniform = a.uniform && b.uniform, wide = size_of(t) == 8;
  Vector out = v.like(Type::mask, uniform);
  int parts = uniform ? 1 : v.parts_of(t);
  for (int p = 0; p < parts; ++p) {
    Source x = a.at(p), y = b.at(p);
    VReg r;
    if (v.avx512()) {
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
      Inst inst{.op = vop, .width = static_cast<uint8_t>(v.code().width), .imm = static_cast<uint8_t>(imm)};
      inst.a = v.force(x);
      inst.b = y.reg;
      inst.mem = y.mem;
      inst.dst = r = v.code().mask();
      v.code().add(inst);
    } else if (is_float(t)) {
      int imm = op == Op::eq ? 0 : op == Op::ne ? 4 : op == Op::lt ? 17 : 18;
      r = v.emit(t == Type::f32 ? VOp::vcmpps : VOp::vcmppd, x, y, imm);
    } else {
      bool equality = op == Op::eq || op == Op::ne;
      VOp vop = equality ? (wide ? VOp::vpcmpeqq : VOp::vpcmpeqd) : (wide ? VOp::vpcmpgtq : VOp::vpcmpgtd);
      // a < b is b > a; a <= b is not a > b.
      r = op == Op::lt ? v.emit(vop, v.force(y), x) : v.emit(vop, x, y);
      if (op == Op::ne || op == Op::le) r = v.emit(VOp::vxor, r, v.code().splat32(~0u));
    }
    (wide ? out.wide[p] : out.part[p].reg) = r;
  }
  if (!wide) return out;
  out.parts = 0;
  if (uniform) {  // both forms at once: the value may be used where nothing can be added to it
    out.part[0] = v.avx512() ? v.emit_mask(VOp::kunpack, out.wide[0], out.wide[0]) : out.wide[0];
    out.parts = 1;
  }
  return out;
}

/// Whether all bits of it are zero, whatever its lanes.
static bool is_zero(Vectors& v, const Source& s) {
  const VCode& code = v.code();
  const int constant = s.reg != kNoReg                     ? code.regs[s.reg].constant
                       : s.mem.kind == Mem::Kind::constant ? s.mem.disp
                                                           : -1;
  if (constant < 0) return false;
  const auto& bytes = code.constants[static_cast<size_t>(constant)].bytes;
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

Vector select(Vectors& v, Vector& mask, Vector& yes, Vector& no) {
  if (yes.type == Type::mask) {
    Vector inverse = logical_not(v, mask), x = mask_logic(v, Op::bit_and, mask, yes, nullptr),
           y = mask_logic(v, Op::bit_and, inverse, no, nullptr);
    return mask_logic(v, Op::bit_or, x, y, nullptr);
  }
  Vector out = v.like(yes.type, mask.uniform && yes.uniform && no.uniform);
  bool wide = size_of(yes.type) == 8;
  for (int p = 0; p < out.parts; ++p) {
    VReg m = v.mask_for(yes.type, mask, p);
    // Bits of a mask of vectors are all or none: of what is zero otherwise they leave the rest. A blend takes a port
    // that multiplications want.
    if (!v.avx512() && (is_zero(v, yes.at(p)) || is_zero(v, no.at(p)))) {
      out.part[p] = is_zero(v, yes.at(p)) ? v.emit(VOp::vandn, m, no.at(p)) : v.emit(VOp::vand, m, yes.at(p));
      continue;
    }
    Inst inst{.op = v.avx512() ? (wide ? VOp::blendm_pd : VOp::blendm_ps) : (wide ? VOp::blend_pd : VOp::blend_ps),
              .width = static_cast<uint8_t>(v.code().width)};
    (v.avx512() ? inst.pred : inst.c) = m;
    inst.a = v.force(no.at(p));
    inst.b = yes.at(p).reg;
    inst.mem = yes.at(p).mem;
    inst.dst = v.code().vector();
    v.code().add(inst);
    out.part[p] = inst.dst;
  }
  return out;
}

Vector logical_not(Vectors& v, Vector& m) {
  Vector out = v.like(Type::mask, m.uniform);
  std::array<VReg, 4> in = v.narrow_mask(m);
  for (int p = 0; p < out.parts; ++p)
    out.part[p] = v.avx512() ? v.emit_mask(VOp::knot, in[p]) : v.emit(VOp::vxor, in[p], v.code().splat32(~0u));
  return out;
}

Vector compute(Vectors& v, const Node& n, Vector* a, Vector* b, Vector* c) {
  auto unary = [&](VOp op, int imm) {
    Vector out = v.like(a->type, a->uniform);
    for (int p = 0; p < out.parts; ++p) out.part[p] = v.emit1(op, imm >= 0 ? Source(v.force(a->at(p))) : a->at(p), imm);
    return out;
  };
  bool single = n.type == Type::f32;
  switch (n.op) {
    case Op::fma:
      return multiply_add(v, *a, *b, *c);
    case Op::sqrt:
      return unary(single ? VOp::vsqrtps : VOp::vsqrtpd, -1);
    case Op::round:
      return unary(
          v.avx512() ? (single ? VOp::vrndscaleps : VOp::vrndscalepd) : (single ? VOp::vroundps : VOp::vroundpd),
          static_cast<int>(n.imm) | 8);
    case Op::scale:
      return scale(v, *a, *b, n.imm);
    case Op::round_to:
      return round_to(v, *a, static_cast<DType>(n.imm));
    case Op::wrap:
      return wrap(v, *a, static_cast<DType>(n.imm));
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
      return compare(v, n.op, *a, *b);
    case Op::select:
      return select(v, *a, *b, *c);
    case Op::convert:
      return convert(v, n.type, *a);
    case Op::bitcast: {
      v.force(*a);
      Vector out = *a;
      out.type = n.type;
      return out;
    }
    case Op::shl:
    case Op::shr:
    case Op::sar: {
      // A constant amount goes into the instruction.
      int64_t amount = -1;
      int32_t number = b->uniform && b->part[0].reg != kNoReg ? v.code().regs[b->part[0].reg].constant : -1;
      if (number >= 0) amount = v.code().constants[static_cast<size_t>(number)].bytes[0];
      return shift(v, n.op, *a, *b, amount);
    }
    default:
      return binary(v, n.op, *a, *b);
  }
}

}  // namespace ingot::codegen::x86
