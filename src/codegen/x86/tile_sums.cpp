#include "codegen/x86/tile_sums.h"

#include <cstddef>

#include "base/pieces.h"

namespace ingot::codegen::x86 {
namespace {

constexpr Gpr kSums = Gpr::r8, kSumsStride = Gpr::r10, kAdds = Gpr::rcx;

void load_field(VCode& code, Gpr to, size_t offset) { code.load(to, Mem::at(Gpr::rdi, static_cast<int64_t>(offset))); }

}  // namespace

TileSums::TileSums(const TileSpec& spec, Vectors& vectors)
    : spec_(spec),
      v_(vectors),
      code_(vectors.code()),
      type_(spec.a == DType::f64 ? Type::f64 : Type::f32),
      parts_(vectors.parts_of(type_) * spec.vectors * spec.panels),
      existing_(spec.finish && !v_.avx512() ? static_cast<int>(ceil_div(spec.finish->known_columns, 8)) : parts_),
      half_(v_.avx512() && spec.finish && kLanes * spec.vectors - spec.finish->known_columns >= kLanes / 2) {}

void TileSums::clear(int first, int last) {
  sums_.resize(static_cast<size_t>(spec_.rows * parts_));
  for (int row = 0; row < spec_.rows; ++row)
    for (int p = first; p < last; ++p) {
      if (p >= existing_) {
        sums_[index(row, p)] = code_.splat32(0);
        continue;
      }
      const VReg sum = sums_[index(row, p)] = code_.vector();
      code_.add({.op = VOp::vmovups, .width = width(), .dst = sum, .a = code_.splat32(0)});
    }
}

void TileSums::end(int part) {
  while (ends_.size() < sums_.size()) ends_.push_back(code_.vector());
  for (int row = 0; row < spec_.rows; ++row)
    code_.add({.op = VOp::vmovups, .width = width(), .dst = ends_[index(row, part)], .a = sums_[index(row, part)]});
}

std::vector<VReg> TileSums::of_part(int part) const {
  std::vector<VReg> sums;
  for (int row = 0; row < spec_.rows; ++row) sums.push_back(sums_[index(row, part)]);
  return sums;
}

void TileSums::add(int row, int p, const Source& a, VReg b) {
  VReg sum = sums_[index(row, p)];
  if (spec_.a == DType::bf16) {
    code_.add({.op = VOp::vdpbf16ps, .width = width(), .dst = sum, .a = b, .b = v_.force(a)});
  } else {
    code_.add({.op = type_ == Type::f64 ? VOp::fma_pd : VOp::fma_ps,
               .width = half_ && p + 1 == parts_ ? static_cast<uint8_t>(width() / 2) : width(),
               .dst = sum,
               .a = b,
               .b = a.reg,
               .c = sum,
               .mem = a.mem});
  }
}

void TileSums::store(const Mem& c, const Mem& accumulate) {
  const int64_t whole = kLanes * spec_.vectors;
  int64_t edge = code_.label(), done = code_.label();
  code_.load(kSums, c);
  load_field(code_, kSumsStride, offsetof(TileFrame, c_stride));
  if (spec_.panels > 1) {  // no edge
    code_.load(kAdds, accumulate);
    return write({});
  }
  load_field(code_, Gpr::rax, offsetof(TileFrame, columns));
  code_.load(kAdds, accumulate);
  code_.g(VOp::g_cmpi, Gpr::rax, whole);
  code_.jump(edge, Cond::less);
  write({});
  code_.jump(done);
  code_.place(edge);
  write(edge_masks());
  code_.place(done);
}

TileSums::Masks TileSums::edge_masks(bool in_registers) {
  Masks masks;
  const int lanes = v_.lanes_a_part(type_);
  if (v_.avx512()) {
    code_.g(VOp::g_imm, Gpr::r9, -1);
    code_.g(VOp::g_bzhi, Gpr::r9, Gpr::rax);
    for (int p = 0; p < parts_; ++p) {
      const VReg mask = code_.mask();
      code_.add({.op = VOp::k_from_gpr, .g = Gpr::r9, .dst = mask});
      code_.g(VOp::g_shri, Gpr::r9, lanes);
      masks.emplace_back(mask);
    }
    return masks;
  }
  VReg count = code_.vector();
  const bool wide = type_ == Type::f64;
  code_.add({.op = VOp::q_from_gpr, .g = Gpr::rax, .dst = count});
  count = v_.emit1(wide ? VOp::vpbroadcastq : VOp::vpbroadcastd, count, 0, code_.width, 16);
  for (int p = 0; p < parts_; ++p) {
    const VReg mask = v_.emit(wide ? VOp::vpcmpgtq : VOp::vpcmpgtd, count, code_.counting(wide ? 8 : 4, p * lanes));
    const Mem at = in_registers ? Mem() : Mem::frame(code_.reserve(code_.width, code_.width));
    if (!in_registers) code_.add({.op = VOp::store, .width = width(), .a = mask, .mem = at});
    masks.push_back(in_registers ? Source(mask) : Source(at));
  }
  return masks;
}

/// kAdds: whether to add to what C holds. No masks: all columns exist.
void TileSums::write(const Masks& masks) {
  int64_t overwrite = code_.label(), done = code_.label();
  code_.g(VOp::g_cmpi, kAdds, 0);
  code_.jump(overwrite, Cond::equal);
  rows(masks, true);
  code_.jump(done);
  code_.place(overwrite);
  rows(masks, false);
  code_.place(done);
}

void TileSums::rows(const Masks& masks, bool accumulate) {
  const bool wide = type_ == Type::f64, masked = !masks.empty(), by_vector = masked && !v_.avx512();
  for (int row = 0; row < spec_.rows; ++row) {
    for (int p = 0; p < parts_; ++p) {
      Mem at = Mem::at(kSums, p * code_.width);
      VReg sum = all()[index(row, p)];
      if (accumulate) v_.emit(wide ? VOp::vaddpd : VOp::vaddps, held(at, masks.of(p)), sum, 0, sum);
      Inst out{.op = by_vector ? (wide ? VOp::maskstore_q : VOp::maskstore_d)
                     : wide    ? VOp::store_pd
                               : VOp::store,
               .width = width(),
               .a = sum,
               .mem = at};
      if (masked) (by_vector ? out.b : out.pred) = v_.force(masks.of(p));
      code_.add(out);
    }
    if (row + 1 < spec_.rows) code_.g(VOp::g_add, kSums, kSumsStride);
  }
}

VReg TileSums::held(const Mem& at, const Source& mask) {
  const bool wide = type_ == Type::f64, masked = mask.reg != kNoReg || mask.mem, by_vector = masked && !v_.avx512();
  Inst inst{.op = by_vector ? (wide ? VOp::maskload_q : VOp::maskload_d)
                  : wide    ? VOp::vmovupd
                            : VOp::vmovups,
            .width = width(),
            .zeroing = masked,
            .mem = at};
  if (masked) (by_vector ? inst.b : inst.pred) = v_.force(mask);
  inst.dst = code_.vector();
  code_.add(inst);
  return inst.dst;
}

}  // namespace ingot::codegen::x86
