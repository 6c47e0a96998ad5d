#include "codegen/x86/lanes.h"

#include <utility>

#include "base/error.h"

namespace ingot::codegen::x86 {

Vector upper(Vectors& v, Vector& a, int step, bool keep_shape) {
  Vector out = a;
  const int lanes = v.lanes_a_part(a.type), parts = v.parts_of(a.type);
  if (step >= lanes) {
    for (int p = 0; p < parts; ++p) out.part[p] = a.at((p + step / lanes) % parts);
  } else {
    // Steps of whole 128-bit lanes, then inside of one.
    int bytes = step * (a.type == Type::mask ? 4 : static_cast<int>(size_of(a.type)));
    VReg x = a.part[0].reg;
    VReg moved = bytes == 32 ? v.emit(VOp::vshuff64x2, x, x, 0x0e)
                 : bytes == 16
                     ? (v.avx512() ? v.emit(VOp::vshuff64x2, x, x, 0x01) : v.emit(VOp::vperm2f128, x, x, 0x01))
                     : v.emit1(VOp::vpshufd, x, bytes == 8 ? 0x0e : 0x01);
    for (int p = 0; p < parts; ++p) out.part[p] = moved;
  }
  if (!keep_shape && step <= lanes) {
    out.uniform = a.uniform = true;
    out.parts = a.parts = 1;
  }
  return out;
}

Vector broadcast_first(Vectors& v, const Vector& a) {
  Vector out = v.like(a.type, true);
  out.part[0] = v.emit1(size_of(a.type) == 8 ? VOp::vbroadcastsd : VOp::vbroadcastss, a.part[0], 0, v.code().width, 16);
  if (a.type == Type::mask) out.wide[0] = out.part[0].reg;
  return out;
}

Vector broadcast(Vectors& v, Type type, Gpr from) {
  Vector out = v.like(type, true);
  if (type == Type::mask) {
    v.code().g(VOp::g_andi, from, 1);
    v.code().g(VOp::g_neg, from, 0);
    if (v.avx512()) {
      out.part[0] = v.code().mask();
      v.code().add({.op = VOp::k_from_gpr, .g = from, .dst = out.part[0].reg});
      out.wide[0] = out.part[0].reg;
      return out;
    }
  }
  VReg first = v.code().vector();
  v.code().add({.op = size_of(type) == 8 ? VOp::q_from_gpr : VOp::d_from_gpr, .g = from, .dst = first});
  out.part[0] = first;
  return broadcast_first(v, out);
}

Vector lane_numbers(Vectors& v, Type type) {
  Vector out = v.like(type, false);
  const int bytes = static_cast<int>(size_of(type)), lanes = v.lanes_a_part(type);
  for (int p = 0; p < out.parts; ++p) out.part[p] = v.code().counting(bytes, p * lanes);
  return out;
}

std::vector<VReg> transposed(Vectors& v, std::vector<VReg> x, int element) {
  const int lanes = static_cast<int>(x.size());
  auto pairs = [&](VOp low, VOp high, int distance) {
    std::vector<VReg> y(x.size());
    for (int i = 0; i < lanes; ++i) {
      if (i & distance) continue;
      size_t a = static_cast<size_t>(i), b = static_cast<size_t>(i + distance);
      y[a] = v.emit(low, x[a], x[b]);
      y[b] = v.emit(high, x[a], x[b]);
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
  if (!v.avx512()) {
    for (int i = 0; i < n; ++i) {
      size_t a = static_cast<size_t>(i), b = static_cast<size_t>(i + n);
      y[a] = v.emit(VOp::vperm2f128, x[a], x[b], 0x20);
      y[b] = v.emit(VOp::vperm2f128, x[a], x[b], 0x31);
    }
    return y;
  }
  for (int i = 0; i < n; ++i) {
    auto at = [&](int group) { return x[static_cast<size_t>(i + group * n)]; };
    VReg a = v.emit(VOp::vshuff32x4, at(0), at(1), 0x88), b = v.emit(VOp::vshuff32x4, at(0), at(1), 0xdd),
         c = v.emit(VOp::vshuff32x4, at(2), at(3), 0x88), d = v.emit(VOp::vshuff32x4, at(2), at(3), 0xdd);
    y[static_cast<size_t>(i)] = v.emit(VOp::vshuff32x4, a, c, 0x88);
    y[static_cast<size_t>(i + n)] = v.emit(VOp::vshuff32x4, b, d, 0x88);
    y[static_cast<size_t>(i + 2 * n)] = v.emit(VOp::vshuff32x4, a, c, 0xdd);
    y[static_cast<size_t>(i + 3 * n)] = v.emit(VOp::vshuff32x4, b, d, 0xdd);
  }
  return y;
}

void store_area(Vectors& v, int number, Vector& x) {
  for (int p = 0; p < v.parts_of(x.type); ++p)
    v.code().add({.op = VOp::store,
                  .width = static_cast<uint8_t>(v.code().width),
                  .a = v.force(x.at(p)),
                  .mem = v.area(number).plus(p * v.code().width)});
}

Vector load_area(Vectors& v, int number, Type type, bool uniform) {
  Vector out = v.like(type, uniform);
  for (int p = 0; p < out.parts; ++p) out.part[p] = v.force(Source(v.area(number).plus(p * v.code().width)));
  return out;
}

}  // namespace ingot::codegen::x86
