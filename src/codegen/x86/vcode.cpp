#include "codegen/x86/vcode.h"

#include <algorithm>
#include <cstring>

namespace ingot::codegen::x86 {

bool Inst::reads_dst() const {
  if (dst == kNoReg) return false;
  if (op == VOp::vdpbf16ps || op == VOp::vfixupimmps || op == VOp::gather_ps || op == VOp::gather_pd) return true;
  switch (op) {
    case VOp::blendm_ps:
    case VOp::blendm_pd:
    case VOp::cmp_ps:
    case VOp::cmp_pd:
    case VOp::cmp_d:
    case VOp::cmp_q:
    case VOp::test_b:
    case VOp::test_d:
      return false;
    default:
      return pred != kNoReg && !zeroing;
  }
}

void VCode::interleave(const std::vector<int32_t>& starts) {
  struct Piece {
    size_t begin, next, stop, end;
    std::vector<Range> jumps;               // from a test to the label behind the code that is jumped over
    std::unordered_map<VReg, size_t> last;  // where it touches a register for the last time
  };
  const size_t first = static_cast<size_t>(starts.front());
  std::vector<Piece> pieces;
  for (size_t p = 0; p < starts.size(); ++p) {
    const auto begin = static_cast<size_t>(starts[p]);
    const size_t end = p + 1 < starts.size() ? static_cast<size_t>(starts[p + 1]) : insts.size();
    pieces.push_back({begin, begin, begin, end, {}, {}});
  }
  for (const Range& range : cold)
    for (Piece& piece : pieces)
      if (static_cast<size_t>(range.begin) >= piece.begin && static_cast<size_t>(range.end) < piece.end)
        piece.jumps.push_back({range.begin - 2, range.end + 1});
  auto registers = [](const Inst& inst) { return std::array{inst.dst, inst.a, inst.b, inst.c, inst.pred}; };
  std::vector<bool> written(regs.size());
  for (Piece& piece : pieces) {
    if (piece.jumps.size() != pieces[0].jumps.size()) return;
    size_t jump = 0;
    for (size_t i = piece.begin; i < piece.end; ++i) {
      if (jump < piece.jumps.size() && i == static_cast<size_t>(piece.jumps[jump].end)) ++jump;
      const bool free = jump == piece.jumps.size() || i < static_cast<size_t>(piece.jumps[jump].begin);
      if (free && (insts[i].g != Gpr::none || insts[i].op >= VOp::g_mov)) return;  // addresses, flags, other jumps
      for (VReg r : registers(insts[i]))
        if (r != kNoReg) piece.last[r] = i;
      if (insts[i].dst != kNoReg) written[insts[i].dst] = true;
    }
  }
  auto waits = [&](size_t piece) {
    for (VReg r : registers(insts[pieces[piece].next])) {
      if (r == kNoReg || !written[r]) continue;
      for (size_t before = 0; before < piece; ++before)
        if (auto at = pieces[before].last.find(r); at != pieces[before].last.end() && pieces[before].next <= at->second)
          return true;
    }
    return false;
  };
  // Each piece starts a little after the one before: what they do in a unit that takes long (a division) is spread.
  constexpr size_t kSkew = 8;
  auto early = [&](size_t p) {
    if (p == 0 || pieces[p - 1].next == pieces[p - 1].stop) return false;
    return pieces[p].next - pieces[p].begin + kSkew > pieces[p - 1].next - pieces[p - 1].begin;
  };
  std::vector<Inst> mixed;
  std::vector<int32_t> places(insts.size() - first);
  auto take = [&](Piece& piece) {
    places[piece.next - first] = static_cast<int32_t>(first + mixed.size());
    mixed.push_back(insts[piece.next++]);
  };
  for (size_t jump = 0; jump <= pieces[0].jumps.size(); ++jump) {
    const bool ends = jump == pieces[0].jumps.size();
    for (Piece& piece : pieces) piece.stop = ends ? piece.end : static_cast<size_t>(piece.jumps[jump].begin);
    for (bool more = true; more;) {
      more = false;
      bool moved = false;
      for (size_t p = 0; p < pieces.size(); ++p) {
        if (pieces[p].next == pieces[p].stop) continue;
        more = true;
        if (early(p) || waits(p)) continue;
        take(pieces[p]);
        moved = true;
      }
      if (more && !moved) return;  // it needs what another does behind its jump
    }
    for (size_t p = 0; p < pieces.size() && !ends; ++p)
      while (pieces[p].next < static_cast<size_t>(pieces[p].jumps[jump].end)) {
        if (waits(p)) return;
        take(pieces[p]);
      }
  }
  std::copy(mixed.begin(), mixed.end(), insts.begin() + static_cast<std::ptrdiff_t>(first));
  for (Range& range : cold)
    if (static_cast<size_t>(range.begin) >= first)
      range = {places[static_cast<size_t>(range.begin) - first], places[static_cast<size_t>(range.end) - first]};
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
