#include "codegen/x86/convert.h"

#include <bit>
#include <cmath>

#include "base/error.h"
#include "codegen/x86/arithmetic.h"
#include "codegen/x86/lanes.h"

namespace ingot::codegen::x86 {
namespace {

Vector widen(Vectors& v, Type to, Vector& a, VOp op) {
  Vector out = v.like(to, a.uniform);
  int half = v.code().width / 2;
  for (int p = 0; p < out.parts; ++p) {
    Source s = a.at(p / 2);
    if (p % 2) s = s.mem ? Source(s.mem.plus(half)) : Source(v.emit1(VOp::extract_half, s, 0, half));
    out.part[p] = v.emit1(op, s, 0, v.code().width, half);
  }
  return out;
}

Vector from_mask(Vectors& v, Type to, Vector& m) {
  Vector out = v.like(to, m.uniform);
  VReg one = is_float(to) ? v.splat(to, 1.0) : v.splat_bits(to, 1);
  for (int p = 0; p < out.parts; ++p) {
    VReg mask = v.mask_for(to, m, p);
    if (!v.avx512()) {
      out.part[p] = v.emit(VOp::vand, mask, one);
      continue;
    }
    Inst inst{.op = size_of(to) == 8 ? VOp::blendm_pd : VOp::blendm_ps, .width = 64, .zeroing = true};
    inst.dst = v.code().vector();
    inst.a = inst.b = one;
    inst.pred = mask;
    v.code().add(inst);
    out.part[p] = inst.dst;
  }
  return out;
}

Vector i64_to_float_by_lane(Vectors& v, Type to, Vector& a) {
  bool single = to == Type::f32;
  store_area(v, 0, a);
  v.each_lane([&] {
    Mem from = v.area(0), to_mem = v.area(1);
    from.index = to_mem.index = Gpr::r14;
    from.scale = 8;
    to_mem.scale = single ? 4 : 8;
    v.code().add({.op = VOp::g_load, .width = 8, .g = Gpr::rax, .mem = from});
    VReg x = v.code().vector();
    v.code().add({.op = single ? VOp::ss_from_gpr : VOp::sd_from_gpr, .g = Gpr::rax, .dst = x});
    v.code().add({.op = single ? VOp::store_ss : VOp::store_sd, .a = x, .mem = to_mem});
  });
  return load_area(v, 1, to, a.uniform);
}

Vector float_to_i64_by_lane(Vectors& v, Vector& a) {
  bool single = a.type == Type::f32;
  store_area(v, 0, a);
  v.each_lane([&] {
    Mem from = v.area(0), to = v.area(1);
    from.index = to.index = Gpr::r14;
    from.scale = single ? 4 : 8;
    to.scale = 8;
    v.code().add({.op = single ? VOp::ss_to_gpr : VOp::sd_to_gpr, .g = Gpr::rax, .mem = from});
    v.code().add({.op = VOp::g_store, .width = 8, .g = Gpr::rax, .mem = to});
  });
  return load_area(v, 1, Type::i64, a.uniform);
}

// The instructions give the most negative integer for all they cannot represent: right for what is too small.
Vector float_to_int(Vectors& v, Type to, Vector& a) {
  v.force(a);
  bool single = a.type == Type::f32;
  if (to == Type::i64) {
    Vector raw;
    if (!v.avx512()) {
      raw = float_to_i64_by_lane(v, a);
    } else if (single) {
      raw = widen(v, Type::i64, a, VOp::vcvttps2qq);
    } else {
      raw = v.like(Type::i64, a.uniform);
      for (int p = 0; p < raw.parts; ++p) raw.part[p] = v.emit1(VOp::vcvttpd2qq, a.at(p));
    }
    Vector limit = v.like(a.type, true), zero = v.constant(Type::i64, 0), most = v.constant(Type::i64, INT64_MAX);
    limit.part[0] = v.splat(a.type, 0x1p63);
    Vector over = compare(v, Op::le, limit, a), nan = compare(v, Op::ne, a, a), capped = select(v, over, most, raw);
    return select(v, nan, zero, capped);
  }
  if (!single) {
    Vector capped = v.like(Type::f64, a.uniform), zero = v.constant(Type::f64, 0), nan = compare(v, Op::ne, a, a),
           number = select(v, nan, zero, a);
    for (int p = 0; p < capped.parts; ++p)
      capped.part[p] = v.emit(VOp::vminpd, number.at(p), v.splat(Type::f64, 2147483647.0));
    return narrow(v, Type::i32, capped, VOp::vcvttpd2dq);
  }
  Vector out = v.like(Type::i32, a.uniform);
  for (int p = 0; p < out.parts; ++p) {
    VReg x = a.reg(p), limit = v.splat(Type::f32, 0x1p31);
    if (v.avx512()) {
      VReg number = v.emit_mask(VOp::cmp_ps, x, x, 7), over = v.emit_mask(VOp::cmp_ps, limit, x, 18),
           dst = v.code().vector();
      v.code().add({.op = VOp::vcvttps2dq, .width = 64, .zeroing = true, .dst = dst, .a = x, .pred = number});
      v.code().add({.op = VOp::vmovups, .width = 64, .dst = dst, .a = v.code().splat32(0x7fffffff), .pred = over});
      out.part[p] = dst;
    } else {
      VReg flipped = v.emit(VOp::vxor, v.emit1(VOp::vcvttps2dq, x), v.emit(VOp::vcmpps, limit, x, 18));
      out.part[p] = v.emit(VOp::vand, flipped, v.emit(VOp::vcmpps, x, x, 7));
    }
  }
  return out;
}

// Round to nearest even on the integer, the result in the high words; vcvtneps2bf16 would flush denormals. NaN stays
// NaN, made quiet.
VReg rounded_to_bf16(Vectors& v, VReg x) {
  VCode& code = v.code();
  const auto width = static_cast<uint8_t>(code.width);
  if (v.avx512()) {
    constexpr uint32_t kQuietNan = 0x22;  // vfixupimmps: quiet and signalling NaN give src made quiet, all else dst
    const VReg odd = v.emit_mask(VOp::test_d, x, code.splat32(0x10000)),
               sum = v.emit(VOp::vpaddd, x, code.splat32(0x7fff));
    code.add({.op = VOp::vpaddd, .width = width, .dst = sum, .a = x, .b = code.splat32(0x8000), .pred = odd});
    code.add({.op = VOp::vfixupimmps, .width = width, .dst = sum, .a = x, .b = code.splat32(kQuietNan)});
    return sum;
  }
  const VReg odd = v.emit(VOp::vand, v.emit1(VOp::vpsrld, x, 16), code.splat32(1)),
             sum = v.emit(VOp::vpaddd, v.emit(VOp::vpaddd, x, code.splat32(0x7fff)), odd),
             quiet = v.emit(VOp::vor, x, code.splat32(0x400000)), dst = code.vector();
  code.add({.op = VOp::blend_ps, .width = width, .dst = dst, .a = sum, .b = quiet, .c = v.emit(VOp::vcmpps, x, x, 3)});
  return dst;
}

}  // namespace

Vector narrow(Vectors& v, Type to, Vector& a, VOp op) {
  Vector out = v.like(to, a.uniform);
  int half = v.code().width / 2;
  for (int p = 0; p < out.parts; ++p) {
    VReg low = v.force(a.at(2 * p)), high = v.force(a.at(a.uniform ? 0 : 2 * p + 1));
    if (op == VOp::narrow && !v.avx512()) {
      out.part[p] = v.emit1(VOp::vpermq, v.emit(VOp::vshufps, low, high, 0x88), 0xd8);
    } else {
      VReg x = v.emit1(op, low, 0, half, v.code().width),
           y = a.uniform ? x : v.emit1(op, high, 0, half, v.code().width);
      out.part[p] = v.emit(VOp::insert_half, x, y);
    }
  }
  return out;
}

Vector convert(Vectors& v, Type to, Vector& a) {
  if (a.type == Type::mask) return from_mask(v, to, a);
  if (is_float(a.type) && !is_float(to)) return float_to_int(v, to, a);
  auto each = [&](VOp op) {
    Vector out = v.like(to, a.uniform);
    for (int p = 0; p < out.parts; ++p) out.part[p] = v.emit1(op, v.force(a.at(p)));
    return out;
  };
  switch (to) {
    case Type::f32:
      if (a.type == Type::f64) return narrow(v, to, a, VOp::vcvtpd2ps);
      if (a.type == Type::i32) return each(VOp::vcvtdq2ps);
      return v.avx512() ? narrow(v, to, a, VOp::vcvtqq2ps) : i64_to_float_by_lane(v, to, a);
    case Type::f64:
      if (a.type == Type::f32) return widen(v, to, a, VOp::vcvtps2pd);
      if (a.type == Type::i32) return widen(v, to, a, VOp::vcvtdq2pd);
      return v.avx512() ? each(VOp::vcvtqq2pd) : i64_to_float_by_lane(v, to, a);
    case Type::i64:
      return widen(v, to, a, VOp::vpmovsxdq);
    default:
      return narrow(v, to, a, VOp::narrow);
  }
}

// a * 2^b. Without vscalefps: one product where 2^b is a normal number in all lanes; two of its halves where a is near
// one. Else three powers of two, the largest last: every product but the last is exact, unless the result rounds to
// zero anyway or overflows.
Vector scale(Vectors& v, Vector& a, Vector& b, uint64_t kind) {
  const bool single = a.type == Type::f32;
  Vector out = v.like(a.type, a.uniform && b.uniform);
  if (v.avx512()) {
    for (int p = 0; p < out.parts; ++p)
      out.part[p] = v.emit(single ? VOp::vscalefps : VOp::vscalefpd, a.at(p), b.at(p));
    return out;
  }
  const VOp add = single ? VOp::vaddps : VOp::vaddpd, sub = single ? VOp::vsubps : VOp::vsubpd,
            mul = single ? VOp::vmulps : VOp::vmulpd;
  // The sum with 1.5 * 2^mantissa bits holds the integer in its low bits; moved up, they are the exponent.
  const double magic = single ? 0x1.8p23 + 127 : 0x1.8p52 + 1023, sign = single ? 0x1p8 : 0x1p11;
  auto power_of_two = [&](VReg power, bool negative = false) {
    const VReg sum = v.emit(add, power, v.splat(a.type, negative ? magic + sign : magic));
    return v.emit1(single ? VOp::vpslld : VOp::vpsllq, sum, single ? 23 : 52);
  };
  v.force(a);
  v.force(b);
  if (kind == 1) {
    const bool one = a.uniform && a.reg(0) == v.splat(a.type, 1),
               minus_one = a.uniform && a.reg(0) == v.splat(a.type, -1);
    for (int p = 0; p < out.parts; ++p)
      out.part[p] =
          one || minus_one ? power_of_two(b.reg(p), minus_one) : v.emit(mul, a.reg(p), power_of_two(b.reg(p)));
    return out;
  }
  if (kind == 2) {
    // Twice the bias in the sum is one in each half.
    const VReg both = v.splat(a.type, magic + (single ? 127 : 1023));
    const int mantissa = single ? 23 : 52;
    const VOp left = single ? VOp::vpslld : VOp::vpsllq;
    for (int p = 0; p < out.parts; ++p) {
      const VReg sum = v.emit(add, b.reg(p), both), half = v.emit1(single ? VOp::vpsrld : VOp::vpsrlq, sum, 1);
      const VReg rest = v.emit(single ? VOp::vpsubd : VOp::vpsubq, sum, half);
      out.part[p] = v.emit(mul, v.emit(mul, a.reg(p), v.emit1(left, half, mantissa)), v.emit1(left, rest, mantissa));
    }
    return out;
  }
  const VReg most = v.splat(a.type, single ? 126 : 1022), least = v.splat(a.type, single ? -126 : -1022);
  VReg outside = kNoReg;
  for (int p = 0; p < out.parts; ++p) {
    VReg x = a.reg(p), power = b.reg(p),
         size = v.emit(VOp::vand, power, v.splat_bits(a.type, single ? 0x7fffffff : INT64_MAX));
    out.part[p] = v.emit(mul, x, power_of_two(power));
    VReg large = v.emit(single ? VOp::vcmpps : VOp::vcmppd, size, most, 6);  // not at most; true for NaN
    outside = outside == kNoReg ? large : v.emit(VOp::vor, outside, large);
  }
  int64_t done = v.code().label();
  v.code().add({.op = VOp::v_test, .width = 32, .a = outside});
  v.code().jump(done, Cond::equal);
  const int32_t begin = v.code().position();
  auto clamp = [&](VReg power) {
    return v.emit(single ? VOp::vminps : VOp::vminpd, v.emit(single ? VOp::vmaxps : VOp::vmaxpd, power, least), most);
  };
  for (int p = 0; p < out.parts; ++p) {
    VReg x = a.reg(p), power = b.reg(p);
    VReg first = clamp(power), rest = v.emit(sub, power, first), second = clamp(rest),
         third = clamp(v.emit(sub, rest, second)), nan_kept = v.emit(sub, x, v.emit(sub, power, power));
    VReg scaled = v.emit(mul, v.emit(mul, nan_kept, power_of_two(third)), power_of_two(second));
    v.emit(mul, scaled, power_of_two(first), 0, out.part[p].reg);
  }
  v.code().cold.push_back({begin, v.code().position()});
  v.code().place(done);
  return out;
}

VReg bf16_bits(Vectors& v, VReg x) { return v.emit1(VOp::vpsrld, rounded_to_bf16(v, x), 16); }

Vector round_to(Vectors& v, Vector& a, DType d) {
  Vector out = v.like(Type::f32, a.uniform);
  int half = v.code().width / 2;
  for (int p = 0; p < out.parts; ++p) {
    VReg x = v.force(a.at(p));
    out.part[p] = d == DType::bf16
                      ? v.emit(VOp::vand, rounded_to_bf16(v, x), v.code().splat32(0xffff0000))
                      : v.emit1(VOp::vcvtph2ps, v.emit1(VOp::to_half, x, 0, half), 0, v.code().width, half);
  }
  return out;
}

Vector high_words(Vectors& v, Vector& a) {
  Vector out = v.like(Type::i32, a.uniform);
  for (int p = 0; p < out.parts; ++p) out.part[p] = v.emit1(VOp::vpsrld, v.force(a.at(p)), 16);
  return out;
}

Vector wrap(Vectors& v, Vector& a, DType d) {
  Vector out = v.like(Type::i32, a.uniform);
  int shift = d == DType::i16 ? 16 : 24;
  for (int p = 0; p < out.parts; ++p) {
    VReg x = v.force(a.at(p));
    out.part[p] = d == DType::u8 ? v.emit(VOp::vand, x, v.code().splat32(0xff))
                                 : v.emit1(VOp::vpsrad, v.emit1(VOp::vpslld, x, shift), shift);
  }
  return out;
}

}  // namespace ingot::codegen::x86
