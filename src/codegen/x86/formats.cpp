#include "codegen/x86/formats.h"

#include "base/error.h"
#include "codegen/x86/arithmetic.h"
#include "codegen/x86/convert.h"
#include "codegen/x86/lanes.h"

namespace ingot::codegen::x86 {

Vector load_elements(Vectors& v, DType d, const Mem& from, Vector* mask) {
  VCode& code = v.code();
  Vector out;
  out.type = register_type(d);
  const int lanes = v.lanes_a_part(out.type), step = lanes * static_cast<int>(ingot::size_of(d));
  out.parts = v.parts_of(out.type);
  auto one = [&](VOp op, int p, int width, int source) {
    Inst inst{.op = op,
              .width = static_cast<uint8_t>(width),
              .from = static_cast<uint8_t>(source),
              .mem = from.plus(p * step)};
    inst.dst = code.vector();
    if (mask) {
      if (op == VOp::maskload_d || op == VOp::maskload_q) {
        inst.b = v.mask_for(out.type, *mask, p);
      } else {
        inst.pred = out.type == Type::mask ? v.narrow_mask(*mask)[0] : v.mask_for(out.type, *mask, p);
        inst.zeroing = true;
      }
    }
    code.add(inst);
    return inst.dst;
  };
  if (d == DType::bool_ && v.avx512()) {
    VReg bytes = one(mask ? VOp::load_bytes : VOp::vmovups, 0, 16, 0), some = code.mask();
    code.add({.op = VOp::test_b, .width = 16, .dst = some, .a = bytes});
    out.part[0] = some;
    return out;
  }
  for (int p = 0; p < out.parts; ++p) {
    const bool by_vector = mask && !v.avx512();
    switch (d) {
      case DType::f32:
      case DType::i32:
        out.part[p] = one(by_vector ? VOp::maskload_d : VOp::vmovups, p, code.width, 0);
        break;
      case DType::f64:
      case DType::i64:
        out.part[p] = one(by_vector ? VOp::maskload_q : VOp::vmovupd, p, code.width, 0);
        break;
      case DType::f16:
        out.part[p] = one(VOp::vcvtph2ps, p, code.width, step);
        break;
      case DType::bf16:
        out.part[p] = v.emit1(VOp::vpslld, one(VOp::vpmovzxwd, p, code.width, step), 16);
        break;
      case DType::i16:
        out.part[p] = one(VOp::vpmovsxwd, p, code.width, step);
        break;
      case DType::i8:
        out.part[p] = one(VOp::vpmovsxbd, p, code.width, step);
        break;
      case DType::u8:
        out.part[p] = one(VOp::vpmovzxbd, p, code.width, step);
        break;
      default:  // bool: 0..255 above 0
        out.part[p] = v.emit(VOp::vpcmpgtd, one(VOp::vpmovzxbd, p, code.width, step), code.splat32(0));
    }
  }
  return out;
}

VReg load_f32(Vectors& v, DType d, const Mem& from, VReg mask) {
  VCode& code = v.code();
  auto load = [&](VOp op, int shrunk) {
    Inst inst{.op = op,
              .width = static_cast<uint8_t>(code.width),
              .from = static_cast<uint8_t>(shrunk ? code.width / shrunk : 0),
              .zeroing = mask != kNoReg,
              .mem = from};
    inst.dst = code.vector(), inst.pred = mask;
    code.add(inst);
    return inst.dst;
  };
  switch (d) {
    case DType::f16:
      return load(VOp::vcvtph2ps, 2);
    case DType::bf16:
      return v.emit1(VOp::vpslld, load(VOp::vpmovzxwd, 2), 16);
    case DType::i8:
      return v.emit1(VOp::vcvtdq2ps, load(VOp::vpmovsxbd, 4));
    default:
      INGOT_CHECK(d == DType::f32, "elements that f32 holds");
      return load(VOp::vmovups, 0);
  }
}

void store_elements(Vectors& v, DType d, Vector& x, const Mem& to, Vector* mask, bool streams) {
  VCode& code = v.code();
  const int parts = v.parts_of(x.type), step = v.lanes_a_part(x.type) * static_cast<int>(ingot::size_of(d));
  auto one = [&](VOp op, VReg a, int p, int width) {
    Inst inst{.op = op, .width = static_cast<uint8_t>(width), .a = a, .mem = to.plus(p * step)};
    if (mask) {
      VReg m = x.type == Type::mask ? v.narrow_mask(*mask)[0] : v.mask_for(x.type, *mask, p);
      (op == VOp::maskstore_d || op == VOp::maskstore_q ? inst.b : inst.pred) = m;
    }
    code.add(inst);
  };
  const bool by_vector = mask && !v.avx512();
  if (stored_as_it_is(d)) {
    bool wide = ingot::size_of(d) == 8;
    VOp op = by_vector ? (wide ? VOp::maskstore_q : VOp::maskstore_d)
             : streams ? VOp::store_streaming
             : wide    ? VOp::store_pd
                       : VOp::store;
    for (int p = 0; p < parts; ++p) one(op, v.force(x.at(p)), p, code.width);
    return;
  }
  if (d == DType::f16) {
    for (int p = 0; p < parts; ++p) one(VOp::store_half, v.force(x.at(p)), p, code.width);
    return;
  }
  if (v.avx512()) {
    if (d == DType::bool_) {
      VReg bytes = code.vector();
      code.add({.op = VOp::load_bytes,
                .width = 16,
                .zeroing = true,
                .dst = bytes,
                .a = code.splat32(0x01010101),
                .pred = v.narrow_mask(x)[0]});
      return one(VOp::store_bytes16, bytes, 0, 16);
    }
    VReg element = v.force(x.at(0));
    if (d == DType::bf16) element = bf16_bits(v, element);
    return one(ingot::size_of(d) == 2 ? VOp::store_words : VOp::store_bytes, element, 0, 64);
  }
  // AVX2: cut to 16 bits, then pack two registers; packing works in halves of a register, vpermq puts them in order.
  std::array<VReg, 2> low;
  std::array<VReg, 4> lanes = d == DType::bool_ ? v.narrow_mask(x) : std::array<VReg, 4>{};
  for (int p = 0; p < 2; ++p) {
    VReg element = d == DType::bool_ ? lanes[p] : v.force(x.at(p));
    low[p] = d == DType::bf16 ? bf16_bits(v, element)
                              : v.emit(VOp::vand, element,
                                       code.splat32(d == DType::bool_        ? 1
                                                    : ingot::size_of(d) == 2 ? 0xffff
                                                                             : 0xff));
  }
  VReg words = v.emit1(VOp::vpermq, v.emit(VOp::vpackusdw, low[0], low[1]), 0xd8);
  if (ingot::size_of(d) == 2) {
    code.add({.op = VOp::store, .width = 32, .a = words, .mem = to});
  } else {
    VReg bytes = v.emit1(VOp::vpermq, v.emit(VOp::vpackuswb, words, words), 0x08);
    code.add({.op = VOp::store_bytes16, .width = 16, .a = bytes, .mem = to});
  }
}

Vector broadcast_element(Vectors& v, DType d, const Mem& from) {
  VCode& code = v.code();
  Vector out;
  out.type = register_type(d);
  out.uniform = true;
  out.parts = 1;
  if (stored_as_it_is(d)) {
    out.part[0] = v.emit1(ingot::size_of(d) == 8 ? VOp::vbroadcastsd : VOp::vbroadcastss, from);
    return out;
  }
  code.add({.op = VOp::g_load, .width = static_cast<uint8_t>(ingot::size_of(d)), .g = Gpr::rax, .mem = from});
  Vector wide = broadcast(v, Type::i32, Gpr::rax);
  VReg x = wide.part[0].reg;
  switch (d) {
    case DType::f16:  // the lanes hold a half in their low word: pair them up
      out.part[0] = broadcast_first(v,
                                    [&] {
                                      Vector half = wide;
                                      half.part[0] = v.emit1(VOp::vcvtph2ps, x, 0, code.width, code.width / 2);
                                      return half;
                                    }())
                        .part[0];
      break;
    case DType::bf16:
      out.part[0] = v.emit1(VOp::vpslld, x, 16);
      break;
    case DType::i16:
      out.part[0] = v.emit1(VOp::vpsrad, v.emit1(VOp::vpslld, x, 16), 16);
      break;
    case DType::i8:
      out.part[0] = v.emit1(VOp::vpsrad, v.emit1(VOp::vpslld, x, 24), 24);
      break;
    case DType::u8:
      out.part[0] = x;
      break;
    default: {
      Vector zero = v.constant(Type::i32, 0);
      Vector mask = compare(v, Op::ne, wide, zero);
      if (mask.wide[0] == kNoReg) mask.wide[0] = mask.part[0].reg;
      return mask;
    }
  }
  return out;
}

}  // namespace ingot::codegen::x86
