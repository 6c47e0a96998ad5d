// Arithmetic of logical vectors: what one instruction does, and what it takes several for.
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {

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

/// An instruction whose operands may change places, so that one in memory comes second.
Vector Vectors::commutative(VOp vop, Vector& a, Vector& b, const Vector* into) {
  Vector out = like(a.type, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) {
    Source x = a.at(p), y = b.at(p);
    if (x.mem) std::swap(x, y);
    out.part[p] = emit(vop, x, y, 0, into ? into->reg(p) : kNoReg);
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
  return commutative(vop, a, b, into);
}

Vector Vectors::bits(Op op, Vector& a, Vector& b, const Vector* into) {
  VOp vop = op == Op::bit_and ? VOp::vand : op == Op::bit_or ? VOp::vor : VOp::vxor;
  return commutative(vop, a, b, into);
}

Vector Vectors::multiply_u32(Vector& a, Vector& b) {
  Vector out = like(Type::i64, a.uniform && b.uniform);
  for (int p = 0; p < out.parts; ++p) out.part[p] = emit(VOp::vpmuludq, force(a.at(p)), force(b.at(p)));
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
