#include "codegen/x86/analysis.h"

#include <algorithm>

namespace ingot::codegen::x86 {

Analysis::Analysis(const Kernel& kernel) : k_(kernel), level_(find_levels(kernel)) {
  find_halves(k_, halves_);
  std::replace(level_.begin(), level_.end(), Level::plane, Level::call);
  uint64_t regions = 0;
  for (const Node& n : k_.nodes)
    if (n.op == Op::rare) regions = std::max(regions, n.imm);
  fused_.assign(k_.nodes.size(), false);
  for (const Node& n : k_.nodes)
    if (picks_by_comparison(n)) fused_[n.a] = true;
  for (const Node& n : k_.nodes) {
    const bool picks = picks_by_comparison(n);
    for (Value o : {n.a, n.b, n.c})
      if (o != kNone && !(picks && o == n.a)) fused_[o] = false;
  }
  for (const Reduction& r : k_.reductions) fused_[r.value] = false;
  for (const Phase& p : k_.phases)
    for (const auto* stores : {&p.stores, &p.local_stores, &p.row_stores})
      for (const Store& s : *stores) fused_[s.value] = false;
  region_level_.assign(regions + 1, Level::column);
  for (Value v = 0; v < size(); ++v)
    if (node(v).op == Op::rare) region_level_[node(v).imm] = level_[v];
}

/// x < y ? x : y and x < y ? y : x are the processor's minimum and maximum.
bool Analysis::picks_by_comparison(const Node& n) const {
  if (n.op != Op::select || (n.type != Type::f32 && n.type != Type::f64)) return false;
  const Node& m = node(n.a);
  return m.op == Op::lt && ((m.a == n.b && m.b == n.c) || (m.a == n.c && m.b == n.b));
}

bool Analysis::has_32_bits(Value v, int depth) const {
  constexpr int kDeepest = 4;
  const Node& n = node(v);
  auto below = [&](Value x, uint64_t limit) { return node(x).op == Op::constant && node(x).imm < limit; };
  switch (n.op) {
    case Op::constant:
      return n.imm >> 32 == 0;
    case Op::bit_and:
      return below(n.a, uint64_t{1} << 32) || below(n.b, uint64_t{1} << 32);
    case Op::shr:
      return node(n.b).op == Op::constant && !below(n.b, 32);
    case Op::bit_or:
    case Op::bit_xor:
      return depth < kDeepest && has_32_bits(n.a, depth + 1) && has_32_bits(n.b, depth + 1);
    default:
      return false;
  }
}

Value Analysis::uniform_index(Value load) const {
  const Value index = node(load).a;
  return level(load) == Level::column && index != kNone && level(index) != Level::column ? index : kNone;
}

bool Analysis::indexed(uint32_t buffer) const {
  return std::any_of(k_.nodes.begin(), k_.nodes.end(),
                     [&](const Node& n) { return n.op == Op::load && n.imm == buffer && n.a != kNone; });
}

}  // namespace ingot::codegen::x86
