// Addresses and loads of a loop kernel. A load never touches a byte outside of the columns that exist.
#include "base/error.h"
#include "codegen/x86/lower.h"

namespace ingot::codegen::x86 {

Stream& Lowering::stream(uint32_t number, bool local, Value index) {
  for (Stream& s : streams_)
    if (s.number == number && s.local == local && s.index == index) return s;
  int64_t slot = !local && index == kNone ? row_slots_[number] : code_.reserve(8);
  streams_.push_back({number, local, index, slot, Gpr::none, false});
  return streams_.back();
}

Value Lowering::uniform_index(const Node& load) const {
  return load.a != kNone && level_[load.a] != Level::column ? load.a : kNone;
}

/// The streams of a phase, in order of first use.
std::vector<Stream*> Lowering::streams_of(const std::vector<bool>& live, const Phase& phase) {
  std::vector<Stream*> used;
  auto use = [&](uint32_t number, bool local, Value index) {
    Stream* s = &stream(number, local, index);
    if (std::find(used.begin(), used.end(), s) == used.end()) used.push_back(s);
  };
  for (Value v = 0; v < k_.nodes.size(); ++v) {
    const Node& n = node(v);
    if (!live[v] || level_[v] != Level::column) continue;
    if (n.op == Op::load) use(static_cast<uint32_t>(n.imm), false, uniform_index(n));
    if (n.op == Op::local) use(static_cast<uint32_t>(n.imm), true, kNone);
  }
  for (const Store& s : phase.stores) use(s.buffer, false, kNone);
  for (const Store& s : phase.local_stores) use(s.buffer, true, kNone);
  return used;
}

bool Lowering::wants_register(const Stream& s) const { return s.local || k_.buffers[s.number].access == Access::dense; }

/// A register for each stream, while they last.
void Lowering::assign_registers(const std::vector<Stream*>& used) {
  for (Stream* s : used)
    if (wants_register(*s))
      s->reg = next_register_ < std::size(kStreamRegisters) ? kStreamRegisters[next_register_++] : Gpr::none;
}

/// Before a phase: addresses that depend on values of this row, and what registers do not hold yet.
void Lowering::load_streams(const std::vector<Stream*>& used, bool resident) {
  for (Stream* s : used) {
    const bool indexed = s->index != kNone;
    if (indexed) {
      code_.add({.op = VOp::q_to_gpr, .g = Gpr::rax, .a = value(s->index).part[0].reg});
      g(VOp::g_imulm, Gpr::rax, Mem::frame(index_stride_slots_[s->number]));
      g(VOp::g_addm, Gpr::rax, Mem::frame(row_slots_[s->number]));
      store_slot(s->slot, Gpr::rax);
    }
    if (s->reg != Gpr::none && (indexed || !resident)) load_slot(s->reg, s->slot);
  }
}

Mem Lowering::address(Stream& s, int64_t bytes) {
  Gpr base = s.reg;
  if (base == Gpr::none) {
    base = Gpr::rax;
    load_slot(base, s.slot);
  }
  return Mem::at(base, Gpr::rcx, static_cast<int>(bytes), column_offset_ * bytes);
}

void Lowering::address_to_rax(Stream& s, bool moves) {
  if (!moves) return load_slot(Gpr::rax, s.slot);
  g(VOp::g_mov, Gpr::rax, Gpr::rcx);
  if (column_offset_) g(VOp::g_addi, Gpr::rax, column_offset_);
  const Buffer& b = k_.buffers[s.number];
  if (b.access == Access::strided) {
    g(VOp::g_imulm, Gpr::rax, Mem::frame(stride_slots_[s.number]));
  } else {
    g(VOp::g_shli, Gpr::rax,
      ingot::size_of(b.dtype) == 8   ? 3
      : ingot::size_of(b.dtype) == 4 ? 2
                                     : ingot::size_of(b.dtype) - 1);
  }
  g(VOp::g_addm, Gpr::rax, Mem::frame(s.slot));
}

/// A load with one reader, which can take it from memory.
bool Lowering::folds(Value v) {
  const Node& n = node(v);
  if (uses_[v] != 1 || region_ != n.region) return false;
  if (n.op == Op::local) return n.type != Type::mask;
  return !masked_ && stored_as_it_is(k_.buffers[n.imm].dtype);
}

Vector Lowering::load(Value v) {
  const Node& n = node(v);
  if (level_[v] == Level::row) return load_uniform(n);
  const Buffer& b = k_.buffers[n.imm];
  bool varying = n.a != kNone && level_[n.a] == Level::column;
  Stream& s = stream(static_cast<uint32_t>(n.imm), false, uniform_index(n));
  if (b.access == Access::dense && !varying) {
    if (s.reg != Gpr::none && folds(v)) {
      Vector out;
      out.type = n.type;
      out.parts = v_.parts_of(n.type);
      for (int p = 0; p < out.parts; ++p) out.part[p] = address(s, ingot::size_of(b.dtype)).plus(p * code_.width);
      return out;
    }
    return load_dense(b.dtype, address(s, ingot::size_of(b.dtype)));
  }
  Vector* index = varying ? &value(n.a) : nullptr;
  return v_.avx512() && stored_as_it_is(b.dtype) ? gather(n, s, index) : load_by_lane(n, s, index);
}

/// 16 elements side by side, or those of the masked end.
Vector Lowering::load_dense(DType d, const Mem& from) {
  if (!masked_ || v_.avx512() || stored_as_it_is(d)) return load_format(d, from, masked_);
  g(VOp::g_lea, Gpr::rax, from);
  copy_lanes(ingot::size_of(d), v_.area(2), false, ingot::size_of(d), -1);
  return load_format(d, v_.area(2), false);
}

Vector Lowering::local_load(const Node& n) {
  Stream& s = stream(static_cast<uint32_t>(n.imm), true);
  Mem from = address(s, codegen::size_of(n.type));
  Value v = static_cast<Value>(&n - k_.nodes.data());
  if (s.reg == Gpr::none || !folds(v)) return load_format(memory_type(n.type), from, false);
  Vector out;
  out.type = n.type;
  out.parts = v_.parts_of(n.type);
  for (int p = 0; p < out.parts; ++p) out.part[p] = from.plus(p * code_.width);
  return out;
}

Vector Lowering::load_format(DType d, const Mem& from, bool masked) {
  Vector out;
  out.type = register_type(d);
  const int lanes = v_.lanes_a_part(out.type), step = lanes * static_cast<int>(ingot::size_of(d));
  out.parts = v_.parts_of(out.type);
  auto one = [&](VOp op, int p, int width, int source) {
    Inst inst{.op = op,
              .width = static_cast<uint8_t>(width),
              .from = static_cast<uint8_t>(source),
              .mem = from.plus(p * step)};
    inst.dst = code_.vector();
    if (masked) {
      if (op == VOp::maskload_d || op == VOp::maskload_q) {
        inst.b = v_.mask_for(out.type, tail_, p);
      } else {
        inst.pred = out.type == Type::mask ? v_.narrow_mask(tail_)[0] : v_.mask_for(out.type, tail_, p);
        inst.zeroing = true;
      }
    }
    code_.add(inst);
    return inst.dst;
  };
  if (d == DType::bool_ && v_.avx512()) {
    VReg bytes = one(masked ? VOp::load_bytes : VOp::vmovups, 0, 16, 0), mask = code_.mask();
    code_.add({.op = VOp::test_b, .width = 16, .dst = mask, .a = bytes});
    out.part[0] = mask;
    return out;
  }
  for (int p = 0; p < out.parts; ++p) {
    bool by_vector = masked && !v_.avx512();
    switch (d) {
      case DType::f32:
      case DType::i32:
        out.part[p] = one(by_vector ? VOp::maskload_d : VOp::vmovups, p, code_.width, 0);
        break;
      case DType::f64:
      case DType::i64:
        out.part[p] = one(by_vector ? VOp::maskload_q : VOp::vmovupd, p, code_.width, 0);
        break;
      case DType::f16:
        out.part[p] = one(VOp::vcvtph2ps, p, code_.width, step);
        break;
      case DType::bf16:
        out.part[p] = v_.emit1(VOp::vpslld, one(VOp::vpmovzxwd, p, code_.width, step), 16);
        break;
      case DType::i16:
        out.part[p] = one(VOp::vpmovsxwd, p, code_.width, step);
        break;
      case DType::i8:
        out.part[p] = one(VOp::vpmovsxbd, p, code_.width, step);
        break;
      case DType::u8:
        out.part[p] = one(VOp::vpmovzxbd, p, code_.width, step);
        break;
      default:  // bool: 0..255 above 0
        out.part[p] = v_.emit(VOp::vpcmpgtd, one(VOp::vpmovzxbd, p, code_.width, step), code_.splat32(0));
    }
  }
  return out;
}

// One element for the whole row.
Vector Lowering::load_uniform(const Node& n) {
  const uint32_t b = static_cast<uint32_t>(n.imm);
  if (n.a == kNone) {
    load_slot(Gpr::rax, row_slots_[b]);
  } else {
    code_.add({.op = VOp::q_to_gpr, .g = Gpr::rax, .a = value(n.a).part[0].reg});
    g(VOp::g_imulm, Gpr::rax, Mem::frame(index_stride_slots_[b]));
    g(VOp::g_addm, Gpr::rax, Mem::frame(row_slots_[b]));
  }
  DType d = k_.buffers[b].dtype;
  Mem from = Mem::at(Gpr::rax);
  Vector out;
  out.type = n.type;
  out.uniform = true;
  out.parts = 1;
  if (stored_as_it_is(d)) {
    out.part[0] = v_.emit1(ingot::size_of(d) == 8 ? VOp::vbroadcastsd : VOp::vbroadcastss, from);
    return out;
  }
  code_.add({.op = VOp::g_load, .width = static_cast<uint8_t>(ingot::size_of(d)), .g = Gpr::rax, .mem = from});
  Vector wide = broadcast_gpr(Type::i32, Gpr::rax);
  VReg x = wide.part[0].reg;
  switch (d) {
    case DType::f16:  // the lanes hold a half in their low word: pair them up
      out.part[0] = v_.broadcast_first([&] {
                        Vector half = wide;
                        half.part[0] = v_.emit1(VOp::vcvtph2ps, x, 0, code_.width, code_.width / 2);
                        return half;
                      }())
                        .part[0];
      break;
    case DType::bf16:
      out.part[0] = v_.emit1(VOp::vpslld, x, 16);
      break;
    case DType::i16:
      out.part[0] = v_.emit1(VOp::vpsrad, v_.emit1(VOp::vpslld, x, 16), 16);
      break;
    case DType::i8:
      out.part[0] = v_.emit1(VOp::vpsrad, v_.emit1(VOp::vpslld, x, 24), 24);
      break;
    case DType::u8:
      out.part[0] = x;
      break;
    default: {
      Vector zero = v_.constant(Type::i32, 0);
      Vector mask = v_.compare(Op::ne, wide, zero);
      if (mask.wide[0] == kNoReg) mask.wide[0] = mask.part[0].reg;
      return mask;
    }
  }
  return out;
}

/// The end of a loop over the lanes, which r14 counts.
void Lowering::next_lane(int64_t head) {
  g(VOp::g_addi, Gpr::r14, int64_t(1));
  if (masked_) {
    g(VOp::g_cmpm, Gpr::r14, Mem::frame(tail_count_));
  } else {
    g(VOp::g_cmpi, Gpr::r14, int64_t(kLanes));
  }
  code_.jump(head, Cond::less);
}

// Elements between rax (moving by a step) and an area of the frame (side by side).
void Lowering::copy_lanes(int64_t bytes, const Mem& area, bool to_memory, int64_t fixed_step, int64_t step_slot) {
  Mem lane = area;
  lane.index = Gpr::r14;
  lane.scale = static_cast<uint8_t>(bytes);
  const uint8_t width = static_cast<uint8_t>(bytes);
  g(VOp::g_imm, Gpr::r14, int64_t(0));
  int64_t head = code_.label();
  code_.place(head);
  code_.add({.op = VOp::g_load, .width = width, .g = Gpr::rbx, .mem = to_memory ? lane : Mem::at(Gpr::rax)});
  code_.add({.op = VOp::g_store, .width = width, .g = Gpr::rbx, .mem = to_memory ? Mem::at(Gpr::rax) : lane});
  if (step_slot >= 0) {
    g(VOp::g_addm, Gpr::rax, Mem::frame(step_slot));
  } else {
    g(VOp::g_addi, Gpr::rax, fixed_step);
  }
  next_lane(head);
}

Vector Lowering::load_by_lane(const Node& n, Stream& s, Vector* index) {
  const Buffer& b = k_.buffers[n.imm];
  const int64_t bytes = ingot::size_of(b.dtype);
  if (!index) {
    address_to_rax(s, true);
    copy_lanes(bytes, v_.area(2), false, bytes, b.access == Access::strided ? stride_slots_[s.number] : -1);
    return load_format(b.dtype, v_.area(2), false);
  }
  // rax: the address of the column, to which each lane adds its index.
  v_.store_area(0, *index);
  address_to_rax(s, b.access != Access::uniform);
  Mem from = v_.area(0), to = v_.area(2);
  from.index = to.index = Gpr::r14;
  from.scale = 8;
  to.scale = static_cast<uint8_t>(bytes);
  g(VOp::g_imm, Gpr::r14, int64_t(0));
  int64_t head = code_.label();
  code_.place(head);
  g(VOp::g_load, Gpr::rbx, from);
  g(VOp::g_imulm, Gpr::rbx, Mem::frame(index_stride_slots_[s.number]));
  code_.add(
      {.op = VOp::g_load, .width = static_cast<uint8_t>(bytes), .g = Gpr::rbx, .mem = Mem::at(Gpr::rax, Gpr::rbx, 1)});
  code_.add({.op = VOp::g_store, .width = static_cast<uint8_t>(bytes), .g = Gpr::rbx, .mem = to});
  if (b.access == Access::strided) {
    g(VOp::g_addm, Gpr::rax, Mem::frame(stride_slots_[s.number]));
  } else if (b.access == Access::dense) {
    g(VOp::g_addi, Gpr::rax, bytes);
  }
  next_lane(head);
  return load_format(b.dtype, v_.area(2), false);
}

Vector Lowering::gather(const Node& n, Stream& s, Vector* index) {
  const Buffer& b = k_.buffers[n.imm];
  Vector offsets = lane_offsets_[s.number];
  if (index) {
    Vector scaled = v_.binary(Op::mul, *index, index_scale_[s.number]);
    offsets = b.access == Access::uniform ? scaled : v_.binary(Op::add, scaled, lane_offsets_[s.number]);
  }
  const bool wide = ingot::size_of(b.dtype) == 8;
  Vector out;
  out.type = n.type;
  out.parts = v_.parts_of(n.type);
  VReg half[2];
  address_to_rax(s, b.access != Access::uniform);
  g(VOp::g_imm, Gpr::rbx, int64_t(0xff));
  for (int p = 0; p < 2; ++p) {
    VReg lanes = code_.mask(), dst = code_.vector();  // the gather clears its mask
    if (masked_) {
      code_.add({.op = VOp::kmov, .dst = lanes, .a = v_.wide_mask(tail_)[p]});
    } else {
      code_.add({.op = VOp::k_from_gpr, .g = Gpr::rbx, .dst = lanes});
    }
    code_.add({.op = VOp::vmovups, .width = 64, .dst = dst, .a = code_.splat32(0)});
    code_.add({.op = wide ? VOp::gather_pd : VOp::gather_ps,
               .width = static_cast<uint8_t>(wide ? 64 : 32),
               .dst = dst,
               .a = offsets.reg(p),
               .pred = lanes,
               .mem = Mem::at(Gpr::rax)});
    half[p] = dst;
  }
  if (wide) {
    out.part[0] = half[0];
    out.part[1] = half[1];
  } else {
    out.part[0] = v_.emit(VOp::insert_half, half[0], half[1]);
  }
  return out;
}

}  // namespace ingot::codegen::x86
