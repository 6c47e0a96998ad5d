// Stores of a loop kernel. A store never touches a byte outside of the columns that exist.
#include "codegen/x86/lower.h"

namespace ingot::codegen::x86 {

void Lowering::store(const Store& s) {
  Vector& v = value(s.value);
  const Buffer& b = k_.buffers[s.buffer];
  Stream& to = stream(s.buffer, false);
  const int64_t bytes = ingot::size_of(b.dtype);
  // A uniform destination is one place: it is written by a call of one column.
  if (b.access != Access::strided) return store_dense(b.dtype, v, address(to, bytes));
  store_format(b.dtype, v, v_.area(2), false);
  address_to_rax(to, true);
  copy_lanes(bytes, v_.area(2), true, bytes, stride_slots_[s.buffer]);
}

void Lowering::store_dense(DType d, Vector& v, const Mem& to) {
  if (!masked_ || v_.avx512() || stored_as_it_is(d)) return store_format(d, v, to, masked_, k_.streams && !masked_);
  store_format(d, v, v_.area(2), false);
  g(VOp::g_lea, Gpr::rax, to);
  copy_lanes(ingot::size_of(d), v_.area(2), true, ingot::size_of(d), -1);
}

void Lowering::local_store(const Store& s) {
  Vector& v = value(s.value);
  Type t = k_.locals[s.buffer];
  store_format(memory_type(t), v, address(stream(s.buffer, true), codegen::size_of(t)), false);
}

void Lowering::store_format(DType d, Vector& v, const Mem& to, bool masked, bool streams) {
  const int parts = v_.parts_of(v.type), step = v_.lanes_a_part(v.type) * static_cast<int>(ingot::size_of(d));
  auto one = [&](VOp op, VReg a, int p, int width) {
    Inst inst{.op = op, .width = static_cast<uint8_t>(width), .a = a, .mem = to.plus(p * step)};
    if (masked) {
      VReg m = v.type == Type::mask ? v_.narrow_mask(tail_)[0] : v_.mask_for(v.type, tail_, p);
      (op == VOp::maskstore_d || op == VOp::maskstore_q ? inst.b : inst.pred) = m;
    }
    code_.add(inst);
  };
  const bool wide_isa = v_.avx512(), by_vector = masked && !wide_isa;
  if (stored_as_it_is(d)) {
    bool wide = ingot::size_of(d) == 8;
    VOp op = by_vector ? (wide ? VOp::maskstore_q : VOp::maskstore_d)
             : streams ? VOp::store_streaming
             : wide    ? VOp::store_pd
                       : VOp::store;
    for (int p = 0; p < parts; ++p) one(op, v_.force(v.at(p)), p, code_.width);
    return;
  }
  if (d == DType::f16) {
    for (int p = 0; p < parts; ++p) one(VOp::store_half, v_.force(v.at(p)), p, code_.width);
    return;
  }
  if (wide_isa) {
    if (d == DType::bool_) {
      VReg bytes = code_.vector();
      code_.add({.op = VOp::load_bytes,
                 .width = 16,
                 .zeroing = true,
                 .dst = bytes,
                 .a = code_.splat32(0x01010101),
                 .pred = v_.narrow_mask(v)[0]});
      return one(VOp::store_bytes16, bytes, 0, 16);
    }
    VReg x = v_.force(v.at(0));
    if (d == DType::bf16) x = v_.bf16_bits(x);
    return one(ingot::size_of(d) == 2 ? VOp::store_words : VOp::store_bytes, x, 0, 64);
  }
  // AVX2: cut to 16 bits, then pack two registers; packing works in halves of a register, vpermq puts them in order.
  std::array<VReg, 2> low;
  std::array<VReg, 4> mask = d == DType::bool_ ? v_.narrow_mask(v) : std::array<VReg, 4>{};
  for (int p = 0; p < 2; ++p) {
    VReg x = d == DType::bool_ ? mask[p] : v_.force(v.at(p));
    low[p] = d == DType::bf16 ? v_.bf16_bits(x)
                              : v_.emit(VOp::vand, x,
                                        code_.splat32(d == DType::bool_        ? 1
                                                      : ingot::size_of(d) == 2 ? 0xffff
                                                                               : 0xff));
  }
  VReg words = v_.emit1(VOp::vpermq, v_.emit(VOp::vpackusdw, low[0], low[1]), 0xd8);
  if (ingot::size_of(d) == 2) {
    code_.add({.op = VOp::store, .width = 32, .a = words, .mem = to});
  } else {
    VReg bytes = v_.emit1(VOp::vpermq, v_.emit(VOp::vpackuswb, words, words), 0x08);
    code_.add({.op = VOp::store_bytes16, .width = 16, .a = bytes, .mem = to});
  }
}

// One element, at column 0 of the row.
void Lowering::row_store(const Store& s) {
  Vector& v = value(s.value);
  const DType d = k_.buffers[s.buffer].dtype;
  if (stored_as_it_is(d)) {
    VReg x = v_.force(v.at(0));
    load_slot(Gpr::rax, row_slots_[s.buffer]);
    code_.add({.op = ingot::size_of(d) == 8 ? VOp::store_sd : VOp::store_ss, .a = x, .mem = Mem::at(Gpr::rax)});
    return;
  }
  if (d == DType::bool_) {
    VReg m = v_.narrow_mask(v)[0];
    code_.add({.op = v_.avx512() ? VOp::k_to_gpr : VOp::d_to_gpr, .g = Gpr::rbx, .a = m});
    g(VOp::g_andi, Gpr::rbx, int64_t(1));
  } else {
    VReg x = v_.force(v.at(0));
    if (d == DType::bf16) x = v_.bf16_bits(x);
    if (d == DType::f16) x = v_.emit1(VOp::to_half, x, 0, code_.width / 2);
    code_.add({.op = VOp::d_to_gpr, .g = Gpr::rbx, .a = x});
  }
  load_slot(Gpr::rax, row_slots_[s.buffer]);
  code_.add(
      {.op = VOp::g_store, .width = static_cast<uint8_t>(ingot::size_of(d)), .g = Gpr::rbx, .mem = Mem::at(Gpr::rax)});
}

}  // namespace ingot::codegen::x86
