#include "codegen/x86/vcode.h"

#include <cstring>

namespace ingot::codegen::x86 {

bool Inst::reads_dst() const {
  if (dst == kNoReg) return false;
  if (op == VOp::vdpbf16ps || op == VOp::gather_ps || op == VOp::gather_pd) return true;
  switch (op) {
    case VOp::blendm_ps:
    case VOp::blendm_pd:
    case VOp::cmp_ps:
    case VOp::cmp_pd:
    case VOp::cmp_d:
    case VOp::cmp_q:
    case VOp::test_b:
      return false;
    default:
      return pred != kNoReg && !zeroing;
  }
}

VReg VCode::constant(const Constant& value) {
  uint64_t last;  // tells most constants apart
  std::memcpy(&last, value.bytes.data() + width - sizeof last, sizeof last);
  auto [at, end] = known_constants_.equal_range(last);
  for (; at != end; ++at)
    if (constants[static_cast<size_t>(regs[at->second].constant)] == value) return at->second;
  constants.push_back(value);
  VReg r = add_reg({RegClass::vector, static_cast<int32_t>(constants.size() - 1), false});
  known_constants_.emplace(last, r);
  return r;
}

VReg VCode::splat32(uint32_t bits) {
  Constant c;
  for (int i = 0; i < 16; ++i) std::memcpy(&c.bytes[i * 4], &bits, 4);
  c.splat = 4;
  return constant(c);
}

VReg VCode::splat64(uint64_t bits) {
  if (static_cast<uint32_t>(bits) == static_cast<uint32_t>(bits >> 32)) return splat32(static_cast<uint32_t>(bits));
  Constant c;
  for (int i = 0; i < 8; ++i) std::memcpy(&c.bytes[i * 8], &bits, 8);
  c.splat = 8;
  return constant(c);
}

VReg VCode::counting(int element_bytes, int first) {
  Constant c;
  for (size_t at = 0; at < static_cast<size_t>(width); at += static_cast<size_t>(element_bytes))
    c.bytes[at] = static_cast<uint8_t>(first++);
  return constant(c);
}

int64_t VCode::reserve(int64_t bytes, int64_t align) {
  frame_bytes = (frame_bytes + align - 1) / align * align;
  int64_t offset = frame_bytes;
  frame_bytes += bytes;
  return offset;
}

}  // namespace ingot::codegen::x86
