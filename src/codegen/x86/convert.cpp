// Conversions, scaling by powers of two and 16-bit roundings of logical vectors, and what moves lanes about.
#include <bit>
#include <cmath>

#include "base/error.h"
#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {

Vector Vectors::widen(Type to, Vector& a, VOp op) {
  Vector out = like(to, a.uniform);
  int half = code_.width / 2;
  for (int p = 0; p < out.parts; ++p) {
    Source s = a.at(p / 2);
    if (p % 2) s = s.mem ? Source(s.mem.plus(half)) : Source(emit1(VOp::extract_half, s, 0, half));
    out.part[p] = emit1(op, s, 0, code_.width, half);
  }
  return out;
}

Vector Vectors::narrow(Type to, Vector& a, VOp op) {
  Vector out = like(to, a.uniform);
  int half = code_.width / 2;
  for (int p = 0; p < out.parts; ++p) {
    VReg low = force(a.at(2 * p)), high = force(a.at(a.uniform ? 0 : 2 * p + 1));
    if (op == VOp::narrow && !wide_isa_) {
      out.part[p] = emit1(VOp::vpermq, emit(VOp::vshufps, low, high, 0x88), 0xd8);
    } else {
      VReg x = emit1(op, low, 0, half, code_.width), y = a.uniform ? x : emit1(op, high, 0, half, code_.width);
      out.part[p] = emit(VOp::insert_half, x, y);
    }
  }
  return out;
}

Vector Vectors::from_mask(Type to, Vector& m) {
  Vector out = like(to, m.uniform);
  VReg one = is_float(to) ? splat(to, 1.0) : splat_bits(to, 1);
  for (int p = 0; p < out.parts; ++p) {
    VReg mask = mask_for(to, m, p);
    if (!wide_isa_) {
      out.part[p] = emit(VOp::vand, mask, one);
      continue;
    }
    Inst inst{.op = size_of(to) == 8 ? VOp::blendm_pd : VOp::blendm_ps, .width = 64, .zeroing = true};
    inst.dst = code_.vector();
    inst.a = inst.b = one;
    inst.pred = mask;
    code_.add(inst);
    out.part[p] = inst.dst;
  }
  return out;
}

Vector Vectors::i64_to_float_by_lane(Type to, Vector& a) {
  bool single = to == Type::f32;
  store_area(0, a);
  each_lane([&] {
    Mem from = area(0), to_mem = area(1);
    from.index = to_mem.index = Gpr::r14;
    from.scale = 8;
    to_mem.scale = single ? 4 : 8;
    code_.add({.op = VOp::g_load, .width = 8, .g = Gpr::rax, .mem = from});
    VReg x = code_.vector();
    code_.add({.op = single ? VOp::ss_from_gpr : VOp::sd_from_gpr, .g = Gpr::rax, .dst = x});
    code_.add({.op = single ? VOp::store_ss : VOp::store_sd, .a = x, .mem = to_mem});
  });
  return load_area(1, to, a.uniform);
}

Vector Vectors::float_to_i64_by_lane(Vector& a) {
  bool single = a.type == Type::f32;
  store_area(0, a);
  each_lane([&] {
    Mem from = area(0), to = area(1);
    from.index = to.index = Gpr::r14;
    from.scale = single ? 4 : 8;
    to.scale = 8;
    code_.add({.op = single ? VOp::ss_to_gpr : VOp::sd_to_gpr, .g = Gpr::rax, .mem = from});
    code_.add({.op = VOp::g_store, .width = 8, .g = Gpr::rax, .mem = to});
  });
  return load_area(1, Type::i64, a.uniform);
}

// The instructions give the most negative integer for all they cannot represent: right for what is too small.
Vector Vectors::float_to_int(Type to, Vector& a) {
  force(a);
  bool single = a.type == Type::f32;
  if (to == Type::i64) {
    Vector raw;
    if (!wide_isa_) {
      raw = float_to_i64_by_lane(a);
    } else if (single) {
      raw = widen(Type::i64, a, VOp::vcvttps2qq);
    } else {
      raw = like(Type::i64, a.uniform);
      for (int p = 0; p < raw.parts; ++p) raw.part[p] = emit1(VOp::vcvttpd2qq, a.at(p));
    }
    Vector limit = like(a.type, true), zero = constant(Type::i64, 0), most = constant(Type::i64, INT64_MAX);
    limit.part[0] = splat(a.type, 0x1p63);
    Vector over = compare(Op::le, limit, a), nan = compare(Op::ne, a, a), capped = select(over, most, raw);
    return select(nan, zero, capped);
  }
  if (!single) {
    Vector capped = like(Type::f64, a.uniform), zero = constant(Type::f64, 0), nan = compare(Op::ne, a, a),
           number = select(nan, zero, a);
    for (int p = 0; p < capped.parts; ++p)
      capped.part[p] = emit(VOp::vminpd, number.at(p), splat(Type::f64, 2147483647.0));
    return narrow(Type::i32, capped, VOp::vcvttpd2dq);
  }
  Vector out = like(Type::i32, a.uniform);
  for (int p = 0; p < out.parts; ++p) {
    VReg x = a.reg(p), limit = splat(Type::f32, 0x1p31);
    if (wide_isa_) {
      VReg number = emit_mask(VOp::cmp_ps, x, x, 7), over = emit_mask(VOp::cmp_ps, limit, x, 18), dst = code_.vector();
      code_.add({.op = VOp::vcvttps2dq, .width = 64, .zeroing = true, .dst = dst, .a = x, .pred = number});
      code_.add({.op = VOp::vmovups, .width = 64, .dst = dst, .a = code_.splat32(0x7fffffff), .pred = over});
      out.part[p] = dst;
    } else {
      VReg flipped = emit(VOp::vxor, emit1(VOp::vcvttps2dq, x), emit(VOp::vcmpps, limit, x, 18));
      out.part[p] = emit(VOp::vand, flipped, emit(VOp::vcmpps, x, x, 7));
    }
  }
  return out;
}

Vector Vectors::convert(Type to, Vector& a) {
  if (a.type == Type::mask) return from_mask(to, a);
  if (is_float(a.type) && !is_float(to)) return float_to_int(to, a);
  auto each = [&](VOp op) {
    Vector out = like(to, a.uniform);
    for (int p = 0; p < out.parts; ++p) out.part[p] = emit1(op, force(a.at(p)));
    return out;
  };
  switch (to) {
    case Type::f32:
      if (a.type == Type::f64) return narrow(to, a, VOp::vcvtpd2ps);
      if (a.type == Type::i32) return each(VOp::vcvtdq2ps);
      return wide_isa_ ? narrow(to, a, VOp::vcvtqq2ps) : i64_to_float_by_lane(to, a);
    case Type::f64:
      if (a.type == Type::f32) return widen(to, a, VOp::vcvtps2pd);
      if (a.type == Type::i32) return widen(to, a, VOp::vcvtdq2pd);
      return wide_isa_ ? each(VOp::vcvtqq2pd) : i64_to_float_by_lane(to, a);
    case Type::i64:
      return widen(to, a, VOp::vpmovsxdq);
    default:
      return narrow(to, a, VOp::narrow);
  }
}

// a * 2^b. Without vscalefps: one product where 2^b is a normal number in all lanes. Else three powers of two, the
// largest last: every product but the last is exact, unless the result rounds to zero anyway or overflows.
Vector Vectors::scale(Vector& a, Vector& b) {
  const bool single = a.type == Type::f32;
  Vector out = like(a.type, a.uniform && b.uniform);
  if (wide_isa_) {
    for (int p = 0; p < out.parts; ++p) out.part[p] = emit(single ? VOp::vscalefps : VOp::vscalefpd, a.at(p), b.at(p));
    return out;
  }
  const VOp add = single ? VOp::vaddps : VOp::vaddpd, sub = single ? VOp::vsubps : VOp::vsubpd,
            mul = single ? VOp::vmulps : VOp::vmulpd;
  const VReg most = splat(a.type, single ? 126 : 1022), least = splat(a.type, single ? -126 : -1022);
  // The sum with 1.5 * 2^mantissa bits holds the integer in its low bits; moved up, they are the exponent.
  const VReg magic = splat(a.type, single ? 0x1.8p23 + 127 : 0x1.8p52 + 1023);
  auto power_of_two = [&](VReg v) {
    return emit1(single ? VOp::vpslld : VOp::vpsllq, emit(add, v, magic), single ? 23 : 52);
  };
  force(a);
  force(b);
  VReg outside = kNoReg;
  for (int p = 0; p < out.parts; ++p) {
    VReg x = a.reg(p), power = b.reg(p),
         size = emit(VOp::vand, power, splat_bits(a.type, single ? 0x7fffffff : INT64_MAX));
    out.part[p] = emit(mul, x, power_of_two(power));
    VReg large = emit(single ? VOp::vcmpps : VOp::vcmppd, size, most, 6);  // not at most; true for NaN
    outside = outside == kNoReg ? large : emit(VOp::vor, outside, large);
  }
  int64_t done = code_.label();
  code_.add({.op = VOp::v_test, .width = 32, .a = outside});
  code_.jump(done, Cond::equal);
  const int32_t begin = code_.position();
  auto clamp = [&](VReg v) {
    return emit(single ? VOp::vminps : VOp::vminpd, emit(single ? VOp::vmaxps : VOp::vmaxpd, v, least), most);
  };
  for (int p = 0; p < out.parts; ++p) {
    VReg x = a.reg(p), power = b.reg(p);
    VReg first = clamp(power), rest = emit(sub, power, first), second = clamp(rest),
         third = clamp(emit(sub, rest, second)), nan_kept = emit(sub, x, emit(sub, power, power));
    VReg scaled = emit(mul, emit(mul, nan_kept, power_of_two(third)), power_of_two(second));
    emit(mul, scaled, power_of_two(first), 0, out.part[p].reg);
  }
  code_.cold.push_back({begin, code_.position()});
  code_.place(done);
  return out;
}

// Round to nearest even on the integer; vcvtneps2bf16 would flush denormals.
VReg Vectors::bf16_bits(VReg x) {
  VReg odd = emit(VOp::vand, emit1(VOp::vpsrld, x, 16), code_.splat32(1));
  VReg rounded = emit1(VOp::vpsrld, emit(VOp::vpaddd, emit(VOp::vpaddd, x, code_.splat32(0x7fff)), odd), 16);
  VReg nan = code_.splat32(0x7fc0), dst = code_.vector();
  uint8_t width = static_cast<uint8_t>(code_.width);
  if (wide_isa_) {
    VReg unordered = emit_mask(VOp::cmp_ps, x, x, 3);
    code_.add({.op = VOp::blendm_ps, .width = width, .dst = dst, .a = rounded, .b = nan, .pred = unordered});
  } else {
    VReg unordered = emit(VOp::vcmpps, x, x, 3);
    code_.add({.op = VOp::blend_ps, .width = width, .dst = dst, .a = rounded, .b = nan, .c = unordered});
  }
  return dst;
}

Vector Vectors::round_to(Vector& a, DType d) {
  Vector out = like(Type::f32, a.uniform);
  int half = code_.width / 2;
  for (int p = 0; p < out.parts; ++p) {
    VReg x = force(a.at(p));
    out.part[p] = d == DType::bf16 ? emit1(VOp::vpslld, bf16_bits(x), 16)
                                   : emit1(VOp::vcvtph2ps, emit1(VOp::to_half, x, 0, half), 0, code_.width, half);
  }
  return out;
}

Vector Vectors::wrap(Vector& a, DType d) {
  Vector out = like(Type::i32, a.uniform);
  int shift = d == DType::i16 ? 16 : 24;
  for (int p = 0; p < out.parts; ++p) {
    VReg x = force(a.at(p));
    out.part[p] = d == DType::u8 ? emit(VOp::vand, x, code_.splat32(0xff))
                                 : emit1(VOp::vpsrad, emit1(VOp::vpslld, x, shift), shift);
  }
  return out;
}

Vector Vectors::upper(Vector& a, int step, bool keep_shape) {
  Vector out = a;
  const int lanes = lanes_a_part(a.type), parts = parts_of(a.type);
  if (step >= lanes) {
    for (int p = 0; p < parts; ++p) out.part[p] = a.at((p + step / lanes) % parts);
  } else {
    // Steps of whole 128-bit lanes, then inside of one.
    int bytes = step * (a.type == Type::mask ? 4 : static_cast<int>(size_of(a.type)));
    VReg x = a.part[0].reg;
    VReg moved = bytes == 32   ? emit(VOp::vshuff64x2, x, x, 0x0e)
                 : bytes == 16 ? (wide_isa_ ? emit(VOp::vshuff64x2, x, x, 0x01) : emit(VOp::vperm2f128, x, x, 0x01))
                               : emit1(VOp::vpshufd, x, bytes == 8 ? 0x0e : 0x01);
    for (int p = 0; p < parts; ++p) out.part[p] = moved;
  }
  if (!keep_shape && step <= lanes) {
    out.uniform = a.uniform = true;
    out.parts = a.parts = 1;
  }
  return out;
}

Vector Vectors::broadcast_first(const Vector& a) {
  Vector out = like(a.type, true);
  out.part[0] = emit1(size_of(a.type) == 8 ? VOp::vbroadcastsd : VOp::vbroadcastss, a.part[0], 0, code_.width, 16);
  if (a.type == Type::mask) out.wide[0] = out.part[0].reg;
  return out;
}

Vector Vectors::broadcast(Type type, Gpr from) {
  Vector v = like(type, true);
  if (type == Type::mask) {
    code_.g(VOp::g_andi, from, 1);
    code_.g(VOp::g_neg, from, 0);
    if (wide_isa_) {
      v.part[0] = code_.mask();
      code_.add({.op = VOp::k_from_gpr, .g = from, .dst = v.part[0].reg});
      v.wide[0] = v.part[0].reg;
      return v;
    }
  }
  VReg first = code_.vector();
  code_.add({.op = size_of(type) == 8 ? VOp::q_from_gpr : VOp::d_from_gpr, .g = from, .dst = first});
  v.part[0] = first;
  return broadcast_first(v);
}

Vector Vectors::lane_numbers(Type type) {
  Vector v = like(type, false);
  const int bytes = static_cast<int>(size_of(type)), lanes = lanes_a_part(type);
  for (int p = 0; p < v.parts; ++p) v.part[p] = code_.counting(bytes, p * lanes);
  return v;
}

Mem Vectors::area(int number) {
  if (areas_ < 0) areas_ = code_.reserve(3 * 128, 64);
  return Mem::frame(areas_ + number * 128);
}

void Vectors::store_area(int number, Vector& v) {
  for (int p = 0; p < parts_of(v.type); ++p)
    code_.add({.op = VOp::store,
               .width = static_cast<uint8_t>(code_.width),
               .a = force(v.at(p)),
               .mem = area(number).plus(p * code_.width)});
}

Vector Vectors::load_area(int number, Type type, bool uniform) {
  Vector v = like(type, uniform);
  for (int p = 0; p < v.parts; ++p) v.part[p] = force(Source(area(number).plus(p * code_.width)));
  return v;
}

}  // namespace ingot::codegen::x86
