#include "codegen/x86/memory.h"

#include "codegen/x86/arithmetic.h"
#include "codegen/x86/convert.h"
#include "codegen/x86/formats.h"
#include "codegen/x86/lanes.h"

namespace ingot::codegen::x86 {

void Memory::prepare_gathers() {
  if (!v_.avx512()) return;
  lane_offsets_.resize(k_.buffers.size());
  index_scale_.resize(k_.buffers.size());
  for (uint32_t b = 0; b < k_.buffers.size(); ++b) {
    DType d = k_.buffers[b].dtype;
    if (!stored_as_it_is(d)) continue;
    auto scaled = [&](const Mem& slot) {
      code_.load(Gpr::rax, slot);
      return broadcast(v_, Type::i64, Gpr::rax);
    };
    if (frame_.index_stride(b)) index_scale_[b] = scaled(frame_.index_stride(b));
    Vector lanes = lane_numbers(v_, Type::i64);
    if (k_.buffers[b].access == Access::strided) {
      Vector stride = scaled(frame_.column_stride(b));
      lane_offsets_[b] = binary(v_, Op::mul, lanes, stride);
    } else if (k_.buffers[b].access == Access::dense && frame_.index_stride(b)) {
      Vector size = v_.constant(Type::i64, static_cast<uint64_t>(ingot::size_of(d)));
      lane_offsets_[b] = binary(v_, Op::mul, lanes, size);
    }
  }
}

Vector Memory::load(Value v, Vector* index, bool one_reader) {
  const Node& n = analysis_.node(v);
  const uint32_t number = static_cast<uint32_t>(n.imm);
  const Buffer& b = k_.buffers[number];
  if (analysis_.level(v) == Level::row) {
    if (index) {
      streams_.index_to_rax(number, *index);
      return broadcast_element(v_, b.dtype, Mem::at(Gpr::rax));
    }
    const Gpr held = streams_.get(number, false).reg, at = held != Gpr::none ? held : Gpr::rax;
    if (held == Gpr::none) code_.load(at, frame_.row(number));
    return broadcast_element(v_, b.dtype, Mem::at(at));
  }
  Stream& s = streams_.get(number, false, analysis_.uniform_index(v));
  if (b.access == Access::dense && !index) {
    const Mem from = streams_.address(s, ingot::size_of(b.dtype));
    const bool whole = !frame_.tail() && stored_as_it_is(b.dtype);
    return one_reader && whole && s.reg != Gpr::none ? as_it_lies(n.type, from) : load_dense(b.dtype, from);
  }
  if (b.stride < 0 && !index && !frame_.tail()) return load_backwards(b, s);
  if (!v_.avx512() || !stored_as_it_is(b.dtype)) return load_by_lane(n, s, index);
  return !index && !frame_.tail() && picks_strided(code_.isa, b) ? pick_strided(n, b, s) : gather(n, s, index);
}

Vector Memory::load_local(Value v, bool one_reader) {
  const Node& n = analysis_.node(v);
  Stream& s = streams_.get(static_cast<uint32_t>(n.imm), true);
  const Mem from = streams_.address(s, codegen::size_of(n.type));
  if (one_reader && n.type != Type::mask && s.reg != Gpr::none) return as_it_lies(n.type, from);
  return load_elements(v_, memory_type(n.type), from);
}

Vector Memory::as_it_lies(Type type, const Mem& from) {
  Vector out;
  out.type = type;
  out.parts = v_.parts_of(type);
  for (int p = 0; p < out.parts; ++p) out.part[p] = from.plus(p * code_.width);
  return out;
}

Vector Memory::load_dense(DType d, const Mem& from) {
  if (!frame_.tail() || v_.avx512() || stored_as_it_is(d)) return load_elements(v_, d, from, frame_.tail());
  code_.g(VOp::g_lea, Gpr::rax, from);
  copy_lanes(ingot::size_of(d), v_.area(2), false);
  return load_elements(v_, d, v_.area(2));
}

void Memory::store_dense(DType d, Vector& x, const Mem& to) {
  Vector* tail = frame_.tail();
  if (!tail || v_.avx512() || stored_as_it_is(d)) return store_elements(v_, d, x, to, tail, k_.streams && !tail);
  store_elements(v_, d, x, v_.area(2));
  code_.g(VOp::g_lea, Gpr::rax, to);
  copy_lanes(ingot::size_of(d), v_.area(2), true);
}

void Memory::store(const Store& store, Vector& number) {
  Buffer b = k_.buffers[store.buffer];
  const Stream& to = streams_.get(store.buffer, false);
  const int64_t bytes = ingot::size_of(b.dtype);
  // What is a bf16 already is not rounded once more.
  Vector words;
  const bool rounded = b.dtype == DType::bf16 && analysis_.is_half(store.value, DType::bf16);
  if (rounded) words = high_words(v_, number), b.dtype = DType::i16;
  Vector& x = rounded ? words : number;
  // A uniform destination is one place: it is written by a call of one column.
  if (b.access != Access::strided) return store_dense(b.dtype, x, streams_.address(to, bytes));
  if (!frame_.tail() && picks_strided(code_.isa, b)) return spread_strided(b, x, to);
  store_elements(v_, b.dtype, x, v_.area(2));
  streams_.address_to_rax(to, true);
  copy_lanes(bytes, v_.area(2), true, frame_.column_stride(store.buffer));
}

/// Elements a few apart, each to its place in the whole vectors that they lie in; what lies between them stays.
void Memory::spread_strided(const Buffer& b, Vector& x, const Stream& to) {
  const int bytes = static_cast<int>(ingot::size_of(b.dtype)), whole = code_.width / bytes;
  const int lanes = v_.lanes_a_part(x.type);
  streams_.address_to_rax(to, true);
  for (int p = 0; p < v_.parts_of(x.type); ++p) {
    const VReg elements = v_.force(x.at(p));
    for (int first = 0; first < lanes * b.stride; first += whole) {
      Constant numbers;
      uint64_t there = 0;
      for (int place = 0; place < whole; ++place) {
        if ((first + place) % b.stride) continue;
        numbers.bytes[static_cast<size_t>(place * bytes)] = static_cast<uint8_t>((first + place) / b.stride);
        there |= uint64_t{1} << place;
      }
      const VReg mask = code_.mask();
      code_.g(VOp::g_imm, Gpr::rbx, static_cast<int64_t>(there));
      code_.add({.op = VOp::k_from_gpr, .g = Gpr::rbx, .dst = mask});
      code_.add({.op = bytes == 8 ? VOp::store_pd : VOp::store,
                 .width = static_cast<uint8_t>(code_.width),
                 .a = v_.emit(bytes == 8 ? VOp::vpermpd : VOp::vpermps, code_.constant(numbers), elements),
                 .pred = mask,
                 .mem = Mem::at(Gpr::rax, (p * lanes * b.stride + first) * bytes)});
    }
  }
}

void Memory::store_local(uint32_t local, Vector& x) {
  const Type t = k_.locals[local];
  store_elements(v_, memory_type(t), x, streams_.address(streams_.get(local, true), codegen::size_of(t)));
}

void Memory::store_row(uint32_t buffer, Vector& x) {
  const DType d = k_.buffers[buffer].dtype;
  if (stored_as_it_is(d)) {
    VReg element = v_.force(x.at(0));
    code_.load(Gpr::rax, frame_.row(buffer));
    code_.add({.op = ingot::size_of(d) == 8 ? VOp::store_sd : VOp::store_ss, .a = element, .mem = Mem::at(Gpr::rax)});
    return;
  }
  if (d == DType::bool_) {
    VReg m = v_.narrow_mask(x)[0];
    code_.add({.op = v_.avx512() ? VOp::k_to_gpr : VOp::d_to_gpr, .g = Gpr::rbx, .a = m});
    code_.g(VOp::g_andi, Gpr::rbx, 1);
  } else {
    VReg element = v_.force(x.at(0));
    if (d == DType::bf16) element = bf16_bits(v_, element);
    if (d == DType::f16) element = v_.emit1(VOp::to_half, element, 0, code_.width / 2);
    code_.add({.op = VOp::d_to_gpr, .g = Gpr::rbx, .a = element});
  }
  code_.load(Gpr::rax, frame_.row(buffer));
  code_.add(
      {.op = VOp::g_store, .width = static_cast<uint8_t>(ingot::size_of(d)), .g = Gpr::rbx, .mem = Mem::at(Gpr::rax)});
}

/// The end of a loop over the lanes, which r14 counts.
void Memory::next_lane(const Loop& loop) {
  code_.g(VOp::g_addi, Gpr::r14, 1);
  if (frame_.tail()) {
    code_.g(VOp::g_cmpm, Gpr::r14, frame_.at(Slot::tail_count));
  } else {
    code_.g(VOp::g_cmpi, Gpr::r14, kLanes);
  }
  code_.end_loop(loop, Cond::less);
}

/// Elements between rax, which moves by `step` or else from one to the next, and an area of the frame (side by side).
void Memory::copy_lanes(int64_t bytes, const Mem& area, bool to_memory, const Mem& step) {
  const uint8_t width = static_cast<uint8_t>(bytes);
  auto move = [&](const Mem& lane, const Mem& at) {
    code_.add({.op = VOp::g_load, .width = width, .g = Gpr::rbx, .mem = to_memory ? lane : at});
    code_.add({.op = VOp::g_store, .width = width, .g = Gpr::rbx, .mem = to_memory ? at : lane});
  };
  if (!frame_.tail()) {  // no loop
    if (step) code_.load(Gpr::r14, step);
    for (int lane = 0; lane < kLanes; ++lane) {
      move(area.plus(lane * bytes), Mem::at(Gpr::rax, step ? 0 : lane * bytes));
      if (step && lane + 1 < kLanes) code_.g(VOp::g_add, Gpr::rax, Gpr::r14);
    }
    return;
  }
  Mem lane = area;
  lane.index = Gpr::r14;
  lane.scale = width;
  code_.g(VOp::g_imm, Gpr::r14, 0);
  const Loop loop = code_.begin_loop();
  move(lane, Mem::at(Gpr::rax));
  if (step) {
    code_.g(VOp::g_addm, Gpr::rax, step);
  } else {
    code_.g(VOp::g_addi, Gpr::rax, bytes);
  }
  next_lane(loop);
}

/// Sixteen elements of 4 or 8 bytes from the addresses of each, which are asked for in order. AVX2: pairs, then pairs
/// of pairs; by way of memory a load would wait for all of the stores.
template <class Address>
Vector Memory::from_lanes(Type type, Address address) {
  const bool wide = codegen::size_of(type) == 8;
  const int loaded = wide ? 32 : 16;  // bytes: what broadcasts to 128 bits is of 4 bytes
  auto build = [&](auto self, int lane, int count) -> VReg {
    if (count == 1) return v_.emit1(wide ? VOp::vbroadcastsd : VOp::vbroadcastss, Source(address(lane)), 0, loaded);
    const VReg low = self(self, lane, count / 2), high = self(self, lane + count / 2, count / 2);
    if (count == (wide ? 4 : 8)) return v_.emit(VOp::insert_half, low, high);
    return v_.emit(count == 2 && !wide ? VOp::vunpcklps : VOp::vunpcklpd, low, high, 0, kNoReg, loaded);
  };
  Vector out;
  out.type = type;
  out.parts = v_.parts_of(type);
  const int lanes = v_.lanes_a_part(type);
  for (int p = 0; p < out.parts; ++p) out.part[p] = build(build, p * lanes, lanes);
  return out;
}

/// AVX2: every other element of 4 bytes from rax on. The second of two vectors ends with the last element.
Vector Memory::every_other(Type type) {
  Vector out;
  out.type = type;
  out.parts = v_.parts_of(type);
  for (int p = 0; p < out.parts; ++p) {
    const Mem from = Mem::at(Gpr::rax, p * 2 * code_.width);
    // Elements 0 2 8 10 and 4 6 12 14 (the second begins at 7); then their pairs in order.
    out.part[p] = v_.emit1(VOp::vpermq, v_.emit(VOp::vshufps, from, from.plus(code_.width - 4), 0xd8), 0xd8);
  }
  return out;
}

/// Of a stream that is not dense, without an index.
Vector Memory::load_strided(const Node& n, const Buffer& b, Stream& s) {
  streams_.address_to_rax(s, true);
  const Mem stride = frame_.column_stride(s.number);
  if (frame_.tail() || !stored_as_it_is(b.dtype)) {
    copy_lanes(ingot::size_of(b.dtype), v_.area(2), false, stride);
    return load_elements(v_, b.dtype, v_.area(2));
  }
  if (b.stride == 2 && ingot::size_of(b.dtype) == 4) return every_other(n.type);
  code_.load(Gpr::r14, stride);
  code_.add({.op = VOp::g_lea, .g = Gpr::rbx, .mem = Mem::at(Gpr::r14, Gpr::r14, 2)});
  return from_lanes(n.type, [&](int lane) {
    if (lane > 0 && lane % 4 == 0) code_.add({.op = VOp::g_lea, .g = Gpr::rax, .mem = Mem::at(Gpr::rax, Gpr::r14, 4)});
    return lane % 4 == 0   ? Mem::at(Gpr::rax)
           : lane % 4 == 3 ? Mem::at(Gpr::rax, Gpr::rbx, 1)
                           : Mem::at(Gpr::rax, Gpr::r14, lane % 4);
  });
}

Vector Memory::load_by_lane(const Node& n, Stream& s, Vector* index) {
  const Buffer& b = k_.buffers[n.imm];
  const int64_t bytes = ingot::size_of(b.dtype);
  if (!index) return load_strided(n, b, s);
  // rax: the address of the column, to which each lane adds its index.
  store_area(v_, 0, *index);
  streams_.address_to_rax(s, b.access != Access::uniform);
  Mem from = v_.area(0), to = v_.area(2);
  const Mem scale = frame_.index_stride(s.number);
  if (!frame_.tail() && stored_as_it_is(b.dtype)) {
    if (b.access == Access::strided) code_.load(Gpr::r14, frame_.column_stride(s.number));
    return from_lanes(n.type, [&](int lane) {
      if (lane > 0 && b.access == Access::strided) code_.g(VOp::g_add, Gpr::rax, Gpr::r14);
      code_.load(Gpr::rbx, from.plus(lane * 8));
      code_.g(VOp::g_imulm, Gpr::rbx, scale);
      return Mem::at(Gpr::rax, Gpr::rbx, 1, b.access == Access::dense ? lane * bytes : 0);
    });
  }
  from.index = to.index = Gpr::r14;
  from.scale = 8;
  to.scale = static_cast<uint8_t>(bytes);
  code_.g(VOp::g_imm, Gpr::r14, 0);
  const Loop loop = code_.begin_loop();
  code_.load(Gpr::rbx, from);
  code_.g(VOp::g_imulm, Gpr::rbx, scale);
  code_.add(
      {.op = VOp::g_load, .width = static_cast<uint8_t>(bytes), .g = Gpr::rbx, .mem = Mem::at(Gpr::rax, Gpr::rbx, 1)});
  code_.add({.op = VOp::g_store, .width = static_cast<uint8_t>(bytes), .g = Gpr::rbx, .mem = to});
  if (b.access == Access::strided) {
    code_.g(VOp::g_addm, Gpr::rax, frame_.column_stride(s.number));
  } else if (b.access == Access::dense) {
    code_.g(VOp::g_addi, Gpr::rax, bytes);
  }
  next_lane(loop);
  return load_elements(v_, b.dtype, v_.area(2));
}

/// Elements a few apart, out of the whole vectors that they lie in (a gather takes as long as ten loads, on AMD's
/// processors). The last of these ends with the last element: no byte beyond it is read.
Vector Memory::pick_strided(const Node& n, const Buffer& b, Stream& s) {
  const int bytes = static_cast<int>(ingot::size_of(b.dtype)), whole = code_.width / bytes;
  Vector out;
  out.type = n.type;
  out.parts = v_.parts_of(n.type);
  const int lanes = v_.lanes_a_part(n.type), span = (lanes - 1) * b.stride + 1;
  const int others = (span + whole - 1) / whole - 1, last = span - whole;  // vectors before it; its first element
  streams_.address_to_rax(s, true);
  for (int p = 0; p < out.parts; ++p) {
    const Mem from = Mem::at(Gpr::rax, p * lanes * b.stride * bytes);
    VReg x = v_.force(from.plus(last * bytes));
    for (int i = 0; i < others; ++i) {
      Constant numbers;
      for (int lane = 0; lane < lanes; ++lane) {
        const int element = lane * b.stride, home = element >= last ? others : element / whole;
        const int number = home == i                  ? whole + element - i * whole
                           : home == others && i == 0 ? element - last
                                                      : lane;  // it is there, or comes later
        numbers.bytes[static_cast<size_t>(lane * bytes)] = static_cast<uint8_t>(number);
      }
      const VReg picked = code_.vector();
      code_.add({.op = bytes == 8 ? VOp::pick_pd : VOp::pick_ps,
                 .width = static_cast<uint8_t>(code_.width),
                 .dst = picked,
                 .a = x,
                 .c = code_.constant(numbers),
                 .mem = from.plus(i * code_.width)});
      x = picked;
    }
    out.part[p] = x;
  }
  return out;
}

/// Elements side by side, the last of them first.
Vector Memory::load_backwards(const Buffer& b, Stream& s) {
  const bool truth = b.dtype == DType::bool_;
  streams_.address_to_rax(s, true);
  Vector x =
      load_elements(v_, truth ? DType::u8 : b.dtype, Mem::at(Gpr::rax, (1 - v_.lanes()) * ingot::size_of(b.dtype)));
  const int bytes = static_cast<int>(codegen::size_of(x.type)), lanes = v_.lanes_a_part(x.type);
  Constant numbers;
  for (int lane = 0; lane < lanes; ++lane)
    numbers.bytes[static_cast<size_t>(lane * bytes)] = static_cast<uint8_t>(lanes - 1 - lane);
  Vector out = x;
  for (int p = 0; p < x.parts; ++p) {
    const VReg part = v_.force(x.at(x.parts - 1 - p));
    if (v_.avx512())
      out.part[p] = v_.emit(bytes == 8 ? VOp::vpermpd : VOp::vpermps, code_.constant(numbers), part);
    else if (bytes == 8)
      out.part[p] = v_.emit1(VOp::vpermq, part, 0x1b);
    else {
      const VReg halves = v_.emit1(VOp::vpermq, part, 0x4e);
      out.part[p] = v_.emit(VOp::vshufps, halves, halves, 0x1b);
    }
  }
  if (!truth) return out;
  Vector zero = v_.constant(Type::i32, 0);
  return compare(v_, Op::ne, out, zero);
}

Vector Memory::gather(const Node& n, Stream& s, Vector* index) {
  const Buffer& b = k_.buffers[n.imm];
  Vector offsets = lane_offsets_[s.number];
  if (index) {
    Vector scaled = binary(v_, Op::mul, *index, index_scale_[s.number]);
    offsets = b.access == Access::uniform ? scaled : binary(v_, Op::add, scaled, lane_offsets_[s.number]);
  }
  const bool wide = ingot::size_of(b.dtype) == 8;
  Vector out;
  out.type = n.type;
  out.parts = v_.parts_of(n.type);
  VReg half[2];
  streams_.address_to_rax(s, b.access != Access::uniform);
  code_.g(VOp::g_imm, Gpr::rbx, 0xff);
  for (int p = 0; p < 2; ++p) {
    VReg lanes = code_.mask(), dst = code_.vector();  // the gather clears its mask
    if (Vector* tail = frame_.tail()) {
      code_.add({.op = VOp::kmov, .dst = lanes, .a = v_.wide_mask(*tail)[p]});
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
