#include "codegen/x86/vcode.h"

#include <algorithm>
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

void VCode::interleave(const std::vector<int32_t>& starts) {
  const size_t first = static_cast<size_t>(starts.front()), pieces = starts.size();
  for (size_t i = first; i < insts.size(); ++i)
    if (insts[i].g != Gpr::none || insts[i].op >= VOp::g_mov) return;  // addresses, flags, jumps
  std::vector<size_t> next(starts.begin(), starts.end()), end(next.begin() + 1, next.end());
  end.push_back(insts.size());
  auto registers = [](const Inst& inst) { return std::array{inst.dst, inst.a, inst.b, inst.c, inst.pred}; };
  // Where each piece touches a register for the last time; which registers are written.
  std::vector<std::unordered_map<VReg, size_t>> last(pieces);
  std::vector<bool> written(regs.size());
  for (size_t p = 0; p < pieces; ++p)
    for (size_t i = next[p]; i < end[p]; ++i) {
      for (VReg r : registers(insts[i]))
        if (r != kNoReg) last[p][r] = i;
      if (insts[i].dst != kNoReg) written[insts[i].dst] = true;
    }
  auto waits = [&](size_t piece) {
    for (VReg r : registers(insts[next[piece]])) {
      if (r == kNoReg || !written[r]) continue;
      for (size_t before = 0; before < piece; ++before)
        if (auto at = last[before].find(r); at != last[before].end() && next[before] <= at->second) return true;
    }
    return false;
  };
  // Each piece starts a little after the one before: what they do in a unit that takes long (a division) is spread.
  constexpr size_t kSkew = 8;
  auto done = [&](size_t piece) { return next[piece] - static_cast<size_t>(starts[piece]); };
  std::vector<Inst> mixed;
  for (bool more = true; more;) {
    more = false;
    for (size_t p = 0; p < pieces; ++p) {
      if (next[p] == end[p]) continue;
      more = true;
      const bool early = p && next[p - 1] != end[p - 1] && done(p) + kSkew > done(p - 1);
      if (!early && !waits(p)) mixed.push_back(insts[next[p]++]);
    }
  }
  std::copy(mixed.begin(), mixed.end(), insts.begin() + static_cast<std::ptrdiff_t>(first));
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
